package envai

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// TurnResult is how a turn ended, whatever the ending was: see Err.
type TurnResult struct {
	ChatID, TurnID string
	// Text is the orchestrator's.
	Text     string
	Terminal TerminalEvent
	// Usage and Cost are the server's; Cost is nil if it is unknown.
	Usage   Usage
	Cost    *float64
	LastSeq int64
	Epoch   string
	// ToolOutcomes is what became of each client-tool call that was answered here.
	ToolOutcomes []ToolOutcome
}

// Completed reports whether the turn ended with turn.completed.
func (r *TurnResult) Completed() bool {
	_, ok := r.Terminal.(*TurnCompletedEvent)
	return ok
}

// Err is a TurnFailedError if the turn was cancelled or failed.
func (r *TurnResult) Err() error {
	if r.Completed() {
		return nil
	}
	failed := &TurnFailedError{Result: r}
	failed.Message = "the turn ended with " + r.Terminal.Head().Type
	if event, ok := r.Terminal.(*TurnFailedEvent); ok {
		failed.Code = event.Data.Code
	}
	failed.ToolOutcomes = r.ToolOutcomes
	failed.locate(r.ChatID, r.TurnID, r.LastSeq)
	return failed
}

// Format prints how the turn ended and none of its text.
func (r *TurnResult) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "TurnResult{%s %s lastSeq=%d}", r.TurnID, r.Terminal.Head().Type, r.LastSeq)
}

// LogValue is what a log gets of it.
func (r *TurnResult) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(r)) }

// TurnAccumulator rebuilds the text of each agent instance of one turn. Reasoning and tools never enter a text.
type TurnAccumulator struct {
	turnID       string
	terminal     TerminalEvent
	lastSeq      int64
	orchestrator string
	partial      map[string]*strings.Builder
	done         map[string]string
}

// NewTurnAccumulator is for the turn with that id.
func NewTurnAccumulator(turnID string) *TurnAccumulator {
	return &TurnAccumulator{turnID: turnID, partial: map[string]*strings.Builder{}, done: map[string]string{}}
}

// Add takes an event; those of other turns are ignored. Anything after the terminal event is a ProtocolError.
func (t *TurnAccumulator) Add(event Event) error {
	head := event.Head()
	if head.TurnID != t.turnID {
		return nil
	}
	if t.terminal != nil {
		problem := protocolError(head.Type+" after the turn's terminal event", head.Raw())
		return &problem
	}
	t.lastSeq = max(t.lastSeq, head.Seq)
	if terminal, ok := event.(TerminalEvent); ok {
		t.terminal = terminal
	} else if head.Agent != nil {
		t.addAgent(event, head.Agent)
	}
	return nil
}

func (t *TurnAccumulator) addAgent(event Event, agent *AgentRef) {
	id := agent.InstanceID
	if agent.Role == "orchestrator" && t.orchestrator == "" {
		t.orchestrator = id
	}
	switch event := event.(type) {
	case *TextDeltaEvent:
		if t.partial[id] == nil {
			t.partial[id] = &strings.Builder{}
		}
		t.partial[id].WriteString(event.Data.Delta)
	case *TextDoneEvent:
		t.done[id] = event.Data.Text
		delete(t.partial, id)
	case *TextResetEvent:
		delete(t.partial, id)
	}
}

// TextOf is the text of one instance: what it is writing now, else what it finished last.
func (t *TurnAccumulator) TextOf(instanceID string) string {
	if partial := t.partial[instanceID]; partial != nil {
		return partial.String()
	}
	return t.done[instanceID]
}

// Text is the user-facing text: the orchestrator's.
func (t *TurnAccumulator) Text() string { return t.TextOf(t.orchestrator) }

// Terminal is the event that ended the turn, nil before.
func (t *TurnAccumulator) Terminal() TerminalEvent { return t.terminal }

// TurnStream is the events of one turn, from its message to its terminal event; then Result.
type TurnStream struct {
	EventStream
	client    *Client
	message   SendChatMessageParams
	turn      *TurnAccumulator
	firstSeen map[string]int64
}

// SendAndStream attaches, sends message and gives the turn's events up to its terminal event. The message goes out
// once, after the subscription is known to be live. Nothing happens before Start, Next or All.
func (s *ChatsService) SendAndStream(ctx context.Context, chatID, message string, options ...SendOption) *TurnStream {
	var settings sendSettings
	for _, option := range options {
		option.toSend(&settings)
	}
	return newTurnStream(ctx, s.client, chatID, message, settings)
}

func newTurnStream(ctx context.Context, c *Client, chatID, message string, s sendSettings) *TurnStream {
	t := &TurnStream{client: c, firstSeen: map[string]int64{}}
	t.message = SendChatMessageParams{Message: message, AttachmentIDs: s.attachmentIDs}
	if s.idempotencyKey != "" {
		t.message.IdempotencyKey = Set(s.idempotencyKey)
	}
	s.includePings = true
	inner := newEventStream(ctx, c, chatID, s.streamSettings)
	t.ctx, t.cancel, t.follower = inner.ctx, inner.cancel, inner.follower
	t.step, t.EventStream.turnID = t.advance, t.TurnID
	return t
}

// TurnID is empty until the message was accepted.
func (t *TurnStream) TurnID() string {
	if t.turn == nil {
		return ""
	}
	return t.turn.turnID
}

// Text is the orchestrator's text so far.
func (t *TurnStream) Text() string {
	if t.turn == nil {
		return ""
	}
	return t.turn.Text()
}

// Start attaches and sends the message now; Next does it too. It gives the turn's id.
func (t *TurnStream) Start() (string, error) {
	if t.turn == nil {
		if err := t.start(); err != nil {
			return "", t.locate(err)
		}
	}
	return t.turn.turnID, nil
}

func (t *TurnStream) advance() (Event, error) {
	if t.turn == nil {
		if err := t.start(); err != nil {
			return nil, err
		}
	}
	for t.turn.terminal == nil {
		event, err := t.follower.wait(t.ctx)
		if err != nil {
			return nil, err
		}
		if event.Head().TurnID == t.turn.turnID {
			return event, t.turn.Add(event)
		}
	}
	t.follower.settle()
	_ = t.Close()
	return nil, io.EOF
}

// start attaches and sends the message, once. It is never retried: an unclear outcome is the caller's.
func (t *TurnStream) start() error {
	capabilities, err := t.client.learn(t.ctx)
	if err != nil {
		return err
	}
	_, keyed := t.message.IdempotencyKey.Get()
	if slices.Contains(capabilities.Features, "atomic_attach") && !keyed {
		err = t.follower.connect(t.ctx)
	} else {
		err = t.awaitPing()
	}
	if err != nil {
		return err
	}
	accepted, err := t.client.Chats.SendMessage(t.ctx, t.ChatID(), t.message)
	if err != nil {
		return err
	}
	t.turn = NewTurnAccumulator(accepted.TurnID)
	// A repeated idempotency key names a turn that the replay already showed: read it again from its start.
	if first, ok := t.firstSeen[accepted.TurnID]; ok {
		t.follower.rewind(first - 1)
	}
	return nil
}

// awaitPing reads the replay until the ping that proves the live subscription. What it replays is of earlier turns. The
// connection stays under attaching's context, whose bound is lifted once the ping has come.
func (t *TurnStream) awaitPing() error {
	attaching, cancel := context.WithCancelCause(t.ctx)
	timer := time.AfterFunc(t.client.timeouts.Attach, func() { cancel(errSilence) })
	defer timer.Stop()
	for {
		event, err := t.follower.wait(attaching)
		if context.Cause(attaching) == errSilence {
			return timeoutError("no ping confirmed the live subscription: nothing was sent", false, nil)
		}
		if err != nil {
			return err
		}
		head := event.Head()
		if head.IsPing() {
			t.follower.settle()
			return nil
		}
		if _, seen := t.firstSeen[head.TurnID]; !seen {
			t.firstSeen[head.TurnID] = head.Seq
		}
	}
}

// Result is how the turn ended; a ProtocolError before its terminal event.
func (t *TurnStream) Result() (*TurnResult, error) {
	if t.turn == nil || t.turn.terminal == nil {
		problem := protocolError("the turn has no terminal event yet", nil)
		return nil, &problem
	}
	outcome := t.turn.terminal.Outcome()
	return &TurnResult{
		ChatID: t.ChatID(), TurnID: t.turn.turnID, Text: t.turn.Text(), Terminal: t.turn.terminal,
		Usage: outcome.Usage, Cost: outcome.Cost, LastSeq: t.turn.lastSeq, Epoch: t.Epoch(),
	}, nil
}

// SendAndWait sends a message and waits for the end of its turn, whatever the ending is: see TurnResult.Err.
func (s *ChatsService) SendAndWait(ctx context.Context, chatID, message string, options ...WaitOption) (*TurnResult, error) {
	settings := waitSettings{settings: readToolSettings(nil)}
	for _, option := range options {
		option.toWait(&settings)
	}
	stream := newTurnStream(ctx, s.client, chatID, message, settings.sendSettings)
	defer func() { _ = stream.Close() }()
	if settings.tools == nil {
		for _, err := range stream.All() {
			if err != nil {
				return nil, err
			}
		}
		return stream.Result()
	}
	run, err := s.runTools(ctx, stream, settings.tools, settings.settings)
	if err != nil {
		return nil, err
	}
	for _, err := range run.All() {
		if err != nil {
			if base := baseOf(err); base != nil {
				base.ToolOutcomes = run.Outcomes()
			}
			return nil, err
		}
	}
	result, err := stream.Result()
	if err == nil {
		result.ToolOutcomes = run.Outcomes()
	}
	return result, err
}
