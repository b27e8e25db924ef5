"""A provider's service that holds no conversations: one request, one whole answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent
from crocevia.engines.upstream import errors
from crocevia.engines.upstream.http import HttpClient
from crocevia.engines.upstream.retry import retry_after

_PROBE_SECONDS: Final = 10.0


class ApiClient:
    """base_url: what its paths follow. The connections belong to the client that is passed in."""

    def __init__(self, base_url: str, headers: dict[str, str], http: HttpClient) -> None:
        self._base = base_url.rstrip("/")
        self._headers = headers
        self._http = http

    async def post(self, path: str, body: bytes, *, deadline: float, headers: dict[str, str] | None = None) -> bytes:
        """The answer's body. headers: more than every request has. Raises GatewayError."""
        sent = self._headers | (headers or {})
        response = await self._http.open("POST", f"{self._base}/{path}", sent, body, deadline=deadline)
        try:
            answer = await response.read()
            if response.status != 200:
                wait = retry_after(response.header("Retry-After"))
                raise errors.from_status(response.status, answer, wait)
        except BaseException:
            response.close()
            raise
        response.finish()
        return answer

    async def probe(self) -> None:
        """Raises GatewayError unless it is there and takes the key; it need not list its models."""
        await probe(self._http, f"{self._base}/models", self._headers)


async def probe(http: HttpClient, url: str, headers: Mapping[str, str]) -> None:
    """Raises GatewayError unless a provider is there and takes the key."""
    deadline = asyncio.get_running_loop().time() + _PROBE_SECONDS
    response = await http.open("GET", url, headers, deadline=deadline)
    try:
        # A compatible server need not list its models, but whoever says so is there and took the key.
        if response.status not in (200, 404, 405):
            wait = retry_after(response.header("Retry-After"))
            raise errors.from_status(response.status, await response.read(1 << 16), wait)
    finally:
        response.close()


async def refuse_call(name: str) -> AsyncGenerator[list[ModelEvent], None]:
    """The call of the engine `name` that has none. Raises GatewayError(UNSUPPORTED)."""
    if name:
        raise GatewayError(Reason.UNSUPPORTED, what=name)
    yield []
