package envai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	envai "github.com/digitalygo/envai-client"
)

// scripted answers without a network, as a test of an application might.
type scripted map[string]string

func (s scripted) RoundTrip(request *http.Request) (*http.Response, error) {
	status, body := 200, s[request.Method+" "+strings.TrimPrefix(request.URL.Path, "/api/v1")]
	kind := "application/json"
	switch {
	case body == "":
		status, body = 409, `{"error":{"type":"conflict","code":"turn_in_progress","message":"A turn runs."}}`
	case strings.HasPrefix(body, "data:"):
		kind = "text/event-stream"
	}
	header := http.Header{"Content-Type": {kind}, "X-Envai-Contract-Version": {"3"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
}

const chatID = "cht_01j5abcdefghjkmnpqrstvwxyz"

func client(script scripted) *envai.Client {
	made, err := envai.New(envai.WithBaseURL("http://127.0.0.1:8111"), envai.WithTransport(script), envai.WithContractVersion(3))
	if err != nil {
		panic(err)
	}
	return made
}

func frame(seq int, kind, agent, data string) string {
	return fmt.Sprintf(`data: {"v":3,"id":"evt_%026d","seq":%d,"ts":"2026-08-17T14:00:00Z","chat_id":"%s",`+
		`"turn_id":"cmpl_01j5abcdefghjkmnpqrstvwxyz","agent":%s,"type":"%s","data":%s}`+"\n\n", seq, seq, chatID, agent, kind, data)
}

const lead = `{"instance_id":"ag_01j5abcdefghjkmnpqrstvwxyz","name":"lead","role":"orchestrator","parent_id":null}`

func ExampleChatsService_Events() {
	c := client(scripted{"GET /atp/v3/chats/" + chatID + "/events": frame(1, "agent.text.delta", lead, `{"delta":"Good "}`) +
		frame(2, "agent.text.delta", lead, `{"delta":"morning."}`) + frame(3, "agent.mood", lead, `{"mood":"calm"}`)})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for event, err := range c.Chats.Events(ctx, chatID).All() {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch event := event.(type) {
		case *envai.TextDeltaEvent:
			fmt.Print(event.Data.Delta)
		case *envai.UnknownEvent:
			fmt.Println()
			fmt.Println(event.Type, string(event.Data))
			return
		}
	}
	// Output:
	// Good morning.
	// agent.mood {"mood":"calm"}
}

func ExampleConflictError() {
	_, err := client(scripted{}).Chats.Cancel(context.Background(), chatID)
	var conflict *envai.ConflictError
	fmt.Println(errors.As(err, &conflict), conflict.HTTPStatus, conflict.Code)
	fmt.Println(err)
	// Output:
	// true 409 turn_in_progress
	// A turn runs. (409 conflict turn_in_progress) [in cancelChatTurn POST /atp/v3/chats/{chat_id}/cancel]
}

func ExampleRegisterFunc() {
	registry := envai.NewToolRegistry()
	schema := map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}}
	type arguments struct{ City string }
	err := envai.RegisterFunc(registry, "weather", schema, time.Minute, func(_ context.Context, args arguments) (any, error) {
		return map[string]any{"city": args.City, "degrees": 21}, nil
	})
	fmt.Println(err)
	fmt.Println(envai.RegisterFunc(registry, "Weather", schema, time.Minute, func(context.Context, arguments) (any, error) { return nil, nil }))
	// Output:
	// <nil>
	// envai: tool name "Weather": a lower-case letter, then lower-case letters, digits and '_', at most 255
}

func ExampleSet() {
	params := envai.UpdateWorkspaceParams{Name: envai.Set("Lab")}
	name, given := params.Name.Get()
	fmt.Println(name, given, envai.Null[string]().IsZero())
	// Output: Lab true false
}

func ExampleParseEvent() {
	line := strings.TrimPrefix(strings.TrimSpace(frame(7, "agent.text.done", lead, `{"text":"Done."}`)), "data: ")
	event, err := envai.ParseEvent([]byte(line))
	fmt.Println(event, err)
	_, err = envai.ParseEvent([]byte(strings.Replace(line, `"v":3`, `"v":9`, 1)))
	fmt.Println(err)
	// Output:
	// Event{agent.text.done id=evt_00000000000000000000000007 seq=7 turn=cmpl_01j5abcdefghjkmnpqrstvwxyz} <nil>
	// envelope version 9 is not supported here
}
