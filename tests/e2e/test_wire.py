"""What real clients do on the wire that is neither wrong nor usual."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.aio import run
from tests.app.serving import read_answer, request, serving
from tests.doors.pepper.house import HELLO

GOOD = json.dumps(HELLO).encode()
H2C = {"connection": "Upgrade, HTTP2-Settings", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAoAAAAAIAAAAA"}


@pytest.mark.parametrize("offer", [H2C, {"connection": "Upgrade", "upgrade": "websocket"}])
def test_an_offer_of_another_protocol_is_ignored_and_its_body_is_read(offer: dict[str, str]) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            for body in (GOOD, json.dumps(HELLO | {"system": "\r\nUpgrade: h2c\r\n"}).encode()):
                writer.write(request("/agent", body, **offer))
                assert (await read_answer(reader))[0] == 200  # the second one on the same connection

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
