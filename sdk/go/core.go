package envai

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

const maxRedirects = 3

// backoff is exponential with full jitter above one half; attempts count from 1.
func backoff(base, ceiling time.Duration, attempt int) time.Duration {
	top := ceiling
	if attempt < 32 {
		top = min(ceiling, base<<(attempt-1))
	}
	return time.Duration(float64(top) * (0.5 + rand.Float64()/2)) // jitter, not a secret
}

// naming lets an error say which operation it is of.
func naming(op *operation, err error) error {
	if base := baseOf(err); base != nil && base.Where == "" {
		base.Where = op.id + " " + op.method + " " + op.path
	}
	return err
}

func call[T any](ctx context.Context, c *Client, op *operation, path []string, params any, options []CallOption) (T, error) {
	var out T
	text, err := c.perform(ctx, op, path, params, options)
	if err != nil {
		return out, naming(op, err)
	}
	if err := decodeInto(text, &out); err != nil {
		return out, naming(op, &InvalidResponseError{protocolError(err.Error(), []byte(text))})
	}
	return out, nil
}

func callOne[T any](ctx context.Context, c *Client, op *operation, path []string, params any, options []CallOption) (*T, error) {
	value, err := call[T](ctx, c, op, path, params, options)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

func callNone(ctx context.Context, c *Client, op *operation, path []string, params any, options []CallOption) error {
	_, err := c.perform(ctx, op, path, params, options)
	return naming(op, err)
}

// perform is the unwrapped result of an operation, as text.
func (c *Client) perform(ctx context.Context, op *operation, path []string, params any, options []CallOption) (string, error) {
	version, got, err := c.answer(ctx, op, path, params, options)
	if err != nil {
		return "", err
	}
	return got.result(op, version, c.clock)
}

// answer is the contract version that was spoken, and the answer, whatever it is.
func (c *Client) answer(ctx context.Context, op *operation, path []string, params any, options []CallOption) (int, *answer, error) {
	s := readCall(options)
	ctx, cancel := bounded(ctx, s.timeout)
	defer cancel()
	version, err := c.version(ctx, op)
	if err != nil {
		return 0, nil, err
	}
	req, err := c.build(ctx, op, path, params, version, s.timeout)
	if err != nil {
		return 0, nil, err
	}
	got, err := c.send(ctx, req, s.maxRetries)
	return version, got, err
}

func bounded(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, timeout)
}

// version is the contract to speak; asked of the server once, the first time it matters.
func (c *Client) version(ctx context.Context, op *operation) (int, error) {
	version, _ := c.known()
	if version == 0 {
		if !op.negotiated || op.id == "getCapabilitiesLegacy" {
			return 3, nil
		}
		if _, err := c.learn(ctx); err != nil {
			return 0, err
		}
		version, _ = c.known()
	}
	return version, nil
}

// learn is what the server announces, cached. It falls back to the version 2 paths only if version 3 is not there.
func (c *Client) learn(ctx context.Context) (*Capabilities, error) {
	known, capabilities := c.known()
	if capabilities != nil {
		return capabilities, nil
	}
	versions := []int{3, 2}
	if known != 0 {
		versions = []int{known}
	}
	op := operations["getCapabilities"]
	for i, version := range versions {
		capabilities, err := c.announced(ctx, op, version)
		if err == nil {
			c.shared.mu.Lock()
			c.shared.capabilities, c.shared.version = capabilities, version
			c.shared.mu.Unlock()
			return capabilities, nil
		}
		if !absentContract(err) || i == len(versions)-1 {
			return nil, naming(op, err)
		}
	}
	panic("unreachable: the last version returns")
}

func (c *Client) announced(ctx context.Context, op *operation, version int) (*Capabilities, error) {
	req, err := c.build(ctx, op, nil, nil, version, 0)
	if err != nil {
		return nil, err
	}
	got, err := c.send(ctx, req, -1)
	if err != nil {
		return nil, err
	}
	text, err := got.result(op, version, c.clock)
	if err != nil {
		return nil, err
	}
	var out Capabilities
	if err := decodeInto(text, &out); err != nil {
		return nil, &InvalidResponseError{protocolError(err.Error(), []byte(text))}
	}
	return &out, nil
}

func absentContract(err error) bool {
	var missing *NotFoundError
	var other *CompatibilityError
	return errors.As(err, &missing) || errors.As(err, &other)
}

// send is the answer, after the retries that are safe: GET only, whatever a mutation carries.
func (c *Client) send(ctx context.Context, req *request, retries int) (*answer, error) {
	policy := c.retry
	if retries >= 0 {
		policy.MaxRetries = retries
	}
	for attempt := 1; ; attempt++ {
		got, err := c.exchange(ctx, req)
		status := 0
		var asked time.Duration
		var hasAsked bool
		if err == nil {
			status = got.status
			if !retryable(status) {
				return got, nil
			}
			asked, hasAsked = retryAfter(got.header, c.clock)
		}
		if !isTransport(err) && err != nil || !mayRetry(ctx, policy, req.operation, attempt, asked) {
			return got, err
		}
		delay := asked
		if !hasAsked {
			delay = backoff(policy.BaseDelay, policy.MaxDelay, attempt)
		}
		c.notify(Retrying{req.operation.id, attempt, delay, status})
		if err := sleep(ctx, c.clock, delay); err != nil {
			return nil, err
		}
	}
}

func retryable(status int) bool {
	return status == 429 || status == 502 || status == 503 || status == 504
}

func isTransport(err error) bool {
	var failed *TransportError
	return errors.As(err, &failed)
}

func mayRetry(ctx context.Context, policy RetryPolicy, op *operation, attempt int, asked time.Duration) bool {
	deadline, bounded := ctx.Deadline()
	outOfTime := ctx.Err() != nil || bounded && time.Until(deadline) <= asked
	return op.method == http.MethodGet && attempt <= policy.MaxRetries && asked <= policy.MaxRetryAfter && !outOfTime
}

// exchange is one answer, following the redirects that keep to the origin.
func (c *Client) exchange(ctx context.Context, req *request) (*answer, error) {
	for range maxRedirects + 1 {
		opened, err := c.announce(ctx, req)
		if err != nil {
			return nil, err
		}
		body, err := opened.body.whole()
		if err != nil {
			return nil, err
		}
		if !redirects(opened.status) {
			return &answer{opened.status, opened.header, body}, nil
		}
		if req, err = redirected(req, opened, false); err != nil {
			return nil, err
		}
	}
	return nil, &RedirectRefusedError{protocolError("too many redirects", nil)}
}

// announce opens a request, and tells of it.
func (c *Client) announce(ctx context.Context, req *request) (*response, error) {
	c.notify(RequestStarted{req.operation.id, req.operation.method, req.label})
	started, status := c.clock.Now(), 0
	opened, err := c.open(ctx, req)
	if err == nil {
		status = opened.status
	}
	c.notify(RequestEnded{req.operation.id, req.operation.method, req.label, status, c.clock.Now().Sub(started)})
	return opened, err
}

func redirects(status int) bool {
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308
}

// redirected is the request a redirect leads to. Another origin never sees credentials, and only downloads may go there.
func redirected(req *request, from *response, download bool) (*request, error) {
	refused := &RedirectRefusedError{protocolError("refused a redirect", nil)}
	refused.HTTPStatus = from.status
	before, err := url.Parse(req.url)
	location := from.header.Get("Location")
	if err != nil || location == "" || req.operation.method != http.MethodGet {
		return nil, refused
	}
	target, err := before.Parse(location)
	if err != nil || target.Scheme != "http" && target.Scheme != "https" || before.Scheme == "https" && target.Scheme == "http" {
		return nil, refused
	}
	next := *req
	next.url = target.String()
	if originOf(next.url) != originOf(req.url) {
		if !download {
			return nil, refused
		}
		next.header = http.Header{}
		for _, name := range []string{"Accept", "Accept-Encoding", "User-Agent"} {
			if value := req.header.Get(name); value != "" {
				next.header.Set(name, value)
			}
		}
	}
	return &next, nil
}

// openSuccess is an open, successful answer, after at most a few redirects. Anything else is closed and an error.
func (c *Client) openSuccess(ctx context.Context, req *request) (*response, error) {
	for range maxRedirects + 1 {
		opened, err := c.announce(ctx, req)
		if err != nil {
			return nil, err
		}
		if opened.status >= 200 && opened.status < 300 {
			return opened, nil
		}
		problem := c.closedError(opened)
		if !redirects(opened.status) {
			return nil, problem
		}
		if req, err = redirected(req, opened, true); err != nil {
			return nil, err
		}
	}
	return nil, &RedirectRefusedError{protocolError("too many redirects", nil)}
}

// closedError reads a little of a refusal, closes it and says what it was; the status alone still names the error.
func (c *Client) closedError(opened *response) error {
	body, _ := io.ReadAll(io.LimitReader(opened.body, 65_536))
	opened.close()
	return (&answer{opened.status, opened.header, body}).refusal(c.clock)
}

// RawResponse is an answer as it came, refusals included.
type RawResponse struct {
	Operation  string
	HTTPStatus int
	Header     http.Header
	Body       []byte
	client     *Client
}

// Err is the error that the answer stands for, nil for a success.
func (r *RawResponse) Err() error {
	if r.HTTPStatus >= 200 && r.HTTPStatus < 300 {
		return nil
	}
	got := &answer{r.HTTPStatus, r.Header, r.Body}
	return naming(operations[r.Operation], got.refusal(r.client.clock))
}

// Raw performs an operation of the contract by its operation id and gives the answer as it came. path are the values
// of its path's parameters in order, params its parameter struct or nil.
func (c *Client) Raw(ctx context.Context, operationID string, path []string, params any, options ...CallOption) (*RawResponse, error) {
	op := operations[operationID]
	if op == nil || op.result != "json" && op.result != "none" {
		return nil, errors.New("envai: no operation that answers JSON or nothing has this id")
	}
	_, got, err := c.answer(ctx, op, path, params, options)
	if err != nil {
		return nil, naming(op, err)
	}
	return &RawResponse{op.id, got.status, got.header, got.body, c}, nil
}
