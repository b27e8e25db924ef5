"""What a client tool verifies before it runs: Ed25519 over `call_id\\ntool_name\\nJCS(args)`."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.turn.entries import Signature
from crocevia.runtime.signing_keys import Signer

_SAFE: Final = 2**53 - 1


def sign_call(signer: Signer, call_id: str, tool_name: str, arguments: msgspec.Raw) -> Signature:
    """Raises ValueError if the arguments have no canonical form."""
    return signer.sign(b"\n".join((call_id.encode(), tool_name.encode(), canonical(arguments))))


def canonical(arguments: msgspec.Raw) -> bytes:
    """RFC 8785. Integers beyond 2**53 - 1 are signed as the doubles that readers make of them. Raises ValueError."""
    import rfc8785  # only where there are client tools

    try:
        return rfc8785.dumps(_doubles(msgspec.json.decode(arguments)))
    except (msgspec.DecodeError, rfc8785.CanonicalizationError, OverflowError, RecursionError, UnicodeError):
        raise ValueError("no canonical form") from None


def _doubles(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _doubles(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_doubles(item) for item in value]
    if type(value) is int and abs(value) > _SAFE:
        return float(value)
    return value
