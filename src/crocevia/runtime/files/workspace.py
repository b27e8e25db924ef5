"""A workspace's own files: the wiki, skills, MEMORY.md and whatever else, below `files/<workspace>`.

Plain blocking functions: call them off the event loop. Strategy: every way down begins at an open descriptor of the
workspace's folder and goes on name by name without following links, so that nothing that happens to the tree in the
meantime can lead outside. New content is written aside and put in place at once, whole.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Final

import msgspec

from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.ids import is_id
from crocevia.core.limits import Quotas
from crocevia.runtime.files.paths import INCOMING, MAX_BYTES, MAX_LINES, MAX_MEMORY, MAX_PATH, MEMORY, check_text, split
from crocevia.runtime.files.quota import Held, WorkspaceQuota, measure

__all__ = [
    "MAX_BYTES",
    "MAX_ENTRIES",
    "MAX_LINES",
    "MAX_MEMORY",
    "MAX_PATH",
    "MEMORY",
    "WorkspaceEntry",
    "WorkspaceFiles",
]

MAX_ENTRIES: Final = 500
STANDING: Final = ("skills", "wiki")  # folders of every workspace, there or not yet; they cannot be deleted
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # a FIFO must not hold us


class WorkspaceEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A file or a folder."""

    name: str
    folder: bool
    size: int
    """Bytes; 0 for folders."""
    modified_at: float | None = None
    """Unix seconds, None for a folder not there yet."""


class WorkspaceFiles:
    """root: `files/` of the home. What raises GatewayError(INVALID_REQUEST) for a path that cannot be raises
    UNAVAILABLE where the disk fails."""

    def __init__(self, root: Path, limits: Quotas | None = None) -> None:
        self._root = root
        self._quota = WorkspaceQuota(root, limits or Quotas())

    def read(self, workspace_id: str, path: str) -> str:
        """The text of a file. Raises GatewayError: INVALID_REQUEST (path, not text), NOT_FOUND, CONFLICT, TOO_LARGE."""
        entry, file = self.open(workspace_id, path)
        with file:
            if entry.size > MAX_BYTES:
                raise GatewayError(Reason.FILE_TOO_LARGE, limit=MAX_BYTES)
            data = file.read(MAX_BYTES + 1)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise GatewayError(Reason.FILE_NOT_TEXT) from None

    def open(self, workspace_id: str, path: str) -> tuple[WorkspaceEntry, IO[bytes]]:
        """A file to read from. Raises GatewayError: INVALID_REQUEST, NOT_FOUND, CONFLICT for a folder."""
        names = split(path)
        if self.stat(workspace_id, path).folder:
            raise GatewayError(Reason.FILE_IS_FOLDER)
        with self._folder(workspace_id, names[:-1]) as folder:
            try:
                descriptor = os.open(names[-1], _FILE, dir_fd=folder)
            except OSError:
                raise _missing() from None
        file = os.fdopen(descriptor, "rb")
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):  # it was swapped since we looked
            file.close()
            raise _missing()
        return _entry(names[-1], status), file

    def stat(self, workspace_id: str, path: str) -> WorkspaceEntry:
        """What is at `path`. Raises GatewayError: INVALID_REQUEST, NOT_FOUND."""
        names = split(path)
        standing = not names or (len(names) == 1 and names[0] in STANDING)
        try:
            with self._folder(workspace_id, names[:-1]) as folder:
                found = os.fstat(folder) if not names else os.stat(names[-1], dir_fd=folder, follow_symlinks=False)
        except (GatewayError, OSError):
            if standing:
                return WorkspaceEntry(name=names[-1] if names else "", folder=True, size=0)
            raise _missing() from None
        if not _is_ours(found):
            raise _missing()
        return _entry(names[-1] if names else "", found)

    def entries(self, workspace_id: str, path: str) -> list[WorkspaceEntry]:
        """At most 500 names of a folder, sorted. Raises GatewayError: INVALID_REQUEST, NOT_FOUND, CONFLICT (a file)."""
        if not self.stat(workspace_id, path).folder:
            raise GatewayError(Reason.FILE_NOT_FOLDER)
        names = split(path)
        standing = () if names else STANDING
        found = {name: WorkspaceEntry(name=name, folder=True, size=0) for name in standing}
        try:
            with self._folder(workspace_id, names) as folder, os.scandir(folder) as items:
                for item in items:
                    status = item.stat(follow_symlinks=False)
                    if _is_ours(status):
                        found[item.name] = _entry(item.name, status)
        except GatewayError:
            pass  # it is a folder that every workspace has, and nobody has written into it yet
        except OSError:
            raise _unavailable() from None
        return [found[name] for name in sorted(found)[:MAX_ENTRIES]]

    def write(self, workspace_id: str, path: str, text: str) -> bool:
        """Create or replace a file at once; whether it is new. Raises GatewayError: INVALID_REQUEST, CONFLICT."""
        try:
            self.replace(workspace_id, path, text)
        except GatewayError as error:
            if error.code is not Code.NOT_FOUND:
                raise
        else:
            return False
        self.create(workspace_id, path, text)
        return True

    def create(self, workspace_id: str, path: str, text: str) -> WorkspaceEntry:
        """A new file, with the folders it needs. Raises GatewayError: INVALID_REQUEST, CONFLICT (the name is taken)."""
        names = self._checked(path, text)
        if not names or (len(names) == 1 and names[0] in STANDING):
            raise GatewayError(Reason.FILE_IN_THE_WAY)
        with self._written(text) as aside, self._changing(workspace_id) as change:
            new = len(names) - self._depth(workspace_id, names[:-1])
            self._quota.grow(workspace_id, change, new, aside.stat().st_size)
            with self._folder(workspace_id, names[:-1], make=True) as folder:
                try:
                    os.link(aside, names[-1], dst_dir_fd=folder, follow_symlinks=False)
                    os.fsync(folder)
                except FileExistsError:
                    raise GatewayError(Reason.FILE_IN_THE_WAY) from None
                except OSError:
                    raise _unavailable() from None
        return self.stat(workspace_id, path)

    def replace(self, workspace_id: str, path: str, text: str) -> WorkspaceEntry:
        """Other content for a file. Raises GatewayError: INVALID_REQUEST, NOT_FOUND, CONFLICT (a folder)."""
        names = self._checked(path, text)
        if self.stat(workspace_id, path).folder:
            raise GatewayError(Reason.FILE_IS_FOLDER)
        with self._written(text) as aside, self._changing(workspace_id) as change:
            more = aside.stat().st_size - self.stat(workspace_id, path).size
            self._quota.grow(workspace_id, change, 0, more)
            with self._folder(workspace_id, names[:-1]) as folder:
                try:
                    os.replace(aside, names[-1], dst_dir_fd=folder)
                    os.fsync(folder)
                except OSError:
                    raise GatewayError(Reason.FILE_IN_THE_WAY) from None
        return self.stat(workspace_id, path)

    def delete(self, workspace_id: str, path: str, *, recursive: bool = False) -> None:
        """Remove a file, an empty folder, or with `recursive` a folder and all that is in it.

        Raises GatewayError: INVALID_REQUEST, NOT_FOUND, CONFLICT (not empty, or one that every workspace has).
        """
        names = split(path)
        if not names or (len(names) == 1 and names[0] in STANDING):
            raise GatewayError(Reason.FOLDER_PROTECTED)
        with self._changing(workspace_id) as change, self._folder(workspace_id, names[:-1]) as folder:
            entry = self.stat(workspace_id, path)
            try:
                if entry.folder and not recursive:
                    os.rmdir(names[-1], dir_fd=folder)
                    gone = Held()
                else:
                    gone = self._discard(names[-1], folder)
            except FileNotFoundError:
                raise _missing() from None
            except OSError:
                raise GatewayError(Reason.FOLDER_NOT_EMPTY) from None
            change.entries, change.bytes = -1 - gone.entries, -entry.size - gone.bytes

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

    def sweep(self) -> None:
        """Remove what an earlier process left unfinished."""
        shutil.rmtree(self._root / INCOMING, ignore_errors=True)

    def _walk(self, workspace_id: str, below: str) -> Iterator[str]:
        for entry in self.entries(workspace_id, below):
            path = f"{below.rstrip('/')}/{entry.name}"
            if entry.folder:
                with suppress(GatewayError):  # it went away, or its name is one that we do not take
                    yield from self._walk(workspace_id, path)
            else:
                yield path

    def _checked(self, path: str, text: str) -> tuple[str, ...]:
        names = split(path)
        check_text("/" + "/".join(names), text)
        return names

    @contextmanager
    def _written(self, text: str) -> Iterator[Path]:
        """The text in a file aside, which is gone afterwards whatever happens."""
        aside = self._aside()
        try:
            with aside.open("w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            aside.unlink(missing_ok=True)
            raise _unavailable() from None
        try:
            yield aside
        finally:
            aside.unlink(missing_ok=True)

    def _discard(self, name: str, folder: int) -> Held:
        """What was below it."""
        # Out of sight at once and whole; then piece by piece.
        aside = self._aside()
        os.rename(name, aside, src_dir_fd=folder)
        if not aside.is_dir() or aside.is_symlink():
            aside.unlink()
            return Held()
        gone = measure(aside)
        shutil.rmtree(aside, ignore_errors=True)
        return gone

    def _home(self, workspace_id: str) -> Path:
        if not is_id(workspace_id, "wsp"):  # it becomes a name on the disk
            raise _missing()
        return self._root / workspace_id

    def _changing(self, workspace_id: str) -> AbstractContextManager[Held]:
        self._home(workspace_id)
        return self._quota.change(workspace_id)

    def _depth(self, workspace_id: str, names: tuple[str, ...]) -> int:
        """How many of these folders are there already."""
        here = self._home(workspace_id)
        for depth, name in enumerate(names):
            here /= name
            if not here.is_dir():
                return depth
        return len(names)

    def _aside(self) -> Path:
        incoming = self._root / INCOMING
        try:
            incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            raise _unavailable() from None
        return incoming / secrets.token_hex(12)

    @contextmanager
    def _folder(self, workspace_id: str, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """A descriptor of a folder. Raises GatewayError: NOT_FOUND, or CONFLICT where `make` meets a file."""
        home = self._home(workspace_id)
        descriptor = -1
        try:
            if make:
                home.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(home, _FOLDER)
            for name in names:
                descriptor, above = _step(descriptor, name, make=make), descriptor
                os.close(above)
        except OSError:
            if descriptor >= 0:
                os.close(descriptor)
            raise (GatewayError(Reason.FILE_IN_THE_WAY) if make else _missing()) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _step(folder: int, name: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, mode=0o700, dir_fd=folder)
    return os.open(name, _FOLDER, dir_fd=folder)


def _entry(name: str, status: os.stat_result) -> WorkspaceEntry:
    folder = stat.S_ISDIR(status.st_mode)
    return WorkspaceEntry(name=name, folder=folder, size=0 if folder else status.st_size, modified_at=status.st_mtime)


def _is_ours(status: os.stat_result) -> bool:
    # Nothing in here makes links or devices, but whoever has the disk may: for us they are not there.
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def _missing() -> GatewayError:
    return GatewayError(Reason.FILE_NOT_FOUND)


def _unavailable() -> GatewayError:
    return GatewayError(Reason.FILES_UNAVAILABLE)
