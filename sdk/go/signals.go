package envai

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Signal is what an observer is told, one of the types below. Counts, ids and durations: never a payload, an argument,
// an output or a URL.
type Signal interface{ level() slog.Level }

// What happens to requests and streams.
type (
	// RequestStarted: a request is about to be sent.
	RequestStarted struct{ Operation, Method, Path string }
	// RequestEnded: its head arrived; Status is 0 when no answer did.
	RequestEnded struct {
		Operation, Method, Path string
		Status                  int
		Duration                time.Duration
	}
	// Retrying: a GET is sent again after Delay.
	Retrying struct {
		Operation string
		Attempt   int
		Delay     time.Duration
		Status    int
	}
	// StreamOpened: a connection to a chat's stream is open.
	StreamOpened struct {
		ChatID string
		After  int64
		Epoch  string
	}
	// StreamClosed: it is closed.
	StreamClosed struct {
		ChatID  string
		LastSeq int64
	}
	// Reconnecting: the connection was lost and is taken up again after Delay.
	Reconnecting struct {
		ChatID  string
		LastSeq int64
		Attempt int
		Delay   time.Duration
	}
	// StreamRestarted: RestartOnExpired was applied; what follows is a new epoch from its beginning.
	StreamRestarted struct {
		ChatID, Reason string
		LastSeq        int64
	}
	// EventReceived: an event is about to be delivered.
	EventReceived struct {
		Type, ID       string
		Seq            int64
		ChatID, TurnID string
	}
	// ToolStarted: a client-tool call is being looked after.
	ToolStarted struct{ ChatID, CallID, Tool string }
	// ToolEnded: it is over; Outcome is that of ToolOutcome.
	ToolEnded struct {
		ChatID, CallID, Tool, Outcome string
		Duration                      time.Duration
	}
)

func (RequestStarted) level() slog.Level  { return slog.LevelDebug }
func (RequestEnded) level() slog.Level    { return slog.LevelDebug }
func (StreamOpened) level() slog.Level    { return slog.LevelDebug }
func (StreamClosed) level() slog.Level    { return slog.LevelDebug }
func (EventReceived) level() slog.Level   { return slog.LevelDebug }
func (Retrying) level() slog.Level        { return slog.LevelInfo }
func (Reconnecting) level() slog.Level    { return slog.LevelInfo }
func (StreamRestarted) level() slog.Level { return slog.LevelInfo }
func (ToolStarted) level() slog.Level     { return slog.LevelInfo }
func (ToolEnded) level() slog.Level       { return slog.LevelInfo }

// notify tells the log and the observer; an observer that panics is reported and never breaks a request.
func (c *Client) notify(signal Signal) {
	if c.logger != nil && c.logger.Enabled(context.Background(), signal.level()) {
		c.logger.Log(context.Background(), signal.level(), fmt.Sprintf("%T", signal)[len("envai."):], "signal", signal)
	}
	if c.observer == nil {
		return
	}
	defer func() {
		if problem := recover(); problem != nil && c.logger != nil {
			c.logger.Warn("observer failed", "kind", fmt.Sprintf("%T", problem))
		}
	}()
	c.observer(signal)
}

// heeds reports whether anybody would hear of an event.
func (c *Client) heeds() bool {
	return c.observer != nil || c.logger != nil && c.logger.Enabled(context.Background(), slog.LevelDebug)
}
