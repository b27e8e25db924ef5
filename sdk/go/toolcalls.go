package envai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A client-tool call from its signed request to its delivered answer: verify, wait for the replay to pass, claim,
// record, run, keep the outcome, deliver it until that is settled. Two things never happen: a handler runs twice for
// one call, and an outcome is known to nobody but a log.

const (
	// toolMargin is the part of a tool's timeout that is ours: the server's clock started before we heard of the call.
	toolMargin     = 0.9
	unknownTimeout = 120 * time.Second // the server's default, for a tool that is not registered here
	toolSilence    = time.Second
	toolPoll       = 20 * time.Millisecond
	// postTimeout bounds one attempt to claim or to deliver: a server that hangs must not be waited for longer.
	postTimeout       = 10 * time.Second
	deliveryBaseDelay = 250 * time.Millisecond
	deliveryMaxDelay  = 5 * time.Second
	maxAsked          = 30 * time.Second
	rememberedResults = 10_000
)

// owner is this process's life: a claim by any other is not ours to finish.
var owner = rand.Text()

// toolCall is a request whose signature verified, or an output that an earlier life left to deliver.
type toolCall struct {
	ToolCall
	fingerprint string
	seen        time.Time
	deadline    time.Time
	// ctx is the handler's; over is closed once the server has a result or the turn has ended.
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{}
	once   sync.Once
}

// finish: the call is over. Its handler and its delivery stop.
func (t *toolCall) finish() {
	t.once.Do(func() { close(t.over) })
	t.cancel()
}

func (t *toolCall) cancelled() bool { return t.ctx.Err() != nil }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// toolCalls stands between a stream and the handlers: which calls are active, which are over, what became of them.
type toolCalls struct {
	client      *Client
	registry    *ToolRegistry
	ledger      Ledger
	onAmbiguous func(Record) *ToolOutput
	isLive      func() bool
	closing     chan struct{}

	mu       sync.Mutex
	active   map[string]*toolCall
	outcomes []ToolOutcome
	answered map[string]string
	order    []string
	turns    map[string]string
	ended    map[string]bool
	chats    map[string]bool
	heard    time.Time
}

func newToolCalls(c *Client, registry *ToolRegistry, ledger Ledger, onAmbiguous func(Record) *ToolOutput, isLive func() bool) *toolCalls {
	return &toolCalls{
		client: c, registry: registry, ledger: ledger, onAmbiguous: onAmbiguous, isLive: isLive,
		closing: make(chan struct{}), active: map[string]*toolCall{}, answered: map[string]string{},
		turns: map[string]string{}, ended: map[string]bool{}, chats: map[string]bool{},
	}
}

// work is what there is to do for a call: it takes a handler's place, and may leave a delivery that takes none.
type work func(ctx context.Context) (deliver func(context.Context) error, err error)

// admit is what there is to do because of an event. Of a SignatureError or ToolStateError nothing was executed.
func (t *toolCalls) admit(ctx context.Context, event Event) ([]work, error) {
	head := event.Head()
	t.mu.Lock()
	t.heard = t.client.clock.Now()
	first := !t.chats[head.ChatID]
	t.chats[head.ChatID] = true
	t.mu.Unlock()
	var todo []work
	if first {
		kept, err := t.kept(ctx, head.ChatID)
		if err != nil {
			return nil, err
		}
		todo = kept
	}
	switch event := event.(type) {
	case *ToolResultEvent:
		return todo, t.resolve(ctx, event)
	case *ToolRequestEvent:
		t.mu.Lock()
		t.turns[event.Data.CallID] = event.TurnID
		open := t.isOpen(event.Data.CallID)
		t.mu.Unlock()
		if open {
			next, err := t.request(ctx, event)
			if err != nil {
				return todo, err
			}
			todo = append(todo, next)
		}
	case TerminalEvent:
		t.end(head.TurnID)
	}
	return todo, nil
}

// close tells the handlers to stop and the deliveries to leave what they hold in the ledger.
func (t *toolCalls) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !isClosed(t.closing) {
		close(t.closing)
	}
	for _, item := range t.active {
		item.cancel()
	}
}

func (t *toolCalls) end(turnID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended[turnID] = true
	for _, item := range t.active {
		if t.turns[item.CallID] == turnID {
			item.finish()
		}
	}
}

func (t *toolCalls) isOpen(callID string) bool {
	_, answered := t.answered[callID]
	return t.active[callID] == nil && !answered
}

func (t *toolCalls) begin(ctx context.Context, item *toolCall) {
	item.seen = t.client.clock.Now()
	item.ctx, item.cancel = context.WithCancel(context.WithoutCancel(ctx))
	item.over = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active[item.CallID] = item
}

func (t *toolCalls) leave(item *toolCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.active, item.CallID)
	item.cancel()
}

// request is the work of serving a request, verified here, or there if the keys cannot be had at the moment.
func (t *toolCalls) request(ctx context.Context, event *ToolRequestEvent) (work, error) {
	args := argumentsOf(event)
	message, err := signedToolBytes(event.Data.CallID, event.Data.ToolName, args)
	if err != nil {
		return nil, err
	}
	timeout := unknownTimeout
	if tool, ok := t.registry.tools[event.Data.ToolName]; ok {
		timeout = tool.timeout
	}
	sum := sha256.Sum256(append([]byte(event.TurnID+"\n"), message...))
	item := &toolCall{fingerprint: hex.EncodeToString(sum[:])}
	item.ToolCall = ToolCall{event.ChatID, event.TurnID, event.Data.CallID, event.Data.ToolName, args}
	item.deadline = t.client.clock.Now().Add(time.Duration(float64(timeout) * toolMargin))
	err = t.verify(ctx, event, item, message)
	if err != nil && !mayPass(err) {
		return nil, err
	}
	t.begin(ctx, item)
	if err == nil {
		return t.serve(item, nil), nil
	}
	return t.serve(item, func(ctx context.Context) (bool, error) { return t.verifyLater(ctx, event, item, message) }), nil
}

// argumentsOf are the arguments as they were written: what is signed is not what a map would make of them.
func argumentsOf(event *ToolRequestEvent) (args json.RawMessage) {
	_ = eachField(event.raw, func(key, value string) error {
		if key != "data" {
			return nil
		}
		return eachField(value, func(key, value string) error {
			if key == "args" {
				args = json.RawMessage(value)
			}
			return nil
		})
	})
	return args
}

func (t *toolCalls) verify(ctx context.Context, event *ToolRequestEvent, item *toolCall, message []byte) error {
	signature := event.Data.Signature
	err := t.client.shared.keys.verify(ctx, t.client, signature.Kid, signature.Sig, message)
	var forged *SignatureError
	if errors.As(err, &forged) {
		return &SignatureError{protocolError("client tool refused: "+forged.Message, event.Raw())}
	}
	if err != nil {
		return err
	}
	known, err := t.ledger.Get(ctx, item.ChatID, item.CallID)
	if err == nil && known != nil && known.Fingerprint != "" && known.Fingerprint != item.fingerprint {
		return &ToolStateError{protocolError("a call id came back with other contents: nothing was executed", event.Raw())}
	}
	return err
}

// verifyLater reports whether the signature verified before the call was over or out of time.
func (t *toolCalls) verifyLater(ctx context.Context, event *ToolRequestEvent, item *toolCall, message []byte) (bool, error) {
	for attempt := 1; t.pause(item, attempt, 0, true); attempt++ {
		err := t.verify(ctx, event, item, message)
		if err == nil {
			return true, nil
		}
		if !mayPass(err) {
			return false, err
		}
	}
	return false, nil
}

// resolve: the server has a result. Remember it before anything else, and stop whoever still works on it.
func (t *toolCalls) resolve(ctx context.Context, event *ToolResultEvent) error {
	callID := event.Data.CallID
	t.mu.Lock()
	if _, had := t.answered[callID]; !had {
		t.order = append(t.order, callID)
	}
	t.answered[callID] = event.Data.Output
	if len(t.order) > rememberedResults {
		delete(t.answered, t.order[0])
		t.order = t.order[1:]
	}
	if item := t.active[callID]; item != nil {
		item.finish()
	}
	t.mu.Unlock()
	known, err := t.ledger.Get(ctx, event.ChatID, callID)
	if err == nil && known != nil && known.State != Resolved {
		err = t.ledger.Resolve(ctx, event.ChatID, callID, "observed")
	}
	return err
}

// kept are the deliveries of what an earlier life finished and could not hand over.
func (t *toolCalls) kept(ctx context.Context, chatID string) ([]work, error) {
	records, err := t.ledger.Unsettled(ctx, chatID)
	var out []work
	for _, record := range records {
		over := slices.Contains([]string{"not_found", "refused", "turn_ended"}, record.Note)
		t.mu.Lock()
		open := t.isOpen(record.CallID)
		t.mu.Unlock()
		if record.State == Finished && !over && open {
			out = append(out, t.serve(t.adopt(ctx, record), nil))
		}
	}
	return out, err
}

func (t *toolCalls) adopt(ctx context.Context, record Record) *toolCall {
	item := &toolCall{fingerprint: record.Fingerprint, deadline: t.client.clock.Now()}
	item.ToolCall = ToolCall{ChatID: record.ChatID, CallID: record.CallID, Tool: record.Tool}
	t.begin(ctx, item)
	return item
}

// awaitLive lets a replay go by: the result or the end of the turn may be a few events behind the request. Live is
// after the connection's first heartbeat; a stream that has been silent for a while counts as live too.
func (t *toolCalls) awaitLive(item *toolCall) {
	for !t.isLive() && !item.cancelled() {
		t.mu.Lock()
		silent := t.client.clock.Now().Sub(t.heard)
		t.mu.Unlock()
		if silent >= toolSilence {
			return
		}
		select {
		case <-item.ctx.Done():
		case <-t.client.clock.After(toolPoll):
		}
	}
}

// serve takes one call to the point where there is something to deliver, or to its end.
func (t *toolCalls) serve(item *toolCall, verifying func(context.Context) (bool, error)) work {
	return func(ctx context.Context) (deliver func(context.Context) error, err error) {
		t.client.notify(ToolStarted{item.ChatID, item.CallID, item.Tool})
		defer func() {
			if deliver == nil {
				t.leave(item)
			}
		}()
		if verifying != nil {
			verified, err := verifying(ctx)
			if err != nil {
				return nil, err
			}
			if !verified {
				t.conclude(item, t.unrun(item), "", 0)
				return nil, nil
			}
		}
		t.awaitLive(item)
		if item.cancelled() {
			t.conclude(item, "cancelled", "", 0)
			return nil, nil
		}
		answer, outcome, err := t.work(ctx, item)
		if err != nil || outcome != "" {
			if err == nil {
				t.conclude(item, outcome, "", 0)
			}
			return nil, err
		}
		return func(ctx context.Context) error { return t.deliver(ctx, item, answer) }, nil
	}
}

// unrun is the outcome of a call that waited in vain.
func (t *toolCalls) unrun(item *toolCall) string {
	if item.cancelled() {
		return "cancelled"
	}
	return "not_run"
}

// work is the answer to deliver, or the outcome of a call that has none.
func (t *toolCalls) work(ctx context.Context, item *toolCall) (answer toolAnswer, outcome string, err error) {
	known, err := t.ledger.Get(ctx, item.ChatID, item.CallID)
	if err != nil {
		return answer, "", err
	}
	if known == nil {
		if refused := t.claim(ctx, item); refused != "" {
			return answer, refused, nil
		}
		known, err = t.ledger.Claim(ctx, item.ChatID, item.CallID, item.Tool, item.fingerprint, owner)
		if err != nil {
			return answer, "", err
		}
	}
	if known != nil {
		return t.resume(ctx, *known)
	}
	answer, ok := t.execute(item)
	if !ok {
		return answer, "cancelled", nil
	}
	return answer, "", t.ledger.Finish(ctx, item.ChatID, item.CallID, answer.output, answer.isError)
}

// claim is empty once this runner may run the call; else why it may not. Asked of servers that announce claims.
func (t *toolCalls) claim(ctx context.Context, item *toolCall) string {
	for attempt := 1; ; attempt++ {
		verdict, again := t.askFor(ctx, item)
		if !again {
			return verdict
		}
		if !t.pause(item, attempt, 0, true) {
			return t.unrun(item)
		}
	}
}

func (t *toolCalls) askFor(ctx context.Context, item *toolCall) (verdict string, again bool) {
	announced, err := t.claimsAnnounced(ctx)
	if err == nil && announced {
		err = t.client.Chats.ClaimToolCall(ctx, item.ChatID, item.CallID, t.ledger.Holder(), Timeout(postTimeout))
	}
	var conflict *ConflictError
	var missing *NotFoundError
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &conflict):
		return codeOr(conflict.Code, "conflict"), false
	case errors.As(err, &missing):
		return "not_found", false
	}
	return "not_run", mayPass(err)
}

func codeOr(code, otherwise string) string {
	if code == "" {
		return otherwise
	}
	return code
}

func (t *toolCalls) claimsAnnounced(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	capabilities, err := t.client.learn(ctx)
	if err != nil {
		if absentContract(err) {
			return false, nil // a server that announces nothing
		}
		return false, err
	}
	return slices.Contains(capabilities.Features, "tool_claims"), nil
}

// execute is the answer of the handler, or the reason there is none; false once the call was cancelled.
func (t *toolCalls) execute(item *toolCall) (toolAnswer, bool) {
	tool, ok := t.registry.tools[item.Tool]
	if !ok {
		return refusalOutput("tool_not_registered"), true
	}
	if !tool.valid(anyValue(string(item.Args))) {
		return refusalOutput("invalid_arguments"), true
	}
	left := item.deadline.Sub(t.client.clock.Now())
	if left <= 0 {
		return refusalOutput("tool_capacity_exceeded"), true
	}
	ctx, cancel := context.WithCancel(item.ctx)
	defer cancel()
	done := make(chan toolAnswer, 1)
	go func() { done <- t.invoke(ctx, tool.handler, item.ToolCall) }()
	select {
	case answer := <-done:
		return answer, !item.cancelled()
	case <-item.ctx.Done():
		return toolAnswer{}, false
	case <-t.client.clock.After(left):
		return refusalOutput("tool_timeout"), true
	}
}

// invoke runs a handler; what it says of its failure may hold arguments and goes nowhere.
func (t *toolCalls) invoke(ctx context.Context, handler Handler, call ToolCall) (answer toolAnswer) {
	defer func() {
		if problem := recover(); problem != nil {
			t.failed(fmt.Sprintf("%T", problem))
			answer = refusalOutput("tool_failed")
		}
	}()
	value, err := handler(ctx, call)
	if err != nil {
		t.failed(fmt.Sprintf("%T", err))
		return refusalOutput("tool_failed")
	}
	return serialise(value)
}

func (t *toolCalls) failed(kind string) {
	if t.client.logger != nil {
		t.client.logger.Info("tool handler failed", "kind", kind)
	}
}

// resume is for a call the ledger already knows: its handler never runs.
func (t *toolCalls) resume(ctx context.Context, known Record) (toolAnswer, string, error) {
	switch {
	case known.State == Resolved && (known.Note == "delivered" || known.Note == "observed"):
		return toolAnswer{}, "delivered", nil
	case known.State == Resolved:
		return toolAnswer{}, codeOr(known.Note, "delivered"), nil
	case known.State == Finished && known.Output != "":
		return toolAnswer{output: known.Output, isError: known.IsError}, "", nil
	}
	var settlement *ToolOutput
	if t.onAmbiguous != nil {
		settlement = t.onAmbiguous(known)
	}
	if settlement == nil {
		return toolAnswer{}, "ambiguous", nil
	}
	answer := serialise(*settlement)
	return answer, "", t.ledger.Finish(ctx, known.ChatID, known.CallID, answer.output, answer.isError)
}
