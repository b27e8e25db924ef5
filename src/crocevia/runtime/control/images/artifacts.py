"""Pictures that were made, at signed addresses: who has one may read that one picture until it expires."""

from __future__ import annotations

import asyncio
import hmac
from typing import IO, Final
from urllib.parse import urlencode

from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control.context import Control, missing
from crocevia.runtime.files.blobs import Blobs
from crocevia.storage import images as rows
from crocevia.storage.images import Generation, ImageFile

_LABEL: Final = b"artifacts\n"


def artifact_url(secret: bytes, base: str, generation: Generation, artifact_id: str) -> str:
    """Where a picture can be had by whoever has this address. base: of the API."""
    expires = int(generation.expires_at)
    return f"{base}/artifacts/download?{_query(secret, generation.id, artifact_id, expires)}"


async def artifact(
    control: Control, generation_id: str, artifact_id: str, expires: int | None, signature: str
) -> tuple[ImageFile, IO[bytes]]:
    """The picture of a signed address. Raises GatewayError: FORBIDDEN (not signed by us), NOT_FOUND (expired)."""
    secret = control.catalogue.current.secret
    if not secret or not _holds(secret, generation_id, artifact_id, expires, signature):
        raise GatewayError(Reason.FORBIDDEN)
    now = control.clock()
    found = await control.database.read(lambda tx: rows.find(tx, generation_id))
    late = found is None or found.expires_at <= now or (expires is not None and expires <= now)
    kept = next((file for file in found.files if file.artifact_id == artifact_id), None) if found is not None else None
    if late or kept is None:
        raise missing("artifact")
    return kept, await asyncio.to_thread(Blobs(control.home.files).open, "artifacts", artifact_id)


def _query(secret: bytes, generation: str, artifact: str, expires: int) -> str:
    """The signed query of an artifact's address. expires: Unix seconds."""
    return urlencode(
        _canonical(generation, artifact, expires) | {"signature": _sign(secret, generation, artifact, expires)}
    )


def _holds(secret: bytes, generation: str, artifact: str, expires: int | None, signature: str) -> bool:
    """Whether we signed this."""
    return hmac.compare_digest(_sign(secret, generation, artifact, expires).encode(), signature.encode())


def _canonical(generation: str, artifact: str, expires: int | None) -> dict[str, str]:
    fields = {"artifact": artifact, "generation": generation}
    return fields if expires is None else {"artifact": artifact, "expires": str(expires), "generation": generation}


def _sign(secret: bytes, generation: str, artifact: str, expires: int | None) -> str:
    canonical = urlencode(_canonical(generation, artifact, expires)).encode()
    return hmac.digest(secret, _LABEL + canonical, "sha256").hex()
