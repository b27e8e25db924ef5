"""Figures of the async client: CPU per event, memory over a long replay, import time. Prints; gates nothing.

python measure.py            # needs the SDK installed
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2

from envai_client import AsyncEnvaiClient, EnvaiClient

sys.path.insert(0, str(Path(__file__).parent))
from fixtures.parts import CHAT, tiny_turn

HEADERS = {"Content-Type": "text/event-stream", "X-Envai-Contract-Version": "3"}
PER_TURN = len(tiny_turn())


class Replay(httpx2.AsyncByteStream, httpx2.SyncByteStream):
    """`count` events, made as they are read, in chunks of about 16 KiB."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Any:
        buffer = b""
        for first in range(1, self.count, PER_TURN):
            for event in tiny_turn(first, "some words of an answer "):
                buffer += b"data: " + json.dumps(event).encode() + b"\n\n"
            if len(buffer) > 16_384:
                yield buffer
                buffer = b""
        yield buffer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self:
            yield chunk


def transport(count: int) -> httpx2.MockTransport:
    return httpx2.MockTransport(lambda _: httpx2.Response(200, headers=HEADERS, stream=Replay(count)))


def generation_cost(count: int) -> float:
    started = time.process_time()
    for _ in Replay(count):
        pass
    return time.process_time() - started


async def follow(count: int) -> list[int]:
    """Read `count` events; resident memory in KiB at ten moments."""
    memory = []
    client = AsyncEnvaiClient(api_key="k", base_url="http://x", contract_version=3, transport=transport(count))
    async with client.chats.events(CHAT) as stream:
        async for event in stream:
            if event.seq % (count // 10) == 0:
                memory.append(resident())
            if event.seq == count:
                break
    await client.aclose()
    return memory


def follow_sync(count: int) -> None:
    client = EnvaiClient(api_key="k", base_url="http://x", contract_version=3, transport=transport(count))
    with client.chats.events(CHAT) as stream:
        for event in stream:
            if event.seq == count:
                break


def resident() -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(text.split("VmRSS:")[1].split()[0])


def say(text: str) -> None:
    sys.stdout.write(text + "\n")


def main() -> None:
    count = 100_002 // PER_TURN * PER_TURN
    made = generation_cost(count)
    started, wall = time.process_time(), time.monotonic()
    memory = asyncio.run(follow(count))
    spent = time.process_time() - started - made
    say(f"async: {count} events, {spent / count * 1e3:.4f} ms CPU per event, wall {time.monotonic() - wall:.1f} s")
    say(f"resident memory at each tenth, MiB: {[round(kib / 1024, 1) for kib in memory]}")
    started = time.process_time()
    follow_sync(count)
    say(f"sync: {(time.process_time() - started - made) / count * 1e3:.4f} ms CPU per event")
    code = "import time; t=time.process_time(); from envai_client import AsyncEnvaiClient; print(time.process_time()-t)"
    command = [sys.executable, "-c", code]
    runs = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(9)]  # noqa: S603  # ours
    say(f"import of AsyncEnvaiClient, CPU: median {sorted(runs)[4] * 1e3:.0f} ms of {[round(r * 1e3) for r in runs]}")


if __name__ == "__main__":
    main()
