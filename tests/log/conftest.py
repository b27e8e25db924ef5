from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from crocevia.log import Hub, SqliteLog
from crocevia.storage.database import Database
from crocevia.storage.migrate import migrate

Opener = Callable[[], AbstractAsyncContextManager[SqliteLog]]


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A migrated, empty database: made once, copied by tests."""
    path = tmp_path_factory.mktemp("log") / "crocevia.db"
    migrate(path)
    return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path, empty_store: bytes) -> Path:
    path = tmp_path / "crocevia.db"
    path.write_bytes(empty_store)
    return path


@pytest.fixture
def open_log(store: Path) -> Opener:
    """Opens the same store again and again, as restarted servers would."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[SqliteLog]:
        database = Database(store)
        try:
            yield SqliteLog(database, Hub())
        finally:
            await database.close()

    return opened
