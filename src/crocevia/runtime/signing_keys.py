"""The home's Ed25519 keys: they sign API keys and requests to client tools, and the world can check it.

Every `keys/sig_<ulid>.pem` is published. A new one is published a while before it signs, so that nobody who keeps
the list for some minutes meets a signature by a key unknown to them. Removing a file ends what it signed.
"""

from __future__ import annotations

import base64
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import is_id, new_id
from crocevia.core.turn.entries import Signature
from crocevia.storage.home import Home, write_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from joserfc.jwk import GuestProtocol, OKPKey

PUBLISH_SECONDS: Final = 600.0  # readers keep the list for 300 s
ALGORITHM: Final = "EdDSA"  # the name that verifiers in the field know; nothing else is signed or believed
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"


class SigningKey(msgspec.Struct, frozen=True):
    """One key of the home."""

    id: str
    """The `kid` of what it signs."""
    private: Ed25519PrivateKey
    jwk: OKPKey
    """The same key, as the library for signed tokens takes it."""
    born: float
    """Unix seconds."""

    def __repr__(self) -> str:
        return f"SigningKey(id={self.id!r})"


class Jwk(msgspec.Struct, frozen=True, kw_only=True):
    """A public key as the contract publishes it."""

    kty: str = "OKP"
    crv: str = "Ed25519"
    x: str
    kid: str
    use: str = "sig"
    alg: str = "EdDSA"


class Signer:
    """Signs with the home's keys; follows the folder they are in."""

    def __init__(self, home: Home, *, clock: Callable[[], float] = time.time) -> None:
        self._home = home
        self._clock = clock
        self._seen: list[str] | None = None
        self._keys: tuple[SigningKey, ...] = ()
        self._by_id: dict[str, SigningKey] = {}

    def keys(self) -> tuple[SigningKey, ...]:
        """Every key, oldest first; the first one is made when there is none. Raises OSError, ValueError."""
        names = _names(self._home)  # not the folder's time: that of two changes within a tick is the same
        if names != self._seen or not self._keys:
            self._keys = _load(self._home, names) or (_make(self._home),)
            self._by_id = {key.id: key for key in self._keys}
            self._seen = names
        return self._keys

    def has(self, kid: str) -> bool:
        """Whether this key is there still."""
        return any(key.id == kid for key in self.keys())

    def current(self) -> SigningKey:
        """The key that signs now: the newest that has been published long enough."""
        known = self.keys()
        ready = [key for key in known if key.born <= self._clock() - PUBLISH_SECONDS]
        return ready[-1] if ready else known[0]

    def rotate(self) -> str:
        """Publish a new key; it signs from PUBLISH_SECONDS on. Its id. Raises OSError."""
        return _make(self._home).id

    def remove(self, kid: str) -> None:
        """End a key, and with it every API key and request that it signed.

        Raises GatewayError: NOT_FOUND, CONFLICT for the one that signs now; OSError.
        """
        if kid not in (key.id for key in self.keys()):
            raise GatewayError(Reason.SIGNING_KEY_MISSING, kid=kid)
        if kid == self.current().id:
            raise GatewayError(Reason.SIGNING_KEY_SIGNS, kid=kid)
        (self._home.keys / f"{kid}.pem").unlink()

    def published(self) -> list[Jwk]:
        """Every public key, oldest first."""
        return [msgspec.convert(key.jwk.as_dict(private=False), Jwk) for key in self.keys()]

    def sign(self, data: bytes) -> Signature:
        """Sign bytes with the current key."""
        key = self.current()
        return Signature(key.id, base64url(key.private.sign(data)))

    def sign_jwt(self, claims: Mapping[str, object]) -> str:
        """A compact JWS of `claims`."""
        from joserfc.jws import serialize_compact

        key = self.current()
        header = {"alg": ALGORITHM, "kid": key.id, "typ": "JWT"}
        with _eddsa():
            return serialize_compact(header, json.encode(claims), key.jwk, [ALGORITHM])

    def verify_jwt(self, token: str) -> dict[str, object] | None:
        """The claims of a token that one of our keys signed, else None. Expiry is the caller's affair."""
        from joserfc.errors import JoseError
        from joserfc.jws import deserialize_compact

        self.keys()
        try:
            with _eddsa():
                signed = deserialize_compact(token, self._key_of, [ALGORITHM])
            return msgspec.json.decode(signed.payload, type=dict[str, object])
        # Besides its own errors the library lets those of the parts through that it takes as they come.
        except (JoseError, ValueError, KeyError, TypeError, AttributeError, msgspec.DecodeError):
            return None

    def _key_of(self, signed: GuestProtocol) -> OKPKey:
        return self._by_id[signed.headers()["kid"]].jwk


def signer_of(token: str) -> str:
    """The id of the key that signed a token; only of one that `Signer.verify_jwt` took."""
    kid: str = msgspec.json.decode(unbase64url(token.partition(".")[0]))["kid"]
    return kid


@contextmanager
def _eddsa() -> Iterator[None]:
    """Without the library's advice to say `Ed25519`, a newer name for the same that verifiers have yet to learn."""
    from joserfc.errors import SecurityWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield


def base64url(data: bytes) -> str:
    """Without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unbase64url(text: str) -> bytes:
    """Raises ValueError unless `text` is canonical base64url without padding."""
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if base64url(data) != text:
        raise ValueError("not canonical")
    return data


def _names(home: Home) -> list[str]:
    """Ids of the keys that lie in the home, oldest first."""
    return sorted(path.stem for path in home.keys.iterdir() if path.suffix == ".pem" and is_id(path.stem, "sig"))


def _load(home: Home, names: list[str]) -> tuple[SigningKey, ...]:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = []
    for name in names:
        private = load_pem_private_key((home.keys / f"{name}.pem").read_bytes(), None)
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError(f"{name}.pem is not an Ed25519 key")
        found.append(_key(name, private))
    return tuple(found)


def _make(home: Home) -> SigningKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    name, private = new_id("sig"), Ed25519PrivateKey.generate()
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    write_secret(home.keys / f"{name}.pem", pem)
    return _key(name, private)


def _key(name: str, private: Ed25519PrivateKey) -> SigningKey:
    from joserfc.jwk import OKPKey

    jwk = OKPKey.import_key(private, {"kid": name, "use": "sig", "alg": ALGORITHM})
    return SigningKey(name, private, jwk, _born(name))


def _born(name: str) -> float:
    number = 0
    for digit in name.partition("_")[2][:10].lower():
        number = number * 32 + _DIGITS.index(digit)
    return number / 1000
