"""Everything a serving process holds, opened in order and closed in reverse; and the ASGI application over it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from typing import Final

import msgspec

from crocevia.app.classic import open_classic
from crocevia.app.engines import EnginePool
from crocevia.app.gateway import open_gateway
from crocevia.app.image_jobs import open_image_jobs
from crocevia.app.money import open_money
from crocevia.app.panel import open_panel
from crocevia.app.periodic_cleanup import periodic_cleanup
from crocevia.app.responses import is_enabled, open_responses
from crocevia.app.site import site_door
from crocevia.app.store import watch_store
from crocevia.app.turns import open_turns
from crocevia.asgi.body import BodyRoom
from crocevia.asgi.http import Front
from crocevia.asgi.site import Site
from crocevia.asgi.types import Application, Receive, Scope, Send
from crocevia.config import Settings
from crocevia.core.forwarding import networks
from crocevia.core.logger import Logger
from crocevia.documents.fetch import Fetcher
from crocevia.documents.workers import Workers
from crocevia.doors.atp.door import atp_door
from crocevia.doors.atp.execution import operations
from crocevia.doors.atp.resources import TABLE as ATP_TABLE
from crocevia.doors.pepper.door import pepper_door
from crocevia.doors.responses.run import Background
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control import chat_attachments
from crocevia.runtime.control.context import open_control
from crocevia.runtime.files.workspace import WorkspaceFiles
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.image_generation.generator import ImageGenerator
from crocevia.runtime.intake import Intake
from crocevia.runtime.records import CallRecords
from crocevia.runtime.signing_keys import Signer
from crocevia.runtime.turns import Turns
from crocevia.runtime.turns.tools.mcp_servers import McpServers
from crocevia.storage import migrate
from crocevia.storage.database import Database
from crocevia.storage.home import Home, serving

_HASTE_SECONDS: Final = 2.0


class Service(msgspec.Struct, frozen=True):
    """A serving home."""

    home: Home
    database: Database
    catalogue: CatalogueHolder
    engines: EnginePool
    gateway: Gateway
    turns: Turns
    mcp: McpServers
    site: Site
    """All that it answers to, as one ASGI application."""
    background: Background | None = None
    """Answers of the responses door that nobody waits for; None: the door is off."""


@asynccontextmanager
async def open_service(settings: Settings, home: Home, log: Logger) -> AsyncIterator[Service]:
    """Open a home for serving.

    Raises GatewayError: CONFLICT if another process serves it, UNAVAILABLE if the store cannot be used.
    """
    home.create()
    with serving(home):
        migrate.ensure(home.database)
        database = Database(home.database)
        try:
            async with _running(settings, home, database, log) as service:
                yield service
        finally:
            left = await database.close()
            if left:
                log.error("records could not be written", count=left)


@asynccontextmanager
async def _running(settings: Settings, home: Home, database: Database, log: Logger) -> AsyncIterator[Service]:
    catalogue = CatalogueHolder(database, home, on_failure=_reporter(log))
    engines = EnginePool(
        catalogue,
        home.models,
        report=lambda name, error: log.warning("engine cannot be used", engine=name, error=_spoken(error)),
    )
    queue = CallRecords(database)
    signer = Signer(home)
    stack = AsyncExitStack()
    fetcher, workers = Fetcher(), Workers()
    try:
        await asyncio.to_thread(WorkspaceFiles(home.files).sweep)
        await catalogue.start()
        await stack.enter_async_context(watch_store(database, queue, log))
        money = await stack.enter_async_context(open_money(database, catalogue, signer, fetcher, log))
        gateway = await stack.enter_async_context(
            open_gateway(settings, database, catalogue, engines.get, queue, money.spend, Intake(fetcher, workers), log)
        )
        await money.start()
        engines.check_keys()
        engines.warm()
        classic = await stack.enter_async_context(open_classic(settings, database, catalogue, gateway, log))
        pepper = pepper_door(
            gateway, classic, lambda name: _model_name(catalogue, name), max_body=settings.server.max_body_bytes
        )
        generator = ImageGenerator(gateway, engines.get)
        images = await stack.enter_async_context(
            open_image_jobs(database, home, catalogue, generator, signer, fetcher, log)
        )
        control = open_control(database, home, catalogue, images=images, limits=settings.limits, workers=workers)
        cleanups = (lambda: chat_attachments.drop_expired(control), images.drop_expired)
        await stack.enter_async_context(periodic_cleanup(cleanups, log))
        servers = McpServers(settings.mcp)
        turns = await stack.enter_async_context(open_turns(settings, control, gateway, database, servers, log))
        doors = [pepper, atp_door(control, (*ATP_TABLE, *operations(turns, control.clock)))]
        background = None
        if is_enabled(settings):
            responses, background = await stack.enter_async_context(
                open_responses(settings, control, gateway, turns.runs, engines.get, log)
            )
            doors.append(responses)
        doors.append(site_door(lambda: not gateway.draining and database.failing_since is None))
        site = Site(doors, _front(settings))
        site.mount("/panel", open_panel(settings, control, gateway, turns, servers, money.redeliver, engines.get, site))
        yield Service(home, database, catalogue, engines, gateway, turns, servers, site, background)
    finally:
        await catalogue.close()
        await stack.aclose()
        await fetcher.close()
        await engines.close()
        queue.flush()


def _front(settings: Settings) -> Front:
    server = settings.server
    return Front(
        ping_seconds=settings.calls.ping_seconds,
        cors_origins=server.cors_origins,
        proxies=networks(server.trusted_proxies),
        public_url=server.public_url,
        room=BodyRoom(server.bodies_in_flight_bytes),
    )


def _model_name(catalogue: CatalogueHolder, project: str) -> str | None:
    found = catalogue.current.projects.get(project)
    return found.model if found is not None else None


def _reporter(log: Logger) -> Callable[[Exception | None], None]:
    def report(error: Exception | None) -> None:
        if error is None:
            log.info("the catalogue is followed again")
        else:
            log.error("the catalogue cannot be read; the last one stays", error=_spoken(error))

    return report


def _spoken(error: Exception) -> str:
    return str(error) if type(error).__module__.startswith("crocevia") else type(error).__name__


class App:
    """The ASGI application. It opens the service when the server starts it, and closes it when the server ends."""

    def __init__(self, opening: AbstractAsyncContextManager[Service]) -> None:
        self._site: Application = Site((site_door(lambda: False),))
        self._opening = opening
        self.service: Service | None = None
        self.failure: Exception | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._site(scope, receive, send)

    def drain(self, grace: float) -> None:
        """Admit nothing more and let what runs come to an end, within `grace` seconds."""
        if self.service is not None:
            self.service.gateway.drain(grace)
            self.service.turns.drain(grace)

    @property
    def is_busy(self) -> bool:
        """A call or a turn is under way."""
        return self.service is not None and (self.service.gateway.active > 0 or self.service.turns.is_busy)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.service = await self._opening.__aenter__()
            self._site = self.service.site
        except Exception as error:
            self.failure = error
            await send({"type": "lifespan.startup.failed", "message": ""})
            return
        await send({"type": "lifespan.startup.complete"})
        try:
            await receive()
        except asyncio.CancelledError:  # a second signal: in haste, but what is known is still written
            with suppress(TimeoutError):
                async with asyncio.timeout(_HASTE_SECONDS):
                    await self._opening.__aexit__(None, None, None)
            raise
        await self._opening.__aexit__(None, None, None)
        await send({"type": "lifespan.shutdown.complete"})
