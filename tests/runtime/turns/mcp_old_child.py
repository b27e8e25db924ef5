"""An MCP server of an older revision, by hand: it refuses to be pinged, counts its calls and changes its tools."""

from __future__ import annotations

import json
import sys
from typing import Any

INFO = {"name": "old", "version": "1"}
NO_INPUT = {"type": "object", "properties": {}}
LATE = "late" in sys.argv  # its first list is empty


class Server:
    def __init__(self) -> None:
        self.calls = 0
        self.lists = 0
        self.tools = ["count", "learn", "coding.start", "coding_start"]

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": INFO}
        if method == "tools/list":
            self.lists += 1
            offered = [] if LATE and self.lists == 1 else self.tools
            return {"tools": [{"name": name, "inputSchema": NO_INPUT} for name in offered]}
        if method == "tools/call":
            return {"content": [{"type": "text", "text": self.call(params["name"])}]}
        return None  # ping among them

    def call(self, name: str) -> str:
        if name == "learn":
            self.tools.append("sing")
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        self.calls += 1
        return f"{name} {self.calls}"


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    server = Server()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = server.answer(message["method"], message.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "Method not found"}}
        send({"jsonrpc": "2.0", "id": message["id"]} | (unknown if result is None else {"result": result}))


if __name__ == "__main__":
    main()
