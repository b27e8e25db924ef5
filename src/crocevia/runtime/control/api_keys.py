"""API keys of the Envai surface: `envai_sk_<ulid><jwt>`, signed with the home's own key, kept as a digest."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from crocevia.core import json
from crocevia.core.ids import new_id
from crocevia.runtime.catalogue import digest
from crocevia.storage import teams
from crocevia.storage.database import Transaction
from crocevia.storage.home import Home, key_secret, write_secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCOPES: Final = ("completions:write",)


class Minted(msgspec.Struct, frozen=True):
    """A new key. `token` is shown now and never again."""

    id: str
    token: str

    def __repr__(self) -> str:
        return f"Minted(id={self.id!r})"


def mint(
    tx: Transaction,
    home: Home,
    user_id: str,
    name: str,
    *,
    scopes: Sequence[str] = SCOPES,
    expires_at: float | None = None,
    now: float | None = None,
) -> Minted:
    """A new API key for the user; its id and digest are stored in `tx`. Times are Unix seconds.

    Claims: `sub` (user), `jti` (key id), `iat`, `scopes`, and `exp` unless it never expires.
    """
    now = time.time() if now is None else now
    key_id = new_id("key")
    claims: dict[str, object] = {"sub": user_id, "jti": key_id, "iat": int(now), "scopes": list(scopes)}
    if expires_at is not None:
        claims["exp"] = int(expires_at)
    signed = sign_jwt(signing_key(home), claims)
    token = f"envai_sk_{key_id.removeprefix('key_')}{signed}"
    hashed = digest(key_secret(home), token.encode()).hex()
    teams.add_api_key(tx, key_id, user_id, name, hashed, list(scopes), expires_at, now)
    return Minted(key_id, token)


class SigningKey(msgspec.Struct, frozen=True):
    """`id` is the `kid` of what it signs."""

    id: str
    private: Ed25519PrivateKey

    def __repr__(self) -> str:
        return f"SigningKey(id={self.id!r})"


def signing_key(home: Home) -> SigningKey:
    """The newest Ed25519 key of the home (`keys/sig_<ulid>.pem`, private); created on first use. Raises OSError."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    found = sorted(home.keys.glob("sig_*.pem"))
    if not found:
        path = home.keys / f"{new_id('sig')}.pem"
        pem = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_secret(path, pem)
        found = [path]
    private = serialization.load_pem_private_key(found[-1].read_bytes(), None)
    assert isinstance(private, Ed25519PrivateKey)
    return SigningKey(found[-1].stem, private)


def sign_jwt(key: SigningKey, claims: Mapping[str, object]) -> str:
    """A compact JWS of `claims`, alg EdDSA (the name that verifiers in the field know)."""
    header = {"alg": "EdDSA", "kid": key.id, "typ": "JWT"}
    unsigned = b".".join(_base64url(json.encode(part)) for part in (header, claims))
    return (unsigned + b"." + _base64url(key.private.sign(unsigned))).decode()


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
