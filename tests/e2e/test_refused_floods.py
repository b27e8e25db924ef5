"""Crowds without a key, or with nonsense behind one, against a real process: what they send is not there afterwards."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import quantiles
from typing import TypeAlias

import pytest

from crocevia.panel.pages import PAGES
from tests.aio import run
from tests.e2e.test_refused_bodies import DECLARED, DOCUMENTS, HUGE, SETTINGS
from tests.live import LiveServer, live_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process from /proc")

MB = 1024 * 1024
FIRST, AGAIN = 32 * MB, 8 * MB  # what memory may have grown by after a flood, and by what more after another
STREAMED = '{"messages":[{"role":"user","content":"stream"}],"stream":true}'
ONCE = '{"messages":[{"role":"user","content":"hello"}]}'
PACE = 0.02  # seconds between two pieces of a stream
SCRIPTED = f"""kind = "scripted"
script = [
  {{ when = {{ contains = "stream" }}, say = [{{ text = "{"a " * 2000}", every_ms = {PACE * 1000:.0f} }}] }},
  {{ say = [{{ text = "hello" }}] }},
]"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    declared = DECLARED.replace("hourly_limit = 5", "").replace('kind = "scripted"', SCRIPTED, 1)
    with live_server(tmp_path_factory.mktemp("flooded"), declaration=declared, settings=SETTINGS) as running:
        yield running


def resident(server: LiveServer) -> int:
    """Bytes of memory."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


# What is sent, as pieces: a head without its key, then a body


def body_of(piece: bytes, count: int = 1) -> list[bytes]:
    return [b"content-length: %d\r\n\r\n" % (len(piece) * count), *[piece] * count]


def huge(dice: random.Random) -> list[bytes]:
    return body_of(b"[" + b"{" * (MB - 1), HUGE // MB)


def nearly_huge(dice: random.Random) -> list[bytes]:
    return body_of(b'"' + b"x" * (MB - 1), HUGE // MB)[:-1]


def slow(dice: random.Random) -> list[bytes]:
    return [b"content-length: 9000\r\n\r\n", b"{", b'"', b"a"]


def endless(dice: random.Random) -> list[bytes]:
    return [b"transfer-encoding: chunked\r\n\r\n", *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 20]


def broken(dice: random.Random) -> list[bytes]:
    return body_of(dice.choice([b"{", b"\xff\xfe", b'{"messages":[1]}', b"[" * 100_000, b"null", b'{"a":"\\ud800"}']))


def compressed(dice: random.Random) -> list[bytes]:
    return [b"content-encoding: gzip\r\n", *body_of(b"\x1f\x8b" + dice.randbytes(3000))]


def plain(dice: random.Random) -> list[bytes]:
    return body_of(b'{"messages":[]}')


def places_of(server: LiveServer) -> list[tuple[str, str]]:
    """Method and path of every address of every door, and of the panel."""
    found = [("POST", "/panel/nowhere"), ("PUT", "/panel"), ("POST", "/nowhere")]
    for document in DOCUMENTS:
        with urllib.request.urlopen(server.url + document, timeout=5) as answer:
            described = json.load(answer)
        for path, operations in described["paths"].items():
            found += [
                (method.upper(), re.sub(r"\{[^}]*\}", "x", path)) for method in operations if method != "parameters"
            ]
    for page in PAGES:
        found += [(method, page.path) for method, there in (("GET", page.get), ("POST", page.post)) if there]
    return found


Kinds: TypeAlias = list[Callable[[random.Random], list[bytes]]]
SMALL: Kinds = [plain, slow, endless, broken, compressed]
LARGE: Kinds = [huge, nearly_huge]


async def send(server: LiveServer, head: bytes, pieces: list[bytes]) -> int:
    """Send as much as the server takes, and read what it says; the status, or 0 if it said none."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        said = asyncio.ensure_future(reader.readline())
        writer.write(head)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if said.done():
                break
        line = await asyncio.wait_for(said, 1)
        return int(line.split()[1]) if line else 0
    except (OSError, TimeoutError, asyncio.IncompleteReadError):
        return 0
    finally:
        said.cancel()
        writer.transport.abort()


async def flood(server: LiveServer, small: int, large: int, seed: int, kinds_of: Kinds = SMALL) -> dict[int, int]:
    """How often each status was said. Half of the large ones and a fifth of the small ones hold a right key."""
    dice = random.Random(seed)
    places = await asyncio.to_thread(places_of, server)
    dice.shuffle(places)
    turns = cycle(places)
    secrets = server.secrets
    right = f"authorization: Bearer {secrets['api_key']}\r\nx-pepper-key: {secrets['project_key']}\r\n"
    wrong = ("", "authorization: Bearer cro_wrong\r\nx-pepper-key: wrong\r\n")
    kinds = [(dice.choice(kinds_of), 0.2) for _ in range(small)] + [(dice.choice(LARGE), 0.5) for _ in range(large)]
    dice.shuffle(kinds)
    found: dict[int, int] = {}
    gate = asyncio.Semaphore(24)

    async def one(kind: Callable[[random.Random], list[bytes]], share: float) -> None:
        method, path = next(turns)
        key = right if dice.random() < share else dice.choice(wrong)
        kind_of = "content-type: application/x-www-form-urlencoded\r\nsec-fetch-site: same-origin\r\n"
        host = server.url.removeprefix("http://")
        head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{key}{kind_of if '/panel' in path else ''}"
        async with gate:
            status = await send(server, head.encode(), kind(dice))
        found[status] = found.get(status, 0) + 1

    await asyncio.gather(*[one(kind, share) for kind, share in kinds])
    return found


# How good callers fare meanwhile


async def good_calls(server: LiveServer, over: asyncio.Event) -> list[float]:
    """Seconds that calls took, one after the other."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    key = server.secrets["project_key"]
    head = f"POST /agent HTTP/1.1\r\nhost: x\r\nx-pepper-key: {key}\r\nx-pepper-project: default\r\n"
    asked = f"{head}content-length: {len(ONCE)}\r\n\r\n{ONCE}".encode()
    took = []
    while not over.is_set():
        began = time.perf_counter()
        writer.write(asked)
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert answer.startswith(b"http/1.1 200"), answer
        await reader.readexactly(int(answer.split(b"content-length: ")[1].split(b"\r\n")[0]))
        took.append(time.perf_counter() - began)
    writer.transport.abort()
    return took


async def gaps(server: LiveServer, over: asyncio.Event) -> list[float]:
    """Seconds by which the pieces of a good caller's stream came later than they were made."""
    host, port = server.url.removeprefix("http://").split(":")
    key = server.secrets["project_key"]
    head = f"POST /agent HTTP/1.1\r\nhost: x\r\nx-pepper-key: {key}\r\nx-pepper-project: default\r\n"
    found = [0.0]
    while not over.is_set():
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{head}content-length: {len(STREAMED)}\r\n\r\n{STREAMED}".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        await reader.readuntil(b"data: ")
        began = time.perf_counter()
        while not over.is_set() and await reader.readline():
            found.append(time.perf_counter() - began - PACE)
            began += found[-1] + PACE
        writer.transport.abort()
    return found


def say(line: str) -> None:
    """For whoever runs the suite with `-s`, or sees it fail."""
    sys.stdout.write(f"{line}\n")


def told(what: str, calls: list[float], seen: list[float]) -> None:
    p99 = quantiles(calls, n=100)[-1] if len(calls) > 1 else 0.0
    say(f"{what}: {len(calls)} good calls, p99 {p99 * 1e3:.1f} ms; longest gap of a stream {max(seen) * 1e3:.0f} ms")


async def watched(server: LiveServer, what: str, work: asyncio.Future[object]) -> object:
    over = asyncio.Event()
    calls, seen = (asyncio.ensure_future(each(server, over)) for each in (good_calls, gaps))
    try:
        return await work
    finally:
        over.set()
        told(what, await calls, await seen)


async def settled(server: LiveServer, most: int) -> int:
    """The memory as soon as it is at most `most`, or after a few seconds."""
    for _ in range(50):
        if resident(server) <= most:
            break
        await asyncio.sleep(0.1)  # what lingers is given up after five seconds
    return resident(server)


async def check(server: LiveServer, small: int, large: int) -> None:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(1, over.set)
    await good_calls(server, over)
    await watched(server, "quiet", asyncio.ensure_future(asyncio.sleep(2)))
    await flood(server, 2 * len(places_of(server)), 2, 1, [plain, broken])  # what the first request to a place imports
    start = resident(server)
    found = await watched(server, "flood", asyncio.ensure_future(flood(server, small, large, 2)))
    first = await settled(server, start + FIRST)
    again = await watched(server, "again", asyncio.ensure_future(flood(server, small, large, 3)))
    second = await settled(server, first + AGAIN)
    say(f"memory {start / MB:.0f} MiB, {(first - start) / MB:+.1f} after a flood, {(second - first) / MB:+.1f} more")
    say(f"said {found}, then {again}")
    assert first - start <= FIRST
    assert second - first <= AGAIN


def test_a_flood_of_refused_bodies_leaves_no_memory_behind(server: LiveServer) -> None:
    run(check(server, 240, 8), timeout=58)


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_a_flood_of_five_thousand_requests_leaves_no_memory_behind(server: LiveServer) -> None:
    run(check(server, 2300, 100), timeout=900)
