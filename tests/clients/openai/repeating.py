"""A provider that asks for a tool twice, always under the same id, and refuses conversations that repeat one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ID = "call_0"
ROUNDS = 2
# What it calls its tools with: the first of these that is offered.
TOOLS = {
    "get_weather": [{"city": "Rome"}, {"city": "Oslo"}],
    "exec_command": [{"cmd": "echo Rome"}, {"cmd": "echo Oslo"}],
}


def _said(request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The next message, and why it ends."""
    messages = request["messages"]
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if len(results) >= ROUNDS:
        return {"content": f"It took {len(results)} rounds: {' and '.join(map(_text, results))}."}, "stop"
    offered = {tool["function"]["name"] for tool in request.get("tools", [])}
    name = next(name for name in TOOLS if name in offered)
    function = {"name": name, "arguments": json.dumps(TOOLS[name][len(results)])}
    return {"tool_calls": [{"index": 0, "id": ID, "type": "function", "function": function}]}, "tool_calls"


def _text(content: Any) -> str:
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    return text.strip().splitlines()[-1]


def _repeats(request: dict[str, Any]) -> bool:
    ids = [call["id"] for message in request["messages"] for call in message.get("tool_calls") or ()]
    return len(ids) != len(set(ids))


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if _repeats(request):
            self._answer(400, "application/json", b'{"error": {"message": "an id is there twice"}}')
            return
        delta, finish = _said(request)
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        if request.get("stream"):
            chunks = [
                {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
                {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
            ]
            body = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in chunks)
            self._answer(200, "text/event-stream", body + b"data: [DONE]\n\n")
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": None, **delta}, "finish_reason": finish}
            self._answer(200, "application/json", json.dumps({"choices": [choice], "usage": usage}).encode())

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


@contextmanager
def repeating_provider() -> Iterator[str]:
    """Its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
