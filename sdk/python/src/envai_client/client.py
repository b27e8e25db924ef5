"""The client."""

# Generated from the async edition by scripts/generate.py: do not edit.

from __future__ import annotations

import logging
from typing import Any

import httpx2

from .core import Core
from .keys import KeyCache, KeyRing
from .ledger import Ledger, SqliteLedger, default_ledger_path
from .options import read_options
from .primitives import Primitives
from .services import sync_content, sync_control, sync_execution
from .services.sync_helpers import (
    ChatsService,
    CompletionsService,
    ImagesService,
    WikiService,
    WorkspaceFilesService,
)
from .sync_driver import SyncDriver
from .transport import LIMITS


class EnvaiClient:
    """The Envai API and the Agent Team Protocol, sync edition. Close it, or use `with`.

    The sync edition may be shared between threads; the async one belongs to one event loop.

    base_url may or may not end in `/api/v1`. contract_version: 2, 3 or "auto" (asked of the server once). timeouts,
    retry, reconnect: see `envai_client.options`. transport: an httpx2 transport, for tests and proxies. ledger: where
    client-tool calls are recorded (a SQLite file in the user's state folder by default). observer: called with a
    `signals.Signal`. trace_headers: called per request, its tracing headers are passed on. logger: gets the signals.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str,
        jwks_url: str | None = None,
        transport: httpx2.BaseTransport | None = None,
        ledger: Ledger | None = None,
        jwks_cache: KeyCache | None = None,
        logger: logging.Logger | None = None,
        sdk_name: str | None = None,
        **options: Any,
    ) -> None:
        settings = read_options(api_key=api_key, base_url=base_url, jwks_url=jwks_url, sdk_name=sdk_name, **options)
        self._core = Core(settings, logger)
        # The transport itself, not an httpx2 client: that one logs whole URLs, keeps cookies and reads a netrc.
        self._transport = httpx2.HTTPTransport(trust_env=False, limits=LIMITS) if transport is None else transport
        self._driver = driver = SyncDriver(self._core, self._transport)
        self._ledger = ledger
        self._own_ledger: SqliteLedger | None = None
        keys = KeyRing(self._core, "getJwks", jwks_cache)
        self.agents = sync_control.AgentsService(driver)
        self.api_keys = sync_control.ApiKeysService(driver)
        self.attachments = sync_content.AttachmentsService(driver)
        self.capabilities = sync_execution.CapabilitiesService(driver)
        self.chats = ChatsService(driver, keys, self._open_ledger)
        self.completions = CompletionsService(driver)
        self.files = WorkspaceFilesService(driver)
        self.images = ImagesService(driver)
        self.infrastructure = sync_execution.InfrastructureService(driver)
        self.models = sync_control.ModelsService(driver)
        self.teams = sync_control.TeamsService(driver)
        self.tools = sync_control.UserToolsService(driver)
        self.wiki = WikiService(driver, KeyRing(self._core, "getWikiWebhookJwks"))
        self.workspaces = sync_control.WorkspacesService(driver)
        self.primitives = Primitives(
            driver.run,
            self._core,
            self.files._open,
            {"streamChatEvents": self.chats.events, "streamChatEventsLegacy": self.chats.events_history},
        )

    @property
    def base_url(self) -> str:
        return self._core.options.base_url

    @property
    def ledger(self) -> Ledger:
        """Where client-tool calls are recorded; opened on first use."""
        return self._open_ledger()

    def _open_ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = self._own_ledger = SqliteLedger(default_ledger_path())
        return self._ledger

    def close(self) -> None:
        """Release every connection, and the ledger if the client opened it."""
        self._transport.close()
        if self._own_ledger is not None:
            self._own_ledger.close()

    def __enter__(self) -> EnvaiClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base_url}>"
