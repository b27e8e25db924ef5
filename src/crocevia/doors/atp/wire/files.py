"""Workspace files on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.doors.atp.wire.common import Request, moment_or_none
from crocevia.runtime.control import files as control

Path = Annotated[str, Meta(min_length=1, max_length=1024)]

# By ending; `application/octet-stream` for the rest.
TYPES: Final = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "txt": "text/plain",
    "csv": "text/csv",
    "html": "text/html",
    "htm": "text/html",
    "xml": "application/xml",
    "json": "application/json",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "pdf": "application/pdf",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tar": "application/x-tar",
}


class WorkspaceFileRequest(Request, frozen=True, kw_only=True):
    path: Path
    content: Annotated[str, Meta(min_length=1)]


class ConvertToPdfRequest(Request, frozen=True, kw_only=True):
    path: Path


class PathQuery(Request, frozen=True, kw_only=True):
    path: Path


class DeleteQuery(Request, frozen=True, kw_only=True):
    path: Path
    recursive: bool = False


class WorkspaceFileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """path: without the leading slash."""

    path: str
    name: str
    type: Literal["file", "directory"]
    size: int
    modified_at: datetime | None
    mime_type: str | None


class WorkspaceFile(WorkspaceFileEntry, frozen=True, kw_only=True):
    content: str | UnsetType = UNSET
    entries: list[WorkspaceFileEntry] | UnsetType = UNSET


def media_type(name: str) -> str:
    """By the ending of a name."""
    return TYPES.get(name.rpartition(".")[2].lower(), "application/octet-stream")


def entry(value: control.Entry, path: str) -> WorkspaceFileEntry:
    """As the wire shows what is at `path`."""
    return WorkspaceFileEntry(**_described(value, path))


def file(
    value: control.Entry, path: str, content: str | None = None, entries: list[control.Entry] | None = None
) -> WorkspaceFile:
    """As the wire shows what is at `path`, with what it holds."""
    top = path.rstrip("/")
    return WorkspaceFile(
        **_described(value, path),
        content=UNSET if content is None else content,
        entries=UNSET if entries is None else [entry(item, f"{top}/{item.name}") for item in entries],
    )


def _described(value: control.Entry, path: str) -> dict[str, Any]:
    return {
        "path": path.lstrip("/"),
        "name": value.name,
        "type": "directory" if value.folder else "file",
        "size": value.size,
        "modified_at": moment_or_none(value.modified_at),
        "mime_type": None if value.folder else media_type(value.name),
    }
