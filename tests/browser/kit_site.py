"""Two loopback servers for the kit's tests: the gateway that serves the kit, and somebody else's page under a strict
policy, whose `/chat` plays what the test says and records what the kit posts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from crocevia import kit

STREAM = "text/event-stream; charset=utf-8"


@dataclass
class Reply:
    """pieces: bytes to write, or callables to run between two writes. cut: end without a proper end."""

    pieces: list[bytes | Callable[[], Any]] = field(default_factory=list)
    status: int = 200
    kind: str = STREAM
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


Play: TypeAlias = Callable[[dict[str, Any]], Reply]


def event(name: str, data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def delta(text: str) -> bytes:
    return event("delta", {"text": text})


def done(reason: str = "end_turn", **more: Any) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 5}
    return event("done", {"stop_reason": reason, "usage": usage, "versione": "Pepper 7", "blocchi": []} | more)


def stream(*pieces: bytes | Callable[[], Any]) -> Reply:
    return Reply(list(pieces))


@dataclass
class Site:
    """page: where the chat is. play: what `/chat` answers. model: what kit.php says. options: of `attacca`."""

    page: str = ""
    kit: str = ""
    play: Play = lambda body: stream(delta("Ok."), done())
    model: str | None = "Pepper 7"
    options: dict[str, Any] = field(default_factory=dict)
    posted: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    css: str = (
        "html, body { height: 100%; margin: 0; color-scheme: light dark; }"
        "body { display: flex; flex-direction: column; }"
        "h1 { margin: 0; padding: 8px 16px; font-size: 16px; } main { flex: 1; min-height: 0; }"
    )
    released: threading.Event = field(default_factory=threading.Event)
    lang: str = "en"
    sent_to_page: list[str] = field(default_factory=list)
    strict: bool = True
    before: str = ""

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [body for body in self.posted if body["tipo"] == kind]

    @property
    def html(self) -> str:
        return (
            f'<!doctype html><html lang="{self.lang}"><head><meta charset="utf-8"><title>Somebody\'s page</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<link rel="stylesheet" href="/page.css"><link rel="stylesheet" href="{self.kit}/kit.php?f=css">'
            f'<script src="{self.kit}/kit.php?f=js" defer></script><script src="/page.js" defer></script></head>'
            '<body><header><h1>Somebody\'s page</h1></header><main id="chat"></main></body></html>'
        )

    @property
    def script(self) -> str:
        options = json.dumps({"indirizzo": "/chat", "progetto": "casa"} | self.options)
        return f'{self.before}window.chat = PepperChat.attacca(document.getElementById("chat"), {options});'

    @property
    def policy(self) -> str:
        if not self.strict:  # nothing but the kit itself stands between a text and the page
            return "default-src * 'unsafe-inline' 'unsafe-eval' data: blob:"
        return (
            f"default-src 'none'; script-src 'self' {self.kit}; style-src 'self' {self.kit}; img-src 'self'; "
            f"connect-src 'self' {self.kit}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_: Any) -> None:
        pass

    def whole(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class _Kit(_Handler):
    def do_GET(self) -> None:
        self.site.asked.append(self.path)
        query = parse_qs(urlsplit(self.path).query)
        everyone = {"Access_Control_Allow_Origin": "*"}
        if "f" in query:
            file = kit.load()[query["f"][0]]
            self.whole(200, file.media_type, file.content, **everyone)
        else:
            self.whole(200, "application/json", json.dumps({"modello": self.site.model}).encode(), **everyone)


class _Page(_Handler):
    def do_GET(self) -> None:
        found = {
            "/": ("text/html; charset=utf-8", self.site.html),
            "/page.js": ("text/javascript; charset=utf-8", self.site.script),
            "/page.css": ("text/css; charset=utf-8", self.site.css),
        }.get(self.path)
        self.site.sent_to_page.append(self.path)
        if found is None:
            self.whole(204, "text/plain", b"")
        else:
            self.whole(200, found[0], found[1].encode(), Content_Security_Policy=self.site.policy)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.site.posted.append(body)
        if body["tipo"] == "ferma":
            self.whole(204, "text/plain", b"")
            return
        reply = self.site.play(body)
        self.send_response(reply.status)
        for name, value in ({"Content-Type": reply.kind, "Transfer-Encoding": "chunked"} | reply.headers).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for piece in reply.pieces:
                if callable(piece):
                    piece()
                elif piece:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            if not reply.cut:
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass
        self.close_connection = reply.cut


@contextmanager
def kit_site() -> Iterator[Site]:
    site = Site()
    servers = []
    for kind in (_Kit, _Page):
        handler = type(kind.__name__, (kind,), {"site": site})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
    site.kit, site.page = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    try:
        yield site
    finally:
        site.released.set()
        for server in servers:
            server.shutdown()
            server.server_close()
