"""Page -> your server -> Crocevia, in sixty lines: the key stays here, and so does the history.

export CROCEVIA_PROJECT_KEY=…        # printed at the first start
python examples/chat_page/server.py  # then open http://127.0.0.1:8200
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib import error, request

URL, PROJECT = os.environ.get("CROCEVIA_URL", "http://127.0.0.1:8111"), os.environ.get("CROCEVIA_PROJECT", "default")
KEY = {"X-Pepper-Key": os.environ["CROCEVIA_PROJECT_KEY"], "X-Pepper-Project": PROJECT}
KINDS = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
chats: dict = {}  # conversation -> messages; a real server keeps them in its database, for the user who is logged in


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = self.path[1:] or "page.html"
        if name not in KINDS:
            return self.answer(404)
        text = Path(__file__).with_name(name).read_text("utf-8").replace("URL", URL).replace("PROJECT", PROJECT)
        return self.answer(200, KINDS[name], text.encode())

    def do_POST(self) -> None:  # noqa: RET503
        if self.headers["Content-Type"] != "application/json":  # what another site's page could send in your name
            return self.answer(415)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["tipo"] != "messaggio":
            chats.pop(body["conversazione"] if body["tipo"] == "nuova" else None, None)
            return self.answer(204 if body["tipo"] in ("nuova", "ferma") else 404)
        said = [*body["allegati"], {"tipo": "testo", "testo": body["testo"]}] if body["allegati"] else body["testo"]
        messages = [*chats.get(body["conversazione"], []), {"role": "user", "content": said}]
        question = json.dumps({"stream": True, "messages": messages}).encode()
        try:
            stream = request.urlopen(request.Request(f"{URL}/agent", question, KEY), timeout=120)
        except error.HTTPError as no:
            return self.answer(no.code, "application/json", no.read(), no.headers["Retry-After"])
        self.answer(200, "text/event-stream")
        text, chat = "", body["conversazione"]
        for line in stream:  # as it comes; if the page has left, writing fails and Crocevia stops the model
            self.wfile.write(line)
            data = json.loads(line[6:]) if line.startswith(b"data: ") else {}
            text += data.get("text", "")
            if "stop_reason" in data:  # the end: only whole answers enter the history
                chats[chat] = [*messages, {"role": "assistant", "content": text, "blocchi": data["blocchi"]}]

    def answer(self, status: int, kind: str = "text/plain", body: bytes = b"", later: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Retry-After", later or "0")
        self.end_headers()
        self.wfile.write(body)


with ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8200"))), Handler) as server:
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
