"""Read a request's body: never more of it than we would take, never for ever, never more of all than there is room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from crocevia.asgi.types import Receive
from crocevia.core.errors import GatewayError, Reason

P = ParamSpec("P")
T = TypeVar("T")

UPLOAD_SECONDS: Final = 900.0  # for the whole of a body, from the wait for its first piece on
START_SECONDS: Final = 20.0  # before a body has to come at the least rate
LEAST_RATE: Final = 1024  # bytes a second, on average
LARGE: Final = 256 * 1024  # bytes that take so long to decode that everybody else would notice
BODIES_IN_FLIGHT: Final = 256 * 1024 * 1024  # bytes, of all callers
WAIT_SECONDS: Final = 15.0  # for room
_RETRY_SECONDS: Final = 5


class ClientGone(Exception):
    """The caller hung up before the body was complete."""


class Incoming(Protocol):
    """A body on its way."""

    complete: bool

    async def receive(self) -> dict[str, Any]: ...


class BodyRoom:
    """The bytes that bodies under way may have together.

    A body is given all the room that it may need before it is read, so that those that were begun can end. Whoever has
    to wait does so in the order of arrival among their own, and callers take turns; one alone never has more than half.
    """

    def __init__(self, size: int = BODIES_IN_FLIGHT, *, wait_seconds: float = WAIT_SECONDS) -> None:
        self.held = 0
        """Bytes that are given out."""
        self._size = size
        self._wait_seconds = wait_seconds
        self._by_caller: dict[Hashable, int] = {}
        self._waiting: OrderedDict[Hashable, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def take(self, size: int, caller: Hashable) -> AsyncIterator[None]:
        """Room for a body of `size` bytes. Raises GatewayError(UNAVAILABLE) when there is none for a while."""
        size = min(size, self._size)
        if self._waiting or not self._fits(size, caller):
            await self._wait(size, caller)
        else:
            self._give(size, caller)
        try:
            yield
        finally:
            self._give(-size, caller)
            self._admit()

    def _fits(self, size: int, caller: Hashable) -> bool:
        own = self._by_caller.get(caller, 0)
        return self.held + size <= self._size and (not own or own + size <= self._size // 2)

    def _give(self, size: int, caller: Hashable) -> None:
        self.held += size
        own = self._by_caller.get(caller, 0) + size
        if own:
            self._by_caller[caller] = own
        else:
            self._by_caller.pop(caller, None)

    async def _wait(self, size: int, caller: Hashable) -> None:
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (size, given)
        self._waiting.setdefault(caller, deque()).append(place)
        self._admit()
        try:
            async with asyncio.timeout(self._wait_seconds):
                await given
        except BaseException as error:
            if given.done() and not given.cancelled():  # in the very moment in which we gave up
                self._give(-size, caller)
            self._leave(caller, place)
            self._admit()
            if isinstance(error, TimeoutError):
                raise GatewayError(Reason.BODIES_BUSY, retry_after=_RETRY_SECONDS) from None
            raise

    def _leave(self, caller: Hashable, place: tuple[int, asyncio.Future[None]]) -> None:
        queue = self._waiting.get(caller)
        if queue is not None and place in queue:
            queue.remove(place)
            if not queue:
                del self._waiting[caller]

    def _admit(self) -> None:
        """Let in whose turn it is, as long as there is room."""
        while any([self._admit_one(caller) for caller in tuple(self._waiting)]):
            pass

    def _admit_one(self, caller: Hashable) -> bool:
        queue = self._waiting[caller]
        size, given = queue[0]
        if not self._fits(size, caller):
            return False
        queue.popleft()
        if queue:
            self._waiting.move_to_end(caller)
        else:
            del self._waiting[caller]
        if not given.done():  # else whoever waited has just given up
            self._give(size, caller)
            given.set_result(None)
        return True


async def read_body(
    receive: Receive,
    limit: int,
    declared: int | None,
    seconds: float | None = UPLOAD_SECONDS,
    *,
    room: BodyRoom | None = None,
    caller: Hashable = None,
) -> bytes:
    """The whole body. declared: its Content-Length, if any. seconds: None where nothing is left to wait for.
    room: where it is counted, as one of `caller`.

    Raises GatewayError: TOO_LARGE above `limit` bytes, INVALID_REQUEST after `seconds` or if it hardly comes,
    UNAVAILABLE without room; ClientGone.
    """
    if declared is not None and declared > limit:
        raise too_large(limit)
    begun = asyncio.get_running_loop().time()
    try:
        if seconds is None:
            message = await receive()
        else:
            async with asyncio.timeout(min(seconds, START_SECONDS)):
                message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            body: bytes = message.get("body", b"")
            if len(body) <= limit:
                return body
            raise too_large(limit)
        async with (room or BodyRoom()).take(limit if declared is None else declared, caller):
            return await _collect(receive, message, limit, begun + (seconds or UPLOAD_SECONDS))
    except TimeoutError:
        raise too_slow(seconds or UPLOAD_SECONDS) from None


async def _collect(receive: Receive, message: dict[str, Any], limit: int, end: float) -> bytes:
    """Raises TimeoutError at `end`, or as soon as it comes at less than the least rate."""
    body = bytearray()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.timeout_at(end) as patience:
        while message["type"] == "http.request":
            body += message.get("body", b"")
            if len(body) > limit:
                body.clear()
                raise too_large(limit)
            if not message.get("more_body"):
                return bytes(body)
            patience.reschedule(min(end, begun + START_SECONDS + len(body) / LEAST_RATE))
            message = await receive()
    raise ClientGone


async def body_pieces(incoming: Incoming, limit: int, declared: int | None) -> AsyncIterator[bytes]:
    """The body as it comes. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
    if declared is not None and declared > limit:
        raise too_large(limit)
    size = 0
    while not incoming.complete:
        message = await incoming.receive()
        if message["type"] != "http.request":
            raise ClientGone
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        if piece:
            yield piece


def too_large(limit: int) -> GatewayError:
    """The refusal of what has more than `limit` bytes."""
    text = f"{limit // 2**20} MB" if limit >= 2**20 else f"{limit // 1024} KB"
    return GatewayError(Reason.TOO_LARGE, limit=text)


def too_slow(seconds: float) -> GatewayError:
    """The refusal of a body that takes longer than `seconds`."""
    return GatewayError(Reason.BODY_TOO_SLOW, seconds=int(seconds))


async def aside(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What `work` makes of a body of `size` bytes: in a thread if other callers would notice how long that takes."""
    if size < LARGE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
