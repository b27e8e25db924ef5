"""The door over a real store with two users who must not notice each other; every answer is held to the contract."""

from __future__ import annotations

import asyncio
import hashlib
import json
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from crocevia.asgi.http import Front, Operation
from crocevia.asgi.site import Site
from crocevia.doors.atp.door import atp_door
from crocevia.doors.atp.resources import TABLE
from crocevia.runtime.catalogue import CatalogueHolder
from crocevia.runtime.control.context import Control, open_control
from crocevia.runtime.control.init import Initialised, init
from crocevia.storage import users
from crocevia.storage.database import Database, Transaction
from crocevia.storage.home import Home

from .contract import check_answer

VERSION = "x-envai-contract-version"
THREE = {VERSION: "3"}


@dataclass
class Reply:
    """One answer. headers: every line, names in lower case."""

    status: int
    headers: list[tuple[str, str]]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw) if self.raw else None

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def details(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.json["error"]["details"]
        return found

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    def header(self, name: str) -> str:
        (only,) = self.all(name)
        return only


@dataclass
class User:
    """Somebody with a key."""

    id: str
    key: str


@dataclass
class House:
    door: Site
    control: Control
    made: Initialised
    ada: User
    eve: User
    strict: bool = True
    busy: bool = False  # something goes on in the background of what is asked
    refused: int = field(default=0)

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "",
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        raw: list[bytes] | None = None,
    ) -> Reply:
        """Ask as Ada, or with `key` (None: without one). What is refused must have changed nothing."""
        before = await self.settled()
        reply = await self.ask(method, path, body, key=key, headers=headers, raw=raw)
        if self.strict:
            self.check(method, path, reply)
        if reply.status >= 400:
            self.refused += 1
            assert await self.stored() == before, f"{method} {path} was refused and changed something"
        return reply

    def check(self, method: str, path: str, reply: Reply) -> None:
        """The promises of every answer."""
        assert reply.header("cache-control") == "no-store"
        assert reply.header("x-request-id")
        assert len(reply.all(VERSION)) <= 1
        version = 2 if reply.all(VERSION) == ["2"] else 3
        check_answer(method, path.partition("?")[0].removeprefix("/api/v1"), reply.status, reply.json, version)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "",
        headers: dict[str, str] | list[tuple[str, str]] | None = None,
        raw: list[bytes] | None = None,
    ) -> Reply:
        pieces = raw if raw is not None else ([] if body is None else [json.dumps(body).encode()])
        lines = list(headers.items()) if isinstance(headers, dict) else list(headers or [])
        if key is not None:
            lines.append(("authorization", f"Bearer {key or self.ada.key}"))
        if pieces and not any(name == "content-length" for name, _ in lines):
            lines.append(("content-length", str(sum(map(len, pieces)))))
        target, _, query = (path if path.startswith(("/api/", "/.well-known/")) else f"/api/v1{path}").partition("?")
        scope = {
            "type": "http",
            "client": ("192.0.2.7", 4000),
            "method": method,
            "path": target,
            "raw_path": target.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in lines],
        }
        return await exchange(self.door, scope, pieces)

    async def settled(self) -> str:
        """`stored`, once work behind the answers (pictures being painted) has stopped changing it; at most 3 s."""
        last = await self.stored()
        for _ in range(50):
            await asyncio.sleep(0.05 if self.busy else 0)
            now = await self.stored()
            if now == last:
                break
            last = now
        return last

    async def stored(self) -> str:
        """A digest of everything in the store."""
        return await self.control.database.read(_digest)


async def exchange(door: Any, scope: dict[str, Any], pieces: list[bytes]) -> Reply:
    waiting = [
        {"type": "http.request", "body": piece, "more_body": index + 1 < len(pieces)}
        for index, piece in enumerate(pieces)
    ] or [{"type": "http.request", "body": b"", "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await door(scope, receive, send)
    start, *rest = sent
    headers = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
    return Reply(start["status"], headers, b"".join(message.get("body", b"") for message in rest))


def site_of(control: Control, table: Sequence[Operation] = TABLE, front: Front | None = None) -> Site:
    """The door alone."""
    return Site((atp_door(control, table),), front or Front())


@asynccontextmanager
async def house(**changes: Any) -> AsyncIterator[House]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        copies, made = _initialised()
        for name, content in copies:
            (home.path / name).parent.mkdir(parents=True, exist_ok=True)
            (home.path / name).write_bytes(content)
        database = Database(home.database)
        catalogue = CatalogueHolder(database, home)
        try:
            await catalogue.refresh()
            control = open_control(database, home, catalogue)
            eve = await database.write(lambda tx: users.add(tx, "eve", "member", 0.0))
            _, key = await control.keys.create(eve, "eve", "30d")
            yield House(site_of(control), control, made, User(made.user_id, made.api_key), User(eve, key), **changes)
        finally:
            await catalogue.close()
            await database.close()


@cache
def _initialised() -> tuple[list[tuple[str, bytes]], Initialised]:
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder) / "home")
        made = init(home, "http://127.0.0.1:8111")
        found = [path for path in home.path.rglob("*") if path.is_file() and path.suffix not in (".db-wal", ".db-shm")]
        return [(str(path.relative_to(home.path)), path.read_bytes()) for path in found], made


def _digest(tx: Transaction) -> str:
    names = [row[0] for row in tx.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1")]
    rows = [(name, tx.connection.execute(f"SELECT * FROM {name}").fetchall()) for name in names]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def live(work: Any, timeout: float = 30) -> Any:
    """Run `work(house)` to its end."""

    async def bounded() -> Any:
        async with asyncio.timeout(timeout), house() as place:
            return await work(place)

    return asyncio.run(bounded())
