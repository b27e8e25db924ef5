package envai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// follower follows a chat's stream across connections: every event after a cursor, once and in order. An event counts
// as delivered, and the cursor moves, when the next one is asked for or settle is called.
type follower struct {
	client       *Client
	cursor       *cursor
	restartOn    bool
	includePings bool
	restarts     int
	reconnects   int
	closed       bool
	live         atomic.Bool // for those beside the reader: this connection's replay is over

	opened       *response
	decoder      *sseDecoder
	frames       []string
	next         int
	buffer       []byte
	inHand       *Envelope
	reopen       bool
	failures     int
	failingSince time.Time
	connectedAt  time.Time
	speaks       int
}

func (f *follower) settle() {
	if f.inHand != nil {
		f.cursor.settle(f.inHand)
		f.inHand = nil
	}
}

// poll is the next event among the bytes already read, nil if there is none.
func (f *follower) poll() (Event, error) {
	f.settle()
	for f.next < len(f.frames) && !f.reopen {
		text := f.frames[f.next]
		f.frames[f.next] = ""
		f.next++
		event, err := f.judge(text)
		if err != nil {
			return nil, err
		}
		if event != nil {
			f.inHand = event.Head()
			return event, nil
		}
	}
	return nil, nil
}

// wait is the next event, whatever it takes: connecting, waiting, resuming.
func (f *follower) wait(ctx context.Context) (Event, error) {
	for {
		if event, err := f.poll(); event != nil || err != nil {
			return event, err
		}
		if err := f.advance(ctx); err != nil {
			return nil, err
		}
	}
}

// connect has an open connection, without waiting for any event.
func (f *follower) connect(ctx context.Context) error {
	for f.opened == nil || f.reopen {
		if err := f.advance(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close releases the connection. The cursor stays readable.
func (f *follower) close() {
	f.closed = true
	f.release()
}

// rewind reads again from just after a position behind the cursor.
func (f *follower) rewind(after int64) {
	f.inHand = nil
	f.release()
	f.cursor = newCursor(f.cursor.chatID, after, f.cursor.epoch)
}

func (f *follower) judge(text string) (Event, error) {
	versions := [2]int{2, 3}
	event, err := parseEvent(text, versions[:f.speaks-1]...)
	if err != nil {
		return nil, err
	}
	envelope := event.Head()
	if !strings.EqualFold(envelope.ChatID, f.cursor.chatID) {
		return nil, &InvalidEventError{protocolError("the stream of one chat carries an event of another", []byte(text))}
	}
	verdict, err := f.cursor.judge(envelope)
	f.live.Store(f.cursor.live)
	if err != nil {
		return nil, f.expired(err)
	}
	if verdict == replay {
		f.forget()
		f.reopen = true
	}
	if verdict != deliver {
		return nil, nil
	}
	if envelope.Seq > 0 {
		f.failures = 0
	}
	if f.client.heeds() {
		f.client.notify(EventReceived{envelope.Type, envelope.ID, envelope.Seq, envelope.ChatID, envelope.TurnID})
	}
	if envelope.IsPing() && !f.includePings {
		return nil, nil
	}
	return event, nil
}

func (f *follower) forget() { f.frames, f.next = f.frames[:0], 0 }

// expired applies the caller's policy. Restarting twice without progress would loop: the second one is an error.
func (f *follower) expired(problem error) error {
	var expired *CursorExpiredError
	if !errors.As(problem, &expired) || !f.restartOn || f.cursor.lastSeq == 0 && f.restarts > 0 {
		return problem
	}
	f.client.notify(StreamRestarted{f.cursor.chatID, expired.Reason, f.cursor.lastSeq})
	f.restarts++
	epoch := ""
	if expired.Reason == "epoch_changed" {
		epoch = expired.Epoch
	}
	f.cursor.restart(epoch)
	f.forget()
	f.reopen = true
	return nil
}

// advance brings in more bytes, (re)connecting if need be.
func (f *follower) advance(ctx context.Context) error {
	if f.closed {
		return f.interrupted("the stream is closed", nil)
	}
	if f.reopen {
		f.release()
		f.reopen = false
	}
	if f.opened == nil {
		return naming(operations["streamChatEvents"], f.open(ctx))
	}
	f.forget()
	n, err := f.opened.body.Read(f.buffer)
	if n > 0 {
		var problem error
		if f.frames, problem = f.decoder.feed(f.buffer[:n], f.frames); problem != nil {
			return problem
		}
	}
	switch {
	case err == nil || len(f.frames) > 0:
		return nil // what came is taken first; the end comes again
	case err == io.EOF:
		return f.lost(ctx, nil, 0, false)
	case isTransport(err) && ctx.Err() == nil:
		return f.lost(ctx, err, 0, false)
	}
	return err
}

func (f *follower) open(ctx context.Context) error {
	opened, err := f.request(ctx)
	if err != nil {
		if isTransport(err) && ctx.Err() == nil {
			return f.lost(ctx, err, 0, false)
		}
		return err
	}
	if opened.status != http.StatusOK {
		return f.refused(ctx, opened)
	}
	f.opened = opened
	head := &answer{opened.status, opened.header, nil}
	if err := head.acknowledges(operations["streamChatEvents"], f.speaks); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(opened.header.Get("Content-Type"), ";")
	if strings.ToLower(strings.TrimSpace(kind)) != "text/event-stream" {
		return head.invalid("the event stream is not text/event-stream")
	}
	f.decoder = &sseDecoder{maxFrame: f.client.maxFrameBytes}
	if f.buffer == nil {
		f.buffer = make([]byte, 32<<10)
	}
	f.connectedAt = f.client.clock.Now()
	f.live.Store(false)
	if err := f.cursor.connected(opened.header.Get("X-Envai-Stream-Epoch")); err != nil {
		return f.expired(err)
	}
	f.client.notify(StreamOpened{f.cursor.chatID, f.cursor.lastSeq, f.cursor.epoch})
	return nil
}

func (f *follower) request(ctx context.Context) (*response, error) {
	c, op := f.client, operations["streamChatEvents"]
	version, err := c.version(ctx, op)
	if err != nil {
		return nil, err
	}
	f.speaks = version
	given := struct {
		After int64  `query:"after"`
		Epoch string `query:"epoch,omitzero"`
	}{f.cursor.lastSeq, f.cursor.epoch}
	req, err := c.build(ctx, op, []string{f.cursor.chatID}, given, version, 0)
	if err != nil {
		return nil, err
	}
	req.connect, req.read = c.timeouts.StreamConnect, c.timeouts.StreamIdle
	req.header.Set("Cache-Control", "no-store")
	return c.open(ctx, req)
}

func (f *follower) refused(ctx context.Context, opened *response) error {
	problem := f.client.closedError(opened)
	base := baseOf(problem)
	if retryable(opened.status) || opened.status == 500 { // more than for requests: reopening a stream repeats nothing
		return f.lost(ctx, problem, base.RetryAfter, base.HasRetryAfter)
	}
	var conflict *ConflictError
	if errors.As(problem, &conflict) && conflict.Code == "cursor_expired" {
		return f.expired(expiredBy(conflict, f.cursor))
	}
	return problem
}

// expiredBy is the server's cursor_expired answer as the error the caller handles.
func expiredBy(conflict *ConflictError, at *cursor) error {
	expired := &CursorExpiredError{ConflictError: *conflict, Reason: "expired"}
	details, _ := conflict.Details.(map[string]any)
	if reason, ok := details["reason"].(string); ok && reason != "" {
		expired.Reason = reason
	}
	expired.Epoch, _ = details["epoch"].(string)
	expired.locate(at.chatID, "", at.lastSeq)
	return expired
}

// lost: the connection is gone. Wait and let the caller try again, or say where the stream stopped.
func (f *follower) lost(ctx context.Context, problem error, asked time.Duration, hasAsked bool) error {
	f.release()
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	policy, now := f.client.reconnect, f.client.clock.Now()
	healthy := !f.connectedAt.IsZero() && now.Sub(f.connectedAt) > policy.HealthyAfter
	f.connectedAt = time.Time{}
	if f.failures == 0 || healthy {
		f.failures, f.failingSince = 0, now
	}
	f.failures++
	tooLong := policy.MaxDuration > 0 && now.Sub(f.failingSince) >= policy.MaxDuration
	if f.failures > policy.MaxReconnects || tooLong || asked > policy.MaxRetryAfter {
		message := fmt.Sprintf("the stream stopped after event %d and could not be resumed", f.cursor.lastSeq)
		return f.interrupted(message, problem)
	}
	delay := asked
	if !hasAsked {
		delay = backoff(policy.BaseDelay, policy.MaxDelay, f.failures)
	}
	f.reconnects++
	f.client.notify(Reconnecting{f.cursor.chatID, f.cursor.lastSeq, f.failures, delay})
	return sleep(ctx, f.client.clock, delay)
}

func (f *follower) interrupted(message string, problem error) error {
	stopped := &StreamInterruptedError{TransportError{EnvaiError{Message: message}, true}}
	if base := baseOf(problem); base != nil {
		stopped.HTTPStatus, stopped.Code = base.HTTPStatus, base.Code
		stopped.RetryAfter, stopped.HasRetryAfter = base.RetryAfter, base.HasRetryAfter
	}
	stopped.locate(f.cursor.chatID, "", f.cursor.lastSeq)
	return stopped
}

func (f *follower) release() {
	f.forget()
	if f.opened != nil {
		f.opened.close()
		f.opened = nil
		f.client.notify(StreamClosed{f.cursor.chatID, f.cursor.lastSeq})
	}
}
