"""The one way out to providers: open a request, read raw chunks, close. aiohttp is an implementation detail.

Nothing here retries an answer or reads a body's meaning; `upstream.py` does.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
import msgspec

from crocevia.core.errors import Code, GatewayError, say

MAX_BODY = 32 * 2**20
# aiohttp warns about (and writes in one go) bodies above 1 MiB given as bytes.
_LARGE_BODY = 2**20
# How long the end of an answer that was already understood may take before its connection is given up.
_TAIL_SECONDS = 1.0


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. `first_byte`: until the status line; `idle`: between two reads of a body."""

    connect: float = 10.0
    first_byte: float = 600.0
    idle: float = 600.0


class HttpClient:
    """A pool of connections, made on first use. No proxy from the environment, no redirects, no cookies."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self.timeouts = timeouts or Timeouts()
        self._session: aiohttp.ClientSession | None = None
        self._ending: set[HttpResponse] = set()

    async def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, *, deadline: float
    ) -> HttpResponse:
        """Send a request and return once the status is here. The caller must `close()` or `finish()` the response.

        deadline: `loop.time()` for the whole exchange. Cancelling closes the connection at once.
        Raises GatewayError: UPSTREAM_FAILED (retryable when nothing was sent) or UPSTREAM_TIMEOUT.
        """
        loop = asyncio.get_running_loop()
        limit = min(deadline, loop.time() + self.timeouts.first_byte)
        try:
            async with asyncio.timeout_at(limit):
                response = await self._send(method, url, headers, body)
        except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
            raise _failure(error) from None
        return HttpResponse(response, loop, self.timeouts.idle, deadline, self._ending)

    async def close(self) -> None:
        """Close every connection. Idempotent; a later `open` starts a new pool."""
        for response in list(self._ending):
            response.close()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        session = self._session or self._start()
        try:
            return await self._request(session, method, url, headers, body)
        except BaseException:
            # aiohttp closes, but a close first waits for the peer to take what is still unsent.
            transport, _ = _connection.get()
            if transport is not None:
                transport.abort()
            raise
        finally:
            _connection.set(_NONE)

    async def _request(
        self, session: aiohttp.ClientSession, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> aiohttp.ClientResponse:
        for last in (False, True):
            data = io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body
            try:
                return await session.request(method, url, headers=headers, data=data, allow_redirects=False)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
                # A pooled connection that the other side had closed meanwhile says nothing about this request.
                if last or not _stale(error):
                    raise
        raise AssertionError("unreachable")

    def _start(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=_Connector(limit=0, ttl_dns_cache=60, keepalive_timeout=30),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.timeouts.connect),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity", "User-Agent": "crocevia"},
            trust_env=False,
        )
        return self._session


class HttpResponse:
    """An answer under way: `status`, `header(name)`, then `chunk()` until it is empty, or `read()`."""

    __slots__ = ("_deadline", "_ending", "_expired", "_idle", "_loop", "_response", "_timer", "_waiting", "status")

    def __init__(
        self,
        response: aiohttp.ClientResponse,
        loop: asyncio.AbstractEventLoop,
        idle: float,
        deadline: float,
        ending: set[HttpResponse],
    ) -> None:
        self._response = response
        self._loop = loop
        self._idle = idle
        self._deadline = deadline
        self._ending = ending
        self._expired = False
        self._waiting: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.status: int = response.status

    def header(self, name: str) -> str | None:
        return self._response.headers.get(name)

    async def chunk(self) -> bytes:
        """Everything that has arrived, waiting for at least one byte; empty at the end.

        Raises GatewayError, closed by then: UPSTREAM_TIMEOUT after `idle` seconds of silence or at the deadline,
        UPSTREAM_FAILED on a cut.
        """
        now = self._waiting = self._loop.time()
        if self._timer is None:
            self._watch(now)
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, OSError):
            self.close()
            if self._expired:
                raise GatewayError(Code.UPSTREAM_TIMEOUT) from None
            raise GatewayError(Code.UPSTREAM_FAILED, say("upstream_cut")) from None
        finally:
            self._waiting = None

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body. Raises GatewayError as `chunk` does, and UPSTREAM_FAILED when it is longer than `limit`."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                raise GatewayError(Code.UPSTREAM_FAILED, say("upstream_too_large", limit=limit))
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Give the answer up: the connection is cut now, unless the answer has already ended. Idempotent."""
        self._stop_watching()
        connection = self._response.connection
        transport = connection.transport if connection is not None else None
        self._response.close()
        if transport is not None:
            # close() alone would first flush what is still unsent of a large request.
            transport.abort()

    def finish(self) -> None:
        """Nothing more is wanted, but the end is near: let it come, so that the connection can serve again."""
        self._stop_watching()
        if self._response.connection is not None:
            # aiohttp gives the connection back by itself when the end arrives.
            self._ending.add(self)
            self._timer = self._loop.call_later(_TAIL_SECONDS, self.close)
            self._response.content.on_eof(self._stop_watching)

    def _watch(self, now: float) -> None:
        """One timer for idle and deadline, re-armed only when it rings: one per chunk costs as much as the read."""
        waiting = self._waiting if self._waiting is not None else now
        limit = min(waiting + self._idle, self._deadline)
        if now < limit:
            self._timer = self._loop.call_at(limit, self._ring)
            return
        self._expired = True
        self._response.close()

    def _ring(self) -> None:
        self._watch(self._loop.time())

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._ending.discard(self)


# The connection that this task's request is on, and whether it had served before.
_NONE: tuple[asyncio.Transport | None, bool] = (None, False)
_connection: ContextVar[tuple[asyncio.Transport | None, bool]] = ContextVar("connection", default=_NONE)


class _Connector(aiohttp.TCPConnector):
    """Notes which connections have served before: only those can be stale."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._served: WeakSet[Any] = WeakSet()

    async def connect(self, *args: Any, **kwargs: Any) -> Any:
        connection = await super().connect(*args, **kwargs)
        protocol = connection.protocol
        _connection.set((connection.transport, protocol in self._served))
        self._served.add(protocol)
        return connection


def _stale(error: Exception) -> bool:
    _, served_before = _connection.get()
    if isinstance(error, aiohttp.ClientConnectorError) or not served_before:
        return False
    # Of a cut inside the head, aiohttp hands over what it had parsed of it.
    return not isinstance(error, aiohttp.ServerDisconnectedError) or isinstance(error.message, str)


def _failure(error: Exception) -> GatewayError:
    """What to tell of a request that got no status. Only what was surely not sent may be sent again."""
    if isinstance(error, TimeoutError):
        return GatewayError(Code.UPSTREAM_TIMEOUT, retryable=isinstance(error, aiohttp.ConnectionTimeoutError))
    if isinstance(error, aiohttp.ClientSSLError):
        return GatewayError(Code.UPSTREAM_FAILED, say("upstream_untrusted"))
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return GatewayError(Code.UPSTREAM_FAILED, say("upstream_unreachable"), retryable=True)
    return GatewayError(Code.UPSTREAM_FAILED, say("upstream_cut"))
