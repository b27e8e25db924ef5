"""Files of a workspace."""

from __future__ import annotations

import unicodedata

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import NO_CONTENT, Operation, Response, Stream, data
from crocevia.doors.atp.caller import Request
from crocevia.doors.atp.delivery import attachment, deliver, deliver_bytes
from crocevia.doors.atp.wire import files as wire
from crocevia.runtime.control import files

_FILES = "/workspaces/{workspace_id}/files"
_BODY = 8 * 1024 * 1024  # 1 MiB of text, however it is escaped


def _workspace(request: Request) -> str:
    return request.params["workspace_id"]


def _shown(path: str) -> str:
    return unicodedata.normalize("NFC", path)


async def index(request: Request) -> Response:
    path = read_query(request, wire.PathQuery).path
    entry, content, entries = await files.read(
        request.caller.control, request.caller.user_id, _workspace(request), path
    )
    return data(wire.file(entry, _shown(path), content, entries))


async def create(request: Request) -> Response:
    body: wire.WorkspaceFileRequest = request.body
    made = await files.create(
        request.caller.control, request.caller.user_id, _workspace(request), body.path, body.content
    )
    return data(wire.file(made, _shown(body.path)), 201)


async def update(request: Request) -> Response:
    body: wire.WorkspaceFileRequest = request.body
    changed = await files.replace(
        request.caller.control, request.caller.user_id, _workspace(request), body.path, body.content
    )
    return data(wire.file(changed, _shown(body.path)))


async def delete(request: Request) -> Response:
    query = read_query(request, wire.DeleteQuery)
    await files.delete(request.caller.control, request.caller.user_id, _workspace(request), query.path, query.recursive)
    return NO_CONTENT


async def download(request: Request) -> Stream:
    path = read_query(request, wire.PathQuery).path
    entry, file = await files.open_file(request.caller.control, request.caller.user_id, _workspace(request), path)
    return deliver(file, attachment(entry.name, wire.media_type(entry.name), entry.size), entry.size)


async def convert(request: Request) -> Stream:
    body: wire.ConvertToPdfRequest = request.body
    name, made = await files.pdf(request.caller.control, request.caller.user_id, _workspace(request), body.path)
    return deliver_bytes(made, attachment(name, "application/pdf", len(made)))


OPERATIONS = (
    Operation(
        "indexWorkspaceFiles",
        "GET",
        _FILES,
        index,
        "A file with its content, or a folder with at most 500 entries. `/` is the workspace itself.",
        result=wire.WorkspaceFile,
        wrapped=True,
        query=wire.PathQuery,
    ),
    Operation(
        "createWorkspaceFile",
        "POST",
        _FILES,
        create,
        "Create a file, and the folders on the way to it.",
        body=wire.WorkspaceFileRequest,
        result=wire.WorkspaceFile,
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
        body=wire.WorkspaceFileRequest,
        result=wire.WorkspaceFile,
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
        query=wire.DeleteQuery,
    ),
    Operation(
        "downloadWorkspaceFile",
        "GET",
        f"{_FILES}/download",
        download,
        "The bytes of a file.",
        query=wire.PathQuery,
        produces="application/octet-stream",
    ),
    Operation(
        "convertWorkspaceFileToPdf",
        "POST",
        f"{_FILES}/convert-to-pdf",
        convert,
        "A .md, .markdown or .txt file as a PDF.",
        body=wire.ConvertToPdfRequest,
        per_minute=30,
        produces="application/pdf",
    ),
)
