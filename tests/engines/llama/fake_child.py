"""A child process without a model: the same protocol on stdin, stdout and HTTP, answers by what the user says.

`python fake_child.py LOG [MODE]`: one JSON line per start and per request goes to LOG. MODE: `mute` dies without a
word, `refuse` does not load. The last user message commands: SAY words, CALL json, CRASH, PREFILL (says nothing),
ENDLESS (words until the client hangs up), STUCK (one word, then nothing).
"""

from __future__ import annotations

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Model(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, key: str, log: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.key = key
        self.log = log
        self.busy = False

    def note(self, **fields: Any) -> None:
        with open(self.log, "a") as file:
            file.write(json.dumps({"pid": os.getpid(), **fields}) + "\n")


class Handler(BaseHTTPRequestHandler):
    server: Model

    def do_GET(self) -> None:
        self.answer(200, [{"id": 0, "is_processing": self.server.busy}])

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {self.server.key}":
            self.answer(401, {})
        elif self.path == "/apply-template":
            self.answer(200, {"prompt": " ".join(message["content"] for message in body["messages"])})
        elif self.path == "/tokenize":
            self.answer(200, {"tokens": body["content"].split()})
        elif self.path.startswith("/slots"):
            self.answer(400, {})
        else:
            self.complete(body)

    def complete(self, body: dict[str, Any]) -> None:
        self.server.note(path=self.path, body=body)
        if "unspeakable" in json.dumps(body.get("response_format", "")):
            self.answer(400, {"error": {"message": "failed to parse grammar"}})
            return
        if not body.get("stream"):
            self.answer(200, {"choices": []})
            return
        self.server.busy = True
        try:
            self.speak(body)
        except ConnectionError:
            self.server.note(hung_up=True)
        finally:
            self.server.busy = False

    def speak(self, body: dict[str, Any]) -> None:
        said = body["messages"][-1]["content"].removeprefix("User: ")
        command, _, rest = said.partition(" ")
        only_reply = (
            len(body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("anyOf", "12")) == 1
        )
        if command == "PREFILL":
            threading.Event().wait()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if command == "CALL" and not only_reply:
            self.tokens(rest.split("\n")[0])
        elif "response_format" in body:
            self.tokens('{"reply": "fine then"}')
        else:
            self.tokens(rest)
        if command == "CRASH":
            os._exit(3)
        if command == "STUCK":
            threading.Event().wait()
        while command == "ENDLESS":
            self.tokens("more ")
            threading.Event().wait(0.01)
        self.event({"choices": [{"delta": {}, "finish_reason": "length" if command == "LONG" else "stop"}]})
        details = {"cached_tokens": 3}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": details}
        self.event({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def tokens(self, text: str) -> None:
        for start in range(0, len(text), 3):
            self.event({"choices": [{"delta": {"content": text[start : start + 3]}, "finish_reason": None}]})

    def event(self, value: Any) -> None:
        self.wfile.write(b"data: " + json.dumps(value).encode() + b"\n\n")
        self.wfile.flush()

    def answer(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


def main() -> None:
    settings = json.loads(sys.stdin.buffer.readline())
    mode = sys.argv[2] if len(sys.argv) > 2 else ""
    model = Model(settings["api_key"], sys.argv[1])
    model.note(started=True, environment=sorted(os.environ))
    if mode == "mute":
        sys.exit(2)
    if mode == "refuse":
        sys.stdout.write('{"error": "load_failed"}\n')
        sys.stdout.flush()
        sys.exit(1)
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    if mode == "loading":
        threading.Event().wait()  # a model that is never loaded: only its parent's end ends it
    sys.stdout.write(json.dumps({"port": model.server_address[1]}) + "\n")
    sys.stdout.flush()
    model.serve_forever()


if __name__ == "__main__":
    main()
