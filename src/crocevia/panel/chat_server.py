"""A chat page and its server in one file, as the panel offers it: to paste, to run, to change."""

from __future__ import annotations

from typing import Final

PROGRAM: Final = '''# chat.py: python chat.py, then open http://127.0.0.1:8200. The key stays in this program.
import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib import error, request

PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>My chat</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="@origin@/kit.php?f=css">
<style>
html, body { height: 100%; margin: 0; color-scheme: light dark }
body { display: flex; flex-direction: column }
h1 { margin: 12px 16px; font: 600 15px system-ui }
main { flex: 1; min-height: 0 }
</style>
<header><h1>My chat</h1></header>
<main></main>
<script src="@origin@/kit.php?f=js"></script>
<script>PepperChat.attacca(document.querySelector("main"), { indirizzo: "/chat", progetto: "@project@" });</script>
"""
KEY = {"X-Pepper-Key": os.environ["CROCEVIA_PROJECT_KEY"], "X-Pepper-Project": "@project@"}
chats = {}  # conversation -> messages


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, "text/html", PAGE)

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Content-Type"] != "application/json" or body["tipo"] != "messaggio":
            return self.answer(404)
        messages = [*chats.get(body["conversazione"], []), {"role": "user", "content": body["testo"]}]
        question = json.dumps({"stream": True, "messages": messages}).encode()
        try:
            stream = request.urlopen(request.Request("@origin@/agent", question, KEY), timeout=120)
        except error.HTTPError as no:
            return self.answer(no.code, "application/json", no.read())
        self.answer(200, "text/event-stream")
        text = ""
        for line in stream:
            self.wfile.write(line)
            data = json.loads(line[6:]) if line.startswith(b"data: ") else {}
            text += data.get("text", "")
            if "stop_reason" in data:
                answer = {"role": "assistant", "content": text, "blocchi": data["blocchi"]}
                chats[body["conversazione"]] = [*messages, answer]

    def answer(self, status, kind="text/plain", body=b""):
        self.send_response(status)
        self.send_header("Content-Type", kind + "; charset=utf-8")
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8200"))), Handler)
print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()'''
