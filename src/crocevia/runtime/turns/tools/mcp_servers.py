"""Tools of Model Context Protocol servers that the operator declared, each started or reached when first asked for.

A server's session lives in one task of its own, because that is where it must be opened and closed; calls of its
tools are answered there at the same time. A session that ends is opened anew by the next turn that needs it.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.mcp import McpServer
from crocevia.core.messages import Tool
from crocevia.runtime.turns.tools.registry import PlatformTool, ToolContext, ToolFunction, ToolReturn
from crocevia.runtime.turns.tools.standard import tool_error

_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64  # what providers take
_PAGES: Final = 20
_PATIENCE: Final = 2.0  # seconds
_FRESH: Final = 5.0  # seconds after which a turn looks whether the server is still there


class McpServers:
    """A `registry.ToolSource`: one session per declared server."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._sessions = {name: _Session(name, server) for name, server in servers.items()}

    async def tools(self, name: str) -> dict[str, PlatformTool]:
        """The tools that agents may have, by the name that models call them by. Raises GatewayError(UNAVAILABLE)."""
        session = self._sessions.get(name)
        if session is None:
            raise GatewayError(Reason.MCP_UNKNOWN, server=name)
        return await session.tools()

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()


class _Session:
    """client: of the `mcp` package while the session lasts. heard: when the server last answered."""

    def __init__(self, name: str, server: McpServer) -> None:
        self._name = name
        self._server = server
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._client: Any = None
        self._broken = False
        self._heard = 0.0
        self._offered: dict[str, PlatformTool] = {}

    async def tools(self) -> dict[str, PlatformTool]:
        async with self._lock:
            if self._client is not None and time.monotonic() - self._heard > _FRESH:
                await self._look(self._client)
            if self._broken:
                await self.close()
            if self._task is None or self._task.done():
                await self._begin()
            return self._offered

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._leave.set()
            await asyncio.wait([task], timeout=5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look(self, client: Any) -> None:
        """Whether the server is still there; if not, the next turn starts it anew."""
        try:
            async with asyncio.timeout(_PATIENCE):
                await client.send_ping()
            self._heard = time.monotonic()
        except Exception:
            self._broken = client is self._client

    async def _begin(self) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._leave, self._broken = asyncio.Event(), False
        self._task = asyncio.create_task(self._live(ready), name=f"mcp {self._name}")
        try:
            async with asyncio.timeout(self._server.start_seconds):
                await asyncio.shield(ready)
        except Exception as error:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            raise GatewayError(Reason.MCP_UNREACHABLE, server=self._name) from error

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(await self._connect(stack))
                self._offered = await self._list()
                self._heard = time.monotonic()
                ready.set_result(None)
                await self._leave.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._client = None

    async def _connect(self, stack: AsyncExitStack) -> Any:
        mcp = await asyncio.to_thread(_package)
        server = self._server
        if server.command:
            command, *arguments = server.command
            started = mcp.StdioServerParameters(command=command, args=arguments, env=server.env or None)
            return mcp.Client(mcp.stdio_client(started, errlog=stack.enter_context(_nowhere())))
        if not server.headers:
            return mcp.Client(server.url)
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        http = await stack.enter_async_context(create_mcp_http_client(headers=server.headers))
        return mcp.Client(streamable_http_client(server.url or "", http_client=http))

    async def _list(self) -> dict[str, PlatformTool]:
        found: dict[str, PlatformTool] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            for item in page.tools:
                if self._server.allow is None or item.name in self._server.allow:
                    built = self._built(item)
                    found[built.tool.name] = built
            cursor = page.next_cursor
            if cursor is None:
                break
        return found

    def _built(self, item: Any) -> PlatformTool:
        name = _NAME.sub("_", f"mcp_{self._name}_{item.name}")[:_LONGEST_NAME]
        parameters = msgspec.Raw(msgspec.json.encode(item.input_schema))
        return PlatformTool(
            tool=Tool(name=name, description=item.description or "", parameters=parameters),
            kind="server",
            run=self._runner(item.name),
            idempotent=item.name in self._server.idempotent,
        )

    def _runner(self, name: str) -> ToolFunction:
        async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolReturn:
            client = self._client
            if client is None:
                return tool_error("tool_unavailable", f"the server {self._name} is not there")
            try:
                result = await client.call_tool(name, arguments)
            except Exception as error:  # whatever it is, it is a value for the model, without what it says
                await self._look(client)
                return tool_error("tool_failed", f"{name} tool_error: {type(error).__name__}")
            self._heard = time.monotonic()
            return ToolReturn(_value(result), is_error=bool(result.is_error))

        return run


def _value(result: Any) -> Any:
    """What the tool gave: its structured content, else its texts; other kinds of content by their type."""
    if result.structured_content is not None:
        return result.structured_content
    texts = [item.text if item.type == "text" else f"[{item.type}]" for item in result.content]
    return "\n".join(texts)


@contextmanager
def _nowhere() -> Iterator[TextIO]:
    """Where a server's complaints go: they may reserve arguments of calls, which belong in no log of ours."""
    with Path(os.devnull).open("w") as file:
        yield file


def _package() -> Any:
    try:
        import mcp
    except ImportError:
        raise GatewayError(Reason.MCP_NOT_INSTALLED) from None
    return mcp
