"""Builds everything: the only place that knows all the names."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from contextlib import suppress
from typing import Any, Final

from crocevia.app.logs import configure
from crocevia.app.protocol import allow_files, listen
from crocevia.app.server import Server
from crocevia.app.service import App, open_service
from crocevia.config import Settings
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.logger import Logger
from crocevia.storage.home import Home

__all__ = ["create_app", "run"]

_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8
_LARGE_BLOCK: Final = 256 * 1024  # bytes


def create_app(settings: Settings, home: Home, log: Logger | None = None) -> App:
    """The ASGI application of a home, for any server that speaks the lifespan protocol."""
    return App(open_service(settings, home, log or configure(settings.log)))


def run(settings: Settings, home: Home) -> int:
    """Serve `home` until a signal; the exit status.

    Raises GatewayError: UNAVAILABLE (the address is taken, the store is unusable), CONFLICT (served already).
    """
    if sys.platform == "win32":
        return asyncio.run(_serve(settings, home))
    import uvloop

    return uvloop.run(_serve(settings, home))


async def _serve(settings: Settings, home: Home) -> int:
    log = configure(settings.log)
    allow_files()
    _give_memory_back()
    grace = settings.calls.drain_seconds
    try:
        listener = listen(settings.server.host, settings.server.port)
    except OSError as error:
        address = f"{settings.server.host}:{settings.server.port}"
        raise GatewayError(Reason.ADDRESS_TAKEN, address=address) from error
    app = create_app(settings, home, log)
    server = Server(
        app,
        on_ready=lambda: _announce(app, listener.getsockname(), log),
        on_drain=lambda: app.drain(grace),
        is_busy=lambda: app.is_busy,
        grace=grace,
        largest_message=settings.gateway.http.endpoints.responses.max_body_bytes
        if settings.gateway.http.endpoints.responses.enabled
        else None,
    )
    with listener:
        try:
            await server.serve(sockets=[listener])
        except SystemExit:  # how uvicorn says that the application did not start
            if app.failure is None:
                raise
            raise app.failure from None
    return 0


def _give_memory_back() -> None:
    """Have glibc return large blocks to the system when they are freed.

    By itself it learns from the first large body that is freed to keep all that are not larger.
    """
    with suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK)
        libc.mallopt(_M_ARENA_MAX, 2)  # else every thread that decodes a body keeps one of its own


def _announce(app: App, address: tuple[Any, ...], log: Logger) -> None:
    assert app.service is not None
    # What start-up left stays for good, and calls make few cycles: look for garbage less often, and not in there.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    catalogue = app.service.catalogue.current
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    log.info(
        "serving",
        url=f"http://{host}:{address[1]}",
        home=str(app.service.home.path),
        projects=len(catalogue.projects),
        models=len(catalogue.models),
        engines=len(catalogue.engines),
    )
