"""Files of workspaces and attachments of chats: view, edit, download, remove."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from typing import IO, Final
from urllib.parse import quote

import msgspec
from starlette.responses import StreamingResponse

from crocevia.core.errors import Code, GatewayError, Reason, Sentence
from crocevia.core.limits import Quotas
from crocevia.panel import samples
from crocevia.panel.render import PRIVATE
from crocevia.panel.web import Breadcrumb, Page, PageRequest, PageResponse, PageView, Redirect
from crocevia.panel.writing import note
from crocevia.runtime.control import chat_attachments, files
from crocevia.runtime.control.chat_attachments import StoredAttachment
from crocevia.runtime.control.files import WorkspaceEntry
from crocevia.runtime.files.paths import MAX_BYTES, MAX_LINES
from crocevia.storage import operator_view

MOST: Final = 500
LONGEST: Final = 200_000  # characters of a text that are shown
_FILES: Final = frozenset({Reason.FILE_NOT_TEXT, Reason.FILE_TOO_LARGE})  # why a file is not shown, though it is there
_BLOCK: Final = 1 << 18


class Space(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace and whose it is."""

    id: str
    user_id: str
    name: str
    owner: str


class Draft(msgspec.Struct, frozen=True):
    """A text that was refused, and why."""

    name: str
    text: str
    error: Sentence


class Context(msgspec.Struct, frozen=True, kw_only=True):
    spaces: list[Space]
    space: Space | None
    path: str
    """What is shown, from the workspace's root."""
    parents: list[tuple[str, str]]
    entry: WorkspaceEntry | None
    entries: list[WorkspaceEntry]
    """Of a folder."""
    text: str | None
    """Of a file; None: it is not text."""
    cut: bool
    is_file: bool
    problem: Sentence | None
    attachments: list[StoredAttachment]
    etag: str
    """Changes with the text."""
    most_bytes: int
    """Of one text."""
    most_lines: int
    """Of one text."""
    limits: Quotas
    samples: list[samples.Sample]
    draft: Draft | None = None


async def show(request: PageRequest) -> PageResponse:
    return await _page(request)


async def write(request: PageRequest) -> PageResponse:
    """Replace a text file, unless it has changed since it was shown."""
    space, path = await _space(request), _path(request)
    text = _typed(request)
    try:
        _, held, _ = await files.read(request.services.control, space.user_id, space.id, path)
        if _digest(held) != request.form.get("etag"):
            raise GatewayError(Reason.CHANGED_MEANWHILE)
        await files.replace(request.services.control, space.user_id, space.id, path, text)
    except GatewayError as error:
        return await _refused(request, Draft(path, text, error.message), error)
    await note(request, "changed", "files", f"{space.name}{path}")
    return Redirect(f"{_address(space, path)}&done=saved")


async def create(request: PageRequest) -> PageResponse:
    """A new text file in the folder that is shown."""
    space, name, text = await _space(request), request.form.get("name", "").strip().strip("/"), _typed(request)
    path = f"{_path(request).rstrip('/')}/{name}"
    try:
        if not name:
            raise GatewayError(Reason.NAME_SHAPE)
        await files.create(request.services.control, space.user_id, space.id, path, text)
    except GatewayError as error:
        return await _refused(request, Draft(name, text, error.message), error)
    await note(request, "created", "files", f"{space.name}{path}")
    return Redirect(f"{_address(space, path)}&done=created")


async def _refused(request: PageRequest, draft: Draft, error: GatewayError) -> PageView:
    if error.code not in (Code.INVALID_REQUEST, Code.CONFLICT, Code.NOT_FOUND, Code.TOO_LARGE):
        raise error
    view = await _page(request, draft)
    return msgspec.structs.replace(view, status=409 if error.code is Code.CONFLICT else 422)


async def _page(request: PageRequest, draft: Draft | None = None) -> PageView:
    spaces = await _spaces(request)
    space = next(
        (space for space in spaces if space.id == request.query.get("workspace")), spaces[0] if spaces else None
    )
    path = _path(request)
    entry: WorkspaceEntry | None = None
    entries: list[WorkspaceEntry] | None = None
    text: str | None = None
    problem: Sentence | None = None
    if space is not None:
        try:
            entry, text, entries = await files.read(request.services.control, space.user_id, space.id, path)
        except GatewayError as error:
            if error.code not in (Code.INVALID_REQUEST, Code.TOO_LARGE):
                raise
            problem = error.message
    now = time.time()
    names = [name for name in path.split("/") if name]
    context = Context(
        spaces=spaces,
        space=space,
        path=path,
        parents=[(name, f"/{'/'.join(names[: place + 1])}") for place, name in enumerate(names[:-1])],
        entry=entry,
        entries=entries or [],
        text=None if text is None else text[:LONGEST],
        cut=text is not None and len(text) > LONGEST,
        is_file=text is not None or (problem is not None and problem.reason in _FILES),
        problem=problem,
        attachments=await request.services.database.read(lambda tx: operator_view.all_attachments(tx, now, MOST)),
        etag=_digest(text),
        most_bytes=MAX_BYTES,
        most_lines=MAX_LINES,
        limits=request.services.control.limits,
        samples=[] if space is None else _samples(request, space, path),
        draft=draft,
    )
    return PageView(
        template="files",
        context=context,
        title=names[-1] if names else request.t("nav.files"),
        nav="settings",
        breadcrumbs=(Breadcrumb(request.t("nav.files"), "/panel/files"),) if names else (),
    )


async def download(request: PageRequest) -> PageResponse:
    space = await _space(request)
    entry, file = await files.open_file(
        request.services.control, space.user_id, space.id, request.query.get("path", "")
    )
    return _download(entry.name, entry.size, file)


async def download_attachment(request: PageRequest) -> PageResponse:
    found = await _attachment(request)
    known, file = await chat_attachments.open_file(
        request.services.control, found.user_id, found.workspace_id, found.chat_id, found.id
    )
    return _download(known.name, known.size, file)


async def remove(request: PageRequest) -> PageResponse:
    space, path = await _space(request), request.query.get("path", "")
    await files.delete(request.services.control, space.user_id, space.id, path, False)
    await note(request, "removed", "files", f"{space.name}{path}")
    above = path.rpartition("/")[0] or "/"
    return Redirect(f"{_address(space, above)}&done=removed")


async def remove_attachment(request: PageRequest) -> PageResponse:
    found = await _attachment(request)
    await chat_attachments.delete(request.services.control, found.user_id, found.workspace_id, found.chat_id, found.id)
    await note(request, "removed", "files", found.name)
    return Redirect("/panel/files?done=removed")


async def _spaces(request: PageRequest) -> list[Space]:
    rows = await request.services.database.read(lambda tx: operator_view.all_workspaces(tx, MOST))
    return [Space(**row._asdict()) for row in rows]


async def _space(request: PageRequest) -> Space:
    wanted = request.query.get("workspace")
    found = next((space for space in await _spaces(request) if space.id == wanted), None)
    if found is None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


async def _attachment(request: PageRequest) -> StoredAttachment:
    found = await request.services.database.read(
        lambda tx: operator_view.find_attachment(tx, request.query.get("id", ""))
    )
    if found is None or found.deleted_at is not None:
        raise GatewayError(Reason.NOT_FOUND)
    return found


def _path(request: PageRequest) -> str:
    return f"/{request.query.get('path', '').strip('/')}"


def _address(space: Space, path: str) -> str:
    return f"/panel/files?workspace={space.id}&path={quote(path, safe='')}"


def _typed(request: PageRequest) -> str:
    """The text of the form with line ends as `\\n`, whatever the browser sends."""
    return request.form.get("text", "").replace("\r\n", "\n").replace("\r", "\n")


def _digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode()).hexdigest()[:16]


def _samples(request: PageRequest, space: Space, path: str) -> list[samples.Sample]:
    address = f"/api/v1/workspaces/{space.id}/files?path={quote(path, safe='/')}"
    return samples.request(request.origin, address, None, {"Authorization": samples.API_KEY}, {})


def _download(name: str, size: int, file: IO[bytes]) -> StreamingResponse:
    """A download that no browser renders: the content is whatever a caller uploaded."""
    headers = PRIVATE | {
        "content-security-policy": "default-src 'none'; sandbox",
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "content-length": str(size),
    }
    return StreamingResponse(_blocks(file, size), headers=headers, media_type="application/octet-stream")


async def _blocks(file: IO[bytes], size: int) -> AsyncIterator[bytes]:
    try:
        while size > 0 and (block := await asyncio.to_thread(file.read, min(_BLOCK, size))):
            size -= len(block)
            yield block
    finally:
        file.close()


PAGES: Final = (
    Page(path="/panel/files", get=show),
    Page(path="/panel/files/write", get=show, post=write, has_json=False),
    Page(path="/panel/files/create", get=show, post=create, has_json=False),
    Page(path="/panel/files/download", get=download, has_json=False),
    Page(path="/panel/files/remove", post=remove),
    Page(path="/panel/files/attachment", get=download_attachment, has_json=False),
    Page(path="/panel/files/attachment/remove", post=remove_attachment),
)
