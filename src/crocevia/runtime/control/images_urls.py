"""Signed addresses of artifacts: who has one may read that one picture until it expires, and nothing else."""

from __future__ import annotations

import hmac
from typing import Final
from urllib.parse import urlencode

_LABEL: Final = b"artifacts\n"


def query(secret: bytes, generation: str, artifact: str, expires: int) -> str:
    """The signed query of an artifact's address. expires: Unix seconds."""
    return urlencode(
        _canonical(generation, artifact, expires) | {"signature": _sign(secret, generation, artifact, expires)}
    )


def holds(secret: bytes, generation: str, artifact: str, expires: int | None, signature: str) -> bool:
    """Whether we signed this."""
    return hmac.compare_digest(_sign(secret, generation, artifact, expires).encode(), signature.encode())


def _canonical(generation: str, artifact: str, expires: int | None) -> dict[str, str]:
    fields = {"artifact": artifact, "generation": generation}
    return fields if expires is None else {"artifact": artifact, "expires": str(expires), "generation": generation}


def _sign(secret: bytes, generation: str, artifact: str, expires: int | None) -> str:
    canonical = urlencode(_canonical(generation, artifact, expires)).encode()
    return hmac.digest(secret, _LABEL + canonical, "sha256").hex()
