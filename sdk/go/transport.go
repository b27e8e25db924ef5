package envai

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const bodyLimit = 64 << 20

// response is an open answer; its body is read within the request's silence bound and must be closed.
type response struct {
	status int
	header http.Header
	body   *phasedBody
}

func (r *response) close() { _ = r.body.Close() }

var errSilence = errors.New("nothing came in time")

// open sends a request and reads the head of its answer. ctx bounds the head and the body.
func (c *Client) open(ctx context.Context, req *request) (*response, error) {
	if ctx.Err() != nil {
		return nil, unsent(contextError(ctx))
	}
	watched, cancel := context.WithCancelCause(ctx)
	var connected atomic.Bool
	phase := req.read
	if c.transport == http.RoundTripper(c.shared.ownTransport) {
		phase = req.connect // ours says when it is connected
	}
	timer := time.AfterFunc(phase, func() { cancel(errSilence) })
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true); timer.Reset(req.read) }}
	message, err := http.NewRequestWithContext(httptrace.WithClientTrace(watched, trace), req.operation.method, req.url, nil)
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, errors.New("envai: the address of a request is not valid")
	}
	body, length, contentType := req.body()
	message.Header = req.header.Clone()
	if body != nil {
		message.Body, message.ContentLength = body, length
	}
	if contentType != "" {
		message.Header.Set("Content-Type", contentType)
	}
	answer, err := c.transport.RoundTrip(message)
	if err != nil {
		timer.Stop()
		cancel(nil)
		return nil, failure(ctx, watched, err, connected.Load())
	}
	timer.Reset(req.read)
	stream := &phasedBody{body: answer.Body, ctx: ctx, watched: watched, cancel: cancel, timer: timer, silence: req.read}
	return &response{answer.StatusCode, answer.Header, stream}, nil
}

// phasedBody bounds each silence in a body.
type phasedBody struct {
	body         io.ReadCloser
	ctx, watched context.Context
	cancel       context.CancelCauseFunc
	timer        *time.Timer
	silence      time.Duration
}

// Read gives io.EOF at the end and one of this package's errors otherwise.
func (b *phasedBody) Read(into []byte) (int, error) {
	b.timer.Reset(b.silence)
	n, err := b.body.Read(into)
	b.timer.Stop()
	if err != nil && err != io.EOF {
		return n, failure(b.ctx, b.watched, err, true)
	}
	return n, err
}

// Close releases the connection, read to its end or not.
func (b *phasedBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.body.Close()
}

// whole reads a body that is small enough to hold.
func (b *phasedBody) whole() ([]byte, error) {
	defer func() { _ = b.Close() }()
	body, err := io.ReadAll(io.LimitReader(b, bodyLimit+1))
	if err == nil && len(body) > bodyLimit {
		err = &InvalidResponseError{protocolError("the answer is larger than 64 MiB", nil)}
	}
	return body, err
}

// failure is this package's error for a failed exchange. It does not wrap the original, which holds the URL.
func failure(ctx, watched context.Context, err error, connected bool) error {
	if ctx.Err() != nil {
		problem := contextError(ctx)
		if !connected {
			return unsent(problem)
		}
		return problem
	}
	if context.Cause(watched) == errSilence {
		return timeoutError("no answer in time", connected, nil)
	}
	var operation *net.OpError
	what := "the connection ended"
	if errors.As(err, &operation) {
		what = operation.Op + " failed"
		connected = connected && operation.Op != "dial"
	}
	return &TransportError{EnvaiError{Message: "no answer: " + what}, connected}
}

// unsent marks a time-out of which nothing left.
func unsent(err error) error {
	var late *RequestTimeoutError
	if errors.As(err, &late) {
		late.Sent = false
	}
	return err
}
