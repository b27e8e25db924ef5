"""What real clients do on the wire that is neither wrong nor usual."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.aio import run
from tests.app.serving import read_answer, request, serving
from tests.doors.pepper.house import HELLO

GOOD = json.dumps(HELLO).encode()
CHUNKED = {"content-length": "", "transfer-encoding": "chunked"}
H2C = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA"}
OFFERS = [
    H2C,
    {"connection": "Upgrade", "upgrade": "websocket"},
    {"connection": "upgrade", "upgrade": "WebSocket"},
    {"connection": "keep-alive, Upgrade", "upgrade": "TLS/1.3, h2c"},
]


@pytest.mark.parametrize("offer", OFFERS)
def test_an_offer_of_another_protocol_is_ignored_and_its_body_is_read(offer: dict[str, str]) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            for body in (GOOD, json.dumps(HELLO | {"system": "\r\nUpgrade: h2c\r\n"}).encode()):
                writer.write(request("/agent", body, **offer))
                assert (await read_answer(reader))[0] == 200  # the second one on the same connection

    run(work(), timeout=20)


@pytest.mark.parametrize("offer", OFFERS)
@pytest.mark.parametrize("size", [1, 7])
def test_an_offer_is_ignored_however_it_is_cut(offer: dict[str, str], size: int) -> None:
    whole = request("/agent", b"", **offer, **CHUNKED) + chunks(GOOD, 5) + request("/none", b"")

    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            for at in range(0, len(whole), size):
                writer.write(whole[at : at + size])
                await asyncio.sleep(0)
            assert [(await read_answer(reader))[0] for _ in range(2)] == [200, 404]

    run(work(), timeout=20)


def chunks(body: bytes, size: int, trailers: bytes = b"") -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n" + trailers + b"\r\n"


def test_trailers_are_no_headers() -> None:
    """What stands in front of us checks headers; a key, or an address, behind the body would have passed it."""

    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(request("/agent", b"", **CHUNKED) + chunks(GOOD, 7, b"x-pepper-key: chiave\r\n"))
            assert (await read_answer(reader))[0] == 200
            keyless = request("/agent", b"", **CHUNKED, **{"x-pepper-key": ""})
            writer.write(keyless + chunks(GOOD, 7, b"x-pepper-key: chiave\r\n"))
            assert (await read_answer(reader))[0] == 401

    run(work(), timeout=20)


@pytest.mark.parametrize("endless", [b"x-a: b\r\n", b"x-a: " + b"b" * 1000, b"1;", b"1;a=b;c=" + b"d" * 1000])
def test_what_follows_a_chunk_without_being_a_body_has_an_end(endless: bytes) -> None:
    begin = b"0\r\n" if endless.startswith(b"x") else b""

    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(request("/agent", b"", **CHUNKED) + begin + endless)
            said, sent = asyncio.ensure_future(reader.read()), 0
            more = (endless if endless.endswith(b"\n") else endless[-1:] * 9) * 1000
            while not said.done() and sent < 2**22:
                writer.write(more)
                sent += len(more)
                await asyncio.sleep(0.01)
            assert (await asyncio.wait_for(said, 5)).startswith(b"HTTP/1.1 4")

    run(work(), timeout=20)


@pytest.mark.parametrize("path", ["/none", "/v1/responses"])
def test_a_caller_that_asks_first_and_is_refused_begins_anew(path: str) -> None:
    """Will its body come, or its next request? The two cannot be told apart."""

    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            asking = {"expect": "100-continue", "content-length": "2000000", "x-pepper-key": ""}
            writer.write(request(path, b"", **asking))
            status, headers, _ = await read_answer(reader)
            assert (status >= 400, headers["connection"]) == (True, "close")
            assert await asyncio.wait_for(reader.read(), 1) == b""

    run(work(), timeout=20)


def test_who_still_sends_when_it_is_refused_reads_why() -> None:
    async def work() -> None:
        async with serving() as place:
            for _ in range(20):
                async with place.open() as (reader, writer):
                    writer.write(request("/none", b"x" * 3_000_000, connection="close"))
                    await writer.drain()
                    assert (await asyncio.wait_for(read_answer(reader), 5))[0] == 404
                    assert await asyncio.wait_for(reader.read(), 5) == b""

    run(work(), timeout=30)


@pytest.mark.parametrize("stream", [True, False])
def test_a_caller_of_http_1_0_gets_no_chunks(stream: bool) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            asked = request("/agent", json.dumps(HELLO | {"stream": stream}).encode(), expect="100-continue")
            writer.write(asked.replace(b"HTTP/1.1", b"HTTP/1.0", 1))
            head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ") and b"chunked" not in head
            assert body.startswith(b"event: " if stream else b"{") and not body.endswith(b"0\r\n\r\n")

    run(work(), timeout=20)


@pytest.mark.parametrize("path", ["/agent", "/api.php", "/agent/verifica"])
def test_a_caller_that_asks_first_is_told_at_once_that_its_body_is_too_large(path: str) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(request(path, b"", expect="100-continue", **{"content-length": str(50 * 2**20)}))
            status, headers, _ = await read_answer(reader)  # no «100 Continue» before it
            assert (status, headers["connection"]) == (413, "close")

    run(work(), timeout=4)  # less than the time for which others may write on


def test_a_caller_that_asks_first_is_told_to_go_on() -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(request("/agent", b"", expect="100-continue", **{"content-length": str(len(GOOD))}))
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(GOOD)
            assert (await read_answer(reader))[0] == 200

    run(work(), timeout=20)


def test_requests_written_in_one_go_are_answered_in_their_order() -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            streamed = json.dumps(HELLO | {"stream": True}).encode()
            writer.write(request("/agent", streamed) + request("/agent", b"{") + request("/agent", GOOD))
            found = [await asyncio.wait_for(read_answer(reader), 5) for _ in range(3)]
            assert [status for status, _, _ in found] == [200, 400, 200]
            assert found[0][2].count(b"event: done") == 1
            assert json.loads(found[2][2])["stop_reason"] == "end_turn"

    run(work(), timeout=20)
