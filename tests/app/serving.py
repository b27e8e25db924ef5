"""A whole server in this loop: a home, real sockets, a scripted model, and a client that can misbehave."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import structlog

from crocevia.app.protocol import Protocol, listen
from crocevia.app.server import Server
from crocevia.app.service import App, Service, open_service
from crocevia.config import Calls, Settings
from crocevia.core.catalogue import EngineSpec, ModelSpec, ProjectSpec
from crocevia.runtime.catalogue import digest
from crocevia.storage import declared, meta, migrate, project_keys
from crocevia.storage.database import Database, Transaction
from crocevia.storage.home import Home, key_secret
from crocevia.storage.record_queries import CallFilter, page

KEY = "chiave"


class FastStall(Protocol):
    """Gives a stalled reader up after a moment."""

    stall_seconds = 0.5


@dataclass
class Place:
    """A running server: `service` inside, `port` outside."""

    port: int
    app: App
    server: Server

    @property
    def service(self) -> Service:
        assert self.app.service is not None
        return self.app.service

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection, aborted at the end of the block."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()
            with suppress(OSError):
                await writer.wait_closed()

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own, read to the end."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.open() as (reader, writer):
            writer.write(request(path, raw, **headers))
            return await read_answer(reader)

    async def record(self) -> Any:
        """The newest settled record."""
        while True:
            rows = await self.service.database.read(lambda tx: page(tx, CallFilter(), 1))
            if rows and rows[0].settled_at is not None:
                return rows[0]


def request(path: str, body: bytes, method: str = "POST", **headers: str) -> bytes:
    named = {"host": "x", "x-pepper-key": KEY, "x-pepper-project": "casa", "content-length": str(len(body))}
    lines = [f"{name}: {value}\r\n" for name, value in (named | headers).items() if value]
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode() + body


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    if "content-length" in headers:
        return int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)
    return int(head[0].split()[1]), headers, body


@cache
def empty_database() -> bytes:
    """A migrated database without rows; migrating takes a second, copying nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "crocevia.db"
        migrate.migrate(path)
        return path.read_bytes()


def declare(home: Home, engines: tuple[EngineSpec, ...], models: tuple[ModelSpec, ...], **project: Any) -> None:
    """Write a catalogue with the project `casa`, whose key is `chiave`."""
    home.create()
    home.database.write_bytes(empty_database())
    secret = key_secret(home, create=True)
    casa = ProjectSpec(**({"name": "casa", "mode": "agent", "model": models[0].name} | project))

    def work(tx: Transaction) -> None:
        for spec in (*engines, *models, casa):
            declared.save(tx, spec, 0.0)
        project_keys.add(tx, digest(secret, KEY.encode()).hex(), "casa", KEY[:3], 0.0)
        meta.bump_revision(tx)

    async def write() -> None:
        database = Database(home.database)
        await database.write(work)
        await database.close()

    asyncio.run(write())


BRAIN = ModelSpec(name="Pepper 7", engine="scripted")


@asynccontextmanager
async def serving(
    *,
    engine: EngineSpec | None = None,
    model: ModelSpec = BRAIN,
    calls: Calls | None = None,
    protocol: type[Protocol] = Protocol,
    **project: Any,
) -> AsyncIterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        spec = engine or EngineSpec(name="scripted", kind="scripted")
        await asyncio.to_thread(declare, home, (spec,), (model,), **project)
        settings = Settings(calls=calls or Calls())
        app = App(open_service(settings, home, structlog.get_logger()))
        ready = asyncio.Event()
        grace = settings.calls.drain_seconds
        server = Server(
            app,
            on_ready=ready.set,
            on_drain=lambda: app.drain(grace),
            is_busy=lambda: app.is_busy,
            grace=grace,
            protocol=protocol,
        )
        listener = listen("127.0.0.1", 0)
        place = Place(listener.getsockname()[1], app, server)
        task = asyncio.ensure_future(server.serve(sockets=[listener]))
        try:
            await asyncio.wait({task, asyncio.ensure_future(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
            assert not task.done(), app.failure
            yield place
        finally:
            if not task.done():
                server.stop()
                await task
            listener.close()
