"""The admin panel: server-rendered pages under `/panel`. Nothing heavy is imported before the first request."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crocevia.asgi.types import Application
    from crocevia.panel.services import PanelServices


def panel(services: PanelServices) -> Application:
    """The ASGI application for every path that starts with `/panel`."""
    built: Application | None = None

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal built
        if built is None:
            # Jinja2 and argon2 take a tenth of a second: the calls under way must not wait for it.
            module = await asyncio.to_thread(import_module, f"{__name__}.app")
            if built is None:
                built = module.create(services)
        assert built is not None
        await built(scope, receive, send)

    return application
