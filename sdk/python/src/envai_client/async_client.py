"""The client. The sync edition is made from this file: scripts/generate.py."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import httpx2
from msgspec.structs import replace

from .async_driver import AsyncDriver
from .core import Core, RawResponse, call_raw
from .keys import KeyCache, KeyRing
from .ledger import Ledger, SqliteLedger, default_ledger_path
from .options import ContractVersion, ReconnectPolicy, RetryPolicy, Timeouts, check_kinds, read_options
from .services import async_control, async_execution
from .services.async_helpers import (
    AsyncAttachmentsService,
    AsyncChatsService,
    AsyncCompletionsService,
    AsyncImagesService,
    AsyncWikiService,
    AsyncWorkspaceFilesService,
)
from .services.async_primitives import AsyncPrimitives
from .signals import Signal
from .transport import LIMITS


class AsyncEnvaiClient:
    """The Envai API and the Agent Team Protocol, async edition. Close it, or use `async with`.

    The sync edition may be shared between threads; the async one belongs to one event loop.

    api_key and base_url come from ENVAI_API_KEY and ENVAI_BASE_URL where they are not passed; base_url may or may not
    end in `/api/v1`. contract_version: 2, 3 or "auto" (asked of the server once). timeouts, retry, reconnect: see
    `envai_client.options`. transport: an httpx2 transport, for tests and proxies. ledger: where client-tool calls are
    recorded (a SQLite file in the user's state folder by default). observer: called with a `signals.Signal`.
    trace_headers: called per request, its tracing headers are passed on. logger: gets the signals.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        jwks_url: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        ledger: Ledger | None = None,
        jwks_cache: KeyCache | None = None,
        jwks_ttl: float = 300.0,
        logger: logging.Logger | None = None,
        sdk_name: str | None = None,
        contract_version: ContractVersion = "auto",
        timeouts: Timeouts = Timeouts(),  # noqa: B008  # frozen
        retry: RetryPolicy = RetryPolicy(),  # noqa: B008  # frozen
        reconnect: ReconnectPolicy = ReconnectPolicy(),  # noqa: B008  # frozen
        max_frame_bytes: int = 16 * 1024 * 1024,
        trace_headers: Callable[[], Mapping[str, str]] | None = None,
        observer: Callable[[Signal], None] | None = None,
    ) -> None:
        options = read_options(
            api_key=api_key,
            base_url=base_url,
            jwks_url=jwks_url,
            sdk_name=sdk_name,
            jwks_ttl=jwks_ttl,
            contract_version=contract_version,
            timeouts=timeouts,
            retry=retry,
            reconnect=reconnect,
            max_frame_bytes=max_frame_bytes,
            trace_headers=trace_headers,
            observer=observer,
        )
        core = Core(options, logger)
        # The transport itself, not an httpx2 client: that one logs whole URLs, keeps cookies and reads a netrc.
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, limits=LIMITS) if transport is None else transport
        self._ledger = ledger
        self._own_ledger: SqliteLedger | None = None
        self._origin: AsyncEnvaiClient | None = None
        keys = KeyRing(core, "getJwks", jwks_cache)
        self._assemble(AsyncDriver(core, self._transport), keys, KeyRing(core, "getWikiWebhookJwks"))

    def _assemble(self, driver: AsyncDriver, keys: KeyRing, webhook_keys: KeyRing) -> None:
        self._core = driver.core
        self._driver = driver
        self._keys = keys
        self._webhook_keys = webhook_keys
        self.agents = async_control.AsyncAgentsService(driver)
        self.api_keys = async_control.AsyncApiKeysService(driver)
        self.attachments = AsyncAttachmentsService(driver)
        self.capabilities = async_execution.AsyncCapabilitiesService(driver)
        self.chats = AsyncChatsService(driver, keys, self._open_ledger)
        self.completions = AsyncCompletionsService(driver)
        self.files = AsyncWorkspaceFilesService(driver)
        self.images = AsyncImagesService(driver)
        self.infrastructure = async_execution.AsyncInfrastructureService(driver)
        self.models = async_control.AsyncModelsService(driver)
        self.teams = async_control.AsyncTeamsService(driver)
        self.tools = async_control.AsyncUserToolsService(driver)
        self.wiki = AsyncWikiService(driver, webhook_keys)
        self.workspaces = async_control.AsyncWorkspacesService(driver)

    @property
    def primitives(self) -> AsyncPrimitives:
        """Every operation of the contract under its own operation id."""
        return AsyncPrimitives(self._driver, self)

    def with_options(
        self,
        *,
        timeout: float | None = None,
        max_retries: int | None = None,
        timeouts: Timeouts | None = None,
        retry: RetryPolicy | None = None,
        reconnect: ReconnectPolicy | None = None,
    ) -> AsyncEnvaiClient:
        """A client with other settings on the same connections, keys and ledger; closing is left to this one.

        timeout: seconds for one ordinary request, in place of `timeouts.request`. max_retries: in place of that of
        `retry`. None keeps what there is.
        """
        options = self._core.options
        timeouts, retry = timeouts or options.timeouts, retry or options.retry
        if timeout is not None:
            timeouts = replace(timeouts, request=timeout)
        if max_retries is not None:
            retry = replace(retry, max_retries=max_retries)
        changes = {"timeouts": timeouts, "retry": retry, "reconnect": reconnect or options.reconnect}
        check_kinds(changes)
        other = object.__new__(type(self))
        other._transport, other._ledger, other._own_ledger = self._transport, self._ledger, None
        other._origin = self
        other._assemble(self._driver.for_core(self._core.with_options(**changes)), self._keys, self._webhook_keys)
        return other

    async def raw_response(
        self, operation: str, *, timeout: float | None = None, max_retries: int | None = None, **arguments: object
    ) -> RawResponse:
        """The answer to an operation of the contract as it came, refusals included: status, headers and body.

        `operation` is its operation id, as in `primitives`; `arguments` are those of its method, all by name.
        """
        return await self._driver.run(call_raw(self._core, operation, arguments, timeout, max_retries))

    @property
    def base_url(self) -> str:
        return self._core.options.base_url

    @property
    def ledger(self) -> Ledger:
        """Where client-tool calls are recorded; opened on first use."""
        return self._open_ledger()

    def _open_ledger(self) -> Ledger:
        if self._origin is not None:
            return self._origin._open_ledger()
        if self._ledger is None:
            self._ledger = self._own_ledger = SqliteLedger(default_ledger_path())
        return self._ledger

    async def close(self) -> None:
        """Release every connection, and the ledger if the client opened it. Of `with_options`: nothing to release."""
        if self._origin is not None:
            return
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
