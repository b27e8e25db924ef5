"""Public keys by id, cached, and the signatures they verify."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Protocol

from .clock import monotonic
from .core import Core, call
from .effects import Flow, Guarded
from .errors import EnvaiError, InvalidResponseError, SignatureError
from .models import JwksDocument

BASE64URL = re.compile(r"[A-Za-z0-9_-]*\Z")
COOL_DOWN = 10.0
HURRIED = 1.0
"""The cool-down after a failure while no key is known at all: calls wait for one."""
FETCH_TIMEOUT = 10.0
"""Seconds for one fetch, retries included: calls wait for it."""


class KeyCache(Protocol):
    """Where the keys of one JWKS URL are kept; pluggable, for example to share them between processes."""

    def load(self) -> dict[str, bytes] | None:
        """Raw 32-byte Ed25519 keys by `kid`, or None when there are none or they are too old."""

    def store(self, keys: dict[str, bytes]) -> None:
        """Replace them all."""


class MemoryKeyCache:
    """Keeps keys in this process for `ttl` seconds."""

    def __init__(self, ttl: float = 300.0) -> None:
        self.ttl = ttl
        self._keys: dict[str, bytes] | None = None
        self._until = 0.0

    def load(self) -> dict[str, bytes] | None:
        return self._keys if monotonic() < self._until else None

    def store(self, keys: dict[str, bytes]) -> None:
        self._keys, self._until = keys, monotonic() + self.ttl


class KeyRing:
    """Finds keys and verifies, with the last good set for as long as no better one can be had.

    A set is fetched when the cached one is too old, and once more when a signature does not verify: by one caller at a
    time, whose answer the others share, and at most once per cool-down, whether it succeeds or fails. A fetch that
    fails, or finds no usable key at all, leaves the known keys in use. A `kid` that names several keys names none.
    """

    def __init__(self, core: Core, operation: str, cache: KeyCache | None = None, cool_down: float = COOL_DOWN) -> None:
        self.core = core
        self.operation = operation
        self.cache = MemoryKeyCache(core.options.jwks_ttl) if cache is None else cache
        self.cool_down = cool_down
        self._last_good: dict[str, bytes] = {}
        self._failure: EnvaiError | None = None
        self._failed_at: float | None = None
        self._forced_at: float | None = None
        self._generation = 0

    def verify(self, kid: str, signature: str, message: bytes, timeout: float | None = None) -> Flow[None]:
        """Check an Ed25519 signature (unpadded base64url). Raises SignatureError, never after a lenient guess.

        Raises the failure of the fetch where the key is not known and cannot be had.
        """
        given = read_signature(signature)
        generation = self._generation
        keys = self.cache.load()
        if keys is None:
            keys = yield from self._refresh(generation, timeout)
            generation = self._generation
        if valid(keys.get(kid), given, message):
            return
        keys = yield from self._force(generation, timeout)
        if valid(keys.get(kid), given, message):
            return
        if kid not in keys and self._failure is not None:
            raise self._failure.with_traceback(None)
        raise SignatureError("the signature does not verify" if kid in keys else "the signing key is unknown")

    def _force(self, generation: int, timeout: float | None) -> Flow[dict[str, bytes]]:
        now = monotonic()
        if generation == self._generation:
            if self._forced_at is not None and now - self._forced_at < self.cool_down:
                return self._known()
            self._forced_at = now
        return (yield from self._refresh(generation, timeout))

    def _known(self) -> dict[str, bytes]:
        return self.cache.load() or self._last_good

    def _refresh(self, generation: int, timeout: float | None) -> Flow[dict[str, bytes]]:
        """The keys after `generation`: fetched by whoever comes first, shared by those who waited."""
        result: dict[str, bytes] = yield Guarded(f"keys:{self.operation}", self._fetch(generation, timeout))
        return result

    def _fetch(self, generation: int, timeout: float | None) -> Flow[dict[str, bytes]]:
        pause = self.cool_down if self._last_good else min(self.cool_down, HURRIED)
        cooling = self._failed_at is not None and monotonic() - self._failed_at < pause
        if cooling or (generation != self._generation and self.cache.load() is not None):
            return self._known()
        try:
            seconds = FETCH_TIMEOUT if timeout is None else min(timeout, FETCH_TIMEOUT)
            document: JwksDocument = yield from call(self.core, self.operation, {}, JwksDocument, seconds)
            keys = read_keys(document)
            if self._last_good and not keys:
                raise InvalidResponseError("the key set holds no usable key")
        except EnvaiError as problem:
            self._failure, self._failed_at = problem, monotonic()
            return self._known()
        self.cache.store(keys)
        self._last_good, self._failure, self._failed_at = keys, None, None
        self._generation += 1
        return keys


def read_keys(document: JwksDocument) -> dict[str, bytes]:
    """The usable Ed25519 keys of a JWKS, by `kid`."""
    found: dict[str, list[bytes]] = {}
    for key in document.keys:
        operations = key.extra.get("key_ops")
        usable = operations is None or (isinstance(operations, list) and "verify" in operations)
        raw = decode_base64url(key.x) if BASE64URL.match(key.x) else b""
        if (key.kty, key.crv, key.alg, key.use) == ("OKP", "Ed25519", "EdDSA", "sig") and len(raw) == 32 and usable:
            found.setdefault(key.kid, []).append(raw)
    return {kid: keys[0] for kid, keys in found.items() if len(keys) == 1}


def decode_base64url(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""


def read_signature(text: str) -> bytes:
    """The 64 bytes of a signature; only its canonical unpadded base64url form is accepted."""
    raw = decode_base64url(text) if BASE64URL.match(text) else b""
    if len(raw) != 64 or base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != text:
        raise SignatureError("the signature is not the unpadded base64url form of 64 bytes")
    return raw


def valid(key: bytes | None, signature: bytes, message: bytes) -> bool:
    if key is None:
        return False
    verify = _verifier()
    return verify(key, signature, message)


def _verifier() -> Callable[[bytes, bytes, bytes], bool]:
    from cryptography.exceptions import InvalidSignature  # heavy: only programs that verify pay for it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    def verify(key: bytes, signature: bytes, message: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return verify


def signed_tool_bytes(call_id: str, tool_name: str, args: dict[str, object]) -> bytes:
    """What the server signs of a client-tool request. Raises SignatureError if the arguments have no canonical form."""
    from .jcs import canonical_json

    try:
        return f"{call_id}\n{tool_name}\n".encode() + canonical_json(args)
    except ValueError:  # includes an id that is not UTF-8
        raise SignatureError("the arguments have no canonical form") from None
