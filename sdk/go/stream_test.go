package envai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	testChat = "cht_01j5abcdefghjkmnpqrstvwxyz"
	testTurn = "cmpl_01j5abcdefghjkmnpqrstvwxy0"
	testKey  = "envai_sk_fixture"
)

// fakeTransport answers requests without a network.
type fakeTransport func(*http.Request) (*http.Response, error)

func (f fakeTransport) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

func respond(status int, contentType, body string) *http.Response {
	header := http.Header{"Content-Type": {contentType}, versionHeader: {"3"}}
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

func clientWith(t testing.TB, transport fakeTransport, options ...Option) *Client {
	t.Helper()
	base := []Option{WithBaseURL("http://127.0.0.1:9"), WithAPIKey(testKey), WithContractVersion(3), WithTransport(transport)}
	client, err := New(append(base, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func delta(seq int) string {
	return fmt.Sprintf(`data: {"v":3,"id":"evt_%026d","seq":%d,"ts":"2026-08-17T14:00:00.250Z","chat_id":"%s","turn_id":"%s",`+
		`"agent":{"instance_id":"ag_01j5abcdefghjkmnpqrstvwxy0","name":"lead","role":"orchestrator","parent_id":null},`+
		`"type":"agent.text.delta","data":{"delta":"some words "}}`+"\n\n", seq, seq, testChat, testTurn)
}

// endless is a stream of deltas, written as they are read.
type endless struct {
	next, last int
	rest       []byte
}

func (e *endless) Read(into []byte) (int, error) {
	for len(e.rest) < len(into) && e.next <= e.last {
		e.rest = append(e.rest, delta(e.next)...)
		e.next++
	}
	if len(e.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into, e.rest)
	e.rest = append(e.rest[:0], e.rest[n:]...)
	return n, nil
}

func (e *endless) Close() error { return nil }

func streaming(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}, versionHeader: {"3"}}, Body: body}
}

func cpu(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func TestAHundredThousandEventsCostLittleAndLeaveNothingBehind(t *testing.T) {
	const events = 100_000
	// The bytes are made before anything is measured.
	var all bytes.Buffer
	for seq := 1; seq <= events; seq++ {
		all.WriteString(delta(seq))
	}
	client := clientWith(t, func(*http.Request) (*http.Response, error) {
		return streaming(io.NopCloser(bytes.NewReader(all.Bytes()))), nil
	}, WithReconnectPolicy(ReconnectPolicy{}))
	stream := client.Chats.Events(context.Background(), testChat)
	before, after1000, began := uint64(0), uint64(0), cpu(t)
	paused := time.Duration(0)
	for seq := 1; seq <= events; seq++ {
		event, err := stream.Next()
		if err != nil || event.Head().Seq != int64(seq) {
			t.Fatal(seq, event, err)
		}
		if seq == 5_000 || seq == events {
			at := cpu(t)
			before, after1000 = after1000, heap()
			paused += cpu(t) - at
		}
	}
	perEvent := (cpu(t) - began - paused) / events
	grown := int64(after1000) - int64(before)
	t.Logf("%v of CPU per event, %d bytes of heap more after 95,000 events", perEvent, grown)
	if grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if !raceDetector && perEvent > 5*time.Microsecond {
		t.Errorf("%v of CPU per event", perEvent)
	}
	_ = stream.Close()
}

func BenchmarkEvent(b *testing.B) {
	client := clientWith(b, func(*http.Request) (*http.Response, error) {
		return streaming(&endless{next: 1, last: b.N}), nil
	})
	stream := client.Chats.Events(context.Background(), testChat)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stream.Next(); err != nil {
			b.Fatal(err)
		}
	}
	_ = stream.Close()
}

// fakeClock passes the time that is waited for at once, and remembers it.
type fakeClock struct {
	mu    sync.Mutex
	now   time.Time
	slept []time.Duration
}

func (f *fakeClock) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fakeClock) After(d time.Duration) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.slept = f.now.Add(d), append(f.slept, d)
	done := make(chan time.Time, 1)
	done <- f.now
	return done
}

func TestAStreamGivesUpAfterTheBudgetAndSaysWhereItStood(t *testing.T) {
	clock := &fakeClock{now: time.Unix(1_800_000_000, 0)}
	opened := 0
	client := clientWith(t, func(*http.Request) (*http.Response, error) {
		if opened++; opened > 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return streaming(io.NopCloser(strings.NewReader(delta(1)))), nil
	}, WithClock(clock))
	var last error
	for _, err := range client.Chats.Events(context.Background(), testChat).All() {
		last = err
	}
	var stopped *StreamInterruptedError
	if !errors.As(last, &stopped) || stopped.LastSeq != 1 || stopped.ChatID != testChat {
		t.Fatal(last)
	}
	if opened != 6 || len(clock.slept) != 5 {
		t.Fatal(opened, clock.slept)
	}
	for i, d := range clock.slept {
		if top := min(10*time.Second, 250*time.Millisecond<<i); d < top/2 || d > top {
			t.Errorf("pause %d was %v", i, d)
		}
	}
}

func TestTheEventInHandCountsOnceItIsAcknowledged(t *testing.T) {
	client := clientWith(t, func(*http.Request) (*http.Response, error) { return streaming(&endless{next: 1, last: 9}), nil })
	stream := client.Chats.Events(context.Background(), testChat)
	for event, err := range stream.All() {
		if err != nil {
			t.Fatal(err)
		}
		if event.Head().Seq == 3 {
			break
		}
	}
	if stream.LastSeq() != 2 {
		t.Fatal(stream.LastSeq())
	}
	stream.Acknowledge()
	if _, err := stream.Next(); stream.LastSeq() != 3 || err != io.EOF {
		t.Fatal(stream.LastSeq(), err)
	}
}

func TestOneStreamHasOneReader(t *testing.T) {
	reading := make(chan struct{})
	client := clientWith(t, func(request *http.Request) (*http.Response, error) {
		close(reading)
		<-request.Context().Done()
		return nil, request.Context().Err()
	})
	ctx, cancel := context.WithCancel(context.Background())
	stream := client.Chats.Events(ctx, testChat)
	first := make(chan error)
	go func() { _, err := stream.Next(); first <- err }()
	<-reading
	var inUse *StreamInUseError
	if _, err := stream.Next(); !errors.As(err, &inUse) {
		t.Error(err)
	}
	cancel()
	var canceled *CanceledError
	if err := <-first; !errors.As(err, &canceled) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestADeadlineEndsWhatItBounds(t *testing.T) {
	silent := func(request *http.Request) (*http.Response, error) {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for name, call := range map[string]func(*Client) error{
		"a call":   func(c *Client) error { _, err := c.Workspaces.List(ctx); return err },
		"a stream": func(c *Client) error { _, err := c.Chats.Events(ctx, testChat).Next(); return err },
		"a turn":   func(c *Client) error { _, err := c.Chats.SendAndWait(ctx, testChat, "hi"); return err },
		"Timeout": func(c *Client) error {
			_, err := c.Workspaces.List(context.Background(), Timeout(20*time.Millisecond))
			return err
		},
		"silence": func(c *Client) error {
			_, err := c.With(WithTimeouts(Timeouts{Request: 20 * time.Millisecond})).Workspaces.List(context.Background(), MaxRetries(0))
			return err
		},
	} {
		err := call(clientWith(t, silent))
		var late *RequestTimeoutError
		var transport *TransportError
		var base *EnvaiError
		if !errors.As(err, &late) || !errors.As(err, &transport) || !errors.As(err, &base) {
			t.Errorf("%s: %T %v", name, err, err)
		}
	}
}
