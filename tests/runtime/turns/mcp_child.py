"""An MCP server over its standard streams, or at the port that it is given."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server import MCPServer

server = MCPServer("child")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("private words")


@server.tool()
def die() -> str:
    """Takes the server down."""
    os._exit(1)


@server.tool()
async def wait() -> str:
    """Takes its time."""
    await asyncio.sleep(60)
    return "late"


@server.tool()
def shout(length: int) -> str:
    """Says much."""
    return "a" * length


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()
