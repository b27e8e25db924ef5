"""The panel, handed what it needs. It is imported with the server; what it is made of, with its first request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from crocevia import __version__
from crocevia.asgi.site import Site
from crocevia.asgi.types import Application
from crocevia.config import Settings
from crocevia.core.catalogue import ProjectSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.doors.pepper.caller import Identify
from crocevia.doors.pepper.door import agent_door
from crocevia.engines.registry import check_engine
from crocevia.panel import panel
from crocevia.panel.services import PanelServices
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import EngineSource, Gateway
from crocevia.runtime.turns import Turns
from crocevia.runtime.turns.tools.mcp_servers import McpServers


def open_panel(
    settings: Settings,
    control: Control,
    gateway: Gateway,
    turns: Turns,
    servers: McpServers,
    redeliver: Callable[[str], Awaitable[bool]],
    engines: EngineSource,
    site: Site,
) -> Application:
    """The panel of a serving home. site: where it is going to be."""
    agent = agent_door(gateway, _for_whoever_is_signed_in(control.catalogue))
    return panel(
        PanelServices(
            home=control.home,
            database=control.database,
            catalogue=control.catalogue,
            gateway=gateway,
            control=control,
            turns=turns,
            mcp=servers,
            redeliver=redeliver,
            engine=engines,
            check_engine=check_engine,
            settings=settings,
            origins=settings.origins,
            paths=site.addresses,
            agent_call=Site((agent,), site.front).application("agent"),
            keys_changed=control.keys.look_again,
            public_url=settings.server.public_url,
            trusted_proxies=site.front.proxies,
            version=__version__,
        )
    )


def _for_whoever_is_signed_in(catalogue: CatalogueHolder) -> Identify:
    """Any project in agent mode, without its key."""

    def identify(project: str) -> ProjectSpec:
        found = catalogue.current.projects.get(project)
        if found is None:
            raise GatewayError(Reason.NAME_UNKNOWN, kind="project")
        return found if found.mode == "agent" else msgspec.structs.replace(found, mode="agent")

    return identify
