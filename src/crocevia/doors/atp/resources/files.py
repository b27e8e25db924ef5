"""Files of a workspace."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import NO_CONTENT, Operation, Response, Stream, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.delivery import attachment, deliver, deliver_bytes
from crocevia.doors.atp.wire.common import Body, moment_or_none
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


class WorkspaceFileRequest(Body, frozen=True, kw_only=True):
    path: Path
    content: Annotated[str, Meta(min_length=1)]


class ConvertToPdfRequest(Body, frozen=True, kw_only=True):
    path: Path


class PathQuery(Body, frozen=True, kw_only=True):
    path: Path


class DeleteQuery(Body, frozen=True, kw_only=True):
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


def entry_view(value: control.WorkspaceEntry, path: str) -> WorkspaceFileEntry:
    """As the wire shows what is at `path`."""
    return WorkspaceFileEntry(**_described(value, path))


def file_view(
    value: control.WorkspaceEntry,
    path: str,
    content: str | None = None,
    entries: list[control.WorkspaceEntry] | None = None,
) -> WorkspaceFile:
    """As the wire shows what is at `path`, with what it holds."""
    top = path.rstrip("/")
    return WorkspaceFile(
        **_described(value, path),
        content=UNSET if content is None else content,
        entries=UNSET if entries is None else [entry_view(item, f"{top}/{item.name}") for item in entries],
    )


def _described(value: control.WorkspaceEntry, path: str) -> dict[str, Any]:
    return {
        "path": path.lstrip("/"),
        "name": value.name,
        "type": "directory" if value.folder else "file",
        "size": value.size,
        "modified_at": moment_or_none(value.modified_at),
        "mime_type": None if value.folder else media_type(value.name),
    }


_FILES = "/workspaces/{workspace_id}/files"
_BODY = 8 * 1024 * 1024  # 1 MiB of text, however it is escaped


def _workspace(request: Request) -> str:
    return request.params["workspace_id"]


def _shown(path: str) -> str:
    return unicodedata.normalize("NFC", path)


async def index(request: Request) -> Response:
    path = read_query(request, PathQuery).path
    entry, content, entries = await control.read(
        request.caller.control, request.caller.user_id, _workspace(request), path
    )
    return data(file_view(entry, _shown(path), content, entries))


async def create(request: Request) -> Response:
    body: WorkspaceFileRequest = request.body
    made = await control.create(
        request.caller.control, request.caller.user_id, _workspace(request), body.path, body.content
    )
    return data(file_view(made, _shown(body.path)), 201)


async def update(request: Request) -> Response:
    body: WorkspaceFileRequest = request.body
    changed = await control.replace(
        request.caller.control, request.caller.user_id, _workspace(request), body.path, body.content
    )
    return data(file_view(changed, _shown(body.path)))


async def delete(request: Request) -> Response:
    query = read_query(request, DeleteQuery)
    await control.delete(
        request.caller.control, request.caller.user_id, _workspace(request), query.path, query.recursive
    )
    return NO_CONTENT


async def download(request: Request) -> Stream:
    path = read_query(request, PathQuery).path
    entry, file = await control.open_file(request.caller.control, request.caller.user_id, _workspace(request), path)
    return deliver(file, attachment(entry.name, media_type(entry.name), entry.size), entry.size)


async def convert(request: Request) -> Stream:
    body: ConvertToPdfRequest = request.body
    name, made = await control.pdf(request.caller.control, request.caller.user_id, _workspace(request), body.path)
    return deliver_bytes(made, attachment(name, "application/pdf", len(made)))


OPERATIONS = (
    Operation(
        "indexWorkspaceFiles",
        "GET",
        _FILES,
        index,
        "A file with its content, or a folder with at most 500 entries. `/` is the workspace itself.",
        result=WorkspaceFile,
        wrapped=True,
        query=PathQuery,
    ),
    Operation(
        "createWorkspaceFile",
        "POST",
        _FILES,
        create,
        "Create a file, and the folders on the way to it.",
        body=WorkspaceFileRequest,
        result=WorkspaceFile,
        wrapped=True,
        status=201,
        max_body=_BODY,
    ),
    Operation(
        "updateWorkspaceFile",
        "PUT",
        _FILES,
        update,
        "Replace the content of a file.",
        body=WorkspaceFileRequest,
        result=WorkspaceFile,
        wrapped=True,
        max_body=_BODY,
    ),
    Operation(
        "deleteWorkspaceFile",
        "DELETE",
        _FILES,
        delete,
        "Delete a file or an empty folder; with `recursive=true` a folder and everything in it.",
        status=204,
        query=DeleteQuery,
    ),
    Operation(
        "downloadWorkspaceFile",
        "GET",
        f"{_FILES}/download",
        download,
        "The bytes of a file.",
        query=PathQuery,
        produces="application/octet-stream",
    ),
    Operation(
        "convertWorkspaceFileToPdf",
        "POST",
        f"{_FILES}/convert-to-pdf",
        convert,
        "A .md, .markdown or .txt file as a PDF.",
        body=ConvertToPdfRequest,
        per_minute=30,
        produces="application/pdf",
    ),
)
