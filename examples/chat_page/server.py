"""Page -> your server -> Crocevia, in sixty lines: the key stays here, and so does the history.

    export CROCEVIA_PROJECT_KEY=…        # printed at the first start
    python examples/chat_page/server.py  # then open http://127.0.0.1:8200

Of Crocevia the browser sees the two files of the chat kit and the model's name. Also read from the environment:
CROCEVIA_URL (http://127.0.0.1:8111), CROCEVIA_PROJECT (default), PORT (8200). server_with_tools.py does more.
"""

import json
import os
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

URL, PROJECT = os.environ.get("CROCEVIA_URL", "http://127.0.0.1:8111"), os.environ.get("CROCEVIA_PROJECT", "default")
KEY = {"X-Pepper-Key": os.environ["CROCEVIA_PROJECT_KEY"], "X-Pepper-Project": PROJECT}
CSP = f"default-src 'none'; script-src 'self' {URL}; style-src 'self' {URL}; connect-src 'self' {URL}; img-src 'self'"
FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
chats: dict = {}  # conversation -> messages; a real server keeps them in its database, for the user who is logged in


def call(messages: list):
    body = json.dumps({"stream": True, "messages": messages}).encode()
    headers = {**KEY, "Content-Type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(f"{URL}/agent", body, headers), timeout=120)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = FILES.get(self.path)
        if name is None:
            return self.reply(204 if self.path == "/favicon.ico" else 404)
        text = Path(__file__).with_name(name).read_text("utf-8").replace("URL", URL).replace("PROJECT", PROJECT)
        return self.reply(200, text.encode(), **{"Content-Type": KINDS[name.split(".")[1]] + "; charset=utf-8"})

    def do_POST(self) -> None:
        # No other site's page can send JSON here without asking first, so nobody can talk in your name.
        if self.path != "/chat" or self.headers["Content-Type"] != "application/json":
            return self.reply(404)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["tipo"] == "nuova":
            chats.pop(body["conversazione"], None)
        if body["tipo"] != "messaggio":
            return self.reply(204 if body["tipo"] in ("nuova", "ferma") else 404)
        said = [*body["allegati"], {"tipo": "testo", "testo": body["testo"]}] if body["allegati"] else body["testo"]
        try:
            return self.relay(body["conversazione"], {"role": "user", "content": said})
        except urllib.error.HTTPError as refused:
            later = {"Retry-After": refused.headers["Retry-After"]} if refused.headers["Retry-After"] else {}
            return self.reply(refused.code, refused.read(), **{"Content-Type": "application/json"}, **later)
        except urllib.error.URLError:
            return self.reply(503, b'{"error": {"message": "Crocevia does not answer."}}', **{"Retry-After": "5"})

    def relay(self, chat: str, question: dict) -> None:
        """Hand every line on as it comes. Only whole answers enter the history: what failed can be sent again."""
        messages, name, text = [*chats.get(chat, []), question], b"", ""
        with call(messages) as stream:
            self.reply(200, **{"Content-Type": "text/event-stream; charset=utf-8"})
            for line in stream:
                self.wfile.write(line)  # fails when the page leaves: then Crocevia stops the model
                if line.startswith(b"event: "):
                    name = line[7:].strip()
                elif line.startswith(b"data: ") and name == b"delta":
                    text += json.loads(line[6:])["text"]
                elif line.startswith(b"data: ") and name == b"done":
                    answer = {"role": "assistant", "content": text, "blocchi": json.loads(line[6:])["blocchi"]}
                    chats[chat] = [*messages, answer]

    def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Security-Policy": CSP, "Cache-Control": "no-store", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8200"))), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
