"""Files of a user's workspace, for doors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import IO, Concatenate, Final, ParamSpec, TypeVar

from crocevia.core.errors import GatewayError, Reason
from crocevia.documents.typeset import typeset
from crocevia.runtime.control import workspaces
from crocevia.runtime.control.context import Control
from crocevia.runtime.files.workspace import WorkspaceEntry, WorkspaceFiles

__all__ = ["WorkspaceEntry", "create", "delete", "open_file", "pdf", "read", "replace"]

P = ParamSpec("P")
T = TypeVar("T")

MARKDOWN: Final = (".md", ".markdown")
SOURCES: Final = (*MARKDOWN, ".txt")


async def read(
    control: Control, user_id: str, workspace_id: str, path: str
) -> tuple[WorkspaceEntry, str | None, list[WorkspaceEntry] | None]:
    """What is at `path`: with its text if it is a file, with its entries if it is a folder.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST, TOO_LARGE.
    """

    def work(files: WorkspaceFiles) -> tuple[WorkspaceEntry, str | None, list[WorkspaceEntry] | None]:
        entry = files.stat(workspace_id, path)
        if entry.folder:
            return entry, None, files.entries(workspace_id, path)
        return entry, files.read(workspace_id, path), None

    return await _in(control, user_id, workspace_id, work)


async def create(control: Control, user_id: str, workspace_id: str, path: str, text: str) -> WorkspaceEntry:
    """Raises GatewayError: NOT_FOUND (the workspace), INVALID_REQUEST, CONFLICT."""
    return await _in(control, user_id, workspace_id, WorkspaceFiles.create, workspace_id, path, text)


async def replace(control: Control, user_id: str, workspace_id: str, path: str, text: str) -> WorkspaceEntry:
    """Raises GatewayError: NOT_FOUND, INVALID_REQUEST, CONFLICT."""
    return await _in(control, user_id, workspace_id, WorkspaceFiles.replace, workspace_id, path, text)


async def delete(control: Control, user_id: str, workspace_id: str, path: str, recursive: bool) -> None:
    """Raises GatewayError: NOT_FOUND, INVALID_REQUEST, CONFLICT."""
    return await _in(control, user_id, workspace_id, WorkspaceFiles.delete, workspace_id, path, recursive=recursive)


async def open_file(control: Control, user_id: str, workspace_id: str, path: str) -> tuple[WorkspaceEntry, IO[bytes]]:
    """A file to read from; the caller closes it. Raises GatewayError: NOT_FOUND, INVALID_REQUEST, CONFLICT."""
    return await _in(control, user_id, workspace_id, WorkspaceFiles.open, workspace_id, path)


async def pdf(control: Control, user_id: str, workspace_id: str, path: str) -> tuple[str, bytes]:
    """Name and bytes of the PDF of a text.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST, CONFLICT, UNAVAILABLE, UNSUPPORTED.
    """
    suffix = next((suffix for suffix in SOURCES if path.lower().endswith(suffix)), None)
    if suffix is None:
        raise GatewayError(Reason.PDF_SOURCE, param="path")
    text = await _in(control, user_id, workspace_id, WorkspaceFiles.read, workspace_id, path)
    name = path.rpartition("/")[2][: -len(suffix)]
    try:
        return f"{name}.pdf", await typeset(
            control.workers.of(f"user:{user_id}"), text, name, markdown=suffix in MARKDOWN
        )
    except GatewayError as error:
        if error.reason is Reason.FILE_HEAVY:
            raise GatewayError(Reason.PDF_TOO_LARGE) from None
        raise


async def _in(
    control: Control,
    user_id: str,
    workspace_id: str,
    work: Callable[Concatenate[WorkspaceFiles, P], T],
    *args: P.args,
    **options: P.kwargs,
) -> T:
    await workspaces.get(control, user_id, workspace_id)
    try:
        return await asyncio.to_thread(work, control.files, *args, **options)
    except OSError:
        raise GatewayError(Reason.FILES_UNAVAILABLE) from None
