"""Heads that two programs in a row could read in two ways, or whose body nobody reads: refused at every address."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.aio import run
from tests.app.serving import KEY, read_answer, serving
from tests.doors.pepper.house import HELLO

BODY = json.dumps(HELLO).encode()
HOST = "host: x"
LENGTH = f"content-length: {len(BODY)}"
ODD = {
    "no host": (400, [LENGTH]),
    "two hosts": (400, [HOST, HOST, LENGTH]),
    "two different hosts": (400, [HOST, "host: y", LENGTH]),
    "an empty host": (400, ["host:", LENGTH]),
    "a host with a path": (400, ["host: x/y", LENGTH]),
    "a host with a user": (400, ["host: a@x", LENGTH]),
    "two names in a host": (400, ["host: x, y", LENGTH]),
    "a host with a blank": (400, ["host: x y", LENGTH]),
    "a compressed body": (415, [HOST, LENGTH, "content-encoding: gzip"]),
    "a body compressed twice": (415, [HOST, LENGTH, "content-encoding: br, gzip"]),
    "a compressed transfer": (501, [HOST, "transfer-encoding: gzip, chunked"]),
}
PLAIN = {
    "a name": [HOST, LENGTH],
    "a name and a port": ["host: gateway.example.org:8443", LENGTH],
    "an address": ["host: [::1]:80", LENGTH],
    "an underscore": ["host: my_host", LENGTH],
    "no coding": [HOST, LENGTH, "content-encoding: identity"],
}


def head(path: str, lines: list[str], method: str = "POST", version: str = "1.1") -> bytes:
    known = [f"x-pepper-key: {KEY}", "x-pepper-project: casa"]
    return "\r\n".join([f"{method} {path} HTTP/{version}", *lines, *known, "", ""]).encode()


@pytest.mark.parametrize("name", ODD)
def test_an_odd_head_is_refused_at_every_address_and_ends_the_connection(name: str) -> None:
    status, lines = ODD[name]

    async def work() -> None:
        async with serving() as place:
            for path in ("/agent", "/api/v1/teams", "/panel/login", "/up", "/none"):
                async with place.open() as (reader, writer):
                    writer.write(head(path, lines) + BODY)
                    found, headers, _ = await asyncio.wait_for(read_answer(reader), 5)
                    assert (path, found, headers["connection"]) == (path, status, "close")
                    assert await asyncio.wait_for(reader.read(), 5) == b""

    run(work(), timeout=30)


@pytest.mark.parametrize("name", PLAIN)
def test_a_usual_head_is_taken(name: str) -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(head("/agent", PLAIN[name]) + BODY)
            assert (await asyncio.wait_for(read_answer(reader), 5))[0] == 200

    run(work(), timeout=20)


def test_a_caller_of_http_1_0_need_not_name_a_host() -> None:
    async def work() -> None:
        async with serving() as place, place.open() as (reader, writer):
            writer.write(head("/up", [], "GET", "1.0"))
            assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 200 ")

    run(work(), timeout=20)


def test_two_keys_are_no_key() -> None:
    async def work() -> None:
        async with serving() as place:
            for keys in ([KEY, "other"], ["other", KEY], [KEY, KEY]):
                async with place.open() as (reader, writer):
                    lines = [HOST, LENGTH, "x-pepper-project: casa", *(f"x-pepper-key: {key}" for key in keys)]
                    writer.write("\r\n".join(["POST /agent HTTP/1.1", *lines, "", ""]).encode() + BODY)
                    status, headers, _ = await asyncio.wait_for(read_answer(reader), 5)
                    assert (status, headers["www-authenticate"]) == (401, "x-pepper-key")

    run(work(), timeout=20)


def test_nothing_below_the_agent_call_is_refused_in_its_words() -> None:
    async def work() -> None:
        async with serving() as place:
            status, _, body = await place.post("/agent/x", HELLO)
            assert (status, json.loads(body)["error"]["code"]) == (404, "non_trovato")

    run(work(), timeout=20)
