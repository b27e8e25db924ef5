"""A provider that begins an answer and never ends it, and tells when its caller has hung up."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_BEGUN = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "begun "}, "finish_reason": None}]}


class Endless:
    """`begun` gets an entry for every answer that has its first word, `closed` one for every caller that left."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.begun: queue.Queue[None] = queue.Queue()
        self.closed: queue.Queue[None] = queue.Queue()

    def forget(self) -> None:
        """Earlier callers are not those that are waited for from here on."""
        for queued in (self.begun, self.closed):
            while not queued.empty():
                queued.get_nowait()

    def left(self) -> bool:
        """Whether a caller leaves within five seconds."""
        try:
            self.closed.get(timeout=5)
        except queue.Empty:
            return False
        return True


def _handler(endless: Endless) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"data: " + json.dumps(_BEGUN).encode() + b"\n\n")
            endless.begun.put(None)
            self.connection.settimeout(30)
            try:
                self.connection.recv(1)  # returns when the caller has hung up
            except TimeoutError:
                return
            except OSError:
                pass
            endless.closed.put(None)

        def do_GET(self) -> None:
            """Asked by a client that has closed its stream and is still alive."""
            said = b"closed" if endless.left() else b"open"
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            return

    return Handler


@contextmanager
def endless_provider() -> Iterator[Endless]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    endless = Endless(f"http://127.0.0.1:{server.server_port}")
    server.RequestHandlerClass = _handler(endless)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield endless
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
