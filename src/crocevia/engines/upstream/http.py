"""The one way out to providers: open a request, read raw chunks, close.

Our own client, because this is the hot path: a general one costs more per request than all the rest of a call.
It does just what engines need: HTTP/1.1 with kept connections and verified TLS; no proxy from the environment, no
redirects, no cookies, no content codings. Nothing here reads a body's meaning; `driver.py` and the dialects do.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.engines.upstream.addresses import Addresses
from crocevia.engines.upstream.connection import Connection, ConnectionBroken
from crocevia.engines.upstream.origins import Origin, connect, request_head, target
from crocevia.engines.upstream.reading import MAX_BODY

KEEP_SECONDS: Final = 30.0  # how long an unused connection is kept
# How much later than one round trip our own loop may hear of an end.
LOOP_SECONDS: Final = 0.05
# How long the end of an answer that was already understood may take before its connection is given up.
TAIL_SECONDS: Final = 1.0


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    connect: float = 10.0
    first_byte: float = 600.0
    """Until the status and headers."""
    idle: float = 600.0
    """Between two reads of a body."""


class HttpClient:
    """A pool of connections, made on first use."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        self.timeouts = timeouts or Timeouts()
        self._kept: dict[Origin, list[Connection]] = {}
        self._all: set[Connection] = set()
        self._addresses = Addresses()
        self._tls: ssl.SSLContext | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    async def open(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None, *, deadline: float
    ) -> HttpResponse:
        """Send a request and return once the status is here. The caller must `close()` or `finish()` the response.

        deadline: `loop.time()` for the whole exchange. Cancelling closes the connection at once.
        Raises GatewayError: UPSTREAM_FAILED (retryable when nothing was sent) or UPSTREAM_TIMEOUT.
        """
        try:
            origin, path = target(url)
            head = request_head(method, origin, path, headers, body)
        except ValueError:
            raise GatewayError(Reason.UPSTREAM_UNREACHABLE) from None
        connection = self._take(origin)
        if connection is not None:
            response = HttpResponse(self, origin, connection, deadline)
            # A kept connection that the other side was closing when we sent says nothing about this request.
            if await response.begin(head, body, forgive=True):
                return response
        response = HttpResponse(self, origin, await self._connect(origin, deadline), deadline)
        await response.begin(head, body)
        return response

    async def close(self) -> None:
        """Close every connection. Idempotent; a later `open` starts a new pool."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._kept.clear()
        if self._all:
            self._emptied = asyncio.get_running_loop().create_future()
            for connection in tuple(self._all):
                connection.abort()
            await asyncio.wait([self._emptied], timeout=TAIL_SECONDS)

    def keep(self, origin: Origin, connection: Connection) -> None:
        """Have a connection back, for the next request; one that cannot serve again is closed."""
        if not connection.reusable:
            connection.abort()
            return
        loop = asyncio.get_running_loop()
        connection.idle_since = loop.time()
        self._kept.setdefault(origin, []).append(connection)
        if self._sweep is None:
            self._sweep = loop.call_later(KEEP_SECONDS, self._drop_unused)

    def _take(self, origin: Origin) -> Connection | None:
        kept = self._kept.get(origin)
        while kept:
            connection = kept.pop()
            if not connection.hung_up:
                return connection
            connection.abort()
        return None

    async def _connect(self, origin: Origin, deadline: float) -> Connection:
        loop = asyncio.get_running_loop()
        if origin.tls and self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self.timeouts.connect)):
                found = await self._addresses.of(origin.host, origin.port)
                connection = await connect(origin, found, self._tls, self._gone)
        except TimeoutError:
            raise GatewayError(Reason.UPSTREAM_TIMEOUT, retryable=True) from None
        except ssl.SSLError:
            raise GatewayError(Reason.UPSTREAM_UNTRUSTED) from None
        except OSError:
            self._addresses.forget(origin.host, origin.port)
            raise GatewayError(Reason.UPSTREAM_UNREACHABLE, retryable=True) from None
        if connection.open:  # it may have ended already: connection_lost has run
            self._all.add(connection)
        return connection

    def _gone(self, connection: Connection) -> None:
        self._all.discard(connection)
        if not self._all and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def _drop_unused(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - KEEP_SECONDS
        for origin, kept in tuple(self._kept.items()):
            for connection in [one for one in kept if one.idle_since <= oldest or not one.open]:
                kept.remove(connection)
                connection.abort()
            if not kept:
                del self._kept[origin]
        self._sweep = loop.call_later(KEEP_SECONDS, self._drop_unused) if self._kept else None


class HttpResponse:
    """An answer under way: `status`, `header(name)`, then `chunk()` until it is empty, or `read()`."""

    __slots__ = (
        "_client",
        "_connection",
        "_deadline",
        "_expired",
        "_loop",
        "_origin",
        "_over",
        "_patience",
        "_since",
        "_timer",
        "status",
    )

    def __init__(self, client: HttpClient, origin: Origin, connection: Connection, deadline: float) -> None:
        self.status = 0
        self._client = client
        self._origin = origin
        self._connection = connection
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._expired = self._over = False
        self._patience = client.timeouts.first_byte
        self._since: float | None = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None
        self._watch()

    async def begin(self, head: bytes, body: bytes | None, *, forgive: bool = False) -> bool:
        """Send, and wait for the status. False if `forgive` and the request cannot have been read: the connection ended
        within a round trip, before its other side confirmed a byte. Else it may be worked for already, and paid.

        Raises GatewayError, closed by then.
        """
        connection, sent = self._connection, self._loop.time()
        try:
            connection.send(head, body)
            self.status = await connection.head()
        except ConnectionBroken:
            self.close()
            trip = connection.unread_for
            unread = trip is not None and self._loop.time() - sent < trip + LOOP_SECONDS
            if forgive and unread and not (connection.began or self._expired):
                return False
            raise self._cut() from None
        except BaseException:
            self.close()
            raise
        self._since = None
        self._patience = self._client.timeouts.idle
        return True

    def header(self, name: str) -> str | None:
        wanted = name.lower().encode()
        for key, value in self._connection.headers:
            if key.lower() == wanted:
                return value.decode("latin-1")
        return None

    async def chunk(self) -> bytes:
        """Everything that has arrived, waiting for at least one byte; empty at the end.

        Raises GatewayError, closed by then: UPSTREAM_TIMEOUT after `idle` seconds of silence or at the deadline,
        UPSTREAM_FAILED on a cut.
        """
        if self._over:
            return b""
        self._since = self._loop.time()
        try:
            data = await self._connection.chunk()
        except ConnectionBroken:
            self.close()
            raise self._cut() from None
        self._since = None
        if not data:
            self._give_back()
        return data

    async def read(self, limit: int = MAX_BODY) -> bytes:
        """The whole body. Raises GatewayError as `chunk` does, and UPSTREAM_FAILED when it is longer than `limit`."""
        pieces: list[bytes] = []
        size = 0
        while piece := await self.chunk():
            size += len(piece)
            if size > limit:
                raise GatewayError(Reason.UPSTREAM_TOO_LARGE, limit=limit)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def close(self) -> None:
        """Give the answer up: the connection is cut now, unless the answer has already ended. Idempotent."""
        if not self._over:
            self._give_back()

    def finish(self) -> None:
        """Nothing more is wanted, but the end is near: let it come, so that the connection can serve again."""
        if self._over:
            return
        if self._connection.complete:
            self._give_back()
            return
        self._stop_watching()
        self._connection.skip(self._give_back)
        self._timer = self._loop.call_later(TAIL_SECONDS, self.close)

    def _give_back(self) -> None:
        self._over = True
        self._stop_watching()
        self._client.keep(self._origin, self._connection)

    def _cut(self) -> GatewayError:
        if self._expired:
            return GatewayError(Reason.UPSTREAM_TIMEOUT)
        return GatewayError(Reason.UPSTREAM_CUT)

    def _watch(self) -> None:
        """One timer for every limit, re-armed only when it rings: one per chunk costs as much as the read."""
        now = self._loop.time()
        since = now if self._since is None else self._since
        limit = min(since + self._patience, self._deadline)
        if now < limit:
            self._timer = self._loop.call_at(limit, self._watch)
            return
        self._expired = True
        self._connection.abort()

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
