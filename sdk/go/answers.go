package envai

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// answer is a whole answer as it came.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// result is the unwrapped JSON of a successful answer, as text; the mapped error otherwise.
func (a *answer) result(op *operation, version int, clock Clock) (string, error) {
	if a.status < 200 || a.status > 299 {
		return "", a.refusal(clock)
	}
	if err := a.acknowledges(op, version); err != nil {
		return "", err
	}
	if op.result == "none" {
		return "", nil
	}
	text := string(a.body)
	if !validJSON(text) {
		return "", a.invalid("the answer is not valid JSON")
	}
	text = strings.TrimSpace(text)
	if op.unwrap == "" {
		return text, nil
	}
	for _, key := range strings.Split(op.unwrap, ".") {
		found := ""
		_ = eachField(text, func(name, value string) error {
			if name == key {
				found = value
			}
			return nil
		})
		if found == "" {
			return "", a.invalid(fmt.Sprintf("%s: the answer has no %q", op.id, op.unwrap))
		}
		text = found
	}
	return text, nil
}

func (a *answer) invalid(message string) error {
	return &InvalidResponseError{protocolError(message, a.body)}
}

// acknowledges: a negotiated success names the contract version exactly once; anything else is another contract's.
func (a *answer) acknowledges(op *operation, version int) error {
	if !op.negotiated || version == 2 {
		return nil
	}
	lines := a.header.Values(versionHeader)
	if len(lines) == 1 && lines[0] == acknowledged(op) {
		return nil
	}
	return &CompatibilityError{EnvaiError{
		Message:    fmt.Sprintf("%s: the answer does not acknowledge contract %s exactly once", op.id, acknowledged(op)),
		HTTPStatus: a.status, RequestID: a.header.Get("X-Request-Id"),
	}}
}

// refusal is the typed error of an answer, whatever its body is.
func (a *answer) refusal(clock Clock) error {
	e := EnvaiError{HTTPStatus: a.status, RequestID: a.header.Get("X-Request-Id")}
	e.RetryAfter, e.HasRetryAfter = retryAfter(a.header, clock)
	e.Message = fmt.Sprintf("HTTP %d without an error envelope", a.status)
	if envelope := a.envelope(); envelope != nil {
		e.Type, _ = envelope["type"].(string)
		e.Code, _ = envelope["code"].(string)
		e.Message, _ = envelope["message"].(string)
		e.Details = envelope["details"]
	}
	return answerError(e)
}

func (a *answer) envelope() map[string]any {
	text := string(a.body)
	if !validJSON(text) {
		return nil
	}
	outer, _ := anyValue(strings.TrimSpace(text)).(map[string]any)
	envelope, _ := outer["error"].(map[string]any)
	return envelope
}

// retryAfter is what a Retry-After asks for, in seconds or as a date.
func retryAfter(header http.Header, clock Clock) (time.Duration, bool) {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 30); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	moment, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return max(0, moment.Sub(clock.Now())), true
}
