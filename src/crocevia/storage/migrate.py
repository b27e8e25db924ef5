"""Bring a database to the newest schema. `ensure` is cheap when there is nothing to do: Alembic is imported only
by the child process that `ensure` starts, so a serving process never carries it.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from crocevia.core.errors import GatewayError, Reason
from crocevia.storage.database import connect, snapshot
from crocevia.storage.metadata import SCHEMA

if TYPE_CHECKING:
    from alembic.config import Config


def current(path: Path) -> str | None:
    """The schema version of the file, or None if it is absent or holds no tables of ours.

    Raises GatewayError(UNAVAILABLE) if it cannot be read.
    """
    if not path.exists():
        return None
    with snapshot(path) as tx:
        if not tx.connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
            return None
        found = tx.connection.execute("SELECT version_num FROM alembic_version").fetchone()
        return None if found is None else str(found[0])


def ensure(path: Path) -> None:
    """Create or migrate the database at `path` if it is not at `SCHEMA`.

    Raises GatewayError(UNAVAILABLE) if the file is from a newer program or the migration fails; a failed
    migration leaves the file as it was.
    """
    version = current(path)
    if version == SCHEMA:
        return
    if version is not None and version > SCHEMA:
        raise GatewayError(Reason.SCHEMA_NEWER, found=version, known=SCHEMA)
    path.touch(mode=0o600)
    child = subprocess.run(  # noqa: S603  # our own interpreter and module
        [sys.executable, "-m", "crocevia.storage.migrate", str(path)], capture_output=True, text=True, check=False
    )
    if child.returncode != 0 or current(path) != SCHEMA:
        reason = (child.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise GatewayError(Reason.MIGRATION_FAILED, reason=reason)


def migrate(path: Path, revision: str = "head") -> None:
    """Run the migrations in this process, all in one transaction."""
    from alembic import command
    from sqlalchemy import create_engine, event

    connect(path).close()  # WAL mode is a property of the file and cannot be set inside a transaction
    engine = create_engine("sqlite://", creator=lambda: connect(path))
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            command.upgrade(configuration(connection), revision)
    finally:
        engine.dispose()


def configuration(connection: object = None) -> Config:
    """Alembic's view of the migrations in this package."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


if __name__ == "__main__":
    migrate(Path(sys.argv[1]))
