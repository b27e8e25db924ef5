package envai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"
)

// Version of this SDK.
const Version = "0.1.0-dev"

const apiPrefix = "/api/v1"

// Timeouts bound the phases of an exchange. A context's deadline bounds a whole operation.
type Timeouts struct {
	// Connect bounds connecting, Request the wait for an answer and each silence in it.
	Connect, Request time.Duration
	// StreamConnect bounds connecting a stream, StreamIdle the silence on it, heartbeats included.
	StreamConnect, StreamIdle time.Duration
	// Attach bounds the wait for a new stream's first heartbeat.
	Attach time.Duration
}

// RetryPolicy is for GET only. A Retry-After beyond MaxRetryAfter is not slept: the error is returned with its value.
type RetryPolicy struct {
	MaxRetries                         int
	BaseDelay, MaxDelay, MaxRetryAfter time.Duration
}

// ReconnectPolicy counts failures in a row before a stream gives up; progress, or a connection that lived HealthyAfter,
// clears them.
type ReconnectPolicy struct {
	MaxReconnects int
	// MaxDuration bounds the time spent failing; 0 does not.
	MaxDuration                                      time.Duration
	BaseDelay, MaxDelay, MaxRetryAfter, HealthyAfter time.Duration
}

// The defaults, the same in every language.
var (
	DefaultTimeouts = Timeouts{
		Connect: 10 * time.Second, Request: 30 * time.Second, StreamConnect: 10 * time.Second,
		StreamIdle: 45 * time.Second, Attach: 45 * time.Second,
	}
	DefaultRetryPolicy = RetryPolicy{
		MaxRetries: 2, BaseDelay: 500 * time.Millisecond, MaxDelay: 8 * time.Second, MaxRetryAfter: 30 * time.Second,
	}
	DefaultReconnectPolicy = ReconnectPolicy{
		MaxReconnects: 5, BaseDelay: 250 * time.Millisecond, MaxDelay: 10 * time.Second,
		MaxRetryAfter: time.Minute, HealthyAfter: 30 * time.Second,
	}
)

// settings are everything a client is configured with.
type settings struct {
	apiKey          secret
	baseURL         string
	jwksURL         string
	webhookJWKSURL  string
	userAgent       string
	contractVersion int // 0: find out
	timeouts        Timeouts
	retry           RetryPolicy
	reconnect       ReconnectPolicy
	jwksTTL         time.Duration
	jwksCache       KeyCache
	maxFrameBytes   int
	transport       http.RoundTripper
	ledger          Ledger
	logger          *slog.Logger
	observer        func(Signal)
	traceHeaders    func(context.Context) http.Header
	clock           Clock
}

// Option configures a client.
type Option func(*settings)

// WithAPIKey passes the key; without it, it is ENVAI_API_KEY.
func WithAPIKey(key string) Option { return func(s *settings) { s.apiKey = secret{key} } }

// WithBaseURL passes the server's address, with or without /api/v1; without it, it is ENVAI_BASE_URL.
func WithBaseURL(address string) Option { return func(s *settings) { s.baseURL = address } }

// WithJWKSURL says where signing keys are, if not at the origin of the base URL.
func WithJWKSURL(address string) Option { return func(s *settings) { s.jwksURL = address } }

// WithWebhookJWKSURL says where the keys of wiki webhooks are, if not at the origin of the base URL.
func WithWebhookJWKSURL(address string) Option {
	return func(s *settings) { s.webhookJWKSURL = address }
}

// WithSDKName replaces the name and version in the User-Agent.
func WithSDKName(name string) Option { return func(s *settings) { s.userAgent = name } }

// WithContractVersion speaks version 2 or 3 without asking the server.
func WithContractVersion(version int) Option {
	return func(s *settings) { s.contractVersion = version }
}

// WithTimeouts replaces all timeouts; begin with DefaultTimeouts.
func WithTimeouts(timeouts Timeouts) Option { return func(s *settings) { s.timeouts = timeouts } }

// WithRetryPolicy replaces how GETs are retried.
func WithRetryPolicy(policy RetryPolicy) Option { return func(s *settings) { s.retry = policy } }

// WithReconnectPolicy replaces how streams are resumed.
func WithReconnectPolicy(policy ReconnectPolicy) Option {
	return func(s *settings) { s.reconnect = policy }
}

// WithJWKSTTL says how long fetched keys are fresh (5 minutes).
func WithJWKSTTL(ttl time.Duration) Option { return func(s *settings) { s.jwksTTL = ttl } }

// WithKeyCache keeps signing keys elsewhere, for example to share them between processes.
func WithKeyCache(cache KeyCache) Option { return func(s *settings) { s.jwksCache = cache } }

// WithMaxFrameBytes bounds one server-sent event (16 MiB).
func WithMaxFrameBytes(size int) Option { return func(s *settings) { s.maxFrameBytes = size } }

// WithTransport carries the requests: for tests, proxies and environments of one's own.
func WithTransport(transport http.RoundTripper) Option {
	return func(s *settings) { s.transport = transport }
}

// WithLedger says where client-tool calls are recorded; a file in the user's state folder by default.
func WithLedger(ledger Ledger) Option { return func(s *settings) { s.ledger = ledger } }

// WithLogger gets the signals of an Observer as log lines; without it nothing is logged.
func WithLogger(logger *slog.Logger) Option { return func(s *settings) { s.logger = logger } }

// WithObserver calls observe with every signal, from whatever goroutine it happens on. It must not block.
func WithObserver(observe func(Signal)) Option { return func(s *settings) { s.observer = observe } }

// WithTraceHeaders is asked for each request; only tracing headers pass.
func WithTraceHeaders(headers func(context.Context) http.Header) Option {
	return func(s *settings) { s.traceHeaders = headers }
}

// WithClock replaces the clock that delays and durations are read from.
func WithClock(clock Clock) Option { return func(s *settings) { s.clock = clock } }

// CallOption changes one call.
type CallOption func(*callSettings)

type callSettings struct {
	timeout    time.Duration
	maxRetries int
}

// Timeout bounds a whole call, its retries included; a context's deadline does so too.
func Timeout(timeout time.Duration) CallOption { return func(s *callSettings) { s.timeout = timeout } }

// MaxRetries is for a GET, in place of the client's policy.
func MaxRetries(retries int) CallOption { return func(s *callSettings) { s.maxRetries = retries } }

func readCall(options []CallOption) callSettings {
	s := callSettings{maxRetries: -1}
	for _, option := range options {
		option(&s)
	}
	return s
}

func readSettings(options []Option) (settings, error) {
	s := settings{
		apiKey: secret{os.Getenv("ENVAI_API_KEY")}, baseURL: os.Getenv("ENVAI_BASE_URL"),
		userAgent: "envai-go/" + Version, timeouts: DefaultTimeouts, retry: DefaultRetryPolicy,
		reconnect: DefaultReconnectPolicy, jwksTTL: 5 * time.Minute, maxFrameBytes: 16 << 20, clock: systemClock{},
	}
	for _, option := range options {
		option(&s)
	}
	if s.baseURL == "" {
		return s, errors.New("envai: the base URL is missing: pass WithBaseURL, or set ENVAI_BASE_URL")
	}
	if strings.IndexFunc(s.apiKey.value, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return s, errors.New("envai: the API key must be printable ASCII")
	}
	if s.contractVersion != 0 && s.contractVersion != 2 && s.contractVersion != 3 {
		return s, errors.New("envai: the contract version must be 2 or 3, or not be set")
	}
	if err := s.checkNumbers(); err != nil {
		return s, err
	}
	base, err := normalizeBaseURL(s.baseURL)
	if err != nil {
		return s, err
	}
	s.baseURL = base
	if s.jwksURL == "" {
		s.jwksURL = originOf(base) + "/.well-known/jwks.json"
	}
	if s.webhookJWKSURL == "" {
		s.webhookJWKSURL = originOf(base) + "/.well-known/wiki-webhook-jwks.json"
	}
	s.userAgent += fmt.Sprintf(" (go/%s)", strings.TrimPrefix(runtime.Version(), "go"))
	return s, nil
}

func (s *settings) checkNumbers() error {
	for _, number := range []time.Duration{
		s.timeouts.Connect, s.timeouts.Request, s.timeouts.StreamConnect, s.timeouts.StreamIdle, s.timeouts.Attach,
		s.retry.BaseDelay, s.retry.MaxDelay, s.retry.MaxRetryAfter, time.Duration(s.retry.MaxRetries),
		s.reconnect.BaseDelay, s.reconnect.MaxDelay, s.reconnect.MaxRetryAfter, s.reconnect.HealthyAfter,
		s.reconnect.MaxDuration, time.Duration(s.reconnect.MaxReconnects), s.jwksTTL, time.Duration(s.maxFrameBytes),
	} {
		if number < 0 {
			return errors.New("envai: timeouts, delays and counts must not be negative")
		}
	}
	return nil
}

// normalizeBaseURL makes the address end in /api/v1 exactly once.
func normalizeBaseURL(address string) (string, error) {
	parsed, err := url.Parse(strings.TrimSpace(address))
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" {
		return "", errors.New("envai: the base URL must be an absolute http or https URL")
	}
	if parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return "", errors.New("envai: the base URL must carry no credentials, query or fragment")
	}
	path := strings.TrimRight(parsed.EscapedPath(), "/")
	if !strings.HasSuffix(path, apiPrefix) {
		path += apiPrefix
	}
	return parsed.Scheme + "://" + parsed.Host + path, nil
}

// originOf is what two URLs must share to share credentials: scheme, host and port, in one spelling.
func originOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	host := strings.ToLower(parsed.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	scheme := strings.ToLower(parsed.Scheme)
	if port := parsed.Port(); port != "" && port != map[string]string{"http": "80", "https": "443"}[scheme] {
		host += ":" + port
	}
	return scheme + "://" + host
}

// Clock is what delays and durations are read from. Deadlines of contexts keep to the system's.
type Clock interface {
	Now() time.Time
	After(time.Duration) <-chan time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time                         { return time.Now() }
func (systemClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// sleep waits for d or until the context is over, whose error it returns; at once if the deadline falls within.
func sleep(ctx context.Context, clock Clock, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d && ctx.Err() == nil {
		return timeoutError("the operation's deadline would pass before the next attempt", true, context.DeadlineExceeded)
	}
	select {
	case <-ctx.Done():
		return contextError(ctx)
	case <-clock.After(d):
		return nil
	}
}
