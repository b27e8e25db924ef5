"""Many readers of one chat's events in a process of their own, cheap enough to leave the server the other CPU.

`python -m bench.readers` opens `--count` connections, prints a line when every one has been greeted by a ping, and
then answers each line of its standard input: `begin` forgets what was counted, `seen` prints how far the slowest and
the fastest reader are, `report` prints everything as JSON (which takes a while: ask when nothing comes any more).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from calendar import timegm
from functools import lru_cache
from typing import cast

import uvloop

_TIME = b'"ts":"'
_PING = b'"type":"ping"'
_AT_ONCE = 100  # connections being opened


@lru_cache(maxsize=4096)
def moment(text: bytes) -> float:
    """Seconds since 1970 of the wire's date-time."""
    whole, _, rest = text.decode().rstrip("Z").partition(".")
    return timegm(time.strptime(whole, "%Y-%m-%dT%H:%M:%S")) + float(f"0.{rest}")


class Counted:
    """What all readers together have seen. delays: of the oldest event in each piece that arrived, in seconds."""

    def __init__(self) -> None:
        self.events = 0
        self.lost = 0
        self.delays: list[float] = []


class Reader(asyncio.Protocol):
    """One connection. It looks at the first event of what arrives, whose delay is the longest."""

    def __init__(self, request: bytes, counted: Counted, greeted: asyncio.Future[None]) -> None:
        self._request, self._counted, self._greeted = request, counted, greeted
        self._ends_in_break = False
        self.last = b""
        self.seen = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._request)  # uvloop's own class is not a subclass

    def data_received(self, data: bytes) -> None:
        found = data.count(b"\n\n") + (self._ends_in_break and data.startswith(b"\n")) - data.count(_PING)
        self._ends_in_break = data.endswith(b"\n") and not data.endswith(b"\n\n")
        if not self._greeted.done():
            self._greet(data)
            return
        counted = self._counted
        counted.events += found
        self.seen += found
        self.last = data
        at = data.find(_TIME)
        if found > 0 and at >= 0 and len(data) >= at + 30:
            counted.delays.append(time.time() - moment(data[at + 6 : at + 30]))

    def _greet(self, data: bytes) -> None:
        self.last += data
        if b"\r\n\r\n" in self.last and not self.last.startswith(b"HTTP/1.1 200"):
            self._greeted.set_exception(ConnectionError(self.last[:200].decode(errors="replace")))
        elif _PING in self.last:
            self._greeted.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        self._counted.lost += 1
        if not self._greeted.done():
            self._greeted.set_exception(ConnectionError("closed before the first ping"))


async def read(port: int, path: str, key: str, count: int) -> None:
    loop = asyncio.get_running_loop()
    request = (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {key}\r\n"
        "X-Envai-Contract-Version: 3\r\n\r\n"
    ).encode()
    counted, slots = Counted(), asyncio.Semaphore(_AT_ONCE)

    async def one() -> Reader:
        async with slots:
            greeted: asyncio.Future[None] = loop.create_future()
            reader = Reader(request, counted, greeted)
            await loop.create_connection(lambda: reader, "127.0.0.1", port)
            await greeted
            return reader

    readers = await asyncio.gather(*[one() for _ in range(count)])
    print("ready", flush=True)
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        if line.strip() == b"begin":
            counted.events, counted.delays, began = 0, [], time.process_time()
            for reader in readers:
                reader.seen = 0
            print("begun", flush=True)
            continue
        seen = sorted(reader.seen for reader in readers)
        report: dict[str, object] = {"least": seen[0], "most": seen[-1]}
        if line.strip() == b"report":
            report |= {
                "events": counted.events,
                "lost": counted.lost,
                "cpu": time.process_time() - began,
                "delays": sorted(counted.delays),
            }
        print(json.dumps(report), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--path", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--count", type=int, required=True)
    chosen = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    uvloop.run(read(chosen.port, chosen.path, chosen.key, chosen.count))


if __name__ == "__main__":
    main()
