"""Readers: nothing is lost, doubled or reordered, however they attach and however slow they are."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from crocevia.core.detailed_errors import CursorExpired
from crocevia.core.errors import Code
from crocevia.log import Bounds, Fence, Hub, Row, SqliteLog, Stalled, check_cursor, follow, follow_rows
from crocevia.log.ring import PAGE, ROWS, Ring
from tests.aio import run

from .conformance import delta, owned, terminal
from .conftest import Opener

PING = b"ping\n"


def frame(row: Row) -> bytes:
    return b"%d\n" % row.seq


class Subscriber:
    """Collects what it is written; `pause(i)` is awaited at its i-th write."""

    def __init__(
        self, log: SqliteLog, chat: str, after: int = 0, pause: Callable[[int], Awaitable[None]] | None = None
    ):
        self.chunks: list[bytes] = []
        self._pause = pause
        self._changed = asyncio.Event()
        self.task = asyncio.ensure_future(
            follow(log, log._hub, chat, after, version=3, encode=frame, ping=lambda: PING, write=self._write)
        )

    async def _write(self, data: bytes) -> None:
        if self._pause is not None:
            await self._pause(len(self.chunks))
        self.chunks.append(data)
        self._changed.set()

    @property
    def lines(self) -> list[bytes]:
        return b"".join(self.chunks).splitlines(keepends=True)

    @property
    def seqs(self) -> list[int]:
        return [int(line) for line in self.lines if line != PING]

    async def until(self, holds: Callable[[Subscriber], Any]) -> None:
        while not holds(self):
            self._changed.clear()
            if self.task.done():
                await self.task
            await self._changed.wait()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def test_replay_then_a_ping_at_once_then_live_and_the_stream_stays_open_across_turns(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            await log.append(fence, [delta("a"), delta("b")])
            reader = Subscriber(log, "c1")
            await reader.until(lambda it: PING in it.lines)
            assert reader.lines == [b"1\n", b"2\n", PING]
            await log.append(fence, [terminal("t1")])
            await log.append(fence, [delta("next", "t2")])
            await reader.until(lambda it: len(it.seqs) == 4)
            assert reader.lines == [b"1\n", b"2\n", PING, b"3\n", b"4\n"]
            await reader.stop()

    run(scenario())


@pytest.mark.parametrize("after", [0, 1, 3])
def test_rows_are_read_from_the_log_then_from_memory_with_the_same_entries(open_log: Opener, after: int) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            earlier = [delta("a"), delta("b"), terminal("t1")]
            await log.append(fence, earlier)
            log._hub.forget("c1")
            later = [delta(str(n), "t2") for n in range(2 * PAGE)]
            seen: list[Row] = []
            async with aclosing(follow_rows(log, log._hub, "c1", after)) as batches:
                while rows := await anext(batches):
                    seen += rows
                assert [row.entry for row in seen] == earlier[after:]  # an empty batch: that is all there is
                for at in range(0, len(later), 100):
                    await log.append(fence, later[at : at + 100])
                while len(seen) < len(later) + len(earlier) - after:
                    seen += await anext(batches)
            assert [row.entry for row in seen] == (earlier + later)[after:]
            assert [row.seq for row in seen] == list(range(after + 1, len(earlier) + len(later) + 1))
            assert all(row.known is not None for row in seen[-PAGE:])  # nothing is decoded that was appended here
            assert log._hub.ring("c1").readers == 0

    run(scenario())


def test_a_reader_of_rows_that_hears_nothing_gets_an_empty_batch_and_one_that_takes_nothing_is_cancelled(
    open_log: Opener,
) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            await owned(log)
            hub = Hub(quiet=0.05, stall=0.2)

            async def read() -> None:
                async with aclosing(follow_rows(log, hub, "c1", 0)) as batches:
                    assert [await anext(batches) for _ in range(3)] == [[], [], []]
                    await asyncio.Event().wait()  # takes no more

            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.ensure_future(read()), 5)

    run(scenario())


def test_nobody_sees_an_entry_before_it_is_durable(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            fence = await owned(log)
            reader = Subscriber(log, "c1")
            await reader.until(lambda it: PING in it.lines)
            held, release = threading.Event(), threading.Event()

            def hold(tx: object) -> None:
                held.set()
                release.wait(5)

            log._database.post(hold)
            await asyncio.to_thread(held.wait, 5)
            appending = asyncio.ensure_future(log.append(fence, [delta("a")]))
            for _ in range(50):
                await asyncio.sleep(0.001)
                assert reader.seqs == []
                assert log._hub.head("c1") == 0
            release.set()
            await appending
            await reader.until(lambda it: it.seqs == [1])
            await reader.stop()

    run(scenario())


def test_a_ping_comes_after_silence_and_only_then() -> None:
    async def scenario() -> None:
        hub = Hub(quiet=0.1)
        log = _Stored([])
        written: list[bytes] = []
        pinged = asyncio.Event()

        async def write(data: bytes) -> None:
            written.append(data)
            if written.count(PING) == 3:
                pinged.set()

        began = asyncio.get_running_loop().time()
        task = asyncio.ensure_future(
            follow(log, hub, "c", 0, version=3, encode=frame, ping=lambda: PING, write=write)  # type: ignore[arg-type]
        )
        await pinged.wait()
        assert asyncio.get_running_loop().time() - began >= 0.2
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(scenario())


class _Stored:
    """A log that only reads."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.reads = 0

    async def bounds(self, chat: str) -> Bounds:
        return Bounds("e", 1, self.rows[-1].seq if self.rows else 0, None)

    async def read(self, chat: str, after: int, limit: int = 500) -> list[Row]:
        self.reads += 1
        await asyncio.sleep(0)
        return self.rows[after : after + limit]


def test_a_reader_that_cannot_write_is_closed_and_the_others_are_not(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            log._hub = Hub(stall=0.2)
            fence = await owned(log)

            async def for_ever(index: int) -> None:
                await asyncio.Event().wait()

            stuck, healthy = Subscriber(log, "c1", pause=for_ever), Subscriber(log, "c1")
            for i in range(100):
                await log.append(fence, [delta(str(i))])
            with pytest.raises(Stalled):
                await stuck.task
            await healthy.until(lambda it: len(it.seqs) == 100)
            assert not healthy.task.done()
            await healthy.stop()

    run(scenario())


def test_a_stalled_reader_costs_a_cursor_not_the_backlog(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            log._hub = Hub(capacity=100_000)
            fence = await owned(log)
            gate = asyncio.Event()

            async def wait(index: int) -> None:
                await gate.wait()

            slow = Subscriber(log, "c1", pause=wait)
            for _ in range(60):
                await log.append(fence, [delta("x" * 100)] * 100)
            assert log._hub.size <= 100_000
            gate.set()
            await slow.until(lambda it: len(it.seqs) == 6_000)
            assert slow.seqs == list(range(1, 6_001))
            await slow.stop()

    run(scenario())


def test_all_rings_together_stay_under_the_cap_oldest_chats_first() -> None:
    async def scenario() -> None:
        hub = Hub(capacity=10_000)
        for chat in range(50):
            hub.publish(f"c{chat}", [Row(1, b"x" * 1_000)])
            assert hub.size <= 10_000
        assert hub.ring("c49").chunk(3, 0, frame) == (b"1\n", 1)
        assert hub.ring("c0").chunk(3, 0, frame) is None
        for chat in range(3_000):
            hub.publish(f"d{chat}", [Row(1, b"x")])
        assert len(hub._rings) <= 1_100

    run(scenario())


def test_a_frame_is_encoded_once_per_version_however_many_readers_there_are() -> None:
    async def scenario() -> None:
        ring = Ring(lambda size: None)
        ring.add([Row(i, b"{}") for i in range(1, 11)])
        calls: list[int] = []

        def encode(row: Row) -> bytes:
            calls.append(row.seq)
            return frame(row)

        chunks = [ring.chunk(3, 0, encode) for _ in range(100)]
        assert len({id(chunk[0]) for chunk in chunks if chunk}) == 1
        ring.chunk(3, 5, encode)
        assert calls == list(range(1, 11))
        ring.chunk(2, 0, encode)
        assert len(calls) == 20

    run(scenario())


def test_a_ring_never_bridges_a_hole() -> None:
    async def scenario() -> None:
        ring = Ring(lambda size: None)
        ring.add([Row(1, b""), Row(2, b"")])
        ring.add([Row(4, b"")])
        assert ring.chunk(3, 0, frame) is None
        ring.add([Row(4, b""), Row(5, b"")], urgent=True)
        assert ring.chunk(3, 3, frame) == (b"4\n5\n", 5)
        ring.reach(9)
        ring.add([Row(9, b"")])
        ring.add([Row(10, b"")], urgent=True)
        assert ring.chunk(3, 9, frame) == (b"10\n", 10)
        ring.add([Row(11 + i, b"") for i in range(ROWS)], urgent=True)
        assert ring.chunk(3, 9, frame) is None
        data, last = ring.chunk(3, 10, frame) or (b"", 0)
        assert (len(data.splitlines()), last) == (PAGE, 10 + PAGE)

    run(scenario())


def test_a_busy_chat_is_flushed_by_the_tick_and_an_idle_one_or_a_terminal_at_once() -> None:
    async def scenario() -> None:
        ring = Ring(lambda size: None)
        ring.readers = 1
        ring.add([Row(1, b"")])
        assert ring.shown == 1
        ring.add([Row(2, b"")])
        assert ring.shown == 1
        waiting = ring.wait()
        assert await waiting
        assert ring.shown == 2
        ring.add([Row(3, b"")], urgent=True)
        assert ring.shown == 3
        ring.readers = 0
        ring.add([Row(4, b"")])
        assert ring.shown == 4

    run(scenario())


BOUNDS = Bounds("now", 11, 20, None)


@pytest.mark.parametrize(
    ("after", "epoch", "reason"),
    [(9, None, "trimmed"), (0, "now", "trimmed"), (21, None, "ahead"), (15, "then", "epoch_changed")],
)
def test_a_cursor_outside_the_log_is_refused_with_what_the_log_holds(
    after: int, epoch: str | None, reason: str
) -> None:
    with pytest.raises(CursorExpired) as error:
        check_cursor(BOUNDS, after, epoch)
    assert error.value.code is Code.CONFLICT
    assert (error.value.why, error.value.epoch) == (reason, "now")
    assert (error.value.first_seq, error.value.last_seq) == (11, 20)


@pytest.mark.parametrize("after", [10, 11, 20])
def test_a_cursor_inside_the_log_is_served(after: int) -> None:
    check_cursor(BOUNDS, after, "now")
    check_cursor(BOUNDS, after, None)


async def attach_at_random(log: SqliteLog, fence: Fence, events: int, subscribers: int) -> None:
    """1,000 events a second; readers come at random moments with random cursors, one in ten of them slow."""
    rng = random.Random(7)
    readers: list[tuple[int, Subscriber]] = []
    loop = asyncio.get_running_loop()

    async def slow(index: int) -> None:
        await asyncio.sleep(0.05)

    async def join() -> None:
        for i in range(subscribers):
            await asyncio.sleep(rng.uniform(0, 2 * events / 1_000 / subscribers))
            after = rng.randint(0, log._hub.head("c1"))
            readers.append((after, Subscriber(log, "c1", after, slow if i % 10 == 0 else None)))

    joining = asyncio.ensure_future(join())
    began = loop.time()
    for i in range(0, events, 10):
        await log.append(fence, [delta(f"{i + k}") for k in range(10)])
        await asyncio.sleep(max(0, began + (i + 10) / 1_000 - loop.time()))
    await joining
    for after, reader in readers:
        await reader.until(lambda it, after=after: (it.seqs and it.seqs[-1] == events) or after == events)
        assert reader.seqs == list(range(after + 1, events + 1))
        assert not reader.task.done()
        await reader.stop()


def test_attaching_at_random_moments_loses_and_doubles_nothing(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            await attach_at_random(log, await owned(log), events=2_000, subscribers=50)

    run(scenario(), timeout=40)


@pytest.mark.slow
def test_two_hundred_readers_attaching_at_random_lose_and_double_nothing(open_log: Opener) -> None:
    async def scenario() -> None:
        async with open_log() as log:
            await attach_at_random(log, await owned(log), events=5_000, subscribers=200)

    run(scenario(), timeout=55)
