package envai

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Client calls the API and follows its streams. It is safe for concurrent use; make one and share it.
type Client struct {
	Services
	settings
	shared *shared
}

// shared is what clients of one origin have in common: With changes settings, never these.
type shared struct {
	mu           sync.Mutex
	version      int
	capabilities *Capabilities
	ledger       Ledger
	ownLedger    *FileLedger
	keys         *keyRing
	webhookKeys  *keyRing
	ownTransport *http.Transport
}

// New makes a client. The key and the address come from ENVAI_API_KEY and ENVAI_BASE_URL where they are not passed.
func New(options ...Option) (*Client, error) {
	s, err := readSettings(options)
	if err != nil {
		return nil, err
	}
	c := &Client{settings: s, shared: &shared{version: s.contractVersion, ledger: s.ledger}}
	if s.transport == nil {
		c.shared.ownTransport = newTransport()
		c.transport = c.shared.ownTransport
	}
	c.shared.keys = newKeyRing("getJwks", s.jwksCache, s)
	c.shared.webhookKeys = newKeyRing("getWikiWebhookJwks", nil, s)
	c.Services = newServices(c)
	return c, nil
}

// newTransport: no proxy from the environment, no netrc, no cookies; HTTP/1.1, whose streams are one connection each.
func newTransport() *http.Transport {
	dialer := &net.Dialer{KeepAlive: 30 * time.Second}
	return &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 20, IdleConnTimeout: 90 * time.Second}
}

// With is a client with other settings on the same connections, keys and ledger. Of those only timeouts, policies, the
// logger, the observer, trace headers and the clock may be changed; closing is left to the first client.
func (c *Client) With(options ...Option) *Client {
	other := &Client{settings: c.settings, shared: c.shared}
	for _, option := range options {
		option(&other.settings)
	}
	kept := c.settings
	other.apiKey, other.baseURL, other.transport, other.ledger = kept.apiKey, kept.baseURL, kept.transport, kept.ledger
	other.jwksURL, other.webhookJWKSURL, other.userAgent = kept.jwksURL, kept.webhookJWKSURL, kept.userAgent
	other.Services = newServices(other)
	return other
}

// BaseURL is the address that requests go to, ending in /api/v1.
func (c *Client) BaseURL() string { return c.baseURL }

// Ledger is where client-tool calls are recorded; a default one is opened on first use.
func (c *Client) Ledger() (Ledger, error) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.shared.ledger == nil {
		path, err := DefaultLedgerPath()
		if err != nil {
			return nil, err
		}
		ledger, err := OpenFileLedger(path)
		if err != nil {
			return nil, err
		}
		c.shared.ledger, c.shared.ownLedger = ledger, ledger
	}
	return c.shared.ledger, nil
}

// Close releases idle connections, and the ledger if the client opened it.
func (c *Client) Close() error {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	if c.shared.ownTransport != nil {
		c.shared.ownTransport.CloseIdleConnections()
	}
	if c.shared.ownLedger == nil {
		return nil
	}
	err := c.shared.ownLedger.Close()
	c.shared.ledger, c.shared.ownLedger = nil, nil
	return err
}

// Format prints the address and nothing else, whatever the verb.
func (c *Client) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "envai.Client{%s}", c.baseURL) }

// LogValue is what a log gets of it.
func (c *Client) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

func (c *Client) known() (version int, capabilities *Capabilities) {
	c.shared.mu.Lock()
	defer c.shared.mu.Unlock()
	return c.shared.version, c.shared.capabilities
}
