from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from crocevia.core.errors import Code, GatewayError
from crocevia.storage.database import connect
from crocevia.storage.migrate import configuration, current, ensure
from crocevia.storage.schema import SCHEMA, metadata


def test_migrations_build_exactly_the_declared_tables(store: Path) -> None:
    engine = create_engine("sqlite://", creator=lambda: connect(store))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_the_declared_version_is_the_newest_migration() -> None:
    assert ScriptDirectory.from_config(configuration()).get_current_head() == SCHEMA


def test_a_fresh_file_is_created_by_a_child_and_then_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "crocevia.db"
    assert current(path) is None
    ensure(path)
    assert current(path) == SCHEMA
    before = path.read_bytes()
    ensure(path)
    assert path.read_bytes() == before


def test_a_database_of_a_newer_program_is_refused_and_left_as_it_is(store: Path) -> None:
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(GatewayError) as caught:
        ensure(store)
    assert caught.value.code is Code.UNAVAILABLE
    assert caught.value.message.reason == "schema_newer"
    assert current(store) == "9999"


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "crocevia.db"
    path.write_bytes(b"this is a shopping list, not a database" * 50)
    with pytest.raises(GatewayError) as caught:
        ensure(path)
    assert caught.value.code is Code.UNAVAILABLE


def test_reading_the_version_imports_neither_alembic_nor_an_engine(store: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from crocevia.storage import migrate\n"
        "migrate.ensure(Path(sys.argv[1]))\n"
        "print([name for name in ('alembic', 'mako', 'genai_prices', 'PIL', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(store)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
