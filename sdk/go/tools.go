package envai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const outputLimit = 128 << 10

// ToolCall is what a handler is given beside its arguments. Its context is over once the answer is no longer wanted:
// the server has one, the turn ended, the client stops, or its time is up.
type ToolCall struct {
	ChatID, TurnID, CallID, Tool string
	// Args is the arguments as received, valid by the tool's schema.
	Args json.RawMessage
}

// Format prints the call and none of its arguments, whatever the verb.
func (t ToolCall) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "ToolCall{%s %s}", t.Tool, t.CallID)
}

// LogValue is what a log gets of it.
func (t ToolCall) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// Handler runs a client tool. What it returns is sent: a string as it is, anything else as JSON; a ToolOutput to report
// an error of its own. An error becomes {"error":"tool_failed"}: its text stays here. A handler should be idempotent or
// able to compensate: the protocol delivers at most once, the world may still see half.
type Handler func(ctx context.Context, call ToolCall) (any, error)

// ToolOutput is what answers a call.
type ToolOutput struct {
	Output  any
	IsError bool
}

// Format prints none of the output, whatever the verb.
func (t ToolOutput) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "ToolOutput{isError=%t}", t.IsError)
}

// LogValue is what a log gets of it.
func (t ToolOutput) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// ToolOutcome is what became of one client-tool call, ids and codes only.
type ToolOutcome struct {
	// TurnID is empty for an output kept from an earlier life of the program.
	ChatID, TurnID, CallID, Tool string
	// Outcome is one of:
	//
	//   - delivered: the server acknowledged the output, or its result was seen on the stream.
	//   - tool_already_resolved, tool_timed_out or another code of a 409: the server has another answer.
	//   - turn_ended: the turn ended before the server had acknowledged the output.
	//   - not_found: the server does not know the call (any more).
	//   - refused: it accepted neither the output nor the error output in its place.
	//   - unconfirmed: still kept in the ledger, delivered the next time this chat is followed.
	//   - tool_claimed: another runner has the call; nothing ran here.
	//   - not_run: the call could not be claimed or verified in time; nothing ran here.
	//   - cancelled: the answer was no longer wanted; the handler did not run, or was told to stop.
	//   - ambiguous: another life of the program began the call; it is for OnAmbiguous or SettleToolCall.
	Outcome string
	// Error is the code of the error output that was sent in the place of a result, empty if none was.
	Error string
	// HTTPStatus is that of the answer that decided, where it was not a success.
	HTTPStatus int
}

// Delivered reports whether the server has this call's output or error output.
func (t ToolOutcome) Delivered() bool { return t.Outcome == "delivered" }

type registered struct {
	handler Handler
	valid   schemaCheck
	timeout time.Duration
}

// ToolRegistry is the tools this program can run.
type ToolRegistry struct{ tools map[string]registered }

// NewToolRegistry is an empty one.
func NewToolRegistry() *ToolRegistry { return &ToolRegistry{tools: map[string]registered{}} }

// Register adds a tool. schema is the JSON Schema of its arguments (json.RawMessage, or anything that marshals to it),
// timeout the tool's timeout_seconds: the handler gets a safe part of it. It fails for a name the server would not
// accept, a name taken, a timeout beyond 600 s, and a schema that this cannot check.
func (r *ToolRegistry) Register(name string, schema any, timeout time.Duration, handler Handler) error {
	if !isToolName(name) {
		return fmt.Errorf("envai: tool name %q: a lower-case letter, then lower-case letters, digits and '_', at most 255", name)
	}
	if _, taken := r.tools[name]; taken {
		return fmt.Errorf("envai: tool %q is already registered", name)
	}
	if timeout <= 0 || timeout > 600*time.Second {
		return errors.New("envai: a tool's timeout must be within 600 seconds")
	}
	text, err := marshal(schema)
	if err != nil {
		return errors.New("envai: the schema has no JSON form")
	}
	check, err := compileSchema(anyValue(string(text)))
	if err != nil {
		return fmt.Errorf("envai: the schema of tool %q: %w", name, err)
	}
	r.tools[name] = registered{handler, check, timeout}
	return nil
}

// RegisterFunc adds a tool whose arguments are decoded into T.
func RegisterFunc[T any](r *ToolRegistry, name string, schema any, timeout time.Duration, handler func(ctx context.Context, args T) (any, error)) error {
	return r.Register(name, schema, timeout, func(ctx context.Context, call ToolCall) (any, error) {
		var args T
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return nil, errors.New("the arguments do not fit the handler")
		}
		return handler(ctx, args)
	})
}

func isToolName(name string) bool {
	if name == "" || len(name) > 255 || name[0] < 'a' || name[0] > 'z' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// toolAnswer is the output of a call as it is sent; code is that of an error output of ours.
type toolAnswer struct {
	output  string
	isError bool
	code    string
}

// serialise is what is sent for a handler's value. What no server accepts becomes an error output: nothing at all, what
// has no JSON form, more than 131,072 bytes.
func serialise(value any) toolAnswer {
	given, ok := value.(ToolOutput)
	if !ok {
		given = ToolOutput{Output: value}
	}
	text, ok := given.Output.(string)
	if !ok {
		encoded, err := marshal(given.Output)
		if err != nil {
			return refusalOutput("output_not_serialisable")
		}
		text = string(encoded)
	}
	switch {
	case len(text) > outputLimit:
		return refusalOutput("output_too_large")
	case text == "":
		return refusalOutput("output_empty")
	}
	return toolAnswer{output: text, isError: given.IsError}
}

// refusalOutput is an error output the model can read; it never quotes arguments.
func refusalOutput(code string) toolAnswer { return toolAnswer{`{"error":"` + code + `"}`, true, code} }
