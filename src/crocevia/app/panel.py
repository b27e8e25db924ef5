"""The panel, handed what it needs. It is imported with the server; what it is made of, with its first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

import msgspec

from crocevia import __version__
from crocevia.asgi.types import Application
from crocevia.config import Settings
from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.pepper import AgentEndpoint
from crocevia.engines.registry import check_engine
from crocevia.panel import panel
from crocevia.panel.services import Services
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import EngineSource, Gateway
from crocevia.runtime.turns import Turns


def open_panel(
    settings: Settings,
    control: Control,
    gateway: Gateway,
    turns: Turns,
    redeliver: Callable[[str], Awaitable[bool]],
    engines: EngineSource,
    paths: Collection[str],
    log: Any,
) -> Application:
    """The panel of a serving home. paths: everything that the server answers to, read when a page needs it."""
    trusted = cast("Gateway", _Trusted(gateway, control.catalogue))
    return panel(
        Services(
            home=control.home,
            database=control.database,
            catalogue=control.catalogue,
            gateway=gateway,
            control=control,
            turns=turns,
            redeliver=redeliver,
            engine=engines,
            check_engine=check_engine,
            settings=settings,
            origins=settings.origins,
            paths=paths,
            agent_call=AgentEndpoint(trusted, ping_seconds=settings.calls.ping_seconds),
            keys_changed=control.keys.look_again,
            log=log,
            public_url=settings.server.public_url,
            trusted_proxies=settings.server.trusted_proxies,
            version=__version__,
        )
    )


class _Trusted:
    """The gateway for whoever is signed in to the panel: any project in agent mode, without its key."""

    def __init__(self, gateway: Gateway, catalogue: CatalogueHolder) -> None:
        self._gateway = gateway
        self._catalogue = catalogue

    def authenticate(self, project: str, key: bytes) -> ProjectSpec:
        """The project. Raises GatewayError(NOT_FOUND)."""
        found = self._catalogue.current.projects.get(project)
        if found is None:
            raise GatewayError(Reason.NAME_UNKNOWN, kind="project")
        return found if found.mode == "agent" else msgspec.structs.replace(found, mode="agent")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gateway, name)
