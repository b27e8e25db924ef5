package envai

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// The driver of this SDK for the shared fixtures (conformance/DRIVER.md): this package's test binary, run with
// ENVAI_DRIVER=1.

func TestMain(m *testing.M) {
	if os.Getenv("ENVAI_DRIVER") == "" {
		os.Exit(m.Run())
	}
	d := &driver{out: os.Stdout}
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		d.serve(line)
	}
}

type object = map[string]any

type driver struct {
	mu     sync.Mutex
	out    io.Writer
	client *Client
	ledger *FileLedger
}

func (d *driver) write(message object) {
	text, err := marshal(message)
	if err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	_, _ = d.out.Write(append(text, '\n'))
}

func (d *driver) serve(line []byte) {
	command := anyValue(string(line)).(object)
	performers := map[string]func(object, object) error{
		"hello": d.hello, "open": d.open, "close": d.close, "ledger": d.state, "play": d.play, "sse": d.sse,
		"event": d.event, "canonical": d.canonical, "signature": d.signature, "webhook": d.webhook, "operations": d.operations,
	}
	perform, known := performers[command["do"].(string)]
	if !known {
		d.write(object{"id": command["id"], "unknown": true})
		return
	}
	result := object{}
	reply := object{"id": command["id"], "result": result}
	if err := perform(command, result); err != nil {
		reply["error"] = told(err)
	}
	d.write(reply)
}

func (d *driver) hello(_, result object) error {
	result["language"], result["sdk"], result["runtime"] = "go", Version, runtime.Version()
	return nil
}

func (d *driver) open(command, result object) error {
	if err := d.close(command, result); err != nil {
		return err
	}
	ledger, err := OpenFileLedger(command["ledger"].(string))
	if err != nil {
		return err
	}
	options := []Option{WithBaseURL(command["base_url"].(string)), WithAPIKey(command["api_key"].(string)), WithLedger(ledger)}
	for name, value := range command["options"].(object) {
		options = append(options, optionOf(name, value))
	}
	d.ledger = ledger
	d.client, err = New(options...)
	return err
}

func optionOf(name string, value any) Option {
	fields, _ := value.(object)
	switch name {
	case "contract_version":
		return WithContractVersion(int(value.(int64)))
	case "retry":
		policy := DefaultRetryPolicy
		fill(&policy, fields)
		return WithRetryPolicy(policy)
	case "reconnect":
		policy := DefaultReconnectPolicy
		fill(&policy, fields)
		return WithReconnectPolicy(policy)
	case "timeouts":
		timeouts := DefaultTimeouts
		fill(&timeouts, fields)
		return WithTimeouts(timeouts)
	}
	panic("unknown option " + name)
}

// fill sets fields by the fixtures' names; durations are in seconds.
func fill(target any, fields object) {
	v := reflect.ValueOf(target).Elem()
	for name, value := range fields {
		field := v.FieldByName(strings.ReplaceAll(camelCase(name), "MaxSeconds", "MaxDuration"))
		amount, _ := number(value)
		if field.Type() == reflect.TypeFor[time.Duration]() {
			amount *= float64(time.Second)
		}
		field.SetInt(int64(amount))
	}
}

func camelCase(name string) string {
	var out strings.Builder
	for _, word := range strings.Split(name, "_") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}

func (d *driver) close(_, _ object) error {
	if d.client == nil {
		return nil
	}
	err := errors.Join(d.client.Close(), d.ledger.Close())
	d.client = nil
	return err
}

func (d *driver) state(command, result object) error {
	record, err := d.ledger.Get(context.Background(), command["chat_id"].(string), command["call_id"].(string))
	result["state"] = nil
	if record != nil {
		result["state"] = record.State
	}
	return err
}

func unbase64(value any) []byte {
	raw, err := base64.StdEncoding.DecodeString(value.(string))
	if err != nil {
		panic(err)
	}
	return raw
}

func (d *driver) sse(command, result object) error {
	decoder := &sseDecoder{maxFrame: int(command["max_frame"].(int64))}
	frames := []string{}
	for _, chunk := range command["chunks"].([]any) {
		var err error
		if frames, err = decoder.feed(unbase64(chunk), frames); err != nil {
			return err
		}
	}
	result["frames"] = frames
	return nil
}

func (d *driver) event(command, result object) error {
	event, err := ParseEvent(unbase64(command["frame"]))
	if err == nil {
		result["raw"] = event.Head().Raw()
	}
	return err
}

func (d *driver) canonical(command, result object) error {
	var text []byte
	var err error
	if bits, ok := command["ieee754"].(string); ok {
		raw, _ := hex.DecodeString(bits)
		text, err = appendCanonicalNumber(nil, math.Float64frombits(binary.BigEndian.Uint64(raw)))
	} else {
		text, err = CanonicalJSON([]byte(command["json"].(string)))
	}
	result["canonical"] = string(text)
	return err
}

func (d *driver) signature(command, result object) error {
	var keys []Jwk
	text, _ := marshal(command["keys"])
	if err := decodeInto(string(text), &keys); err != nil {
		return err
	}
	request := command["request"].(object)
	args, _ := marshal(request["args"])
	given := request["signature"].(object)
	signature, err := readSignature(given["sig"].(string))
	message, bad := signedToolBytes(request["call_id"].(string), request["tool_name"].(string), args)
	valid := err == nil && bad == nil
	result["valid"] = valid && verifies(readKeys(keys)[given["kid"].(string)], message, signature)
	return nil
}

func (d *driver) webhook(command, result object) error {
	client, err := New(WithBaseURL("http://127.0.0.1:9"), WithWebhookJWKSURL(command["jwks_url"].(string)))
	if err != nil {
		return err
	}
	header := http.Header{}
	for name, value := range command["headers"].(object) {
		header.Add(name, value.(string))
	}
	now := time.Unix(command["now"].(int64), 0)
	event, err := client.verifyWebhook(context.Background(), unbase64(command["body"]), header, command["workspace_id"].(string), now)
	result["valid"], result["event"] = err == nil, nil
	if err == nil {
		result["event"] = event.WebhookHead().Raw()
	}
	return nil
}

func (d *driver) operations(_, result object) error {
	names := []string{}
	for name := range operations {
		names = append(names, name)
	}
	result["operations"] = names
	return nil
}

func (d *driver) play(command, result object) error {
	step := command["step"].(object)
	if _, ok := step["take"]; ok {
		return d.take(step, result)
	}
	if _, ok := step["during"]; ok {
		return d.interrupt(step, result)
	}
	return d.call(step, command["target"].(string), result)
}

// arguments are a step's arguments.
type arguments struct {
	args   []any
	kwargs object
	step   object
}

func (g arguments) text(i int) string { return g.args[i].(string) }

func givenOf(step object) arguments {
	args, _ := step["args"].([]any)
	kwargs, _ := step["kwargs"].(object)
	return arguments{args, kwargs, step}
}

func (d *driver) call(step object, target string, result object) error {
	ctx, c, g := context.Background(), d.client, givenOf(step)
	var value any
	var err error
	switch step["call"] {
	case "workspaces.list":
		value, err = c.Workspaces.List(ctx)
	case "workspaces.create":
		value, err = c.Workspaces.Create(ctx, CreateWorkspaceParams{Name: g.text(0)})
	case "workspaces.update":
		value, err = c.Workspaces.Update(ctx, g.text(0), UpdateWorkspaceParams{})
	case "teams.list":
		value, err = c.Teams.List(ctx)
	case "infrastructure.jwks":
		value, err = c.Infrastructure.JWKS(ctx)
	case "files.read_or_list":
		value, err = c.Files.ReadOrList(ctx, g.text(0), g.text(1))
	case "files.delete":
		err = c.Files.Delete(ctx, g.text(0), DeleteWorkspaceFileParams{Path: g.text(1), Recursive: Set(g.kwargs["recursive"].(bool))})
	case "files.download":
		var download *Download
		if download, err = c.Files.Download(ctx, g.text(0), g.text(1)); err == nil {
			var raw []byte
			raw, err = io.ReadAll(download)
			result["base64"] = base64.StdEncoding.EncodeToString(raw)
			err = errors.Join(err, download.Close())
		}
	case "files.download_to_file":
		err = c.Files.DownloadToFile(ctx, g.text(0), g.text(1), target)
	case "images.upload":
		file := step["file"].(object)
		upload := FileOf(file["name"].(string), unbase64(file["base64"]))
		upload.ContentType = file["type"].(string)
		value, err = c.Images.Upload(ctx, upload)
	case "api_keys.revoke":
		err = c.APIKeys.Revoke(ctx, g.text(0))
	case "completions.list":
		value, err = c.Completions.List(ctx, g.text(0), g.text(1), listing(g.kwargs))
	case "completions.iterate_completions":
		items := []any{}
		for item, problem := range c.Completions.All(ctx, g.text(0), g.text(1), listing(g.kwargs)) {
			if err = problem; err == nil {
				items = append(items, wire(item))
			}
		}
		result["items"] = items
	default:
		value, err = d.chats(ctx, g)
	}
	if err == nil {
		result["value"] = wire(value)
	}
	return err
}

func (d *driver) chats(ctx context.Context, g arguments) (value any, err error) {
	chats := d.client.Chats
	switch g.step["call"] {
	case "chats.create":
		return chats.Create(ctx, g.text(0), g.kwargs["team_id"].(string))
	case "chats.cancel":
		return chats.Cancel(ctx, g.text(0))
	case "chats.steer":
		params := SteerChatTurnParams{Text: g.text(1)}
		if target, ok := g.kwargs["target_agent_id"].(string); ok {
			params.TargetAgentID = Set(target)
		}
		return chats.Steer(ctx, g.text(0), params)
	case "chats.send_message":
		params := SendChatMessageParams{Message: g.text(1)}
		if key, ok := g.kwargs["idempotency_key"].(string); ok {
			params.IdempotencyKey = Set(key)
		}
		return chats.SendMessage(ctx, g.text(0), params)
	case "chats.restore":
		text, _ := marshal(g.args[1])
		var items []ContextItemParam
		var plain []struct{ Kind, Content string }
		if err := json.Unmarshal(text, &plain); err != nil {
			return nil, err
		}
		for _, item := range plain {
			items = append(items, ContextItemParam{Kind: item.Kind, Content: item.Content})
		}
		return chats.Restore(ctx, g.text(0), items)
	case "chats.fork_chat":
		return chats.ForkChat(ctx, g.text(0), g.text(1), g.text(2))
	case "chats.submit_approval":
		return nil, chats.SubmitApproval(ctx, g.text(0), ResolveChatApprovalParams{ApprovalID: g.text(1), Approve: g.args[2].(bool)})
	case "chats.send_and_wait":
		var options []WaitOption
		if key, ok := g.kwargs["idempotency_key"].(string); ok {
			options = append(options, IdempotencyKey(key))
		}
		if tools, ok := g.step["tools"].(object); ok {
			var more []ToolOption
			if n, ok := g.step["max_concurrency"].(int64); ok {
				more = append(more, MaxConcurrency(int(n)))
			}
			options = append(options, WithTools(d.registry(tools), more...))
		}
		return chats.SendAndWait(ctx, g.text(0), g.text(1), options...)
	}
	panic(fmt.Sprint("the driver knows no call ", g.step["call"]))
}

func listing(kwargs object) ListCompletionsParams {
	var params ListCompletionsParams
	for name, value := range kwargs {
		switch name {
		case "per_page":
			params.PerPage = Set(value.(int64))
		case "started_at_from":
			moment, _ := time.Parse(time.RFC3339, value.(string))
			params.StartedAtFrom = Set(moment)
		default:
			panic("unknown filter " + name)
		}
	}
	return params
}

func streamOptions(kwargs object) (options []StreamOption) {
	for name, value := range kwargs {
		switch name {
		case "after":
			options = append(options, After(value.(int64)))
		case "epoch":
			options = append(options, InEpoch(value.(string)))
		case "on_expired":
			options = append(options, RestartOnExpired())
		case "include_pings":
			options = append(options, IncludePings())
		default:
			panic("unknown argument " + name)
		}
	}
	return options
}

func (d *driver) take(step, result object) (problem error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := givenOf(step)
	stream := d.client.Chats.Events(ctx, g.text(0), streamOptions(g.kwargs)...)
	var source EventSource = stream
	if tools, ok := step["tools"].(object); ok {
		run, err := d.client.Chats.RunClientTools(ctx, stream, d.registry(tools))
		if err != nil {
			return err
		}
		defer func() { _ = run.Close() }()
		source = run
	}
	events := []Event{}
	for int64(len(events)) < step["take"].(int64) {
		if after, ok := step["cancel_after"].(int64); ok && after == int64(len(events)) {
			time.AfterFunc(100*time.Millisecond, cancel)
		}
		event, err := source.Next()
		if err != nil {
			problem = err
			break
		}
		events = append(events, event)
	}
	if problem == nil {
		stream.Acknowledge()
	}
	seen := []any{}
	for _, event := range events {
		_, unknown := event.(*UnknownEvent)
		_, terminal := event.(TerminalEvent)
		head := event.Head()
		seen = append(seen, object{"seq": head.Seq, "raw": head.Raw(), "known": !unknown, "terminal": terminal})
	}
	result["events"], result["last_seq"], result["restarts"] = seen, stream.LastSeq(), stream.Restarts()
	texts, err := textsOf(step, events)
	result["texts"] = texts
	return errors.Join(problem, err, stream.Close())
}

func textsOf(step object, events []Event) (object, error) {
	out := object{}
	wanted, ok := step["texts"].(object)
	if !ok {
		return out, nil
	}
	turn := NewTurnAccumulator(step["turn"].(string))
	for _, event := range events {
		if err := turn.Add(event); err != nil {
			return nil, err
		}
	}
	for who := range wanted {
		if out[who] = turn.TextOf(who); who == "orchestrator" {
			out[who] = turn.Text()
		}
	}
	return out, nil
}

func (d *driver) interrupt(step, result object) error {
	ctx, g, during := context.Background(), givenOf(step), step["during"].(object)
	stream := d.client.Chats.SendAndStream(ctx, g.text(0), g.text(1))
	for event, err := range stream.All() {
		if err != nil {
			return err
		}
		if event.Head().Seq == during["after_seq"].(int64) {
			value, err := d.chats(ctx, givenOf(during))
			if err != nil {
				return err
			}
			result["during"] = wire(value)
		}
	}
	value, err := stream.Result()
	if err == nil {
		result["value"] = wire(value)
	}
	return err
}

func (d *driver) registry(tools object) *ToolRegistry {
	registry := NewToolRegistry()
	for name, spec := range tools {
		spec := spec.(object)
		seconds, _ := number(spec["timeout"])
		timeout := time.Duration(seconds * float64(time.Second))
		if err := registry.Register(name, spec["schema"], timeout, d.handler(name, spec["does"].(object))); err != nil {
			panic(err)
		}
	}
	return registry
}

func (d *driver) handler(name string, does object) Handler {
	return func(ctx context.Context, _ ToolCall) (any, error) {
		d.write(object{"notice": "entered", "tool": name})
		wait := 0.0
		if does["until_cancelled"] == true {
			wait = 20
		}
		for _, key := range []string{"sleeps", "meanwhile"} {
			if seconds, ok := number(does[key]); ok {
				wait = seconds
			}
		}
		stopped := false
		select {
		case <-ctx.Done():
			stopped = true
		case <-time.After(time.Duration(wait * float64(time.Second))):
		}
		d.write(object{"notice": "left", "tool": name, "cancelled": stopped})
		if message, fails := does["raises"].(string); fails {
			return nil, errors.New(message)
		}
		if size, ok := does["returns_size"].(int64); ok {
			return strings.Repeat("x", int(size)), nil
		}
		return inOrder(does["returns"]), nil
	}
}

// inOrder is a value whose keys are in the fixtures' order, which a Go map has lost: "sent" comes before the rest.
func inOrder(value any) any {
	fields, ok := value.(object)
	if !ok || fields["sent"] == nil {
		return value
	}
	return struct {
		Sent  any `json:"sent"`
		Naive any `json:"naïve"`
	}{fields["sent"], fields["naïve"]}
}

// wire is what the fixtures call a value: wire names, unknown fields under extra, originals of events.
func wire(value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case time.Time:
		return value.Format(time.RFC3339Nano)
	case *TurnResult:
		return object{
			"chat_id": value.ChatID, "turn_id": value.TurnID, "text": value.Text, "usage": wire(value.Usage), "cost": value.Cost,
			"last_seq": value.LastSeq, "completed": value.Completed(), "terminal_event": value.Terminal.Head().Raw(),
		}
	case *ForkResult:
		return object{"source_chat_id": value.SourceChatID, "chat": wire(value.Chat)}
	case *CompletionPage:
		return wire(value.CompletionCollection)
	}
	return wireValue(reflect.ValueOf(value))
}

func wireValue(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return wire(v.Elem().Interface())
	case reflect.Slice:
		out := []any{}
		for i := range v.Len() {
			out = append(out, wire(v.Index(i).Interface()))
		}
		return out
	case reflect.Struct:
		out := object{}
		for i := range v.NumField() {
			name := wireName(v.Type().Field(i))
			if v.Type().Field(i).Name != "_" {
				out[name] = wire(v.Field(i).Interface())
			}
		}
		return out
	}
	return v.Interface()
}

// told is an error in the words of the protocol.
func told(err error) object {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		if _, fork := err.(*ForkFailedError); !fork && len(many.Unwrap()) == 1 {
			err = many.Unwrap()[0]
		}
	}
	class := strings.TrimPrefix(fmt.Sprintf("%T", err), "*envai.")
	out := object{"class": strings.Replace(class, "CanceledError", "CancelledError", 1)}
	if base := baseOf(err); base != nil {
		out["http_status"], out["type"], out["code"] = base.HTTPStatus, orNull(base.Type), orNull(base.Code)
		out["message"], out["details"], out["request_id"] = base.Message, base.Details, orNull(base.RequestID)
		if base.located {
			out["last_seq"] = base.LastSeq
		}
		if base.HasRetryAfter {
			out["retry_after"] = base.RetryAfter.Seconds()
		}
	}
	var transport *TransportError
	if errors.As(err, &transport) {
		out["sent"] = transport.Sent
	}
	var protocol *ProtocolError
	if errors.As(err, &protocol) && protocol.Raw != nil {
		if validJSON(string(protocol.Raw)) {
			out["raw"] = protocol.Raw
		} else {
			out["raw_text"] = strings.ToValidUTF8(string(protocol.Raw), "\ufffd")
		}
	}
	var gap *ReplayGapError
	if errors.As(err, &gap) {
		out["missing_from"], out["missing_to"] = gap.MissingFrom, gap.MissingTo
	}
	var expired *CursorExpiredError
	if errors.As(err, &expired) {
		out["reason"] = expired.Reason
	}
	var fork *ForkFailedError
	if errors.As(err, &fork) {
		out["chat"] = wire(fork.Chat)
	}
	out["printed"] = printed(err)
	return out
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// printed is everything the usual ways to print or log a value give.
func printed(value any) string {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Error("failed", "error", value)
	slog.New(slog.NewJSONHandler(&log, nil)).Error("failed", "error", value)
	return fmt.Sprintf("%s %v %+v %#v %q ", value, value, value, value, value) + log.String()
}
