"""The client. The sync edition is made from this file: scripts/generate.py."""

from __future__ import annotations

import logging
from typing import Any

import httpx2

from .async_driver import AsyncDriver
from .core import Core
from .keys import KeyCache, KeyRing
from .ledger import Ledger, SqliteLedger, default_ledger_path
from .options import read_options
from .primitives import Primitives
from .services import async_content, async_control, async_execution
from .services.async_helpers import (
    AsyncChatsService,
    AsyncCompletionsService,
    AsyncImagesService,
    AsyncWikiService,
    AsyncWorkspaceFilesService,
)
from .transport import LIMITS


class AsyncEnvaiClient:
    """The Envai API and the Agent Team Protocol, async edition. Close it, or use `async with`.

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
        transport: httpx2.AsyncBaseTransport | None = None,
        ledger: Ledger | None = None,
        jwks_cache: KeyCache | None = None,
        logger: logging.Logger | None = None,
        sdk_name: str | None = None,
        **options: Any,
    ) -> None:
        settings = read_options(api_key=api_key, base_url=base_url, jwks_url=jwks_url, sdk_name=sdk_name, **options)
        self._core = Core(settings, logger)
        # The transport itself, not an httpx2 client: that one logs whole URLs, keeps cookies and reads a netrc.
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, limits=LIMITS) if transport is None else transport
        self._driver = driver = AsyncDriver(self._core, self._transport)
        self._ledger = ledger
        self._own_ledger: SqliteLedger | None = None
        keys = KeyRing(self._core, "getJwks", jwks_cache)
        self.agents = async_control.AsyncAgentsService(driver)
        self.api_keys = async_control.AsyncApiKeysService(driver)
        self.attachments = async_content.AsyncAttachmentsService(driver)
        self.capabilities = async_execution.AsyncCapabilitiesService(driver)
        self.chats = AsyncChatsService(driver, keys, self._open_ledger)
        self.completions = AsyncCompletionsService(driver)
        self.files = AsyncWorkspaceFilesService(driver)
        self.images = AsyncImagesService(driver)
        self.infrastructure = async_execution.AsyncInfrastructureService(driver)
        self.models = async_control.AsyncModelsService(driver)
        self.teams = async_control.AsyncTeamsService(driver)
        self.tools = async_control.AsyncUserToolsService(driver)
        self.wiki = AsyncWikiService(driver, KeyRing(self._core, "getWikiWebhookJwks"))
        self.workspaces = async_control.AsyncWorkspacesService(driver)
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

    async def close(self) -> None:
        """Release every connection, and the ledger if the client opened it."""
        await self._transport.aclose()
        if self._own_ledger is not None:
            self._own_ledger.close()

    aclose = close

    async def __aenter__(self) -> AsyncEnvaiClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.base_url}>"
