"""The words of the door: an operation, a request that reached it, what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from crocevia.asgi.types import Headers, Receive, Scope
from crocevia.core import json
from crocevia.runtime.control.api_keys import Principal
from crocevia.runtime.control.context import Control

JSON_BODY: Final = 1024 * 1024  # bytes; what a JSON body may have unless an operation says otherwise


class Rule(Enum):
    """Which versions of the contract an operation speaks (negotiation.py has the table)."""

    PLAIN = "plain"  # the header means nothing here
    CONTRACT_3 = "contract 3"  # /atp/v3, attachments, wiki
    LIVE_2 = "live 2"  # mutations below /chats
    READ_2 = "read 2"  # reads below /chats, /capabilities
    BOTH = "both"  # completions


class Version(Enum):
    """What was agreed upon. HISTORICAL: version 2, what is stored and nothing live."""

    LIVE = 2
    HISTORICAL = -2
    THREE = 3

    @property
    def number(self) -> int:
        """As the acknowledgement says it."""
        return abs(self.value)


class Answer(NamedTuple):
    """A whole answer. content: anything JSON; None: no body."""

    status: int
    content: Any = None
    headers: Headers = ()


class Stream(NamedTuple):
    """An answer in pieces. What fails before the first piece is an honest error; after it the answer just ends.

    The pieces stop when the caller leaves and when the caller's key ends; the iterator is closed in any case.
    """

    chunks: AsyncIterator[bytes]
    headers: Headers
    status: int = 200


class Live(NamedTuple):
    """An answer without an end, written by `run` until the caller leaves, the caller's key ends, or `over` is set."""

    run: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]
    headers: Headers
    over: asyncio.Event


class Request:
    """What a handler sees. body: of the operation's `body` type, if it has one. version: None on plain operations."""

    __slots__ = (
        "_receive",
        "body",
        "complete",
        "control",
        "id",
        "operation",
        "params",
        "principal",
        "query",
        "scope",
        "version",
    )

    def __init__(self, control: Control, operation: Operation, scope: Scope, receive: Receive, request_id: str) -> None:
        self.control = control
        self.operation = operation
        self.scope = scope
        self.id = request_id
        self.complete = False  # whether the whole body has been read
        self._receive = receive
        self.params: dict[str, str] = {}
        self.query: dict[str, list[str]] = {}
        self.principal: Principal | None = None
        self.version: Version | None = None
        self.body: Any = None

    async def receive(self) -> dict[str, Any]:
        """The next message of the caller: pieces of the body, then that they have gone."""
        message = await self._receive()
        if not (message["type"] == "http.request" and message.get("more_body")):
            self.complete = True
        return message

    @property
    def user_id(self) -> str:
        """Who asks; only where the operation is not public."""
        assert self.principal is not None
        return self.principal.user_id

    def header(self, name: bytes) -> bytes | None:
        """The value of a header (lower case), None if it is not there exactly once."""
        found = self.headers(name)
        return found[0] if len(found) == 1 else None

    def headers(self, name: bytes) -> list[bytes]:
        """Every value of a header (lower case)."""
        return [value for key, value in self.scope["headers"] if key == name]


Handler: TypeAlias = Callable[[Request], Awaitable["Answer | Stream | Live"]]


class Operation(NamedTuple):
    """A row of the door's table.

    id: the contract's operationId. path: below /api/v1, or from the origin if it begins with /.well-known.
    body: the struct of a JSON body, checked before the handler runs; None: the handler reads `request.receive` itself
    (body.py) or there is none. result: the struct of the success answer. per_minute: calls of one user.
    about: what it does, and what a deletion takes with it. query: the struct of its parameters (query.py).
    bare: the success answer is `result` itself, not wrapped in `data`. refuses: statuses beyond the usual ones.
    produces: the media type of an answer that is a file. upload: the body is a form with one `file`.
    headers: names of request headers that it cannot do without. absent: all it ever says is that it is not there.
    """

    id: str
    method: str
    path: str
    handler: Handler
    about: str
    body: Any = None
    result: Any = None
    status: int = 200
    rule: Rule = Rule.PLAIN
    public: bool = False
    per_minute: int | None = None
    max_body: int = JSON_BODY
    query: Any = None
    bare: bool = False
    refuses: tuple[int, ...] = ()
    produces: str | None = None
    upload: bool = False
    headers: tuple[str, ...] = ()
    absent: bool = False


NO_CONTENT: Final = Answer(204)


def data(content: Any, status: int = 200) -> Answer:
    """`{"data": content}`."""
    return Answer(status, {"data": content})


def encoded(content: Any) -> bytes:
    """The bytes of an answer's content."""
    return b"" if content is None else json.encode(content)
