"""The words of every door: an operation, a request that reached it, what it answers, and the door itself."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from itertools import count
from os import urandom
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from crocevia.asgi.body import UPLOAD_SECONDS, BodyRoom, ClientGone, body_pieces, read_body
from crocevia.asgi.hangup import on_disconnect, run_until_disconnect
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Headers, Receive, Scope, Send
from crocevia.core.errors import GatewayError
from crocevia.core.forwarding import Address, Network, client_of, origin_of

C = TypeVar("C")
T = TypeVar("T")

JSON: Final = b"application/json"
JSON_BODY: Final = 1024 * 1024  # bytes; what a JSON body may have unless an operation says otherwise
SOCKET: Final = "WEBSOCKET"  # stands for the method of an operation that is a WebSocket
_REQUEST_ID: Final = re.compile(rb"[!-~]{1,128}")
_PROCESS: Final = urandom(8).hex().encode()
_NUMBERS: Final = count(1)


class Response(NamedTuple):
    """A whole answer."""

    status: int
    content: Any = None
    """Bytes as they are, anything else as JSON. None: no body."""
    headers: Headers = ()
    media_type: bytes = JSON
    cache: bytes = b"no-store"
    """Its Cache-Control."""


class Stream(NamedTuple):
    """An answer in pieces, such as a file. What fails before the first piece is an honest error; after it the answer
    just ends. The pieces stop when the caller leaves or may no longer read; the iterator is closed in any case.
    """

    chunks: AsyncIterator[bytes]
    headers: Headers
    status: int = 200


class EventResponse(NamedTuple):
    """Server-sent events, written by `run`."""

    run: Callable[[EventStream], Awaitable[None]]
    failed: Callable[[GatewayError], bytes] = lambda error: b""
    """The last event of a stream that cannot go on; before the first byte it is an honest error instead."""
    headers: Headers = ()
    over: asyncio.Event | None = None
    """For a stream without an end: it begins at once, `run` pings by itself, and it is given up when this is set, when
    the caller leaves, and when the caller may no longer read. None: `run` ends by itself, and is told of a hang-up by
    `Request.on_disconnect`.
    """


class Socket(NamedTuple):
    """A WebSocket to be accepted, and what is then done with it."""

    run: Callable[[Receive, Send], Awaitable[None]]


Answer: TypeAlias = Response | Stream | EventResponse | Socket
Handler: TypeAlias = Callable[["Request[Any]"], Awaitable[Answer]]


class Operation(msgspec.Struct, frozen=True):
    """A row of a door's table: what is at an address, and what its description says of it."""

    id: str
    method: str
    path: str
    """From the origin on; `{name}` is a parameter of one segment, `{name+}` one of all that follow."""
    handler: Handler
    about: str
    aliases: tuple[str, ...] = ()
    """Addresses that are the same."""
    body: Any = None
    """The type of a JSON body, decoded before the handler runs; None: the handler reads `request.pieces`, or none."""
    max_body: int = JSON_BODY
    """Bytes."""
    upload: bool = False
    """The body is a form with one `file`."""
    query: Any = None
    """The struct of its parameters."""
    query_errors: Literal["strict", "replace"] = "strict"
    """What becomes of parameters that are not UTF-8: the request is refused, or they mean nothing."""
    result: Any = None
    """The type of the success answer."""
    wrapped: bool = False
    """The answer is `{"data": result}`."""
    produces: str | None = None
    """The media type of an answer that is no JSON."""
    also: tuple[str, ...] = ()
    """Media types that the answer may have instead."""
    status: int = 200
    refuses: tuple[int, ...] = ()
    """Statuses besides success."""
    headers: dict[str, tuple[dict[str, Any], bool]] = {}
    """Those that it reads: each with its schema, and whether it is needed."""
    head: bool = False
    """HEAD is answered like GET."""
    public: bool = False
    """Asks for no key."""
    per_minute: int | None = None
    """Calls of one user."""
    rule: Any = None
    """What else the door's authenticator must know of it."""
    absent: bool = False
    """Always answers 404, and is not described."""


class Front(msgspec.Struct, frozen=True, kw_only=True):
    """What the settings say to all doors."""

    ping_seconds: float = 15.0
    """Of silence, after which a stream shows that it is alive."""
    cors_origins: tuple[str, ...] = ()
    """Pages of these origins may read answers; `*`: of all."""
    proxies: tuple[Network, ...] = ()
    """Whose forwarding headers are believed."""
    public_url: str | None = None
    """Where callers reach the server, if it was said."""
    room: BodyRoom = msgspec.field(default_factory=BodyRoom)
    """What the bodies of all requests share while they are read."""


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol: its table, who may come in, how it reads bodies and how it refuses."""

    name: str
    table: tuple[Operation, ...]
    prefixes: tuple[str, ...] = ()
    """What is not there below these is refused by this door, besides what is below its addresses."""
    authenticate: Callable[[Request[Any]], Awaitable[Any]]
    """The `caller` of a request, before its body is read. Raises GatewayError."""
    refuse: Callable[[GatewayError], Response]
    """From the door's error table. What every refusal needs (Retry-After, Allow, …) is added."""
    decode: Callable[[bytes, Any], Any]
    """A body as its operation's type. Raises GatewayError."""
    about_absent: Callable[[Request[Any], Collection[Operation]], Headers] = lambda request, operations: ()
    """What is said beside the refusal of a method that an address does not take: headers, from its operations."""
    challenge: bytes = b"Bearer"
    """The WWW-Authenticate of a 401."""
    body_seconds: float = UPLOAD_SECONDS
    """For the whole of a body."""


class Request(Generic[C]):
    """What a handler sees."""

    __slots__ = (
        "_heads",
        "_id",
        "_receive",
        "answer_headers",
        "body",
        "caller",
        "complete",
        "ended",
        "front",
        "operation",
        "params",
        "query",
        "scope",
        "size",
    )

    caller: C
    """What the door's authenticator returned."""

    def __init__(
        self, front: Front, operation: Operation, params: dict[str, str], scope: Scope, receive: Receive
    ) -> None:
        self.front = front
        self.operation = operation
        self.params = params
        self.scope = scope
        self._receive = receive
        self._heads: dict[bytes, bytes] = dict(scope["headers"])
        self._id: bytes | None = None
        self.complete = False
        """Whether the whole body has been read."""
        self.query: dict[str, list[str]] = {}
        self.body: Any = None
        """Of the operation's `body` type, if it has one."""
        self.size = 0
        """Of the body, in bytes."""
        self.answer_headers: Callable[[], Headers] = tuple
        """More headers of the answer, whatever it becomes; asked for when it begins."""
        self.ended: Callable[[], Coroutine[Any, Any, object]] | None = None
        """Returns when the caller may no longer read."""

    @property
    def id(self) -> bytes:
        """The caller's own name of this request, if it may travel in a header; else a new one."""
        if self._id is None:
            given = self.header(b"x-request-id")
            taken = given is not None and _REQUEST_ID.fullmatch(given)
            self._id = given if given and taken else b"req_%b%012x" % (_PROCESS, next(_NUMBERS))
        return self._id

    def header(self, name: bytes) -> bytes | None:
        """The value of a header (lower case); None if it is not there exactly once."""
        value = self._heads.get(name)
        if value is None or len(self._heads) == len(self.scope["headers"]):
            return value
        found = self.headers(name)
        return found[0] if len(found) == 1 else None

    def headers(self, name: bytes) -> list[bytes]:
        """Every value of a header (lower case)."""
        return [value for key, value in self.scope["headers"] if key == name]

    @property
    def client(self) -> Address | None:
        """Who asks: the peer, or what trusted proxies say. None: nobody knows."""
        peer = self.scope.get("client")
        return client_of(peer[0] if peer else None, self._text, self.front.proxies)

    @property
    def origin(self) -> str:
        """Where the caller reached us, such as `https://example.org:8443`."""
        if self.front.public_url:
            return self.front.public_url.rstrip("/")
        peer = self.scope.get("client")
        return origin_of(self.scope.get("scheme", "http"), peer[0] if peer else None, self._text, self.front.proxies)

    def _text(self, name: str) -> str | None:
        """Every value of a header as one list."""
        found = self.headers(name.encode())
        return b",".join(found).decode("latin-1") if found else None

    @property
    def length(self) -> int | None:
        """The declared length of the body."""
        value = self._heads.get(b"content-length", b"")
        return int(value) if value.isdigit() else None

    def take(self) -> Any:
        """The body, which this request then forgets: it may be as large as a file."""
        body, self.body = self.body, None
        return body

    async def receive(self) -> dict[str, Any]:
        """The next message of the caller: pieces of the body, then that they have gone."""
        message = await self._receive()
        if not (message["type"] == "http.request" and message.get("more_body")):
            self.complete = True
        return message

    async def read(self, limit: int, seconds: float = UPLOAD_SECONDS) -> bytes:
        """The whole body. Raises GatewayError: TOO_LARGE above `limit` bytes, INVALID_REQUEST if it takes longer than
        `seconds` or hardly comes, UNAVAILABLE if too many others are being read; ClientGone.
        """
        # Most bodies came with their head. Our own server can tell, and then no timer is set and taken back.
        ready = getattr(self._receive, "ready", False)
        caller = self._heads.get(b"x-pepper-key") or self._heads.get(b"authorization")
        seconds_left = None if ready else seconds
        return await read_body(self.receive, limit, self.length, seconds_left, room=self.front.room, caller=caller)

    def pieces(self, limit: int) -> AsyncIterator[bytes]:
        """The body as it comes. Raises GatewayError(TOO_LARGE) above `limit` bytes, ClientGone."""
        return body_pieces(self, limit, self.length)

    async def until_disconnect(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. Raises ClientGone if the caller hung up first, and the work was given up."""
        return await run_until_disconnect(self._receive, work)

    def on_disconnect(self, then: Callable[[], None] | None = None) -> on_disconnect:
        """`with request.on_disconnect(then)`: call `then` if the caller hangs up inside the block."""
        return on_disconnect(self._receive, then)


def data(content: Any, status: int = 200) -> Response:
    """`{"data": content}`."""
    return Response(status, {"data": content})


NO_CONTENT: Final = Response(204)

__all__ = [
    "JSON",
    "NO_CONTENT",
    "SOCKET",
    "Answer",
    "ClientGone",
    "Door",
    "EventResponse",
    "Front",
    "Handler",
    "Headers",
    "Operation",
    "Request",
    "Response",
    "Socket",
    "Stream",
    "data",
]
