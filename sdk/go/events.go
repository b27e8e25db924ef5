package envai

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"
)

// Event is one event of a chat. Switch on its type:
//
//	switch event := event.(type) {
//	case *envai.TextDeltaEvent:
//		fmt.Print(event.Data.Delta)
//	case *envai.UnknownEvent:
//		log.Println("a newer server says", event.Type)
//	}
type Event interface {
	// Head is what all events share.
	Head() *Envelope
}

// Envelope is what all events share.
type Envelope struct {
	V      int
	ID     string
	Seq    int64
	TS     string
	ChatID string
	// TurnID is empty for what belongs to no turn.
	TurnID string
	// Agent is the running instance that speaks, nil where nobody in the turn does.
	Agent *AgentRef
	// Type is the event's type as the server spells it.
	Type string

	raw    string
	epoch  string
	moment time.Time
}

// Head is the envelope itself.
func (e *Envelope) Head() *Envelope { return e }

// Raw is the JSON as received, unknown fields included.
func (e *Envelope) Raw() json.RawMessage { return json.RawMessage(e.raw) }

// Time is TS. A time that no calendar has is the zero time.
func (e *Envelope) Time() time.Time { return e.moment }

// Epoch is the log this event belongs to, where the server says so.
func (e *Envelope) Epoch() string { return e.epoch }

// Extra are envelope fields this SDK does not know.
func (e *Envelope) Extra() map[string]any {
	out := map[string]any{}
	_ = eachField(e.raw, func(key, value string) error {
		if envelopeBit(key) == 0 {
			out[key] = anyValue(value)
		}
		return nil
	})
	return out
}

// IsPing reports whether this is a heartbeat: it belongs to no turn and moves no cursor.
func (e *Envelope) IsPing() bool { return e.Type == "ping" }

// Format prints ids and the type, whatever the verb: an event holds what people and models wrote.
func (e *Envelope) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "Event{%s id=%s seq=%d turn=%s}", e.Type, e.ID, e.Seq, e.TurnID)
}

// LogValue is what a log gets of it.
func (e *Envelope) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(e)) }

// UnknownEvent is a type this SDK does not know: valid, delivered, its Data the JSON object as received.
type UnknownEvent struct {
	Envelope
	Data json.RawMessage
}

// TerminalEvent is the one event that ends its turn: turn.completed, turn.cancelled or turn.failed.
type TerminalEvent interface {
	Event
	Outcome() TurnOutcome
}

// TurnOutcome is what the three endings share. The chat's totals are informative, never a budget.
type TurnOutcome struct {
	Usage     Usage
	Cost      *float64
	ChatUsage Usage
	ChatCost  *float64
}

func outcomeOf(data any) TurnOutcome {
	switch d := data.(type) {
	case *TurnCompletedData:
		return TurnOutcome{d.Usage, d.Cost, d.ChatUsage, d.ChatCost}
	case *TurnCancelledData:
		return TurnOutcome{d.Usage, d.Cost, d.ChatUsage, d.ChatCost}
	case *TurnFailedData:
		return TurnOutcome{d.Usage, d.Cost, d.ChatUsage, d.ChatCost}
	}
	return TurnOutcome{}
}

// eventKind is what a known type says about its envelope and its payload.
type eventKind struct {
	of      string // turn, agent or nobody
	make    func(Envelope) (Event, any)
	onlyIn3 []string
}

const allBits = 1<<9 - 1

// envelopeBit is the bit of a field of the envelope, 0 for any other.
func envelopeBit(key string) int {
	switch key {
	case "v":
		return 1
	case "id":
		return 2
	case "seq":
		return 4
	case "ts":
		return 8
	case "chat_id":
		return 16
	case "turn_id":
		return 32
	case "agent":
		return 64
	case "type":
		return 128
	case "data":
		return 256
	}
	return 0
}

// frame is an envelope's fields as they were written.
type frame struct {
	text, version, id, seq, ts, chatID, turnID, agent, kind, data, epoch string
	seen                                                                 int
}

// ParseEvent is the event in the JSON of one frame or journal line, as a stream would deliver it. Every violation is an
// error that keeps the original; an unknown type is an UnknownEvent.
func ParseEvent(data []byte) (Event, error) { return parseEvent(string(data), 2, 3) }

func parseEvent(text string, versions ...int) (Event, error) {
	if !validJSON(text) {
		return nil, &InvalidFrameError{protocolError("a frame is not valid UTF-8 JSON", []byte(text))}
	}
	f := frame{text: text}
	if eachField(text, f.read) != nil {
		return nil, &InvalidFrameError{protocolError("a frame is not a JSON object", []byte(text))}
	}
	version, err := strconv.Atoi(f.version)
	if err != nil {
		return nil, f.invalid("the envelope has no integer version")
	}
	known := false
	for _, v := range versions {
		known = known || v == version
	}
	if !known {
		message := fmt.Sprintf("envelope version %d is not supported here", version)
		return nil, &UnsupportedVersionError{protocolError(message, []byte(text))}
	}
	envelope, err := f.envelope(version)
	if err != nil {
		return nil, err
	}
	return f.typed(envelope)
}

func (f *frame) read(key, value string) error {
	switch key {
	case "v":
		f.version = value
	case "id":
		f.id = value
	case "seq":
		f.seq = value
	case "ts":
		f.ts = value
	case "chat_id":
		f.chatID = value
	case "turn_id":
		f.turnID = value
	case "agent":
		f.agent = value
	case "type":
		f.kind = value
	case "data":
		f.data = value
	case "epoch":
		f.epoch = value
	}
	f.seen |= envelopeBit(key)
	return nil
}

func (f *frame) invalid(message string) error {
	return &InvalidEventError{protocolError(message, []byte(f.text))}
}

// envelope checks the fields every event has, in the shapes every event gives them.
func (f *frame) envelope(version int) (Envelope, error) {
	if f.seen != allBits {
		return Envelope{}, f.invalid("the envelope lacks fields")
	}
	e := Envelope{V: version, Type: textOf(f.kind), ID: textOf(f.id), ChatID: textOf(f.chatID), TS: textOf(f.ts), raw: f.text, epoch: textOf(f.epoch)}
	var valid bool
	e.moment, valid = parseMoment(e.TS)
	seq, err := strconv.ParseInt(f.seq, 10, 64)
	e.Seq = seq
	for _, check := range [...]struct {
		name string
		ok   bool
	}{
		{"type", isType(e.Type)},
		{"id", isID("evt_", e.ID)},
		{"chat_id", isID("cht_", e.ChatID)},
		{"turn_id", f.turnID == "null" || isID("cmpl_", textOf(f.turnID))},
		{"ts", valid},
		{"seq", err == nil && (e.Type == "ping" && seq == 0 || e.Type != "ping" && seq >= 1)},
		{"agent", f.agent == "null" || f.agent[0] == '{'},
		{"data", f.data[0] == '{'},
	} {
		if !check.ok {
			return Envelope{}, f.invalid("the envelope's " + check.name + " is invalid")
		}
	}
	e.TurnID = textOf(f.turnID)
	if f.agent != "null" {
		e.Agent = &AgentRef{}
		if err := decodeInto(f.agent, e.Agent); err != nil {
			return Envelope{}, f.invalid(e.Type + ": agent: " + err.Error())
		}
	}
	return e, nil
}

// textOf is a JSON string's text, empty for anything else.
func textOf(value string) string {
	if value == "" || value[0] != '"' {
		return ""
	}
	return unquote(value)
}

// isType: lower-case words and digits joined by dots.
func isType(text string) bool {
	start := true
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z':
			start = false
		case start || c != '.' && (c < '0' || c > '9'):
			return false
		case c == '.':
			start = true
		}
	}
	return !start
}

func (f *frame) typed(envelope Envelope) (Event, error) {
	kind, known := eventKinds[envelope.Type]
	if !known {
		return &UnknownEvent{envelope, json.RawMessage(f.data)}, nil
	}
	event, data := kind.make(envelope)
	if err := decodeInto(f.data, data); err != nil {
		return nil, f.invalid(envelope.Type + ": " + err.Error())
	}
	switch {
	case kind.of == "nobody" && (envelope.TurnID != "" || envelope.Agent != nil):
		return nil, f.invalid("a ping belongs to no turn and no agent")
	case kind.of != "nobody" && envelope.TurnID == "":
		return nil, f.invalid(envelope.Type + " must name its turn")
	case kind.of == "turn" && envelope.Agent != nil:
		return nil, f.invalid(envelope.Type + " must not name an agent")
	case kind.of == "agent" && envelope.Agent == nil:
		return nil, f.invalid(envelope.Type + " must name an agent")
	case envelope.V == 2 && f.newer(kind.onlyIn3):
		return nil, f.invalid(envelope.Type + ": a field of version 3 in a version 2 envelope")
	}
	return event, nil
}

func (f *frame) newer(names []string) (found bool) {
	if len(names) == 0 {
		return false
	}
	_ = eachField(f.data, func(key, _ string) error {
		found = found || slices.Contains(names, key)
		return nil
	})
	return found
}
