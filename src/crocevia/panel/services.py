"""What the panel is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.apply import CheckEngine
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import EngineSource, Gateway
from crocevia.runtime.turns import Turns
from crocevia.storage.database import Database
from crocevia.storage.home import Home

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a serving home.

    settings: the server's own, any struct of structs; origins: where each value came from, by dotted path.
    public_url: where callers reach the server, if it was said. trusted_proxies: networks whose forwarding headers
    are believed. paths: what the server answers to. agent_call: the agent call of the pepper door for whoever is
    signed in here: it takes the project from its header and wants no key. keys_changed: to be told
    after an API key was revoked, so that nobody goes on with it. redeliver: attempt the webhook of this id
    once more now; False if there is none. log: a structlog logger.
    """

    home: Home
    database: Database
    catalogue: CatalogueHolder
    gateway: Gateway
    control: Control
    turns: Turns
    redeliver: Callable[[str], Awaitable[bool]]
    engine: EngineSource
    check_engine: CheckEngine
    settings: msgspec.Struct
    origins: Mapping[str, str]
    paths: Collection[str]
    agent_call: Application
    keys_changed: Callable[[], None]
    log: Any
    public_url: str | None = None
    trusted_proxies: tuple[str, ...] = ()
    version: str = ""
