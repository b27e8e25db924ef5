"""A small server that speaks the agent call's streaming side, answer by answer, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Pepper:
    """`answers` are given in order, the last one again and again: (status, headers, body)."""

    answers: list[tuple[int, dict[str, str], bytes]]
    url: str = ""
    requests: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)

    def next(self) -> tuple[int, dict[str, str], bytes]:
        return self.answers[min(len(self.requests), len(self.answers)) - 1]


def stream(*events: tuple[str, dict[str, Any]]) -> tuple[int, dict[str, str], bytes]:
    """A 200 with these events, a comment in front."""
    frames = "".join(f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" for name, data in events)
    return 200, {"Content-Type": "text/event-stream"}, f": ping\n\n{frames}".encode()


def done(stop: str, *blocchi: dict[str, Any], tokens: int = 5) -> tuple[str, dict[str, Any]]:
    usage = {"input_tokens": 10 * tokens, "output_tokens": tokens}
    ending = {"stop_reason": stop, "usage": usage, "versione": "Pepper 7", "novita": None, "blocchi": list(blocchi)}
    return "done", ending


def tool_call(name: str, call_id: str = "toolu_1", **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tool_call", {"id": call_id, "name": name, "arguments": arguments}


def delta(text: str) -> tuple[str, dict[str, Any]]:
    return "delta", {"text": text}


@contextmanager
def pepper(*answers: tuple[int, dict[str, str], bytes]) -> Iterator[Pepper]:
    told = Pepper(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told.requests.append((dict(self.headers), {"path": self.path, **body}))
            status, headers, payload = told.next()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join(timeout=5)
        server.server_close()
