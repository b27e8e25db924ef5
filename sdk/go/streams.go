package envai

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync/atomic"
)

// StreamOption is for Events; those that say where to begin are for messages too.
type StreamOption interface{ toStream(*streamSettings) }

// SendOption is for SendAndStream, and for SendAndWait.
type SendOption interface {
	WaitOption
	toSend(*sendSettings)
}

// WaitOption is for SendAndWait.
type WaitOption interface{ toWait(*waitSettings) }

type streamSettings struct {
	after        int64
	epoch        string
	restart      bool
	includePings bool
}

type sendSettings struct {
	streamSettings
	idempotencyKey string
	attachmentIDs  []string
}

type waitSettings struct {
	sendSettings
	tools    *ToolRegistry
	settings toolSettings
}

type cursorOption func(*streamSettings)

func (o cursorOption) toStream(s *streamSettings) { o(s) }
func (o cursorOption) toSend(s *sendSettings)     { o(&s.streamSettings) }
func (o cursorOption) toWait(s *waitSettings)     { o(&s.streamSettings) }

type sendOption func(*sendSettings)

func (o sendOption) toSend(s *sendSettings) { o(s) }
func (o sendOption) toWait(s *waitSettings) { o(&s.sendSettings) }

type streamOption func(*streamSettings)

func (o streamOption) toStream(s *streamSettings) { o(s) }

type waitOption func(*waitSettings)

func (o waitOption) toWait(s *waitSettings) { o(s) }

// CursorOption says where to begin to read a chat's log.
type CursorOption interface {
	StreamOption
	SendOption
}

// After begins after the event with that number: LastSeq of a stream that was read before.
func After(seq int64) CursorOption { return cursorOption(func(s *streamSettings) { s.after = seq }) }

// InEpoch says which log After is a position in: Epoch of a stream that was read before.
func InEpoch(epoch string) CursorOption {
	return cursorOption(func(s *streamSettings) { s.epoch = epoch })
}

// RestartOnExpired reads a new log from its beginning where the old one no longer continues, instead of failing.
func RestartOnExpired() CursorOption {
	return cursorOption(func(s *streamSettings) { s.restart = true })
}

// IncludePings delivers heartbeats too.
func IncludePings() StreamOption {
	return streamOption(func(s *streamSettings) { s.includePings = true })
}

// IdempotencyKey names a message: sent again with the same key it opens no second turn.
func IdempotencyKey(key string) SendOption {
	return sendOption(func(s *sendSettings) { s.idempotencyKey = key })
}

// AttachmentIDs are files that go with a message.
func AttachmentIDs(ids ...string) SendOption {
	return sendOption(func(s *sendSettings) { s.attachmentIDs = ids })
}

// WithTools answers the turn's client tools, as RunClientTools does.
func WithTools(registry *ToolRegistry, options ...ToolOption) WaitOption {
	return waitOption(func(s *waitSettings) { s.tools, s.settings = registry, readToolSettings(options) })
}

// EventStream is a chat's events after a cursor. It has one reader; close it.
//
// An event counts as delivered when the next one is asked for or Acknowledge is called. LastSeq and Epoch are what to
// pass to continue later.
type EventStream struct {
	ctx      context.Context
	cancel   context.CancelFunc
	follower *follower
	reading  atomic.Bool
	step     func() (Event, error)
	turnID   func() string
}

// Events is streamChatEvents: every event of a chat, once and in order, through reconnections, until ctx is over. It
// ends with a ReplayGapError when events are lost for good, and with a CursorExpiredError when the log no longer
// continues from the cursor, unless RestartOnExpired is given.
func (s *ChatsService) Events(ctx context.Context, chatID string, options ...StreamOption) *EventStream {
	var settings streamSettings
	for _, option := range options {
		option.toStream(&settings)
	}
	return newEventStream(ctx, s.client, chatID, settings)
}

func newEventStream(ctx context.Context, c *Client, chatID string, s streamSettings) *EventStream {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{
		client: c, cursor: newCursor(chatID, max(0, s.after), s.epoch), restartOn: s.restart,
		includePings: s.includePings, speaks: 3,
	}
	stream := &EventStream{ctx: ctx, cancel: cancel, follower: f, turnID: func() string { return "" }}
	stream.step = func() (Event, error) { return f.wait(stream.ctx) }
	return stream
}

// ChatID is the chat that is followed.
func (s *EventStream) ChatID() string { return s.follower.cursor.chatID }

// LastSeq is the number of the last event delivered.
func (s *EventStream) LastSeq() int64 { return s.follower.cursor.lastSeq }

// Epoch is the log that LastSeq is a position in, where the server says so.
func (s *EventStream) Epoch() string { return s.follower.cursor.epoch }

// Reconnects is how often the connection was lost and taken up again.
func (s *EventStream) Reconnects() int { return s.follower.reconnects }

// Restarts is how often RestartOnExpired began again at zero.
func (s *EventStream) Restarts() int { return s.follower.restarts }

// IsLive reports whether this connection's replay is over: its first heartbeat has come.
func (s *EventStream) IsLive() bool { return s.follower.live.Load() }

// Acknowledge says that the event in hand has been dealt with: LastSeq includes it.
func (s *EventStream) Acknowledge() { s.follower.settle() }

// Next is the next event. The end of a turn's stream, and of one that was closed, is io.EOF.
func (s *EventStream) Next() (Event, error) {
	if !s.reading.CompareAndSwap(false, true) {
		return nil, &StreamInUseError{EnvaiError{Message: "a stream has one reader"}}
	}
	defer s.reading.Store(false)
	if s.follower.closed {
		return nil, io.EOF
	}
	event, err := s.step()
	if err != nil {
		return nil, s.locate(err)
	}
	return event, nil
}

func (s *EventStream) locate(err error) error {
	if base := baseOf(err); base != nil {
		base.locate(s.ChatID(), s.turnID(), s.LastSeq())
	}
	return err
}

// All iterates over the events and closes the stream when the loop is left, however it is left. An error is the last
// thing it gives. The event in hand when a loop is left early is not counted as delivered: Acknowledge it first.
func (s *EventStream) All() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		defer func() { _ = s.Close() }()
		each(s, yield)
	}
}

// EventSource is what gives events until io.EOF.
type EventSource interface{ Next() (Event, error) }

func each(source EventSource, yield func(Event, error) bool) {
	for {
		event, err := source.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if !yield(event, err) || err != nil {
			return
		}
	}
}

// Close releases the connection now. The position stays readable. Call it where Next is called: a stream has one user.
func (s *EventStream) Close() error {
	s.cancel()
	s.follower.close()
	return nil
}

func (s *EventStream) inner() *EventStream { return s }

// EventsHistory is streamChatEventsLegacy: the finite version 2 replay after a position: contiguous, complete, or an
// error.
func (s *ChatsService) EventsHistory(ctx context.Context, chatID string, after int64) ([]Event, error) {
	op := operations["streamChatEventsLegacy"]
	given := struct {
		After int64 `query:"after"`
	}{after}
	req, err := s.client.build(ctx, op, []string{chatID}, given, 3, 0)
	if err != nil {
		return nil, err
	}
	opened, err := s.client.announce(ctx, req)
	if err != nil {
		return nil, naming(op, err)
	}
	if opened.status != 200 {
		return nil, naming(op, s.client.closedError(opened))
	}
	defer opened.close()
	if err := (&answer{opened.status, opened.header, nil}).acknowledges(op, 3); err != nil {
		return nil, naming(op, err)
	}
	events, err := readHistory(opened.body, newCursor(chatID, after, ""), &sseDecoder{maxFrame: s.client.maxFrameBytes})
	return events, naming(op, err)
}

func readHistory(body io.Reader, at *cursor, decoder *sseDecoder) (events []Event, err error) {
	buffer := make([]byte, 32<<10)
	for {
		n, end := body.Read(buffer)
		frames, err := decoder.feed(buffer[:n], nil)
		if err != nil {
			return nil, err
		}
		for _, text := range frames {
			event, err := parseEvent(text, 2)
			if err != nil {
				return nil, err
			}
			verdict, err := at.judge(event.Head())
			if err != nil {
				return nil, err
			}
			if verdict != deliver {
				problem := protocolError("a finite replay is not contiguous", []byte(text))
				return nil, &problem
			}
			at.settle(event.Head())
			if !event.Head().IsPing() {
				events = append(events, event)
			}
		}
		if end == io.EOF {
			return events, nil
		}
		if end != nil {
			return nil, end
		}
	}
}
