"""What is written in one turn of the loop goes out together and in its order."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from crocevia.app.exchange import Exchange
from tests.aio import run

OK = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]}
STREAM = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"


class Wire:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


class Flow:
    write_paused = False

    def resume_reading(self) -> None:
        pass


class Headers:
    def __init__(self) -> None:
        self.default_headers: list[tuple[bytes, bytes]] = []


class Connection:
    """The part of a protocol that an exchange needs."""

    def __init__(self) -> None:
        self.transport = Wire()
        self.flow = Flow()
        self.server_state = Headers()
        self.loop = asyncio.get_running_loop()
        self.answered = 0

    def on_response_complete(self) -> None:
        self.answered += 1

    def leave(self) -> None:
        self.transport.close()


def exchange(method: str = "GET", *, keep_alive: bool = True, asks: bool = False) -> tuple[Exchange, Connection]:
    connection = Connection()
    return Exchange(cast(Any, connection), {"method": method}, asks=asks, keep_alive=keep_alive), connection


def body(data: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


def sent(messages: list[dict[str, Any]], method: str = "GET", *, keep_alive: bool = True) -> Connection:
    async def scene() -> Connection:
        one, connection = exchange(method, keep_alive=keep_alive)
        for message in messages:
            await one.send(message)
        return connection

    return run(scene())


def test_a_head_goes_with_the_body_that_follows_it_at_once() -> None:
    assert sent([OK, body(b"body")]).transport.writes == [HEAD + b"body"]


def test_a_head_that_nothing_follows_goes_alone() -> None:
    async def scene() -> None:
        one, connection = exchange()
        await one.send(OK)
        await asyncio.sleep(0)
        await one.send(body(b"body"))
        assert connection.transport.writes == [HEAD, b"body"]

    run(scene())


def test_a_body_of_unknown_length_is_chunked() -> None:
    told = sent([STREAM, body(b"one", more=True), body(b"", more=True), body(b"two")]).transport.writes
    assert b"".join(told).partition(b"\r\n\r\n")[2] == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"
    assert b"transfer-encoding: chunked" in told[0]


@pytest.mark.parametrize("start", [OK, STREAM])
def test_an_answer_to_head_has_no_body(start: dict[str, Any]) -> None:
    connection = sent([start, body(b"body")], "HEAD")
    assert b"".join(connection.transport.writes).endswith(b"\r\n\r\n")
    assert b"body" not in b"".join(connection.transport.writes) and connection.answered == 1


def test_a_connection_that_is_not_kept_says_so_and_closes() -> None:
    connection = sent([OK, body(b"body")], keep_alive=False)
    assert b"\r\nconnection: close\r\n" in connection.transport.writes[0] and connection.transport.closed


@pytest.mark.parametrize(
    "messages",
    [
        [body(b"body")],
        [OK, OK],
        [OK, body(b"bod")],
        [OK, body(b"bodies")],
        [OK, body(b"bodies", more=True)],
        [OK, body(b"body"), body(b"")],
        [{**OK, "headers": [(b"location", b"/\r\nset-cookie: a=b")]}],
        [{**OK, "headers": [(b"location", b"/\nset-cookie: a=b")]}],
        [{**OK, "headers": [(b"location", b"/\0")]}],
    ],
)
def test_what_is_no_answer_is_refused(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(RuntimeError):
        sent(messages)


def test_an_application_that_fails_before_its_head_answers_500_and_one_that_fails_later_is_cut() -> None:
    async def scene(first: list[dict[str, Any]]) -> Wire:
        async def broken(scope: Any, receive: Any, send: Any) -> None:
            for message in first:
                await send(message)
            raise LookupError

        one, connection = exchange()
        connection.logger = cast(Any, Silent())  # type: ignore[attr-defined]
        await one.run(broken)
        return connection.transport

    early, late = run(scene([])), run(scene([STREAM, body(b"one", more=True)]))
    assert b"".join(early.writes).startswith(b"HTTP/1.1 500 ") and early.closed
    assert not b"".join(late.writes).endswith(b"0\r\n\r\n") and late.closed


def test_a_head_that_is_refused_leaves_no_trace_on_the_500_after_it() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({**STREAM, "headers": [(b"location", b"/\r\n")]})

    async def scene() -> bytes:
        one, connection = exchange()
        connection.logger = cast(Any, Silent())  # type: ignore[attr-defined]
        await one.run(broken)
        return b"".join(connection.transport.writes)

    head, _, rest = run(scene()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 500 ") and head.count(b"connection: close") == 1
    assert b"transfer-encoding" not in head and rest == b"Internal Server Error"


class Silent:
    def error(self, *_: object, **__: object) -> None:
        pass


def test_a_hang_up_is_told_once_and_only_before_the_answer_is_complete() -> None:
    async def scene(*, answered: bool, late: bool) -> int:
        told: list[None] = []
        one, _ = exchange()
        if not late:
            one.on_hangup(lambda: told.append(None))
        if answered:
            await one.send(OK)
            await one.send(body(b"body"))
        one.disconnect()
        if late:
            one.on_hangup(lambda: told.append(None))
        await asyncio.sleep(0)
        assert (await one())["type"] == "http.disconnect"
        return len(told)

    assert [run(scene(answered=False, late=late)) for late in (False, True)] == [1, 1]
    assert [run(scene(answered=True, late=late)) for late in (False, True)] == [0, 0]


def test_a_client_that_asks_is_told_to_go_on_when_its_body_is_wanted() -> None:
    async def scene() -> None:
        one, connection = exchange("POST", asks=True)
        waiting = asyncio.ensure_future(one())
        await asyncio.sleep(0)
        assert connection.transport.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        one.add_body(b"bo")
        one.add_body(b"dy")
        one.end_body()
        assert await waiting == {"type": "http.request", "body": b"body", "more_body": False}

    run(scene())
