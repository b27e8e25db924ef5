"""What waits to be sent to a peer: for how long, and how it is gathered."""

from __future__ import annotations

import asyncio
from typing import Any, Final

_SHRINKS: Final = 16 * 1024  # bytes of a queue that must have gone out before it is looked at again
_FULL: Final = 64 * 1024


class Stall:
    """Aborts a connection whose queue has been stuck, or has hardly moved, for `seconds`.

    The kernel alone would keep a stalled reader's socket, and what is queued for it, for as long as the peer
    acknowledges; and closing politely waits for that queue.
    """

    __slots__ = ("_loop", "_seconds", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """The queue is long. Idempotent."""
        if self._timer is None:
            most = self._transport.get_write_buffer_size() - _SHRINKS
            self._timer = self._loop.call_later(self._seconds, self._look_again, most)

    def forget(self) -> None:
        """It no longer is."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look_again(self, most: int) -> None:
        self._timer = None
        size = self._transport.get_write_buffer_size()
        if size > max(most, 0):
            self._transport.abort()
        elif size:
            self.watch()


class Gathered:
    """The transport of a WebSocket: everything that is written in one turn of the loop goes out together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, stall_seconds: float) -> None:
        self._transport = transport
        self._loop = loop
        self._stall = Stall(transport, loop, stall_seconds)
        self._frames: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not self._frames:
            self._loop.call_soon(self._flush)
        self._frames.append(data)
        self._size += len(data)
        if self._size > _FULL:  # else who writes without a pause would never be told to wait
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        frames, self._frames, self._size = self._frames, [], 0
        if data := b"".join(frames):
            self._transport.write(data)
            if self._transport.get_write_buffer_size() > _FULL:
                self._stall.watch()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
