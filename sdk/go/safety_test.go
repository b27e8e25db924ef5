package envai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestEveryErrorIsFoundByItsNameAndItsFamilies(t *testing.T) {
	for _, err := range []anError{
		&AuthenticationError{}, &AccessDeniedError{}, &NotFoundError{}, &ConflictError{}, &ValidationError{},
		&RateLimitError{}, &ProviderError{}, &FileError{}, &ServerError{}, &CompatibilityError{}, &CursorExpiredError{},
		&TransportError{}, &RequestTimeoutError{}, &StreamInterruptedError{}, &CanceledError{}, &StreamInUseError{},
		&UnsafePathError{}, &ProtocolError{}, &InvalidResponseError{}, &InvalidFrameError{}, &InvalidEventError{},
		&UnsupportedVersionError{}, &RedirectRefusedError{}, &SignatureError{}, &ToolStateError{}, &ReplayGapError{},
		&ForkFailedError{}, &TurnFailedError{},
	} {
		kind := reflect.TypeOf(err)
		for embedded := kind.Elem(); embedded.Kind() == reflect.Struct && embedded.NumField() > 0; embedded = embedded.Field(0).Type {
			target := reflect.New(reflect.PointerTo(embedded))
			if !strings.HasSuffix(embedded.Name(), "Error") {
				break
			}
			if !errors.As(err, target.Interface()) {
				t.Errorf("%v is no %v to errors.As", kind, embedded)
			}
		}
	}
	cause := &ConflictError{EnvaiError{Code: "turn_in_progress"}}
	var conflict *ConflictError
	if !errors.As(&ForkFailedError{Cause: cause}, &conflict) || conflict.Code != "turn_in_progress" {
		t.Error("a failed fork does not tell why")
	}
}

func TestNothingPrintsASecret(t *testing.T) {
	var log []string
	client := clientWith(t, func(request *http.Request) (*http.Response, error) {
		if request.Header.Get("Authorization") != "Bearer "+testKey {
			t.Error("the key is not sent")
		}
		body := `{"error":{"type":"validation_error","code":"bad","message":"not envai_sk_other nor Bearer abc.def nor ` +
			`https://host/a?signature=mine","details":{"name":["said my secret"]}}}`
		return respond(422, "application/json", body), nil
	}, WithObserver(func(signal Signal) { log = append(log, printed(signal)) }))
	_, err := client.Workspaces.Create(context.Background(), CreateWorkspaceParams{Name: "my secret"})
	var invalid *ValidationError
	if !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "signature=mine") {
		t.Fatal("the server's words are not kept", err)
	}
	if !strings.Contains(err.Error(), "fields: name") || !strings.Contains(err.Error(), "createWorkspace POST /workspaces") {
		t.Error(err)
	}
	title := "my secret"
	event := &TextDeltaEvent{Envelope: Envelope{Type: "agent.text.delta", raw: "my secret"}, Data: TextDeltaData{Delta: "my secret"}}
	for _, value := range []any{
		err, client, client.settings.apiKey, &ApiKeyCreated{Token: testKey}, ApiKeyCreated{Token: testKey}, Chat{Title: &title},
		CreateWorkspaceParams{Name: "my secret"}, event, event.Data, ToolRequestData{Args: map[string]any{"a": "my secret"}},
		Record{Output: "my secret"}, &TurnResult{Text: "my secret", Terminal: &TurnFailedEvent{}}, ToolOutput{Output: "my secret"},
		ToolCall{Args: json.RawMessage(`"my secret"`)}, log,
	} {
		text := printed(value)
		for _, secret := range []string{"my secret", testKey, "envai_sk_other", "abc.def", "signature=mine"} {
			if strings.Contains(text, secret) {
				t.Errorf("%T prints %q: %s", value, secret, text)
			}
		}
	}
	if text, _ := json.Marshal(ApiKeyCreated{Token: testKey}); !strings.Contains(string(text), testKey) {
		t.Error("a value that is encoded on purpose is not whole")
	}
}

func TestASchemaAllowsWhatItSays(t *testing.T) {
	for _, row := range []struct{ schema, yes, no string }{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"],"additionalProperties":false}`, `[{"a":1},{"a":2.0}]`, `[{},{"a":0},{"a":1.5},{"a":"1"},{"a":1,"b":2},[]]`},
		{`{"type":["string","null"],"minLength":2,"maxLength":3,"pattern":"^a"}`, `["ab","aéé",null]`, `["a","abcd","ba",1]`},
		{`{"enum":[1,"a",{"b":[null]}]}`, `[1,1.0,"a",{"b":[null]}]`, `[2,"b",{"b":[]}]`},
		{`{"const":{"a":1}}`, `[{"a":1.0}]`, `[{"a":1,"b":2},null]`},
		{`{"items":{"type":"number"},"minItems":1,"maxItems":2,"uniqueItems":true}`, `[[1],[1,2],"x"]`, `[[],[1,1.0],[1,2,3],["a"]]`},
		{`{"prefixItems":[{"type":"string"}],"items":false}`, `[["a"],[]]`, `[["a",1],[1]]`},
		{`{"contains":{"const":1},"minContains":2,"maxContains":2}`, `[[1,1],"x"]`, `[[1],[1,1,1]]`},
		{`{"oneOf":[{"multipleOf":2},{"multipleOf":3}]}`, `[2,3]`, `[6,5]`},
		{`{"anyOf":[{"type":"string"},{"exclusiveMinimum":1,"exclusiveMaximum":3}]}`, `["a",2]`, `[1,3]`},
		{`{"allOf":[{"maximum":2},{"not":{"const":1}}]}`, `[0,2]`, `[1,3]`},
		{`{"if":{"properties":{"k":{"const":1}}},"then":{"required":["x"]},"else":{"maxProperties":1}}`, `[{"k":1,"x":0},{"k":2}]`, `[{"k":1},{"k":2,"x":0}]`},
		{`{"patternProperties":{"^n":{"type":"number"}},"additionalProperties":{"type":"string"}}`, `[{"n1":1,"s":"x"}]`, `[{"n1":"x"},{"s":1}]`},
		{`{"propertyNames":{"maxLength":1},"minProperties":1,"dependentRequired":{"a":["b"]}}`, `[{"a":1,"b":2},{"c":1}]`, `[{},{"ab":1},{"a":1}]`},
		{`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/tree"}}}}}`, `[{"next":{"next":{}}}]`, `[{"next":{"next":1}}]`},
		{`{"title":"x","format":"email","default":1}`, `["not checked"]`, `[]`},
		{`false`, `[]`, `[1]`},
	} {
		check, err := compileSchema(anyValue(row.schema))
		if err != nil {
			t.Errorf("%s: %v", row.schema, err)
			continue
		}
		for _, value := range anyValue(row.yes).([]any) {
			if !check(value) {
				t.Errorf("%s refuses %v", row.schema, value)
			}
		}
		for _, value := range anyValue(row.no).([]any) {
			if check(value) {
				t.Errorf("%s allows %v", row.schema, value)
			}
		}
	}
}

func TestAToolThatCannotBeCheckedIsRefused(t *testing.T) {
	handler := func(context.Context, ToolCall) (any, error) { return nil, nil }
	registry := NewToolRegistry()
	for _, row := range []struct {
		name    string
		schema  string
		timeout time.Duration
	}{
		{"t", `{"unevaluatedProperties":false}`, time.Second}, {"t", `{"$ref":"https://elsewhere/schema"}`, time.Second},
		{"t", `{"$ref":"#/$defs/none"}`, time.Second}, {"t", `{"type":"text"}`, time.Second}, {"t", `{"pattern":"(?!x)"}`, time.Second},
		{"t", `{"minimum":"1"}`, time.Second}, {"t", `[]`, time.Second}, {"T", `{}`, time.Second}, {"1t", `{}`, time.Second},
		{"", `{}`, time.Second}, {"t", `{}`, 0}, {"t", `{}`, 601 * time.Second},
	} {
		if err := registry.Register(row.name, json.RawMessage(row.schema), row.timeout, handler); err == nil {
			t.Errorf("%q %s %v was registered", row.name, row.schema, row.timeout)
		}
	}
	if err := registry.Register("t", object{}, time.Second, handler); err != nil {
		t.Error(err)
	}
	if err := registry.Register("t", object{}, time.Second, handler); err == nil {
		t.Error("a name was taken twice")
	}
}

func TestSettingsThatCannotBeMeantAreRefusedWithoutTheKey(t *testing.T) {
	t.Setenv("ENVAI_BASE_URL", "")
	for name, options := range map[string][]Option{
		"no address":    {},
		"no scheme":     {WithBaseURL("host/api")},
		"credentials":   {WithBaseURL("http://user:secret@host")},
		"a query":       {WithBaseURL("http://host?x=1")},
		"a key of two":  {WithBaseURL("http://host"), WithAPIKey("envai_sk_x\nX: y")},
		"a version":     {WithBaseURL("http://host"), WithContractVersion(4)},
		"negative time": {WithBaseURL("http://host"), WithTimeouts(Timeouts{Connect: -1})},
	} {
		if _, err := New(options...); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "envai_sk_x") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPathsThatCouldEscapeNeverLeave(t *testing.T) {
	client := clientWith(t, func(*http.Request) (*http.Response, error) {
		t.Error("a request was sent")
		return nil, errors.New("no")
	})
	var unsafe *UnsafePathError
	for _, path := range []string{"a", "/../b", "/a//b", "/a/", `/a\b`, "/a\x00", "/a/..", ""} {
		if _, err := client.Files.ReadOrList(context.Background(), "wsp_1", path); !errors.As(err, &unsafe) {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, id := range []string{"", ".", ".."} {
		if _, err := client.Workspaces.Get(context.Background(), id); err == nil {
			t.Errorf("%q was sent", id)
		}
	}
	for _, address := range []string{"http://other/api/v1/artifacts/download?signature=x", "http://127.0.0.1:9/artifacts/download", "http://127.0.0.1:9/x?signature=x"} {
		if _, err := client.Images.DownloadSigned(context.Background(), address); !errors.As(err, &unsafe) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestADownloadReplacesNothingUnlessItIsTold(t *testing.T) {
	client := clientWith(t, func(*http.Request) (*http.Response, error) { return respond(200, "text/plain", "new"), nil })
	path := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(path, []byte("old"), 0o600))
	ctx := context.Background()
	if err := client.Files.DownloadToFile(ctx, "wsp_1", "/a", path); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	check(t, client.Files.DownloadToFile(ctx, "wsp_1", "/a", path, Overwrite()))
	if text := must[[]byte](t)(os.ReadFile(path)); string(text) != "new" {
		t.Errorf("%s", text)
	}
	check(t, client.Files.DownloadToFile(ctx, "wsp_1", "/a", path+"2", InPlace()))
	if names := must[[]os.DirEntry](t)(os.ReadDir(filepath.Dir(path))); len(names) != 2 {
		t.Error("something was left behind", names)
	}
}
