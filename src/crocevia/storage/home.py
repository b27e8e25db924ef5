"""The folder that holds everything a server has: where things are, its secrets, and who is serving it."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

import msgspec

from crocevia.core.errors import GatewayError, Reason

_ENGINE_KEYS: Final = "engines.json"
_DIGEST_SECRET: Final = "digest.secret"  # noqa: S105  # the name of a file


class Home(msgspec.Struct, frozen=True):
    """Paths only; nothing is created by asking."""

    path: Path

    @property
    def database(self) -> Path:
        return self.path / "crocevia.db"

    @property
    def settings(self) -> Path:
        return self.path / "crocevia.toml"

    @property
    def files(self) -> Path:
        return self.path / "files"

    @property
    def models(self) -> Path:
        return self.path / "models"

    @property
    def keys(self) -> Path:
        return self.path / "keys"

    @property
    def lock_file(self) -> Path:
        return self.path / "serve.lock"

    def create(self) -> None:
        """Make the folders, closed to others. Raises OSError."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.keys.mkdir(mode=0o700, exist_ok=True)
        for folder in (self.files, self.models):
            folder.mkdir(exist_ok=True)


def write_secret(path: Path, value: bytes) -> None:
    """Replace `path` with `value` at once and durably, mode 0600. Raises OSError."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def key_secret(home: Home, *, create: bool = False) -> bytes:
    """The secret that digests of keys are made with; `init` creates it.

    Raises GatewayError(UNAVAILABLE) if it is not there: a new one would silently disown every key. OSError from
    writing it.
    """
    path = home.keys / _DIGEST_SECRET
    if create and not path.exists():
        write_secret(path, secrets.token_bytes(32))
    try:
        return path.read_bytes()
    except OSError:
        raise GatewayError(Reason.KEY_FILE_UNREADABLE, file=_DIGEST_SECRET) from None


def engine_keys(home: Home) -> dict[str, str]:
    """Engines' stored keys by engine name. Raises GatewayError(UNAVAILABLE) if the file cannot be read."""
    try:
        return msgspec.json.decode((home.keys / _ENGINE_KEYS).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError):
        raise GatewayError(Reason.KEY_FILE_UNREADABLE, file=_ENGINE_KEYS) from None


def write_engine_keys(home: Home, keys: Mapping[str, str]) -> None:
    """Replace the engines' stored keys. Raises OSError."""
    write_secret(home.keys / _ENGINE_KEYS, msgspec.json.format(msgspec.json.encode(keys)) + b"\n")


@contextmanager
def serving(home: Home) -> Iterator[None]:
    """Hold the home for this process; it is let go even if the process is killed.

    Raises GatewayError(CONFLICT) with the other process's id if somebody serves it already.
    """
    with home.lock_file.open("a+", encoding="ascii") as file:
        if not _locked(file):
            time.sleep(0.1)  # `holder` may be looking just now
            if not _locked(file):
                file.seek(0)
                raise GatewayError(Reason.HOME_IN_USE, pid=file.read().strip() or "?")
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def holder(home: Home) -> int | None:
    """The process that serves this home now, or None."""
    try:
        with home.lock_file.open("r+", encoding="ascii") as file:
            return None if _locked(file) else int(file.read().strip() or 0)
    except (OSError, ValueError):
        return None


if sys.platform == "win32":
    import msvcrt

    def _locked(file: IO[str]) -> bool:
        try:
            file.seek(1 << 20)  # far from what is written, so that others can read who holds it
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            file.seek(0)
        return True
else:
    import fcntl

    def _locked(file: IO[str]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
