"""The turns of a serving home, with everything they use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from crocevia.config import Settings, TurnsSettings
from crocevia.core.logger import Logger
from crocevia.core.turn import TurnLimits
from crocevia.log import Hub, SqliteLog
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import Gateway
from crocevia.runtime.turns import Turns, TurnSettings
from crocevia.runtime.turns.tools import Toolbox, standard_tools
from crocevia.runtime.turns.tools.mcp_servers import McpServers
from crocevia.storage.database import Database


@asynccontextmanager
async def open_turns(
    settings: Settings, control: Control, gateway: Gateway, database: Database, servers: McpServers, log: Logger
) -> AsyncIterator[Turns]:
    """Resumes open turns before yielding; on exit they stop and stay open, and `servers` are closed."""
    hub = Hub(quiet=settings.calls.ping_seconds)
    files = control.files
    turns = Turns(
        control,
        gateway,
        SqliteLog(database, hub),
        hub,
        Toolbox(standard_tools(files), {"mcp": servers}),
        files,
        settings=TurnSettings(
            on_restart=settings.turns.on_restart,
            limits=_limits(settings.turns),
            tool_seconds=settings.turns.tool_seconds,
        ),
        on_fault=lambda where, error: log.error("a turn met a fault", at=where, error=type(error).__name__),
    )
    control.catalogue.subscribe(lambda before, after: turns.look_again())
    try:
        await turns.start()
        yield turns
    finally:
        await turns.close()


def _limits(bounds: TurnsSettings) -> TurnLimits:
    return TurnLimits(
        rounds=bounds.rounds,
        depth=bounds.depth,
        children=bounds.children,
        parallel_tools=bounds.parallel_tools,
        wall_ms=None if bounds.wall_seconds is None else int(bounds.wall_seconds * 1000),
        cost_usd=bounds.cost_usd,
    )
