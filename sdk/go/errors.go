package envai

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// EnvaiError is what every error of this package is: errors.As finds it in each of the types below. Decide on the type
// and on Code; Message and Details are the server's words. Nothing it prints is a key, a signed URL or a tool's contents.
type EnvaiError struct {
	// HTTPStatus is the answer's, 0 if there was none.
	HTTPStatus int
	// Type, Code, Message and Details are the error envelope.
	Type, Code, Message string
	Details             any
	// RequestID is what the infrastructure called the request.
	RequestID string
	// RetryAfter is how long the server asked to wait; HasRetryAfter whether it did.
	RetryAfter    time.Duration
	HasRetryAfter bool
	// Where is the operation that failed, as "createAgent POST /agents".
	Where string
	// ChatID, TurnID and LastSeq say where a stream or a turn stood; what to go on from.
	ChatID, TurnID string
	LastSeq        int64
	// ToolOutcomes is what became of the client-tool calls of a turn that was waited for, until it failed.
	ToolOutcomes []ToolOutcome

	located bool
	cause   error
}

func (e *EnvaiError) base() *EnvaiError { return e }

// Unwrap is the context's error where one ended the operation.
func (e *EnvaiError) Unwrap() error { return e.cause }

// Error says what went wrong and where.
func (e *EnvaiError) Error() string {
	text := e.Message
	if text == "" {
		text = "request failed"
	}
	var codes []string
	if e.HTTPStatus != 0 {
		codes = append(codes, fmt.Sprint(e.HTTPStatus))
	}
	for _, code := range []string{e.Type, e.Code} {
		if code != "" {
			codes = append(codes, code)
		}
	}
	if len(codes) > 0 {
		text += " (" + strings.Join(codes, " ") + ")"
	}
	if fields := e.fields(); len(fields) > 0 {
		text += "; fields: " + strings.Join(fields, ", ")
	}
	if places := e.places(); len(places) > 0 {
		text += " [" + strings.Join(places, ", ") + "]"
	}
	return scrub(text)
}

// fields are what a validation error is about; what it says of them may quote them and stays in Details.
func (e *EnvaiError) fields() []string {
	details, _ := e.Details.(map[string]any)
	var names []string
	for name := range details {
		names = append(names, name[:min(len(name), 80)])
	}
	slices.Sort(names)
	return names[:min(len(names), 8)]
}

func (e *EnvaiError) places() []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, name+" "+value)
		}
	}
	add("in", e.Where)
	add("chat", e.ChatID)
	add("turn", e.TurnID)
	if e.located {
		add("after event", fmt.Sprint(e.LastSeq))
	}
	add("request", e.RequestID)
	return out
}

// Format prints the error; no verb prints its fields.
func (e *EnvaiError) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(e.Error())) }

// LogValue is what a log gets of it.
func (e *EnvaiError) LogValue() slog.Value { return slog.StringValue(e.Error()) }

func (e *EnvaiError) locate(chatID, turnID string, lastSeq int64) {
	if e.ChatID == "" {
		e.ChatID = chatID
	}
	if e.TurnID == "" {
		e.TurnID = turnID
	}
	if !e.located {
		e.LastSeq, e.located = lastSeq, true
	}
}

type anError interface {
	error
	base() *EnvaiError
}

// baseOf is the EnvaiError in an error, nil if there is none.
func baseOf(err error) *EnvaiError {
	if known, ok := err.(anError); ok {
		return known.base()
	}
	return nil
}

// The answers of a server, by what they mean.
type (
	// AuthenticationError is a 401.
	AuthenticationError struct{ EnvaiError }
	// AccessDeniedError is a 403.
	AccessDeniedError struct{ EnvaiError }
	// NotFoundError is a 404.
	NotFoundError struct{ EnvaiError }
	// ConflictError is a 409, for example turn_in_progress, tool_already_resolved, tool_timed_out.
	ConflictError struct{ EnvaiError }
	// ValidationError is a 422.
	ValidationError struct{ EnvaiError }
	// RateLimitError is a 429.
	RateLimitError struct{ EnvaiError }
	// ProviderError: a model or image provider failed.
	ProviderError struct{ EnvaiError }
	// FileError: a file or path that the workspace refuses.
	FileError struct{ EnvaiError }
	// ServerError is any other answer from 500 on.
	ServerError struct{ EnvaiError }
	// CompatibilityError: the server does not speak this contract, or does not acknowledge it.
	CompatibilityError struct{ EnvaiError }
)

// CursorExpiredError: the log no longer continues from the cursor. Nothing is resumed silently: start from zero as a
// new epoch (RestartOnExpired) or reconcile.
type CursorExpiredError struct {
	ConflictError
	// Reason is epoch_changed, trimmed, ahead or sequence_reset.
	Reason string
	// Epoch is that of the log that is there now, where it is known.
	Epoch string
}

// TransportError: no usable answer.
type TransportError struct {
	EnvaiError
	// Sent is false only when the request provably never left; otherwise its effect is unknown.
	Sent bool
}

// RequestTimeoutError: the connection, the answer or the context's deadline took too long.
type RequestTimeoutError struct{ TransportError }

// StreamInterruptedError: the stream ended and could not be resumed within the reconnection policy. LastSeq is where
// to go on.
type StreamInterruptedError struct{ TransportError }

// CanceledError: the caller's context was cancelled. errors.Is(err, context.Canceled) holds too.
type CanceledError struct{ EnvaiError }

// StreamInUseError: a stream has one reader, and was read from two places at once.
type StreamInUseError struct{ EnvaiError }

// UnsafePathError: a local or workspace path that could escape, or that the workspace refuses.
type UnsafePathError struct{ EnvaiError }

// ProtocolError: the other side broke the protocol.
type ProtocolError struct {
	EnvaiError
	// Raw is what it sent, untouched; it is never printed.
	Raw json.RawMessage
}

// What breaks the protocol, by how.
type (
	// InvalidResponseError: a successful answer whose body is not what the contract says.
	InvalidResponseError struct{ ProtocolError }
	// InvalidFrameError: a server-sent event that is not UTF-8 JSON, or exceeds the frame bound.
	InvalidFrameError struct{ ProtocolError }
	// InvalidEventError: a known event whose envelope or payload breaks the schema.
	InvalidEventError struct{ ProtocolError }
	// UnsupportedVersionError: an envelope version this stream may not carry.
	UnsupportedVersionError struct{ ProtocolError }
	// RedirectRefusedError: a redirect to another origin, or of a mutation.
	RedirectRefusedError struct{ ProtocolError }
	// SignatureError: a client-tool request or webhook whose signature does not verify. Nothing was executed.
	SignatureError struct{ ProtocolError }
	// ToolStateError: a call id came back with other contents than the ledger recorded. Nothing was executed.
	ToolStateError struct{ ProtocolError }
)

// ReplayGapError: events MissingFrom to MissingTo are gone; the one replay did not bring them back.
type ReplayGapError struct {
	ProtocolError
	MissingFrom, MissingTo int64
}

// ForkFailedError: the destination Chat exists but the fork into it failed; it was not deleted.
type ForkFailedError struct {
	EnvaiError
	Chat *Chat
	// Cause is the error of the fork itself.
	Cause error
}

// TurnFailedError is that of TurnResult.Err: the turn ended, but not with turn.completed.
type TurnFailedError struct {
	EnvaiError
	Result *TurnResult
}

// Every type is found by errors.As under its own name, its family's and EnvaiError.

func (e *AuthenticationError) Unwrap() error     { return &e.EnvaiError }
func (e *AccessDeniedError) Unwrap() error       { return &e.EnvaiError }
func (e *NotFoundError) Unwrap() error           { return &e.EnvaiError }
func (e *ConflictError) Unwrap() error           { return &e.EnvaiError }
func (e *ValidationError) Unwrap() error         { return &e.EnvaiError }
func (e *RateLimitError) Unwrap() error          { return &e.EnvaiError }
func (e *ProviderError) Unwrap() error           { return &e.EnvaiError }
func (e *FileError) Unwrap() error               { return &e.EnvaiError }
func (e *ServerError) Unwrap() error             { return &e.EnvaiError }
func (e *CompatibilityError) Unwrap() error      { return &e.EnvaiError }
func (e *CursorExpiredError) Unwrap() error      { return &e.ConflictError }
func (e *TransportError) Unwrap() error          { return &e.EnvaiError }
func (e *RequestTimeoutError) Unwrap() error     { return &e.TransportError }
func (e *StreamInterruptedError) Unwrap() error  { return &e.TransportError }
func (e *CanceledError) Unwrap() error           { return &e.EnvaiError }
func (e *StreamInUseError) Unwrap() error        { return &e.EnvaiError }
func (e *UnsafePathError) Unwrap() error         { return &e.EnvaiError }
func (e *ProtocolError) Unwrap() error           { return &e.EnvaiError }
func (e *InvalidResponseError) Unwrap() error    { return &e.ProtocolError }
func (e *InvalidFrameError) Unwrap() error       { return &e.ProtocolError }
func (e *InvalidEventError) Unwrap() error       { return &e.ProtocolError }
func (e *UnsupportedVersionError) Unwrap() error { return &e.ProtocolError }
func (e *RedirectRefusedError) Unwrap() error    { return &e.ProtocolError }
func (e *SignatureError) Unwrap() error          { return &e.ProtocolError }
func (e *ToolStateError) Unwrap() error          { return &e.ProtocolError }
func (e *ReplayGapError) Unwrap() error          { return &e.ProtocolError }
func (e *ForkFailedError) Unwrap() []error       { return []error{&e.EnvaiError, e.Cause} }
func (e *TurnFailedError) Unwrap() error         { return &e.EnvaiError }

func protocolError(message string, raw []byte) ProtocolError {
	return ProtocolError{EnvaiError: EnvaiError{Message: message}, Raw: raw}
}

func timeoutError(message string, sent bool, cause error) *RequestTimeoutError {
	return &RequestTimeoutError{TransportError{EnvaiError{Message: message, cause: cause}, sent}}
}

// contextError is the error for a context that is over.
func contextError(ctx context.Context) error {
	if ctx.Err() == context.DeadlineExceeded {
		return timeoutError("the operation's deadline has passed", true, context.DeadlineExceeded)
	}
	return &CanceledError{EnvaiError{Message: "cancelled by the caller", cause: context.Canceled}}
}

// answerError is the error for a refusal: codes about the contract first, then the status, then the type.
func answerError(e EnvaiError) error {
	if e.Code == "contract_upgrade_required" || e.Code == "unsupported_contract_version" {
		return &CompatibilityError{e}
	}
	switch e.HTTPStatus {
	case 401:
		return &AuthenticationError{e}
	case 403:
		return &AccessDeniedError{e}
	case 404:
		return &NotFoundError{e}
	case 409:
		return &ConflictError{e}
	case 422:
		return &ValidationError{e}
	case 426:
		return &CompatibilityError{e}
	case 429:
		return &RateLimitError{e}
	}
	switch {
	case e.Type == "provider_error":
		return &ProviderError{e}
	case strings.HasPrefix(e.Type, "file_") || strings.HasPrefix(e.Type, "invalid_path"):
		return &FileError{e}
	case e.HTTPStatus >= 500:
		return &ServerError{e}
	}
	return &e
}
