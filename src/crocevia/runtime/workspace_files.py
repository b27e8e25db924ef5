"""A workspace's own files: the wiki, skills and MEMORY.md that its agents read and write, below `files/<workspace>`.

Plain blocking functions: call them off the event loop. Paths are absolute inside the workspace.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from crocevia.core.errors import Code, GatewayError, say

MAX_PATH: Final = 1024
MAX_BYTES: Final = 1_048_576
MAX_LINES: Final = 1000
MAX_MEMORY: Final = 12_000  # characters of /MEMORY.md
MAX_ENTRIES: Final = 500
MEMORY: Final = "/MEMORY.md"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One name in a folder. size: bytes; 0 for folders."""

    name: str
    folder: bool
    size: int


class WorkspaceFiles:
    """root: `files/` of the home."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, workspace_id: str, path: str) -> str:
        """The text of a file. Raises GatewayError: INVALID_REQUEST for a path that cannot be, NOT_FOUND."""
        place = self._place(workspace_id, path)
        try:
            if place.stat().st_size > MAX_BYTES:
                raise GatewayError(Code.TOO_LARGE, say("file_too_large", limit=MAX_BYTES))
            return place.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise GatewayError(Code.INVALID_REQUEST, say("file_not_text")) from None
        except OSError:
            raise GatewayError(Code.NOT_FOUND, say("object_missing", kind="file")) from None

    def entries(self, workspace_id: str, path: str) -> list[Entry]:
        """At most 500 names of a folder, sorted. Raises GatewayError: INVALID_REQUEST, NOT_FOUND."""
        place = self._place(workspace_id, path)
        try:
            found = sorted(os.scandir(place), key=lambda item: item.name)
        except OSError:
            if path == "/":
                return []
            raise GatewayError(Code.NOT_FOUND, say("object_missing", kind="folder")) from None
        return [
            Entry(name=item.name, folder=item.is_dir(), size=0 if item.is_dir() else item.stat().st_size)
            for item in found[:MAX_ENTRIES]
            if not item.name.startswith(".")
        ]

    def write(self, workspace_id: str, path: str, text: str) -> bool:
        """Replace or create a file at once; whether it is new. Raises GatewayError: INVALID_REQUEST, CONFLICT."""
        place = self._place(workspace_id, path)
        check_text(path, text)
        new = not place.exists()
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            temporary = place.with_name(f".{secrets.token_hex(8)}")
            try:
                with temporary.open("w", encoding="utf-8", newline="") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                temporary.replace(place)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError:  # a file where a folder should be, or the other way round
            raise GatewayError(Code.CONFLICT, say("file_in_the_way")) from None
        return new

    def search(self, workspace_id: str, below: str, words: str, most: int = 20) -> list[tuple[str, str]]:
        """(path, line) of lines that hold `words`, whatever the case, in text files below a folder."""
        wanted = words.casefold()
        found: list[tuple[str, str]] = []
        for path in self._walk(workspace_id, below):
            try:
                text = self.read(workspace_id, path)
            except GatewayError:
                continue
            found += [(path, line.strip()[:300]) for line in text.splitlines() if wanted in line.casefold()]
            if len(found) >= most:
                break
        return found[:most]

    def _walk(self, workspace_id: str, below: str) -> Iterator[str]:
        top = self._place(workspace_id, below)
        home = self._root / workspace_id
        for folder, folders, files in os.walk(top):
            folders.sort()
            for name in sorted(files):
                if not name.startswith("."):
                    yield f"/{(Path(folder) / name).relative_to(home).as_posix()}"

    def _place(self, workspace_id: str, path: str) -> Path:
        check_path(path)
        home = self._root / workspace_id
        place = home.joinpath(*path.split("/")[1:]) if path != "/" else home
        # Nothing in here makes links, but whoever has the disk may: they lead nowhere.
        if not place.resolve().is_relative_to(home.resolve()):
            raise GatewayError(Code.INVALID_REQUEST, say("path_wrong"), param="path")
        return place


def check_path(path: str) -> None:
    """Raises GatewayError(INVALID_REQUEST) for a path that no workspace has."""
    parts = path.split("/")
    wrong = (
        not path.startswith("/")
        or len(path) > MAX_PATH
        or "\\" in path
        or any(ord(character) < 32 or ord(character) == 127 for character in path)
        or (path != "/" and any(part in ("", ".", "..") or part.startswith(".") for part in parts[1:]))
    )
    if wrong:
        raise GatewayError(Code.INVALID_REQUEST, say("path_wrong"), param="path")


def check_text(path: str, text: str) -> None:
    """Raises GatewayError(INVALID_REQUEST) for a content that no file may have."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise GatewayError(Code.INVALID_REQUEST, say("file_not_text"), param="content") from None
    if not text or size > MAX_BYTES or text.count("\n") >= MAX_LINES + text.endswith("\n"):
        raise GatewayError(Code.INVALID_REQUEST, say("file_limits", lines=MAX_LINES), param="content")
    if path == MEMORY and len(text) > MAX_MEMORY:
        raise GatewayError(Code.INVALID_REQUEST, say("memory_limit", limit=MAX_MEMORY), param="content")
