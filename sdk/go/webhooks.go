package envai

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	webhookMaxBody   = 1 << 20
	webhookTolerance = 300 * time.Second
)

// WebhookEvent is what a wiki webhook delivers: a *FileProcessed, *FileDeleted or *OperationEnded.
type WebhookEvent interface{ WebhookHead() *WebhookEnvelope }

// WebhookEnvelope is what all three kinds share.
type WebhookEnvelope struct {
	SchemaVersion string `json:"schema_version" check:"one=1"`
	EventID       string `json:"event_id"`
	EventType     string `json:"event_type"`
	OperationID   string `json:"operation_id"`
	WorkspaceID   string `json:"workspace_id"`
	OccurredAt    string `json:"occurred_at"`

	raw string
}

// WebhookHead is the envelope itself.
func (w *WebhookEnvelope) WebhookHead() *WebhookEnvelope { return w }

// Raw is the verified JSON, unknown fields included.
func (w *WebhookEnvelope) Raw() json.RawMessage { return json.RawMessage(w.raw) }

// Format prints the type and id, whatever the verb.
func (w *WebhookEnvelope) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "WebhookEvent{%s %s}", w.EventType, w.EventID)
}

// LogValue is what a log gets of it.
func (w *WebhookEnvelope) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(w)) }

// FileProcessed is wiki.inbox.file.processed.
type FileProcessed struct {
	WebhookEnvelope
	File ProcessedFile
}

// ProcessedFile is a file that is ready.
type ProcessedFile struct {
	FileID           string `json:"file_id"`
	SourceRevision   int64  `json:"source_revision" check:"ge=1"`
	CanonicalRawPath string `json:"canonical_raw_path"`
	Availability     string `json:"availability" check:"one=raw"`
}

// FileDeleted is wiki.outbox.file.deleted.
type FileDeleted struct {
	WebhookEnvelope
	File DeletedFile
}

// DeletedFile is a file that is gone.
type DeletedFile struct {
	FileID                   string  `json:"file_id"`
	SourceRevision           int64   `json:"source_revision" check:"ge=1"`
	PreviousCanonicalRawPath *string `json:"previous_canonical_raw_path,nullable"`
	Lifecycle                string  `json:"lifecycle" check:"one=deleted"`
}

// OperationEnded is the one logical end of an inbox, outbox or sync operation.
type OperationEnded struct {
	WebhookEnvelope
	Outcome OperationOutcome
}

// OperationOutcome is how an operation ended.
type OperationOutcome struct {
	Status     string         `json:"status" check:"one=completed|failed"`
	Phases     map[string]any `json:"phases"`
	FinishedAt string         `json:"finished_at"`
	Billing    map[string]any `json:"billing"`
	UsageCost  map[string]any `json:"usage_cost"`
}

// VerifyWebhook is the event of a delivery. It fails with a SignatureError unless body, the bytes as received, is
// genuine, fresh and for that workspace. Take each EventID once, and let a late event of a lower SourceRevision revive
// nothing.
func (s *WikiService) VerifyWebhook(ctx context.Context, body []byte, header http.Header, workspaceID string) (WebhookEvent, error) {
	return s.client.verifyWebhook(ctx, body, header, workspaceID, s.client.clock.Now())
}

func (c *Client) verifyWebhook(ctx context.Context, body []byte, header http.Header, workspaceID string, now time.Time) (WebhookEvent, error) {
	var values [4]string
	for i, name := range []string{"Envai-Webhook-Id", "Envai-Webhook-Timestamp", "Envai-Webhook-Key-Id", "Envai-Webhook-Signature"} {
		lines := header.Values(name)
		if len(lines) != 1 {
			return nil, signatureError("the webhook headers must be present exactly once")
		}
		values[i] = lines[0]
	}
	id, stamp, kid, signature := values[0], values[1], values[2], values[3]
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || len(stamp) > 12 || stamp[0] == '+' || stamp[0] == '-' || !isIdentifier(id) || !isIdentifier(kid) {
		return nil, signatureError("the webhook headers are malformed")
	}
	if len(body) > webhookMaxBody {
		return nil, signatureError("the webhook body is larger than 1 MiB")
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > webhookTolerance || age < -webhookTolerance {
		return nil, signatureError("the webhook attempt is older or newer than 300 seconds")
	}
	signed := fmt.Sprintf("envai-webhook-v1\n%s\n%s\n%s\n%x", kid, id, stamp, sha256.Sum256(body))
	if err := c.shared.webhookKeys.verify(ctx, c, kid, signature, []byte(signed)); err != nil {
		return nil, err
	}
	event, err := readWebhook(string(body))
	if err != nil {
		return nil, &InvalidResponseError{protocolError("a signed webhook is not a known event", body)}
	}
	if head := event.WebhookHead(); head.EventID != id || head.WorkspaceID != workspaceID {
		return nil, signatureError("the webhook names another event or workspace than its headers and receiver")
	}
	return event, nil
}

func isIdentifier(text string) bool {
	return text != "" && len(text) <= 255 && strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

func readWebhook(text string) (WebhookEvent, error) {
	if !validJSON(text) {
		return nil, errSyntax
	}
	text = strings.TrimSpace(text)
	head := WebhookEnvelope{raw: text}
	if err := decodeInto(text, &head); err != nil {
		return nil, err
	}
	if head.EventID == "" || head.OperationID == "" || head.WorkspaceID == "" {
		return nil, expected("ids")
	}
	kind := strings.Split(head.EventType, ".")
	switch {
	case head.EventType == "wiki.inbox.file.processed":
		event := &FileProcessed{WebhookEnvelope: head}
		return event, decodeInto(text, &event.File)
	case head.EventType == "wiki.outbox.file.deleted":
		event := &FileDeleted{WebhookEnvelope: head}
		return event, decodeInto(text, &event.File)
	case len(kind) == 3 && kind[0] == "wiki" && (kind[1] == "inbox" || kind[1] == "outbox" || kind[1] == "sync"):
		event := &OperationEnded{WebhookEnvelope: head}
		err := decodeInto(text, &event.Outcome)
		if err == nil && event.Outcome.Status != kind[2] {
			err = expected("a status that fits the type")
		}
		return event, err
	}
	return nil, expected("a known type")
}
