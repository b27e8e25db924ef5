"""The newest entries of one chat in memory, and the readers that wait for more of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Final

from crocevia.log.values import Row

ROWS: Final = 4096  # entries kept per chat
PAGE: Final = 500  # entries in one chunk
PAGE_BYTES: Final = 262_144
TICK: Final = 0.04  # seconds between two flushes of a busy chat
TICK_READER: Final = 0.00004  # more of them per reader: a crowd is written to less often, in larger pieces
LONGEST_TICK: Final = 0.064
TOGETHER: Final = 256  # readers woken before everything else has its turn

Encode = Callable[[Row], bytes]


def _size(row: Row) -> int:
    """Bytes that a row holds, about: its entry has the same texts as its body."""
    return len(row.body) if row.known is None else 2 * len(row.body)


class _Cell:
    """An entry and what it became on the wire, per version."""

    __slots__ = ("row", "wire")

    def __init__(self, row: Row) -> None:
        self.row = row
        self.wire: dict[Hashable, bytes] | None = None


class Ring:
    """Between two ticks of a busy chat nothing new is shown, so that all readers ask for the same chunk.

    It is joined once.
    """

    __slots__ = ("_cells", "_chunks", "_flushed", "_grown", "_timer", "_waiting", "head", "readers", "shown", "size")

    def __init__(self, grown: Callable[[int], None]) -> None:
        self._cells: deque[_Cell] = deque()
        self._chunks: dict[Hashable, tuple[int, int, bytes]] = {}
        self._waiting: set[asyncio.Future[bool]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._flushed = float("-inf")
        self._grown = grown
        self.head = 0
        """The newest seq known."""
        self.shown = 0
        """How far readers may look now."""
        self.size = 0
        """Bytes held, encoded forms included."""
        self.readers = 0

    def add(self, rows: Sequence[Row], *, urgent: bool = False) -> None:
        """Take in entries just written. A hole before them empties the ring: the log has what is missing."""
        if rows[0].seq != self.head + 1:
            rows = [row for row in rows if row.seq > self.head]
            if not rows:
                return
            if rows[0].seq != self.head + 1:
                self.drop(len(self._cells))
        cells, size = self._cells, 0
        for row in rows:
            cells.append(_Cell(row))
            size += _size(row)
        self._grow(size)
        self.head = rows[-1].seq
        if len(cells) > ROWS:
            self.drop(len(cells) - ROWS)
        self._schedule(urgent)

    def reach(self, head: int) -> None:
        """Entries up to `head` exist somewhere: readers find them in the log."""
        if head > self.head:
            self.drop(len(self._cells))
            self.head = head
            self._schedule(False)

    def drop(self, count: int) -> None:
        """Forget the oldest `count`."""
        for _ in range(count):
            cell = self._cells.popleft()
            wire = 0 if cell.wire is None else sum(map(len, cell.wire.values()))
            self._grow(-_size(cell.row) - wire)

    def clear(self) -> None:
        """Forget all of them; readers find them in the log."""
        self.drop(len(self._cells))
        self._chunks.clear()

    def chunk(self, version: Hashable, after: int, encode: Encode) -> tuple[bytes, int] | None:
        """What follows `after`, encoded, and its last seq. (b"", after): nothing new. None: it is not here."""
        if after >= self.shown:
            return b"", after
        known = self._chunks.get(version)
        if known is not None and known[0] == after:
            return known[2], known[1]
        if not self._cells or after < self._cells[0].row.seq - 1:
            return None
        data, last = self._join(version, after, encode)
        self._chunks[version] = (after, last, data)
        return data, last

    def rows(self, after: int) -> list[Row] | None:
        """What follows `after`, a page at most. Empty: nothing new. None: it is not here."""
        if after >= self.shown:
            return []
        if not self._cells or after < self._cells[0].row.seq - 1:
            return None
        start = after + 1 - self._cells[0].row.seq
        return [cell.row for cell in islice(self._cells, start, start + min(PAGE, self.shown - after))]

    def _join(self, version: Hashable, after: int, encode: Encode) -> tuple[bytes, int]:
        start = after + 1 - self._cells[0].row.seq
        parts: list[bytes] = []
        last, size = after, 0
        for cell in islice(self._cells, start, start + min(PAGE, self.shown - after)):
            if cell.wire is None:
                cell.wire = {}
            data = cell.wire.get(version)
            if data is None:
                data = cell.wire[version] = encode(cell.row)
                self._grow(len(data))
            parts.append(data)
            last, size = cell.row.seq, size + len(data)
            if size >= PAGE_BYTES:
                break
        return b"".join(parts), last

    def _grow(self, size: int) -> None:
        self.size += size
        self._grown(size)

    # --- waiting

    def wait(self) -> asyncio.Future[bool]:
        """True once more is shown; whoever else resolves it (with False) wakes the reader for another reason."""
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        return future

    def leave(self, future: asyncio.Future[bool]) -> None:
        """It does not wait any more, for whatever reason."""
        self._waiting.discard(future)

    def _schedule(self, urgent: bool) -> None:
        """Idle, urgent or unread: now. Busy: at the next tick."""
        if not self.readers:
            self.shown = self.head
            if self._chunks:
                self._chunks.clear()
            return
        loop = asyncio.get_running_loop()
        left = self._flushed + min(max(TICK, self.readers * TICK_READER), LONGEST_TICK) - loop.time()
        if urgent or left <= 0:
            self.flush()
        elif self._timer is None:
            self._timer = loop.call_later(left, self.flush)

    def flush(self) -> None:
        """Show everything, and wake who waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flushed = asyncio.get_running_loop().time()
        self.shown = self.head
        self._chunks.clear()
        waiting, self._waiting = self._waiting, set()
        self._wake(iter(waiting))

    def _wake(self, waiting: Iterator[asyncio.Future[bool]]) -> None:
        woken = 0
        for future in waiting:
            if not future.done():
                future.set_result(True)
                woken += 1
                if woken == TOGETHER:
                    asyncio.get_running_loop().call_soon(self._wake, waiting)
                    return
