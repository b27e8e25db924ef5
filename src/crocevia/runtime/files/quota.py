"""How full a workspace is: counted once by walking it, then kept in step with what is done to it.

What somebody else does on the disk is noticed when the workspace seems full: nobody is refused without a fresh look.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.limits import Quotas, spoken

_STRIPES: Final = 64


class Held(msgspec.Struct):
    """entries: files and folders below the workspace's own."""

    entries: int = 0
    bytes: int = 0


class WorkspaceQuota:
    """root: `files/` of the home. One for all who write below it."""

    def __init__(self, root: Path, limits: Quotas) -> None:
        self._root = root
        self._limits = limits
        self._held: dict[str, Held] = {}
        self._locks = [threading.Lock() for _ in range(_STRIPES)]

    @contextmanager
    def change(self, workspace_id: str) -> Iterator[Held]:
        """Alone with the workspace. What is yielded is by how much it changes; it counts if nothing is raised."""
        with self._locks[hash(workspace_id) % _STRIPES]:
            change = Held()
            yield change
            held = self._of(workspace_id)
            held.entries += change.entries
            held.bytes += change.bytes

    def grow(self, workspace_id: str, change: Held, entries: int, size: int) -> None:
        """Add to a change, before it is made. Raises GatewayError(INVALID_REQUEST) above the limits."""
        if self._refused(workspace_id, entries, size) is not None:
            del self._held[workspace_id]
            refused = self._refused(workspace_id, entries, size)
            if refused is not None:
                raise refused
        change.entries += entries
        change.bytes += size

    def _refused(self, workspace_id: str, entries: int, size: int) -> GatewayError | None:
        held, limits = self._of(workspace_id), self._limits
        if entries > 0 and held.entries + entries > limits.workspace_entries:
            return GatewayError(Reason.WORKSPACE_ENTRIES, param="path", limit=limits.workspace_entries)
        if size > 0 and held.bytes + size > limits.workspace_bytes:
            return GatewayError(Reason.WORKSPACE_BYTES, param="content", limit=spoken(limits.workspace_bytes))
        return None

    def _of(self, workspace_id: str) -> Held:
        held = self._held.get(workspace_id)
        if held is None:
            held = self._held[workspace_id] = measure(self._root / workspace_id)
        return held


def measure(folder: Path) -> Held:
    """What is below a folder; nothing if it is not there."""
    held, todo = Held(), [os.fspath(folder)]
    while todo:
        try:
            with os.scandir(todo.pop()) as items:
                for item in items:
                    held.entries += 1
                    if item.is_dir(follow_symlinks=False):
                        todo.append(item.path)
                    else:
                        held.bytes += item.stat(follow_symlinks=False).st_size
        except OSError:  # it went away, or is no folder any more
            continue
    return held
