"""The event log alone: `python -m bench.log`. One JSON object; run it on a quiet machine, and twice.

append: 200 chats, each appending one delta after the other. rows: 8 entries per append. replay: one chat of 10,000
events, read as a subscriber would and decoded as the machine does. fan-out: 2,000 subscribers of one chat in this
process, 100 events a second. CPU is this process's, all threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from crocevia.core.turn import entries as e
from crocevia.log import Fence, Hub, Row, SqliteLog, follow
from crocevia.storage.database import Database
from crocevia.storage.migrate import ensure

AGENT = e.Agent("ag_01j00000000000000000000000", "main", "orchestrator", None, "scripted")


def deltas(count: int, at: int = 0) -> list[e.Entry]:
    text = "a few words of text "
    return [e.TextDelta(turn="cmpl_01j00000000000000000000000", at=at, agent=AGENT, delta=text) for _ in range(count)]


def quantile(values: list[float], q: float) -> float:
    return round(sorted(values)[min(len(values) - 1, int(len(values) * q))] * 1_000, 2)


async def fences(log: SqliteLog, chats: int) -> list[Fence]:
    async def one(chat: str) -> Fence:
        await log.create(chat)
        fence = await log.acquire(chat, "bench", 10**9, 0)
        assert fence is not None
        return fence

    return list(await asyncio.gather(*[one(f"c{i}") for i in range(chats)]))


async def append(log: SqliteLog, chats: int, per_append: int, seconds: float) -> dict[str, float]:
    owners = await fences(log, chats)
    batch = deltas(per_append)
    waits: list[float] = []
    end = time.perf_counter() + seconds

    async def write(fence: Fence) -> None:
        while (began := time.perf_counter()) < end:
            await log.append(fence, batch)
            waits.append(time.perf_counter() - began)

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*[write(fence) for fence in owners])
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    rows = len(waits) * per_append
    return {
        "events_per_s": round(rows / wall),
        "commit_p50_ms": quantile(waits, 0.5),
        "commit_p99_ms": quantile(waits, 0.99),
        "cpu_us_per_row": round(cpu / rows * 1e6, 1),
    }


async def replay(log: SqliteLog, events: int) -> dict[str, float]:
    (owner,) = await fences(log, 1)
    for _ in range(events // 100):
        await log.append(owner, deltas(100))
    began, cursor, rows = time.perf_counter(), (await log.bounds("c0")).head - events, 0
    while page := await log.read("c0", cursor, 500):
        cursor, rows = page[-1].seq, rows + len(page)
    read = time.perf_counter() - began
    began = time.perf_counter()
    entries = await log.replay("c0")
    return {
        "read_ms": round(read * 1_000, 1),
        "rows": rows,
        "decode_all_ms": round((time.perf_counter() - began) * 1_000, 1),
        "entries": len(entries),
    }


async def fan_out(log: SqliteLog, hub: Hub, readers: int, rate: int, seconds: float) -> dict[str, float]:
    (owner,) = await fences(log, 1)
    start = (await log.bounds("c0")).head
    sent: dict[int, float] = {}
    delays: list[float] = []
    got = 0

    def encode(row: Row) -> bytes:
        return b"data: %d %s\n\n" % (row.seq, row.body)

    async def write(data: bytes) -> None:
        nonlocal got
        count = data.count(b"\n\n")
        if count:
            got += count
            delays.append(time.perf_counter() - sent[int(data.split(b" ", 2)[1])])

    tasks = [
        asyncio.ensure_future(follow(log, hub, "c0", start, version=3, encode=encode, ping=lambda: b"", write=write))
        for _ in range(readers)
    ]
    await asyncio.sleep(1)
    delays.clear()
    wall, cpu = time.perf_counter(), time.process_time()
    for i in range(int(rate * seconds)):
        sent[start + i + 1] = time.perf_counter()
        await log.append(owner, deltas(1))
        await asyncio.sleep(max(0, wall + (i + 1) / rate - time.perf_counter()))
    while got < readers * int(rate * seconds):
        await asyncio.sleep(0.01)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return {
        "deliveries": got,
        "cpu_share_of_one_core": round(cpu / wall, 2),
        "delay_p50_ms": quantile(delays, 0.5),
        "delay_p99_ms": quantile(delays, 0.99),
    }


async def measure(seconds: float, folder: Path) -> dict[str, dict[str, float]]:
    async def fresh(name: str) -> tuple[Database, Hub, SqliteLog]:
        path = folder / f"{name}.db"
        await asyncio.to_thread(ensure, path)
        database, hub = Database(path), Hub()
        return database, hub, SqliteLog(database, hub)

    results: dict[str, dict[str, float]] = {}
    for name, work in {
        "append": lambda log, hub: append(log, 200, 1, seconds),
        "append_8_rows": lambda log, hub: append(log, 200, 8, seconds),
        "append_one_chat": lambda log, hub: append(log, 1, 1, seconds),
        "replay": lambda log, hub: replay(log, 10_000),
        "fan_out": lambda log, hub: fan_out(log, hub, 2_000, 100, seconds),
    }.items():
        database, hub, log = await fresh(name)
        results[name] = await work(log, hub)
        await database.close()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--folder", type=Path, help="where the databases lie (default: a temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        print(json.dumps(asyncio.run(measure(arguments.seconds, Path(folder))), indent=2))


if __name__ == "__main__":
    main()
