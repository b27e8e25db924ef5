"""The process around the application: one socket, two signals, an end in time."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

import uvicorn

from crocevia.app.protocol import Protocol

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_BACKSTOP_SECONDS: Final = 3.0  # beyond the grace period, for answers to be flushed


class Server(uvicorn.Server):
    """Serves until the first signal, then lets `on_drain` end the streams within `grace` seconds; the second signal
    exits at once. `on_ready` is called when connections are accepted. largest_message: bytes of a WebSocket message;
    None: there are no WebSockets.
    """

    def __init__(
        self,
        app: Any,
        *,
        on_ready: Callable[[], None],
        on_drain: Callable[[], None],
        grace: float,
        protocol: type[Protocol] = Protocol,
        largest_message: int | None = None,
    ) -> None:
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
                timeout_graceful_shutdown=int(grace + _BACKSTOP_SECONDS),
            )
        )
        self._on_ready = on_ready
        self._on_drain = on_drain

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        # uvicorn would raise the signal again after serving, and end the process before it is tidy.
        loop = asyncio.get_running_loop()
        try:
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.stop)
        except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            with super().capture_signals():
                yield
            return
        try:
            yield
        finally:
            for number in _SIGNALS:
                loop.remove_signal_handler(number)

    def stop(self) -> None:
        """What a signal does: drain; the second time, leave."""
        if self.should_exit:
            self.force_exit = True
            return
        self._on_drain()
        self.should_exit = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()
