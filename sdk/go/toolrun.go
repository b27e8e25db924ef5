package envai

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sync"
)

// ToolOption configures how client tools are run.
type ToolOption func(*toolSettings)

type toolSettings struct {
	ledger         Ledger
	maxConcurrency int
	onAmbiguous    func(Record) *ToolOutput
	skipViolations bool
}

// MaxConcurrency is how many handlers run at once (4).
func MaxConcurrency(handlers int) ToolOption {
	return func(s *toolSettings) { s.maxConcurrency = max(1, handlers) }
}

// OnAmbiguous is asked about a call that another life of the program began; nil leaves it to the application (the
// ledger's Unsettled, SettleToolCall) and to the server's timeout.
func OnAmbiguous(settle func(Record) *ToolOutput) ToolOption {
	return func(s *toolSettings) { s.onAmbiguous = settle }
}

// UseLedger records the calls elsewhere than in the client's ledger.
func UseLedger(ledger Ledger) ToolOption { return func(s *toolSettings) { s.ledger = ledger } }

// SkipViolations goes on past a request whose signature does not verify; it is never run either way.
func SkipViolations() ToolOption { return func(s *toolSettings) { s.skipViolations = true } }

func readToolSettings(options []ToolOption) toolSettings {
	s := toolSettings{maxConcurrency: 4}
	for _, option := range options {
		option(&s)
	}
	return s
}

// ToolRun is the events of a stream, its client tools answered beside them. Read it with Next or All, and close it.
type ToolRun struct {
	ctx    context.Context
	calls  *toolCalls
	source EventSource
	skip   bool
	stop   func() bool
	closer func()
	wake   func() // a call that fails wakes the reader, which reports it now and not with the next event

	places chan struct{}
	group  sync.WaitGroup
	once   sync.Once

	mu      sync.Mutex
	failure error
}

// RunClientTools passes on the events of stream while answering its client-tool requests.
//
// Each request is verified before anything runs, claimed where the server announces tool_claims, recorded in the ledger
// and run at most once per chat and call. One that comes in a replay waits for the replay to end, because its result
// may follow. An output is kept and sent again until the server acknowledged it, answered 409, or the turn ended; also
// one that an earlier life of the program left. Outcomes says what became of each call. ctx bounds all of it.
func (s *ChatsService) RunClientTools(ctx context.Context, stream EventSource, registry *ToolRegistry, options ...ToolOption) (*ToolRun, error) {
	return s.runTools(ctx, stream, registry, readToolSettings(options))
}

func (s *ChatsService) runTools(ctx context.Context, stream EventSource, registry *ToolRegistry, settings toolSettings) (*ToolRun, error) {
	ledger := settings.ledger
	if ledger == nil {
		var err error
		if ledger, err = s.client.Ledger(); err != nil {
			return nil, err
		}
	}
	run := &ToolRun{ctx: ctx, source: stream, skip: settings.skipViolations, places: make(chan struct{}, settings.maxConcurrency)}
	isLive, wake := func() bool { return false }, func() {}
	run.closer = func() {}
	if ours, ok := stream.(interface{ inner() *EventStream }); ok {
		inner := ours.inner()
		isLive, wake, run.closer = inner.IsLive, inner.cancel, func() { _ = inner.Close() }
	}
	run.calls = newToolCalls(s.client, registry, ledger, settings.onAmbiguous, isLive)
	run.stop = context.AfterFunc(ctx, wake)
	run.wake = wake
	return run, nil
}

// Outcomes is what became of the calls that have ended so far, in that order.
func (r *ToolRun) Outcomes() []ToolOutcome {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	return slices.Clone(r.calls.outcomes)
}

// Next is the next event, io.EOF at the end. With any error the calls are over too: their outcomes are complete.
func (r *ToolRun) Next() (Event, error) {
	event, err := r.next()
	if err != nil {
		r.finish()
		if failure := r.failed(); failure != nil {
			err = failure
		}
	}
	return event, err
}

func (r *ToolRun) next() (Event, error) {
	if failure := r.failed(); failure != nil {
		return nil, failure
	}
	event, err := r.source.Next()
	if err != nil {
		if r.ctx.Err() != nil && !errors.Is(err, io.EOF) {
			return nil, contextError(r.ctx)
		}
		return nil, err
	}
	todo, err := r.calls.admit(r.ctx, event)
	for _, work := range todo {
		r.start(work)
	}
	var forged *SignatureError
	if err != nil && !(r.skip && errors.As(err, &forged)) {
		return nil, err
	}
	return event, nil
}

// start does a call's work in a handler's place, and its delivery in none.
func (r *ToolRun) start(todo work) {
	r.group.Add(1)
	go func() {
		defer r.group.Done()
		ctx := context.WithoutCancel(r.ctx)
		r.places <- struct{}{}
		deliver, err := todo(ctx)
		<-r.places
		if err == nil && deliver != nil {
			err = deliver(ctx)
		}
		if err != nil {
			r.fail(err)
		}
	}()
}

func (r *ToolRun) fail(err error) {
	r.mu.Lock()
	if r.failure == nil {
		r.failure = err
	}
	r.mu.Unlock()
	r.wake()
}

func (r *ToolRun) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

func (r *ToolRun) finish() {
	r.calls.close()
	r.group.Wait()
	r.once.Do(func() { r.stop() })
}

// All iterates over the events and closes the run when the loop is left, however it is left.
func (r *ToolRun) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer func() { _ = r.Close() }()
		each(r, yield)
	}
}

// Close stops the handlers, leaves what is undelivered in the ledger and closes the stream.
func (r *ToolRun) Close() error {
	r.finish()
	r.closer()
	return nil
}
