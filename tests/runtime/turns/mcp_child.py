"""An MCP server with three tools, over its standard streams."""

from __future__ import annotations

import os

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


if __name__ == "__main__":
    server.run()
