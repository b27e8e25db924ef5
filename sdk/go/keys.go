package envai

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"slices"
	"sync"
	"time"
)

const (
	keyCoolDown = 10 * time.Second
	// The cool-down after a failure while no key is known at all: calls wait for one.
	keyHurried      = time.Second
	keyFetchTimeout = 10 * time.Second
)

// KeyCache is where the keys of one JWKS URL are kept; for example to share them between processes.
type KeyCache interface {
	// Load gives raw Ed25519 keys by kid, or nil when there are none or they are too old.
	Load() map[string]ed25519.PublicKey
	// Store replaces them all.
	Store(keys map[string]ed25519.PublicKey)
}

type memoryKeyCache struct {
	mu    sync.Mutex
	ttl   time.Duration
	clock Clock
	keys  map[string]ed25519.PublicKey
	until time.Time
}

func (m *memoryKeyCache) Load() map[string]ed25519.PublicKey {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clock.Now().Before(m.until) {
		return m.keys
	}
	return nil
}

func (m *memoryKeyCache) Store(keys map[string]ed25519.PublicKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keys, m.until = keys, m.clock.Now().Add(m.ttl)
}

// keyRing finds keys and verifies, with the last good set for as long as no better one can be had.
//
// A set is fetched when the cached one is too old, and once more when a signature does not verify: by one caller at a
// time, whose answer the others share, and at most once per cool-down, whether it succeeds or fails. A fetch that
// fails, or finds no usable key at all, leaves the known keys in use. A kid that names several keys names none.
type keyRing struct {
	operation string
	cache     KeyCache
	clock     Clock

	fetching sync.Mutex

	mu         sync.Mutex
	lastGood   map[string]ed25519.PublicKey
	failure    error
	failedAt   time.Time
	forcedAt   time.Time
	generation int
}

func newKeyRing(operation string, cache KeyCache, s settings) *keyRing {
	if cache == nil {
		cache = &memoryKeyCache{ttl: s.jwksTTL, clock: s.clock}
	}
	return &keyRing{operation: operation, cache: cache, clock: s.clock}
}

// verify checks an Ed25519 signature. It fails with a SignatureError, or with the failure of the fetch where the key is
// not known and cannot be had.
func (k *keyRing) verify(ctx context.Context, c *Client, kid, signature string, message []byte) error {
	given, err := readSignature(signature)
	if err != nil {
		return err
	}
	generation := k.at()
	keys := k.cache.Load()
	if keys == nil {
		keys = k.fetch(ctx, c, generation)
		generation = k.at()
	}
	if verifies(keys[kid], message, given) {
		return nil
	}
	keys = k.force(ctx, c, generation)
	if verifies(keys[kid], message, given) {
		return nil
	}
	if _, known := keys[kid]; known {
		return signatureError("the signature does not verify")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failure != nil {
		return k.failure
	}
	return signatureError("the signing key is unknown")
}

func signatureError(message string) error { return &SignatureError{protocolError(message, nil)} }

func verifies(key ed25519.PublicKey, message, signature []byte) bool {
	return len(key) == ed25519.PublicKeySize && ed25519.Verify(key, message, signature)
}

func (k *keyRing) at() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.generation
}

func (k *keyRing) known() map[string]ed25519.PublicKey {
	if keys := k.cache.Load(); keys != nil {
		return keys
	}
	return k.lastGood
}

// force fetches although the cached set is fresh.
func (k *keyRing) force(ctx context.Context, c *Client, generation int) map[string]ed25519.PublicKey {
	k.mu.Lock()
	now := k.clock.Now()
	if generation == k.generation {
		if !k.forcedAt.IsZero() && now.Sub(k.forcedAt) < keyCoolDown {
			defer k.mu.Unlock()
			return k.known()
		}
		k.forcedAt = now
	}
	k.mu.Unlock()
	return k.fetch(ctx, c, generation)
}

// fetch is the keys after a generation: fetched by whoever comes first, shared by those who waited.
func (k *keyRing) fetch(ctx context.Context, c *Client, generation int) map[string]ed25519.PublicKey {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	if keys, enough := k.settled(generation); enough {
		return keys
	}
	document, err := callOne[JwksDocument](ctx, c, operations[k.operation], nil, nil, []CallOption{Timeout(keyFetchTimeout)})
	var keys map[string]ed25519.PublicKey
	if err == nil {
		keys = readKeys(document.Keys)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && len(keys) == 0 && len(k.lastGood) > 0 {
		err = &InvalidResponseError{protocolError("the key set holds no usable key", nil)}
	}
	if err != nil {
		k.failure, k.failedAt = err, k.clock.Now()
		return k.known()
	}
	k.cache.Store(keys)
	k.lastGood, k.failure, k.failedAt = keys, nil, time.Time{}
	k.generation++
	return keys
}

// settled reports whether there is nothing to fetch: it failed a moment ago, or another has fetched meanwhile.
func (k *keyRing) settled(generation int) (map[string]ed25519.PublicKey, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause := keyHurried
	if len(k.lastGood) > 0 {
		pause = keyCoolDown
	}
	cooling := !k.failedAt.IsZero() && k.clock.Now().Sub(k.failedAt) < pause
	return k.known(), cooling || generation != k.generation && k.cache.Load() != nil
}

// readKeys are the usable Ed25519 keys of a JWKS, by kid.
func readKeys(document []Jwk) map[string]ed25519.PublicKey {
	found := map[string]ed25519.PublicKey{}
	times := map[string]int{}
	for _, key := range document {
		raw, err := base64.RawURLEncoding.DecodeString(key.X)
		usable := err == nil && len(raw) == ed25519.PublicKeySize
		usable = usable && key.Kty == "OKP" && key.Crv == "Ed25519" && key.Alg == "EdDSA" && key.Use == "sig"
		if uses, limited := key.Extra["key_ops"]; limited {
			list, _ := uses.([]any)
			usable = usable && slices.Contains(list, any("verify"))
		}
		if usable {
			found[key.Kid] = raw
			times[key.Kid]++
		}
	}
	for kid, n := range times {
		if n > 1 {
			delete(found, kid)
		}
	}
	return found
}

// readSignature is the 64 bytes of a signature; only its canonical unpadded base64url form is accepted.
func readSignature(text string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != ed25519.SignatureSize || base64.RawURLEncoding.EncodeToString(raw) != text {
		return nil, signatureError("the signature is not the unpadded base64url form of 64 bytes")
	}
	return raw, nil
}

// signedToolBytes is what the server signs of a client-tool request; args is JSON as received.
func signedToolBytes(callID, toolName string, args []byte) ([]byte, error) {
	canonical, err := CanonicalJSON(args)
	if err != nil {
		return nil, signatureError("the arguments have no canonical form")
	}
	return append([]byte(callID+"\n"+toolName+"\n"), canonical...), nil
}
