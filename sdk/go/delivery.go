package envai

import (
	"context"
	"errors"
	"slices"
	"time"
)

// attempt is one post of an output. Without an outcome nothing is settled and answer is to be sent next.
type attempt struct {
	answer  toolAnswer
	outcome string
	status  int
	asked   time.Duration
}

// deliver posts an answer until that is settled: acknowledged, refused, seen on the stream, or the turn over.
func (t *toolCalls) deliver(ctx context.Context, item *toolCall, answer toolAnswer) error {
	defer t.leave(item)
	for n := 1; ; n++ {
		tried := t.attempt(ctx, item, answer, postTimeout)
		if tried.outcome != "" {
			return t.settled(ctx, item, tried)
		}
		answer = tried.answer
		if !t.pause(item, n, tried.asked, false) {
			tried.outcome = codeOr(t.standing(item, answer), "unconfirmed")
			return t.settled(ctx, item, tried)
		}
	}
}

func (t *toolCalls) attempt(ctx context.Context, item *toolCall, answer toolAnswer, timeout time.Duration) attempt {
	if outcome := t.standing(item, answer); outcome != "" {
		return attempt{answer: answer, outcome: outcome}
	}
	given := ResolveChatToolParams{CallID: item.CallID, Output: answer.output, IsError: Set(answer.isError)}
	err := t.client.Chats.SubmitToolOutput(ctx, item.ChatID, given, Timeout(timeout))
	var conflict *ConflictError
	var missing *NotFoundError
	switch {
	case err == nil:
		return attempt{answer: answer, outcome: "delivered"}
	case errors.As(err, &conflict):
		// Somebody's result stands, or it came too late: either way there is nothing left to deliver.
		return attempt{answer: answer, outcome: codeOr(conflict.Code, "conflict"), status: conflict.HTTPStatus}
	case errors.As(err, &missing):
		// After the terminal a delivered call is unknown too: this says nothing about an earlier attempt.
		return attempt{answer: answer, outcome: "not_found", status: missing.HTTPStatus}
	}
	return refusedOutput(err, answer)
}

// refusedOutput is what an error says about an output: try again, send an error output in its place, or give up.
func refusedOutput(err error, answer toolAnswer) attempt {
	status, asked := 0, time.Duration(0)
	if base := baseOf(err); base != nil {
		status, asked = base.HTTPStatus, base.RetryAfter
	}
	if mayPass(err) {
		return attempt{answer: answer, status: status, asked: asked}
	}
	// The server will never take this output.
	if !slices.Contains([]int{400, 405, 411, 413, 414, 415, 422, 431}, status) {
		return attempt{answer: answer, outcome: "unconfirmed", status: status} // a key, a version, a proxy
	}
	tried := attempt{answer: refusalOutput("output_refused"), status: status}
	if answer.code == "output_refused" {
		tried.outcome = "refused"
	}
	return tried
}

// mayPass reports whether the same request may succeed a little later.
func mayPass(err error) bool {
	base := baseOf(err)
	if base == nil {
		return false
	}
	if base.HTTPStatus == 0 {
		return isTransport(err)
	}
	return slices.Contains([]int{408, 425, 429}, base.HTTPStatus) || base.HTTPStatus >= 500
}

func (t *toolCalls) settled(ctx context.Context, item *toolCall, tried attempt) error {
	keep := t.ledger.Resolve
	if slices.Contains([]string{"not_found", "refused", "unconfirmed"}, tried.outcome) {
		keep = t.ledger.Note
	}
	err := keep(ctx, item.ChatID, item.CallID, tried.outcome)
	t.conclude(item, tried.outcome, tried.answer.code, tried.status)
	return err
}

// standing is what is known of a call that needs no delivery any more.
func (t *toolCalls) standing(item *toolCall, answer toolAnswer) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if output, ok := t.answered[item.CallID]; ok {
		if output == answer.output {
			return "delivered"
		}
		return "tool_already_resolved"
	}
	if t.ended[t.turns[item.CallID]] {
		return "turn_ended"
	}
	return ""
}

// pause waits before the next attempt; false once the call is over, or out of time where that bounds it.
func (t *toolCalls) pause(item *toolCall, attempt int, atLeast time.Duration, bounded bool) bool {
	delay := max(backoff(deliveryBaseDelay, deliveryMaxDelay, min(attempt, 10)), min(atLeast, maxAsked))
	var late <-chan time.Time
	if bounded {
		late = t.client.clock.After(max(0, item.deadline.Sub(t.client.clock.Now())))
	}
	select {
	case <-item.over:
	case <-t.closing:
	case <-late:
		return false
	case <-t.client.clock.After(delay):
	}
	return !isClosed(item.over) && !isClosed(t.closing)
}

func (t *toolCalls) conclude(item *toolCall, outcome, code string, status int) {
	t.mu.Lock()
	t.outcomes = append(t.outcomes, ToolOutcome{item.ChatID, item.TurnID, item.CallID, item.Tool, outcome, code, status})
	t.mu.Unlock()
	spent := t.client.clock.Now().Sub(item.seen)
	t.client.notify(ToolEnded{item.ChatID, item.CallID, item.Tool, outcome, spent})
}

// handOver is one attempt to deliver what the ledger keeps; two if an error output must go in its place.
func (t *toolCalls) handOver(ctx context.Context, record Record, answer toolAnswer) error {
	item := t.adopt(ctx, record)
	defer t.leave(item)
	tried := t.attempt(ctx, item, answer, postTimeout)
	if tried.outcome == "" && tried.answer != answer {
		tried = t.attempt(ctx, item, tried.answer, postTimeout)
	}
	tried.outcome = codeOr(tried.outcome, "unconfirmed")
	return t.settled(ctx, item, tried)
}

// SettleToolCall records and delivers the application's verdict on an unsettled call, and says what became of it.
func (s *ChatsService) SettleToolCall(ctx context.Context, record Record, output ToolOutput) (*ToolOutcome, error) {
	ledger, err := s.client.Ledger()
	if err != nil {
		return nil, err
	}
	answer := serialise(output)
	if err := ledger.Finish(ctx, record.ChatID, record.CallID, answer.output, answer.isError); err != nil {
		return nil, err
	}
	calls := newToolCalls(s.client, NewToolRegistry(), ledger, nil, func() bool { return true })
	if err := calls.handOver(ctx, record, answer); err != nil {
		return nil, err
	}
	return &calls.outcomes[0], nil
}

// DeliverOutputs sends what the client's ledger keeps undelivered, once each, of one chat or of all for "". Following a
// chat with RunClientTools does it too; this is for a program that starts and follows nothing yet.
func (s *ChatsService) DeliverOutputs(ctx context.Context, chatID string) ([]ToolOutcome, error) {
	ledger, err := s.client.Ledger()
	if err != nil {
		return nil, err
	}
	records, err := ledger.Unsettled(ctx, chatID)
	if err != nil {
		return nil, err
	}
	calls := newToolCalls(s.client, NewToolRegistry(), ledger, nil, func() bool { return true })
	for _, record := range records {
		if record.State == Finished && record.Output != "" {
			if err := calls.handOver(ctx, record, toolAnswer{output: record.Output, isError: record.IsError}); err != nil {
				return calls.outcomes, err
			}
		}
	}
	return calls.outcomes, nil
}
