"""What the panel gets from the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from crocevia.asgi.types import Application
from crocevia.core.forwarding import Network
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.apply import CheckEngine
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import EngineSource, Gateway
from crocevia.runtime.turns import Turns
from crocevia.runtime.turns.tools.mcp_servers import McpServers
from crocevia.storage.database import Database
from crocevia.storage.home import Home


class PanelServices(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a serving home that the panel works with."""

    home: Home
    database: Database
    catalogue: CatalogueHolder
    gateway: Gateway
    control: Control
    turns: Turns
    mcp: McpServers
    redeliver: Callable[[str], Awaitable[bool]]
    """Send the webhook of this id once more now; False if there is none."""
    engine: EngineSource
    check_engine: CheckEngine
    settings: msgspec.Struct
    """The server's own, a struct of structs."""
    origins: Mapping[str, str]
    """Where each setting's value came from, by dotted path."""
    paths: Collection[str]
    """What the server answers to."""
    agent_call: Application
    """The agent call of the pepper door for a signed-in operator: the project is in its header, no key."""
    keys_changed: Callable[[], None]
    """Called after an API key was revoked, so that it stops working at once."""
    public_url: str | None = None
    """Where callers reach the server, if it is set."""
    trusted_proxies: tuple[Network, ...] = ()
    """Networks whose forwarding headers are believed."""
    version: str = ""
