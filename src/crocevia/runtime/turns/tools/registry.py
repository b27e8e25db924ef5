"""Tools of the platform: what the model is told of each, and how it is run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import msgspec

from crocevia.core.errors import GatewayError
from crocevia.core.messages import Tool
from crocevia.core.turn.plan import ToolKind

MAX_RESULT = 65_536  # characters that a model is given of one result


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool runs."""

    workspace_id: str
    chat_id: str
    user_id: str
    set_title: Callable[[str], Awaitable[bool]]
    """Names the chat; False if that is its name already."""


class ToolArtifact(msgspec.Struct, frozen=True):
    """A file that a tool wrote."""

    name: str
    """Its path."""
    media_type: str
    size: int
    """Bytes."""


class ToolReturn(msgspec.Struct, frozen=True):
    """What a tool returned. An error is a value for the model, too."""

    value: Any
    """Anything JSON."""
    is_error: bool = False
    artifact: ToolArtifact | None = None


ToolFunction = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolReturn]]


class PlatformTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that runs here."""

    tool: Tool
    kind: ToolKind
    run: ToolFunction
    permission: str | None = None
    """A field of its agent that must be true besides: `can_write_knowledge`, `can_write_skills`."""
    remote: str | None = None
    """What its server calls it, where it is of one."""
    idempotent: bool = False
    """It may run again after a crash, because running twice is running once."""


class ToolSource(Protocol):
    """Tools from outside, by the name of their server."""

    async def tools(self, name: str) -> dict[str, PlatformTool]:
        """Raises GatewayError(UNAVAILABLE) while the server cannot be reached."""
        ...

    async def close(self) -> None: ...


class Toolbox:
    """The platform's tools by name."""

    def __init__(self, standard: Iterable[PlatformTool], sources: dict[str, ToolSource] | None = None) -> None:
        """sources: by prefix (`mcp:files`: every tool of the server `files`; `mcp:files/read`: one of them)."""
        self._standard = {item.tool.name: item for item in standard}
        self._sources = sources or {}

    async def find(self, names: Iterable[str], *, skip_unreachable: bool = False) -> dict[str, PlatformTool]:
        """The tools of these names, by the name that the model calls them by. Unknown ones are left out.

        skip_unreachable: leave out servers that cannot be reached, which else raise GatewayError(UNAVAILABLE).
        """
        found: dict[str, PlatformTool] = {}
        for name in names:
            prefix, mark, rest = name.partition(":")
            if not mark and name in self._standard:
                found[name] = self._standard[name]
            elif mark and prefix in self._sources:
                found |= await self._of_server(self._sources[prefix], rest, skip_unreachable)
        return found

    async def _of_server(self, source: ToolSource, name: str, skip_unreachable: bool) -> dict[str, PlatformTool]:
        server, _, single = name.partition("/")
        try:
            offered = await source.tools(server)
        except GatewayError:
            if skip_unreachable:
                return {}
            raise
        return {key: item for key, item in offered.items() if not single or single in (item.remote, key)}

    async def close(self) -> None:
        for source in self._sources.values():
            await source.close()


def describe(name: str, description: str, properties: dict[str, Any], required: Iterable[str] = ()) -> Tool:
    """What a model is told of a tool. properties: JSON schemas by argument."""
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return Tool(name=name, description=description, parameters=msgspec.Raw(msgspec.json.encode(schema)))
