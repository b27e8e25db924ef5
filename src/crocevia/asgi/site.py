"""The front hall: one way from a request to its door and back, with what every answer has in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from crocevia.asgi.answers import expected, refuse
from crocevia.asgi.body import LARGE, aside
from crocevia.asgi.cors import allowed, preflight
from crocevia.asgi.hangup import race, wait_disconnect
from crocevia.asgi.http import (
    SOCKET,
    Answer,
    ClientGone,
    Door,
    EventResponse,
    Front,
    Operation,
    Request,
    Response,
    Socket,
    Stream,
)
from crocevia.asgi.router import Found, Router, names
from crocevia.asgi.stream import EventStream
from crocevia.asgi.types import Application, Header, Headers, Receive, Scope, Send
from crocevia.core import json
from crocevia.core.detailed_errors import MethodNotAllowed
from crocevia.core.errors import GatewayError, Reason

MAX_QUERY: Final = 64  # parameters
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")  # in the order in which they are named
_ALWAYS: Final[Headers] = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer"))
_BODILESS: Final = frozenset({204, 304})
_PLAIN: Final = Front()
_NOWHERE: Final = "nowhere"
_POLICY: Final = 1008  # how a WebSocket is closed that cannot be refused by a status


class Site:
    """All doors as one ASGI application. Addresses that are no door's are refused by the last one."""

    def __init__(self, doors: Iterable[Door], front: Front = _PLAIN) -> None:
        self.doors = tuple(doors)
        self.front = front
        self._router = Router(self.doors)
        self._mounts: dict[str, Application] = {}
        self.addresses = self._router.addresses
        """Everything that is answered."""

    def mount(self, prefix: str, application: Application) -> None:
        """Leave an address and everything below it to another application."""
        self._mounts[prefix] = application
        self.addresses |= {prefix, f"{prefix}/"}

    def application(self, operation_id: str) -> Application:
        """One operation at any address."""
        for door in self.doors:
            for operation in door.table:
                if operation.id == operation_id:
                    return _at_any_address(self.front, door, operation)
        raise KeyError(operation_id)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = self._router.find(scope)
        if scope["type"] == "websocket":
            await self._socket(found, scope, receive, send)
            return
        operation = found.operations.get(scope["method"])
        if operation is not None:
            door = found.door
            assert door is not None
            params = dict(zip(names(operation), found.values, strict=True)) if found.values else {}
            await serve(self.front, door, operation, params, scope, receive, send)
        elif found.door is None and (mounted := self._mounted(scope["path"])) is not None:
            await mounted(scope, receive, send)
        else:
            await self._nothing(found, scope, receive, send)

    def _mounted(self, path: str) -> Application | None:
        for prefix, application in self._mounts.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                return application
        return None

    async def _nothing(self, found: Found, scope: Scope, receive: Receive, send: Send) -> None:
        """Say that nothing is here, or not by this method; or what a browser may do from another page."""
        door = found.door or self.doors[-1]
        methods = {method: row for method, row in found.operations.items() if method != SOCKET}
        row = Operation(_NOWHERE, scope["method"], scope["path"], _nowhere, "")
        request: Request[Any] = Request(self.front, row, {}, scope, receive)
        answer = preflight(request, methods) if methods and scope["method"] == "OPTIONS" else None
        if answer is None:
            answer = _absent(door, methods)
            own = door.about_absent(request, methods.values())
            request.answer_headers = lambda: own  # not of the request: it would hold itself
        await _send_response(request, answer, send)

    async def _socket(self, found: Found, scope: Scope, receive: Receive, send: Send) -> None:
        operation = found.operations.get(SOCKET)
        await receive()
        if operation is None:
            await send({"type": "websocket.close", "code": _POLICY})
            return
        door = cast("Door", found.door)
        request: Request[Any] = Request(self.front, operation, {}, scope, receive)
        try:
            answer = cast("Socket", await _handle(door, request))
        except Exception as error:
            await _deny(request, refuse(door, _expected(door, request, error)), send)
            return
        await send({"type": "websocket.accept"})
        await answer.run(receive, send)


async def serve(
    front: Front,
    door: Door,
    operation: Operation,
    params: dict[str, str],
    scope: Scope,
    receive: Receive,
    send: Send,
) -> None:
    """Answer one request. Refusals come in this order: key, query, body, content."""
    request: Request[Any] = Request(front, operation, params, scope, receive)
    try:
        answer = await _handle(door, request)
        if type(answer) is not Response:
            await _SENDERS[type(answer)](door, request, answer, send)
            return
    except ClientGone:
        return
    except Exception as error:
        answer = refuse(door, _expected(door, request, error))
    await _send_response(request, answer, send)


async def _handle(door: Door, request: Request[Any]) -> Answer:
    operation = request.operation
    request.caller = await door.authenticate(request)
    if query := request.scope.get("query_string"):
        request.query = _query(query, request.operation.query_errors)
    if operation.body is not None:
        data = await request.read(operation.max_body, door.body_seconds)
        request.size = len(data)
        if request.size < LARGE:
            request.body = door.decode(data, operation.body)
        else:
            request.body = await aside(request.size, door.decode, data, operation.body)
        del data  # as large as a file that is read meanwhile
    return await operation.handler(request)


def _query(raw: bytes, errors: str) -> dict[str, list[str]]:
    """Every value by name. Raises GatewayError(INVALID_REQUEST) for what is too much, or is not UTF-8."""
    found: dict[str, list[str]] = {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii" if errors == "strict" else "latin-1"),
            keep_blank_values=True,
            errors=errors,
            max_num_fields=MAX_QUERY,
            encoding="utf-8",
        )
    except ValueError:
        raise GatewayError(Reason.QUERY_MALFORMED) from None
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _expected(door: Door, request: Request[Any], error: Exception) -> GatewayError:
    return expected(error, door.name, operation=request.operation.id, request_id=request.id.decode())


def _common(request: Request[Any]) -> list[Header]:
    """What every answer carries."""
    own = request.answer_headers()
    headers = [*own, *_ALWAYS, (b"x-request-id", request.id)]
    return headers + allowed(request, own) if request.front.cors_origins else headers


async def _send_response(request: Request[Any], answer: Response, send: Send) -> None:
    content = answer.content
    body = content if type(content) is bytes else b"" if content is None else json.encode(content)
    headers = [(b"cache-control", answer.cache), *answer.headers, *_common(request)]
    if answer.status not in _BODILESS:
        headers += ((b"content-type", answer.media_type), (b"content-length", b"%d" % len(body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if request.scope["method"] == "HEAD" else body})


async def _send_events(door: Door, request: Request[Any], answer: EventResponse, send: Send) -> None:
    """Raises what `run` raises before the first byte."""

    def headers() -> Headers:
        return [*answer.headers, *_common(request)]

    if answer.over is not None:
        async with EventStream(send, None, headers) as stream:
            await stream.start()
            await race(_until_it_fails(door, request, answer, stream), *_endings(request), answer.over.wait())
            with suppress(OSError, RuntimeError):
                await stream.end(b"")
        return
    async with EventStream(send, request.front.ping_seconds, headers) as stream:
        try:
            await answer.run(stream)
        except Exception as error:
            if not stream.started:
                raise
            await stream.end(answer.failed(_expected(door, request, error)))


async def _until_it_fails(door: Door, request: Request[Any], answer: EventResponse, stream: EventStream) -> None:
    try:
        await answer.run(stream)
    except Exception as error:  # the status has been said: all that is left is to end
        _expected(door, request, error)


async def _send_stream(door: Door, request: Request[Any], answer: Stream, send: Send) -> None:
    """Raises what the first piece raises, and nothing has been sent."""
    pieces = answer.chunks
    try:
        first = await anext(pieces, b"")
        headers = [(b"cache-control", b"no-store"), *answer.headers, *_common(request)]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await race(_write(door, request, pieces, first, send), *_endings(request))
    finally:
        close = getattr(pieces, "aclose", None)
        if close is not None:
            await close()


async def _write(door: Door, request: Request[Any], pieces: Any, first: bytes, send: Send) -> None:
    try:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except Exception as error:  # the status has been said: all that is left is to end
        _expected(door, request, error)
    finally:
        with suppress(OSError, RuntimeError):
            await send({"type": "http.response.body", "body": b""})


def _endings(request: Request[Any]) -> list[Coroutine[Any, Any, object]]:
    """What ends an answer that is under way: its reader leaves, or may not read any more."""
    leaving = wait_disconnect(request.receive)
    return [leaving] if request.ended is None else [leaving, request.ended()]


_SENDERS: Final[dict[type, Callable[[Door, Request[Any], Any, Send], Awaitable[None]]]] = {
    Stream: _send_stream,
    EventResponse: _send_events,
}


def _absent(door: Door, methods: dict[str, Operation]) -> Response:
    if not methods:
        return refuse(door, GatewayError(Reason.NOT_FOUND))
    names = ", ".join(sorted(methods, key=_METHODS.index))
    refusal = refuse(door, MethodNotAllowed(names))
    return refusal._replace(headers=(*refusal.headers, (b"allow", names.encode())))


async def _deny(request: Request[Any], refusal: Response, send: Send) -> None:
    """Refuse a WebSocket, by a status where the server can say one."""
    if "websocket.http.response" not in request.scope.get("extensions", {}):
        await send({"type": "websocket.close", "code": _POLICY})
        return

    async def as_handshake(message: dict[str, Any]) -> None:
        await send({**message, "type": message["type"].replace("http.", "websocket.http.", 1)})

    request.scope["method"] = "GET"
    await _send_response(request, refusal, as_handshake)


def _at_any_address(front: Front, door: Door, operation: Operation) -> Application:
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        await serve(front, door, operation, {}, scope, receive, send)

    return application


async def _nowhere(request: Request[Any]) -> Answer:
    raise GatewayError(Reason.NOT_FOUND)
