"""Floods of bad input over real sockets: each gets its answer at once, and nothing stays behind."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

from crocevia.storage.record_queries import CallFilter, page
from tests.aio import run
from tests.app.serving import Place, read_answer, request, serving
from tests.doors.pepper.house import HELLO

GOOD = json.dumps(HELLO).encode()
MB = 1024 * 1024


def messages(*found: Any, **more: Any) -> bytes:
    return json.dumps({"messages": list(found), **more}).encode()


Bad = tuple[int, Callable[[], bytes]]
USER = {"role": "user", "content": "x"}
BAD: dict[str, Bad] = {
    "malformed JSON": (400, lambda: request("/agent", b'{"messages": [')),
    "no body": (400, lambda: request("/agent", b"")),
    "NaN": (400, lambda: request("/agent", b'{"messages":[{"role":"user","content":"x"}],"max_tokens":NaN}')),
    "a wrong type": (400, lambda: request("/agent", messages(USER, max_tokens="many"))),
    "an unknown role": (400, lambda: request("/agent", messages({"role": "robot", "content": "x"}))),
    "deep nesting": (400, lambda: request("/agent", b'{"messages":' + b"[" * 200_000)),
    "a tool named twice": (400, lambda: request("/agent", messages(USER, tools=[{"name": "a"}, {"name": "a"}]))),
    "no object schema": (400, lambda: request("/agent", messages(USER, tools=[{"name": "a", "parameters": []}]))),
    "invalid UTF-8": (400, lambda: request("/agent", b'{"messages":[{"role":"user","content":"\xff"}]}')),
    "a lone surrogate": (400, lambda: request("/agent", b'{"messages":[{"role":"user","content":"\\udfff!"}]}')),
    "no messages": (400, lambda: request("/agent", messages())),
    "a call without result": (
        400,
        lambda: request(
            "/agent",
            messages(USER, {"role": "assistant", "tool_calls": [{"id": "a", "name": "t", "arguments": {}}]}, USER),
        ),
    ),
    "a GET": (405, lambda: request("/agent", b"", method="GET")),
    "a HEAD of another method": (405, lambda: request("/agent.php", b"", method="OPTIONS")),
    "no key": (401, lambda: request("/agent", GOOD, **{"x-pepper-key": ""})),
    "a foreign key": (401, lambda: request("/agent", GOOD, **{"x-pepper-key": "altra"})),
    "an unknown project": (401, lambda: request("/agent", GOOD, **{"x-pepper-project": "perché"})),
    "an unknown path": (404, lambda: request("/agente", GOOD)),
}


async def status_of(place: Place, raw: bytes) -> tuple[int, bytes]:
    async with place.open() as (reader, writer):
        writer.write(raw)
        status, headers, body = await asyncio.wait_for(read_answer(reader), 10)
        assert headers["content-type"] == "application/json"
        return status, body


def quiet(place: Place) -> None:
    """No slot, no call, no task of a request."""
    assert place.service.gateway.admission.running() == 0
    assert place.service.gateway.active == 0


async def no_tasks(place: Place) -> None:
    while place.server.server_state.tasks:
        await asyncio.sleep(0.01)


def test_each_kind_of_bad_input_has_its_status_and_its_form() -> None:
    async def work() -> None:
        async with serving() as place:
            for name, (status, make) in BAD.items():
                found, body = await status_of(place, make())
                assert (name, found) == (name, status)
                assert set(json.loads(body)["error"]) == {"code", "message"}
            await no_tasks(place)
            quiet(place)

    run(work(), timeout=50)


def test_200_bad_requests_in_a_row_leave_the_server_as_it_was() -> None:
    async def work() -> None:
        async with serving(max_concurrency=1) as place:
            dice = random.Random(11)
            rows = dice.choices(list(BAD.values()), k=200)
            found = [(await status_of(place, make()))[0] for _, make in rows]
            assert found == [status for status, _ in rows]
            assert (await place.post("/agent", HELLO))[0] == 200
            await no_tasks(place)
            quiet(place)

    run(work(), timeout=50)


LINE = b"POST /agent HTTP/1.1\r\nhost: x\r\n"
LENGTH = b"content-length: %d\r\n" % len(GOOD)
CHUNKED = b"transfer-encoding: chunked\r\n"
# What is no HTTP, or could be read in two ways by two programs in a row.
HEADS = {
    "not HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64,
    "NUL in a header": LINE + b"x-pepper-project: a\x00b\r\n" + LENGTH + b"\r\n" + GOOD,
    "a header that begins with a blank": LINE + b" x-evil: 1\r\n" + LENGTH + b"\r\n" + GOOD,
    "a blank in a header's name": LINE + b"x evil: 1\r\n" + LENGTH + b"\r\n" + GOOD,
    "a carriage return in a header": LINE + b"x-pepper-project: a\rx-evil: 1\r\n" + LENGTH + b"\r\n" + GOOD,
    "two lengths": LINE + LENGTH + b"content-length: 3\r\n\r\n" + GOOD,
    "a length and chunks": LINE + LENGTH + CHUNKED + b"\r\n" + GOOD,
    "a negative length": LINE + b"content-length: -1\r\n\r\n" + GOOD,
    "a length that is no number": LINE + b"content-length: 1e3\r\n\r\n" + GOOD,
    "chunks without sizes": LINE + CHUNKED + b"\r\nzz\r\n",
    "a head without an end": LINE + b"x-long: " + b"a" * (1024 * 1024),
    "an address without an end": b"GET /" + b"a" * (1024 * 1024),
}


@pytest.mark.parametrize("name", HEADS)
def test_what_is_no_http_is_refused_and_the_connection_closed(name: str) -> None:
    async def work() -> None:
        async with serving() as place:
            async with place.open() as (reader, writer):
                writer.write(HEADS[name])
                try:
                    said = await asyncio.wait_for(reader.read(), 10)
                except ConnectionError:
                    said = b""  # closed while we were still writing
                assert b"x-evil" not in said
                assert not said or said.startswith(b"HTTP/1.1 4"), said[:200]
            assert (await place.post("/agent", HELLO))[0] == 200
            await no_tasks(place)
            quiet(place)

    run(work(), timeout=30)


def test_a_body_cut_by_a_hangup_is_no_call_at_all() -> None:
    async def work() -> None:
        async with serving() as place:
            for cut in range(0, len(GOOD), 7):
                async with place.open() as (_, writer):
                    writer.write(request("/agent", b"", **{"content-length": str(len(GOOD))}) + GOOD[:cut])
                    await writer.drain()
            await no_tasks(place)
            quiet(place)
            assert (await place.post("/agent", HELLO))[0] == 200
            assert (await place.record()).outcome == "ok"
            rows = await place.service.database.read(lambda tx: page(tx, CallFilter(), 10))
            assert len(rows) == 1

    run(work(), timeout=30)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_33_mb_body_is_answered_and_never_kept(chunked: bool) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            length = {"content-length": "", "transfer-encoding": "chunked"} if chunked else {}
            size = {} if chunked else {"content-length": str(33 * MB)}
            writer.write(request("/agent", b"", **length, **size))
            piece = b" " * MB
            for _ in range(33):
                writer.write(b"%x\r\n%b\r\n" % (MB, piece) if chunked else piece)
                await writer.drain()
            if chunked:
                writer.write(b"0\r\n\r\n")
            status, headers, body = await read_answer(reader)
            assert (status, json.loads(body)["error"]["code"]) == (413, "richiesta_troppo_grande")
            assert headers["connection"] == "close"
            assert await reader.read() == b""
            await no_tasks(place)
            quiet(place)

    run(work(), timeout=50)


def test_a_declared_size_beyond_reason_is_refused_without_being_read() -> None:
    """The caller waits for the answer before it sends: it comes after the few seconds we are ready to discard."""

    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(request("/agent", b"", **{"content-length": str(10**12)}))
            assert (await read_answer(reader))[0] == 413

    run(work(), timeout=20)
