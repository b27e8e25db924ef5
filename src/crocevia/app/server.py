"""The process around the application: one socket, two signals, an end in time."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import uvicorn

from crocevia.app.protocol import Protocol

LINGER_SECONDS: Final = 5.0  # for proxies and probes to see that nothing is begun here any more
_LINGERS: Final = {signal.SIGINT: 0.0, signal.SIGTERM: LINGER_SECONDS}  # who presses Ctrl-C has no proxy
_FLUSH_SECONDS: Final = 0.5  # beyond the grace period, for answers to be read
_LOOK_SECONDS: Final = 0.05
_CLOSE: Final = (b"connection", b"close")


class Server(uvicorn.Server):
    """Serves until the first signal, then drains: everything is still answered, on new connections too.

    `on_drain` is told at once: from there on the application begins nothing new. The listener closes when the
    application is no longer busy and has lingered, after `grace` seconds at the latest; half a second later nothing
    is open. The second signal exits at once. uvicorn closes its listener as soon as it is told to exit, so it is told
    only then.
    """

    def __init__(
        self,
        app: Any,
        *,
        on_ready: Callable[[], None],
        on_drain: Callable[[], None],
        is_busy: Callable[[], bool],
        grace: float,
        protocol: type[Protocol] = Protocol,
        largest_message: int | None = None,
    ) -> None:
        """on_ready: called when connections are accepted. is_busy: whether anything is under way that a stop should
        wait for. largest_message: bytes of a WebSocket message; None: there are no WebSockets.
        """
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none" if largest_message is None else "websockets-sansio",
                ws_max_size=largest_message or 0,
                ws_per_message_deflate=False,
                lifespan="on",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=75,  # longer than the proxies that may stand in front
            )
        )
        self._on_ready = on_ready
        self._on_drain = on_drain
        self._is_busy = is_busy
        self._grace = grace
        self._ends = 0.0
        """When the grace period is over, by the loop's clock."""
        self._draining: asyncio.Task[None] | None = None

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # uvicorn would raise the signal again after serving, and end the process before it is tidy.
        loop = asyncio.get_running_loop()
        try:
            for number, linger in _LINGERS.items():
                loop.add_signal_handler(number, partial(self.stop, linger))
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            with super().capture_signals():
                yield
            return
        try:
            yield
        finally:
            for number in _LINGERS:
                loop.remove_signal_handler(number)

    def stop(self, linger: float = 0.0) -> None:
        """What a signal does: drain, and be reachable for `linger` seconds at least; the second time, leave."""
        loop = asyncio.get_running_loop()
        if self._draining is not None or not self.started:
            self.force_exit = self._draining is not None
            self.should_exit = True
            loop.call_later(_FLUSH_SECONDS, self._abort_connections)  # calls are told first why they end
            return
        self._ends = loop.time() + self._grace
        self._on_drain()
        self._draining = loop.create_task(self._drain(loop.time() + min(linger, self._grace)))
        self._end_connections_with_their_answers()

    async def _drain(self, lingers_until: float) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < self._ends and (clock() < lingers_until or self._is_busy()):  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_SECONDS)  # turns and calls come and go: no one event tells
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        leaving = await super().on_tick(counter)
        self._end_connections_with_their_answers()
        return leaving

    def _end_connections_with_their_answers(self) -> None:
        """A proxy that is told so empties its pool: no request is on its way to a connection that is being closed."""
        headers = self.server_state.default_headers
        if self._draining is not None and _CLOSE not in headers:
            self.server_state.default_headers = [*headers, _CLOSE]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        loop = asyncio.get_running_loop()
        left = max(0.0, self._ends - loop.time()) + _FLUSH_SECONDS
        # Who still sends a body, or does not read its answer, is no reason to stay longer.
        timer = loop.call_later(left, self._abort_connections)
        self.config.timeout_graceful_shutdown = math.ceil(left + 1)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    def _abort_connections(self) -> None:
        for connection in tuple(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()
