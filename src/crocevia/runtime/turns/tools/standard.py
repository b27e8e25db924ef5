"""The built-in tools: a workspace's files as knowledge (wiki, skills, MEMORY.md) and as files, and the chat's title."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from mimetypes import guess_type
from typing import Any, Final

import msgspec

from crocevia.core.errors import GatewayError
from crocevia.core.texts import render
from crocevia.core.turn import normalise_title
from crocevia.core.turn.plan import ToolKind
from crocevia.runtime.files.workspace import MEMORY, WorkspaceFiles
from crocevia.runtime.turns.tools.registry import (
    PlatformTool,
    ToolArtifact,
    ToolContext,
    ToolFunction,
    ToolReturn,
    describe,
)

WIKI: Final = "/wiki"
SKILLS: Final = "/skills"
_TEXT: Final = {"type": "string"}
_PATH: Final = {"path": _TEXT}
_WRITE: Final = {"path": _TEXT, "content": _TEXT}

Work = Callable[[str, dict[str, Any]], Any]
"""Blocking: workspace id and arguments to a JSON value, or a ToolReturn."""


def standard_tools(files: WorkspaceFiles) -> tuple[PlatformTool, ...]:
    """Every built-in tool."""
    return (*_knowledge(files), *_workspace(files), _title())


def _knowledge(files: WorkspaceFiles) -> tuple[PlatformTool, ...]:
    def make(
        name: str, words: str, properties: dict[str, Any], work: Work, permission: str | None = None
    ) -> PlatformTool:
        return _built("knowledge", name, words, properties, work, permission)

    return (
        make("wiki_read", "Read a page of the wiki.", _PATH, _reader(files, WIKI)),
        make("wiki_ls", "List the pages and folders of the wiki.", _PATH, _lister(files, WIKI)),
        make(
            "wiki_search",
            "Find lines in the wiki that hold some words.",
            {"words": _TEXT},
            _searcher(files, WIKI),
        ),
        make("wiki_write", "Write a page of the wiki whole.", _WRITE, _writer(files, WIKI), "can_write_knowledge"),
        make("skill_read", "Read a skill.", _PATH, _reader(files, SKILLS)),
        make("skill_list", "List the skills.", _PATH, _lister(files, SKILLS)),
        make("skill_write", "Write a skill whole.", _WRITE, _writer(files, SKILLS), "can_write_skills"),
        make("memory_read", "Read what is remembered from earlier chats.", {}, _memory_reader(files)),
        make(
            "memory_write",
            "Replace what is remembered for later chats.",
            {"content": _TEXT},
            lambda workspace, given: {"new": files.write(workspace, MEMORY, given["content"])},
            "can_write_knowledge",
        ),
    )


def _workspace(files: WorkspaceFiles) -> tuple[PlatformTool, ...]:
    def make(name: str, words: str, properties: dict[str, Any], work: Work) -> PlatformTool:
        return _built("server", name, words, properties, work, None)

    return (
        make("read", "Read a text file of the workspace.", _PATH, _reader(files, "")),
        make("list", "List a folder of the workspace.", _PATH, _lister(files, "")),
        make("write", "Write a text file of the workspace whole.", _WRITE, _maker(files)),
    )


def _built(
    kind: ToolKind, name: str, words: str, properties: dict[str, Any], work: Work, permission: str | None
) -> PlatformTool:
    # `path` alone may be left out of a list: it means the top.
    optional = {"path"} if work.__name__ == "ls" else set()
    required = [key for key in properties if key not in optional]
    return PlatformTool(
        tool=describe(name, words, properties, required),
        kind=kind,
        run=_runner(properties, required, work),
        permission=permission,
        idempotent=True,  # reading changes nothing, and writing a file whole twice is writing it once
    )


def _runner(properties: dict[str, Any], required: list[str], work: Work) -> ToolFunction:
    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolReturn:
        wrong = [name for name in required if name not in arguments]
        wrong += [name for name, value in arguments.items() if name not in properties or not isinstance(value, str)]
        if wrong:
            return tool_error("invalid_arguments", f"wrong or missing: {', '.join(wrong)}")
        try:
            done = await asyncio.to_thread(work, context.workspace_id, arguments)
            return done if isinstance(done, ToolReturn) else ToolReturn(done)
        except GatewayError as error:
            return tool_error(error.code.value, render(error.message, "en"))

    return run


def tool_error(code: str, message: str) -> ToolReturn:
    """An error that the model reads."""
    return ToolReturn({"code": code, "message": message}, is_error=True)


def _reader(files: WorkspaceFiles, top: str) -> Work:
    return lambda workspace, given: files.read(workspace, _below(top, given["path"]))


def _memory_reader(files: WorkspaceFiles) -> Work:
    def read(workspace: str, given: dict[str, Any]) -> str:
        try:
            return files.read(workspace, MEMORY)
        except GatewayError:
            return ""  # nothing is remembered yet

    return read


def _lister(files: WorkspaceFiles, top: str) -> Work:
    def ls(workspace: str, given: dict[str, Any]) -> list[dict[str, Any]]:
        path = _below(top, given.get("path") or "/")
        try:
            return [msgspec.structs.asdict(entry) for entry in files.entries(workspace, path)]
        except GatewayError:
            if path == top:
                return []  # there is no page yet
            raise

    return ls


def _searcher(files: WorkspaceFiles, top: str) -> Work:
    def search(workspace: str, given: dict[str, Any]) -> list[dict[str, str]]:
        return [{"path": path, "line": line} for path, line in files.search(workspace, top, given["words"])]

    return search


def _writer(files: WorkspaceFiles, top: str) -> Work:
    return lambda workspace, given: {"new": files.write(workspace, _below(top, given["path"]), given["content"])}


def _maker(files: WorkspaceFiles) -> Work:
    def write(workspace: str, given: dict[str, Any]) -> ToolReturn:
        path, text = _below("", given["path"]), given["content"]
        new = files.write(workspace, path, text)
        artifact = ToolArtifact(path, guess_type(path)[0] or "text/plain", len(text.encode()))
        return ToolReturn({"new": new}, artifact=artifact)

    return write


def _below(top: str, path: str) -> str:
    """A model says `page.md`, `/page.md` or `/wiki/page.md` and means the same."""
    path = path if path.startswith("/") else f"/{path}"
    path = path.rstrip("/") or "/"
    if not top or path == top or path.startswith(f"{top}/"):
        return path
    return top if path == "/" else f"{top}{path}"


def _title() -> PlatformTool:
    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolReturn:
        given = arguments.get("title")
        title = normalise_title(given) if isinstance(given, str) else None
        if title is None:
            return tool_error("invalid_arguments", "a title of one line is needed")
        return ToolReturn({"title": title, "changed": await context.set_title(title)})

    return PlatformTool(
        tool=describe("set_chat_title", "Name this chat.", {"title": _TEXT}, ["title"]),
        kind="server",
        run=run,
        idempotent=True,
    )
