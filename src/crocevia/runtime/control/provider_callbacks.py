"""What providers tell us: whether it is really they.

No engine of this server hands its address to a provider, so nothing that is told matches anything: what is verified
is acknowledged and forgotten, as the contract has it for unmatched callbacks.

Secrets are in `keys/webhooks.json`: by provider, `{"secret": "…"}` (replicate, black-forest-labs) or
`{"keys": [JWK…]}` (fal).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.context import Control
from crocevia.runtime.signing_keys import unbase64url

WITHOUT: Final = frozenset({"vertex", "openai", "recraft", "byteplus"})
PER_MINUTE: Final = 600
TOLERANCE: Final = 300.0  # seconds that a signature's moment may be from ours
_FILE: Final = "webhooks.json"

Headers = Mapping[str, str]
"""Names in lower case; only those that were there exactly once."""


def receive(control: Control, provider: str, headers: Headers, body: bytes) -> None:
    """Return if the provider really said this.

    Raises GatewayError: INVALID_REQUEST (no such provider), METHOD_NOT_ALLOWED (it tells nothing), UNAUTHENTICATED.
    """
    if provider in WITHOUT:
        raise GatewayError(Reason.WEBHOOK_NONE, provider=provider)
    verify = _VERIFIERS.get(provider)
    if verify is None:
        raise GatewayError(Reason.WEBHOOK_PROVIDER, param="provider")
    settings = _settings(control).get(provider, {})
    try:
        good = verify(settings, headers, body, control.clock())
    except (KeyError, ValueError, TypeError, binascii.Error):
        good = False
    if not good:
        raise GatewayError(Reason.WEBHOOK_SIGNATURE)


def known(control: Control) -> dict[str, bool]:
    """The providers that can tell us something, and whether we can verify them."""
    settings = _settings(control)
    return {provider: provider in settings for provider in _VERIFIERS}


def _settings(control: Control) -> dict[str, dict[str, Any]]:
    try:
        return msgspec.json.decode((control.home.keys / _FILE).read_bytes(), type=dict[str, dict[str, Any]])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError):
        raise GatewayError(Reason.KEY_FILE_UNREADABLE, file=_FILE) from None


def _svix(settings: dict[str, Any], headers: Headers, body: bytes, now: float) -> bool:
    """`webhook-signature` holds `v1,<base64>` for each secret in use, over `id.timestamp.body`."""
    moment = headers["webhook-timestamp"]
    if abs(int(moment) - now) > TOLERANCE:
        return False
    key = base64.b64decode(settings["secret"].removeprefix("whsec_"), validate=True)
    signed = f"{headers['webhook-id']}.{moment}.".encode() + body
    right = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    given = (part.partition(",") for part in headers["webhook-signature"].split(" "))
    return any(version == "v1" and _same(right, value) for version, _, value in given)


def _bfl(settings: dict[str, Any], headers: Headers, body: bytes, now: float) -> bool:
    """`x-bfl-signature` is the HMAC-SHA256 of the body, in hex."""
    right = hmac.digest(settings["secret"].encode(), body, "sha256").hex()
    return _same(right, headers["x-bfl-signature"].removeprefix("sha256="))


def _fal(settings: dict[str, Any], headers: Headers, body: bytes, now: float) -> bool:
    """Ed25519 over request id, user id, moment and the body's digest, a line each."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    names = ("request-id", "user-id", "timestamp")
    lines = [headers[f"x-fal-webhook-{name}"] for name in names]
    if abs(int(lines[2]) - now) > TOLERANCE:
        return False
    signed = "\n".join([*lines, hashlib.sha256(body).hexdigest()]).encode()
    signature = bytes.fromhex(headers["x-fal-webhook-signature"])
    for key in settings["keys"]:
        try:
            Ed25519PublicKey.from_public_bytes(unbase64url(key["x"])).verify(signature, signed)
        except InvalidSignature:
            continue
        return True
    return False


def _same(right: str, given: str) -> bool:
    return hmac.compare_digest(right.encode(), given.encode())


_VERIFIERS: Final[Mapping[str, Callable[[dict[str, Any], Headers, bytes, float], bool]]] = {
    "replicate": _svix,
    "black-forest-labs": _bfl,
    "fal": _fal,
}
