from __future__ import annotations

from pathlib import Path

import pytest

from crocevia.storage.migrate import migrate


@pytest.fixture(scope="session")
def fresh_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A migrated, empty database: made once, copied by tests."""
    path = tmp_path_factory.mktemp("fresh") / "crocevia.db"
    migrate(path)
    return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path, fresh_database: bytes) -> Path:
    path = tmp_path / "crocevia.db"
    path.write_bytes(fresh_database)
    return path
