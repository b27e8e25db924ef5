from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from pathlib import Path

import pytest

from crocevia.core.errors import GatewayError
from crocevia.runtime import catalogue
from crocevia.runtime.catalogue import Catalogue, CatalogueHolder, ProjectKey, changed_engines, digest, load
from crocevia.runtime.control.apply import apply
from crocevia.runtime.control.declarations import parse
from crocevia.runtime.control.init import Initialised, init
from crocevia.storage.database import Database, Transaction, immediate
from crocevia.storage.home import Home
from tests.aio import run

PROJECT = "[[projects]]\nname = 'p'\nmodel = 'Pepper mini'\nkey = '{key}'\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Home, Initialised]:
    home = Home(tmp_path_factory.mktemp("made") / "home")
    return home, init(home, "http://127.0.0.1:8111")


@pytest.fixture
def home(tmp_path: Path, made: tuple[Home, Initialised]) -> Home:
    shutil.copytree(made[0].path, tmp_path / "home")
    return Home(tmp_path / "home")


async def changed(holder: CatalogueHolder) -> Catalogue:
    """The next catalogue."""
    swapped: asyncio.Future[Catalogue] = asyncio.get_running_loop().create_future()
    holder.subscribe(lambda before, after: swapped.done() or swapped.set_result(after))
    return await swapped


def test_what_another_process_applies_is_live_within_a_second(home: Home) -> None:
    async def check() -> None:
        db = Database(home.database)
        holder = CatalogueHolder(db, home)
        await holder.start()
        old = holder.current
        assert old.owner_of(b"first-key") is None
        waiting = asyncio.ensure_future(changed(holder))
        await asyncio.sleep(0)
        apply(home, parse(PROJECT.format(key="first-key").encode()))
        began = time.monotonic()
        new = await waiting
        assert time.monotonic() - began < 1.0
        assert holder.current is new
        assert new.owner_of(b"first-key") is not None
        assert old.owner_of(b"first-key") is None, "a running call keeps the catalogue it started with"
        waiting = asyncio.ensure_future(changed(holder))
        await asyncio.sleep(0)
        apply(home, parse(PROJECT.format(key="second-key").encode()))
        await waiting
        assert holder.current.owner_of(b"first-key") is None
        assert holder.current.owner_of(b"second-key") is not None
        await holder.close()
        await db.close()

    run(check())


def test_a_change_that_cannot_be_read_changes_nothing_and_is_told_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Exception | None] = []
    tries: list[int] = []

    def counted(tx: Transaction, home: Home) -> Catalogue:
        tries.append(1)
        return load(tx, home)

    monkeypatch.setattr(catalogue, "load", counted)

    async def check() -> None:
        db = Database(home.database)
        holder = CatalogueHolder(db, home, poll_seconds=0.01, on_failure=told.append)
        await holder.start()
        before = holder.current
        with immediate(home.database) as tx:
            tx.connection.execute("UPDATE engines SET spec = '{\"name\": 1}'")
            tx.connection.execute("UPDATE meta SET value = '77' WHERE key = 'catalogue_revision'")
        while not told:
            await asyncio.sleep(0.01)
        failed = len(tries)
        while len(tries) < failed + 3:
            await asyncio.sleep(0.01)
        assert holder.current is before
        assert len(told) == 1
        with immediate(home.database) as tx:
            tx.connection.execute('UPDATE engines SET spec = \'{"name":"embedded","kind":"scripted"}\'')
        while len(told) < 2:
            await asyncio.sleep(0.01)
        assert told[1] is None
        assert holder.current.engines["embedded"].kind == "scripted"
        await holder.close()
        await db.close()

    run(check())


def test_a_first_load_that_fails_is_an_error(home: Home) -> None:
    with sqlite3.connect(home.database) as connection:
        connection.execute("UPDATE models SET spec = 'nonsense'")
    connection.close()

    async def check() -> None:
        db = Database(home.database)
        with pytest.raises(GatewayError):
            await CatalogueHolder(db, home).start()
        await db.close()

    run(check())


def test_keys_are_of_one_project_and_end_at_their_hour() -> None:
    secret = b"s" * 32
    spec = parse(b"[[projects]]\nname = 'p'\nmodel = 'm'\n[[projects]]\nname = 'q'\nmodel = 'm'").over({}).projects
    catalogue = Catalogue(
        revision=1,
        secret=secret,
        projects={project.name: project for project in spec},
        keys={
            digest(secret, b"ends"): ProjectKey("p", 100.0),
            digest(secret, b"lasts"): ProjectKey("p"),
            digest(secret, b"other"): ProjectKey("q"),
            digest(secret, b"gone"): ProjectKey("r"),
        },
    )
    table = {
        (b"ends", 99.9): "p",
        (b"ends", 100.0): None,
        (b"lasts", 1e12): "p",
        (b"other", 0.0): "q",
        (b"gone", 0.0): None,
        (b"", 0.0): None,
        (b"last", 0.0): None,
        ("lastsé".encode("latin-1"), 0.0): None,
    }
    for (key, now), project in table.items():
        owner = catalogue.owner_of(key, now=now)
        assert (owner.name if owner is not None else None) == project, (key, now)


def test_an_engine_changes_with_its_declaration_or_its_stored_key() -> None:
    one, two = (
        parse(b"[[engines]]\nname = 'a'\nkind = 'llama'\n[[engines]]\nname = 'b'\nkind = 'llama'").over({}).engines
    )
    before = Catalogue(revision=1, engines={"a": one, "b": two}, engine_keys={"a": "x"})
    assert changed_engines(before, Catalogue(revision=2, engines=before.engines, engine_keys={"a": "x"})) == set()
    assert changed_engines(before, Catalogue(revision=2, engines=before.engines, engine_keys={"a": "y"})) == {"a"}
    assert changed_engines(before, Catalogue(revision=2, engines={"a": one}, engine_keys={"a": "x"})) == {"b"}


def test_a_representation_shows_no_key() -> None:
    assert "canary" not in repr(Catalogue(revision=1, secret=b"canary", engine_keys={"a": "canary"}))
