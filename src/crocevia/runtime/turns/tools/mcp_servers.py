"""Tools of Model Context Protocol servers that the operator declared, each started or reached when first asked for.

A server's session lives in one task of its own, because that is where it must be opened and closed; calls of its
tools are answered there at the same time. A session that ends is opened anew by the next turn that needs it; one
that its server has forgotten, by the call that hears so.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from contextvars import ContextVar
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal, TextIO, TypeAlias

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.mcp import McpServer
from crocevia.core.messages import Tool
from crocevia.runtime.turns.tools.registry import PlatformTool, ToolContext, ToolFunction, ToolReturn
from crocevia.runtime.turns.tools.standard import tool_error

_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME: Final = 64  # what providers take
_SUFFIX: Final = 8  # characters that tell apart what would be called alike
_PAGES: Final = 20
_PATIENCE: Final = 2.0  # seconds
_FRESH: Final = 5.0  # seconds after which a turn looks whether the server is still there
_SESSION_ID: Final = "mcp-session-id"
_FORGOTTEN: Final[ContextVar[list[bool] | None]] = ContextVar("forgotten", default=None)
"""Of the call under way: filled when its server answers that it knows no such session, and so has run nothing."""

State: TypeAlias = Literal["idle", "ready", "unreachable"]


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """How a declared server does."""

    name: str
    state: State
    """`idle`: no turn has needed it so far, or its session has ended."""
    tools: tuple[str, ...] = ()
    """What models call those that it offers, or offered at last."""
    failure: str | None = None
    """The kind of error by which it was last lost or not reached."""
    failed_at: float | None = None
    """Unix seconds."""


class McpServers:
    """A `registry.ToolSource`: one session per declared server."""

    def __init__(self, servers: Mapping[str, McpServer]) -> None:
        self._sessions = {
            name: _Session(name, server, [other for other in servers if other != name])
            for name, server in servers.items()
        }

    async def look(self, name: str) -> None:
        """Reach a server now, and list its tools again. Raises GatewayError(UNAVAILABLE)."""
        if (session := self._sessions.get(name)) is not None:
            session.doubt()
        await self.tools(name)

    def states(self) -> list[ServerState]:
        """How each declared server does, in the order of declaration. Asks nobody."""
        return [session.state() for session in self._sessions.values()]

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
    """client: of the `mcp` package while the session lasts. heard: when the server last answered. deaf: whether
    its changes can no longer be heard of. stale: whether its tools are to be listed again.
    """

    def __init__(self, name: str, server: McpServer, others: list[str]) -> None:
        self._name = name
        self._server = server
        self._others = others
        self._lock = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._client: Any = None
        self._broken = False
        self._heard = 0.0
        self._failure: str | None = None
        self._failed_at: float | None = None
        self._reached = True
        self._calling = 0
        self._deaf = self._stale = False
        self._offered: dict[str, PlatformTool] = {}

    def state(self) -> ServerState:
        there = self._client is not None and not self._broken
        return ServerState(
            name=self._name,
            state="ready" if there else "idle" if self._reached else "unreachable",
            tools=tuple(self._offered),
            failure=self._failure,
            failed_at=self._failed_at,
        )

    def doubt(self) -> None:
        """Look at the server and its tools at the next need, however lately it was heard."""
        self._heard, self._stale = 0.0, True

    def _lost(self, error: BaseException) -> None:
        self._failure, self._failed_at = _kind(error), time.time()

    async def tools(self) -> dict[str, PlatformTool]:
        async with self._lock:
            if self._client is not None and time.monotonic() - self._heard > _FRESH:
                await self._look(self._client)
            if self._broken:
                await self.close()
            if self._task is None or self._task.done():
                await self._begin()
            elif self._stale:
                await self._relist()
            return self._offered

    async def close(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            self._leave.set()
            await asyncio.wait([task], timeout=5)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _look(self, client: Any) -> None:
        """Whether the server is still there; if not, the next turn starts it anew.

        A refusal is an answer. One that is busy with a call may be silent.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await client.session.send_ping()
        except TimeoutError as error:
            self._break(client, error, dead=not self._calling)
        except Exception as error:
            self._break(client, error, dead=not _is_answer(error))
        else:
            self._heard = time.monotonic()
        self._stale = self._stale or self._deaf

    def _break(self, client: Any, error: Exception, *, dead: bool) -> None:
        if dead and client is self._client:
            self._broken = True
            self._lost(error)
        elif not dead:
            self._heard = time.monotonic()

    async def _relist(self) -> None:
        """List the tools again; those of before stay where the server does not say."""
        self._stale = False
        try:
            async with asyncio.timeout(self._server.start_seconds):
                self._offered = await self._list()
        except Exception as error:
            self._stale = True
            self._lost(error)

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
            self._reached = False
            self._lost(error)
            raise GatewayError(Reason.MCP_UNREACHABLE, server=self._name) from error
        self._reached = True

    async def _live(self, ready: asyncio.Future[None]) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(await self._connect(stack))
                self._deaf = self._stale = False
                watching = asyncio.create_task(self._watch(self._client))
                stack.callback(watching.cancel)
                self._offered = await self._list()
                self._heard = time.monotonic()
                ready.set_result(None)
                await self._leave.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._client = None

    async def _watch(self, client: Any) -> None:
        """Hear of changes from servers that are to be asked for them; the others say so by themselves: `_notified`."""
        mcp = await asyncio.to_thread(_package)
        try:
            async with client.listen(tools_list_changed=True) as changes:
                async for _ in changes:
                    self._stale = True
        except mcp.client.subscriptions.ListenNotSupportedError:
            return
        except Exception:
            self._deaf = True
        else:
            self._deaf = True

    async def _notified(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._stale = True

    async def _connect(self, stack: AsyncExitStack) -> Any:
        mcp = await asyncio.to_thread(_package)
        server = self._server
        if server.command:
            command, *arguments = server.command
            started = mcp.StdioServerParameters(command=command, args=arguments, env=server.env or None)
            transport = mcp.stdio_client(started, errlog=stack.enter_context(_nowhere()))
            return mcp.Client(transport, message_handler=self._notified, cache=None)
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        http = await stack.enter_async_context(create_mcp_http_client(headers=server.headers))
        http.event_hooks = {"response": [self._answered]}
        transport = streamable_http_client(server.url or "", http_client=http)
        return mcp.Client(transport, message_handler=self._notified, cache=None)

    async def _answered(self, response: Any) -> None:
        if response.status_code == HTTPStatus.NOT_FOUND and _SESSION_ID in response.request.headers:
            self._broken = True
            forgotten = _FORGOTTEN.get()
            if forgotten is not None:
                forgotten.append(True)

    async def _list(self) -> dict[str, PlatformTool]:
        found: dict[str, Any] = {}
        cursor: str | None = None
        for _ in range(_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            found |= {item.name: item for item in page.tools if self._allows(item.name)}
            cursor = page.next_cursor
            if cursor is None:
                break
        self._stale = self._stale or not found  # one that is still starting may offer them in a moment
        names = names_for_models(self._name, found, self._others)
        return {names[name]: self._built(item, names[name]) for name, item in found.items()}

    def _allows(self, name: str) -> bool:
        return self._server.allow is None or name in self._server.allow

    def _built(self, item: Any, name: str) -> PlatformTool:
        parameters = msgspec.Raw(msgspec.json.encode(item.input_schema))
        return PlatformTool(
            tool=Tool(name=name, description=item.description or "", parameters=parameters),
            kind="server",
            remote=item.name,
            run=self._runner(item.name),
            idempotent=item.name in self._server.idempotent,
        )

    def _runner(self, name: str) -> ToolFunction:
        async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolReturn:
            client = self._client
            if client is None:
                return tool_error("tool_unavailable", f"the server {self._name} is not there")
            try:
                result = await self._call(client, name, arguments)
            except Exception as error:  # whatever it is, it is a value for the model, without what it says
                await self._look(client)
                return tool_error("tool_failed", f"{name} tool_error: {type(error).__name__}")
            self._heard = time.monotonic()
            return ToolReturn(_value(result), is_error=bool(result.is_error))

        return run

    async def _call(self, client: Any, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool, and again in a new session where the server had forgotten the one that it was called in."""
        forgotten: list[bool] = []
        token = _FORGOTTEN.set(forgotten)
        self._calling += 1
        try:
            return await client.call_tool(name, arguments)
        except Exception:
            if not forgotten:
                raise
        finally:
            self._calling -= 1
            _FORGOTTEN.reset(token)
        await self.tools()
        return await self._client.call_tool(name, arguments)


def names_for_models(server: str, tools: Iterable[str], others: Iterable[str] = ()) -> dict[str, str]:
    """What models call each tool of a server: no two alike, of this server or of `others`.

    A name that providers take as it is stays; of those that become alike, the rest get a suffix that stays the same.
    """
    spelled = {tool: _spelled(server, tool) for tool in tools}
    often = Counter(spelled.values())
    mine = _spelled(server, "")
    claimed = tuple(prefix for other in others if len(prefix := _spelled(other, "")) >= len(mine))
    return {
        tool: name
        if (often[name] == 1 or name == f"mcp_{server}_{tool}") and not name.startswith(claimed)
        else f"{name[: _LONGEST_NAME - _SUFFIX - 1]}_{_digest(server, tool)}"
        for tool, name in spelled.items()
    }


def _spelled(server: str, tool: str) -> str:
    return _NAME.sub("_", f"mcp_{server}_{tool}")[:_LONGEST_NAME]


def _digest(server: str, tool: str) -> str:
    return hashlib.sha256(f"{server}\0{tool}".encode()).hexdigest()[:_SUFFIX]


def _is_answer(error: Exception) -> bool:
    """Whether the server said it, not we of a server that is gone."""
    from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

    code = getattr(error, "code", None)
    return isinstance(code, int) and code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT)


def _kind(error: BaseException) -> str:
    """What kind of error it is, without what it says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__


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
