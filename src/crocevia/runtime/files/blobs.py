"""Bytes by id: attachments, uploaded and generated pictures, below `files/` beside the workspaces.

What comes in is written aside, counted and hashed on its way, and put in its place whole. Names are ids of ours, made
here and never a caller's.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.ids import is_id
from crocevia.runtime.files.paths import INCOMING

_PREFIXES: Final = {"attachments": "att", "uploads": "upl", "artifacts": "art", "inputs": "inp"}
_BLOCK: Final = 1 << 20  # bytes gathered before a thread writes them
_HEAD: Final = 64 * 1024


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the disk that are nobody's yet."""

    aside: Path
    size: int
    sha256: str
    head: bytes
    """The first 64 KiB."""

    def __repr__(self) -> str:
        return f"Received(size={self.size})"


class Blobs:
    """root: `files/` of the home."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def receive(self, pieces: AsyncIterator[bytes]) -> Received:
        """Write what comes. Whatever `pieces` raises leaves nothing behind. Raises GatewayError(UNAVAILABLE)."""
        aside = self._root / INCOMING / secrets.token_hex(12)
        writer = _Writer(aside)
        try:
            block = bytearray()
            async for piece in pieces:
                block += piece
                if len(block) >= _BLOCK:
                    await asyncio.to_thread(writer.write, block)
                    block = bytearray()
            await asyncio.to_thread(writer.finish, block)
        except BaseException as error:
            writer.drop()
            if isinstance(error, OSError):
                raise _unavailable() from None
            raise
        return Received(aside=aside, size=writer.size, sha256=writer.hash.hexdigest(), head=bytes(writer.head))

    def keep(self, kind: str, name: str, received: Received) -> None:
        """Put bytes in their place. Blocking. Raises GatewayError(UNAVAILABLE)."""
        try:
            place = self._place(kind, name)
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            received.aside.replace(place)
            _sync(place.parent)
        except OSError:
            raise _unavailable() from None

    def put(self, kind: str, name: str, data: bytes) -> None:
        """Bytes that are in memory, in their place. Blocking. Raises GatewayError(UNAVAILABLE)."""
        writer = _Writer(self._root / INCOMING / secrets.token_hex(12))
        try:
            writer.finish(data)
        except OSError:
            writer.drop()
            raise _unavailable() from None
        self.keep(kind, name, Received(aside=writer.aside, size=writer.size, sha256="", head=b""))

    def discard(self, received: Received) -> None:
        """Bytes that nobody wants. Idempotent."""
        received.aside.unlink(missing_ok=True)

    def open(self, kind: str, name: str) -> IO[bytes]:
        """To read from. Raises GatewayError(UNAVAILABLE) if the bytes of a row are not there."""
        try:
            return self._place(kind, name).open("rb")
        except OSError:
            raise _unavailable() from None

    def remove(self, kind: str, name: str) -> None:
        """Idempotent."""
        self._place(kind, name).unlink(missing_ok=True)

    def names(self, kind: str) -> list[str]:
        """Every id of a kind that has bytes."""
        folder = self._root / kind
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def _place(self, kind: str, name: str) -> Path:
        if not is_id(name, _PREFIXES[kind]):
            raise ValueError("not one of our ids")
        return self._root / kind / name


class _Writer:
    def __init__(self, aside: Path) -> None:
        self.aside = aside
        self.size = 0
        self.hash = hashlib.sha256()
        self.head = bytearray()
        self._file: IO[bytes] | None = None

    def open(self) -> None:
        self.aside.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = self.aside.open("xb")

    def write(self, data: bytes | bytearray) -> None:
        if self._file is None:
            self.open()
        assert self._file is not None
        self.size += len(data)
        self.hash.update(data)
        if len(self.head) < _HEAD:
            self.head += data[: _HEAD - len(self.head)]
        self._file.write(data)

    def finish(self, data: bytes | bytearray) -> None:
        self.write(data)
        assert self._file is not None
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def drop(self) -> None:
        if self._file is not None:
            self._file.close()
        self.aside.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unavailable() -> GatewayError:
    return GatewayError(Reason.FILES_UNAVAILABLE)
