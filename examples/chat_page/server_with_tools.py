"""Like server.py, with a tool that waits for a yes and answers that survive a lost line.

    export CROCEVIA_PROJECT_KEY=…        # printed at the first start
    python examples/chat_page/server_with_tools.py  # then open http://127.0.0.1:8200

The key stays in this process; of Crocevia the browser sees the two files of the chat kit and the model's name.
Also read from the environment: CROCEVIA_URL (http://127.0.0.1:8111), CROCEVIA_PROJECT (default), PORT (8200).
docs/chat-kit.md describes what the page posts.
"""

import json
import os
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

URL, PROJECT = os.environ.get("CROCEVIA_URL", "http://127.0.0.1:8111"), os.environ.get("CROCEVIA_PROJECT", "default")
HEADERS = {
    "Content-Type": "application/json",
    "X-Pepper-Key": os.environ["CROCEVIA_PROJECT_KEY"],
    "X-Pepper-Project": PROJECT,
}
FILES = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
KINDS = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
CSP = f"default-src 'none'; script-src 'self' {URL}; style-src 'self' {URL}; connect-src 'self' {URL}; img-src data:"
ON = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}
TOOLS = [{"name": "set_light", "description": "Switch the light of the room on or off.", "parameters": ON}]
SYSTEM = "You are the assistant of a room with a light. Be brief."

light = {"on": False}
chats: dict = {}  # conversation -> messages; a real server keeps them in its database, for the user who is logged in
turns: dict = {}


class Turn:
    """The events of one answer, kept so that a page can read on where its line broke."""

    def __init__(self) -> None:
        self.events, self.news = [], threading.Condition()
        self.ended = self.failed = self.stopped = False

    def add(self, name: str, data: dict, last: bool = False) -> None:
        with self.news:
            self.events.append(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
            self.ended, self.failed = last, name == "error"
            self.news.notify_all()

    def read(self, after: int):
        while True:
            with self.news:
                if not self.ended and len(self.events) <= after:
                    self.news.wait(timeout=15)
                fresh, ended = self.events[after:], self.ended
            yield b"".join(fresh) or b": ping\n\n"
            after += len(fresh)
            if ended:
                return


def open_calls(messages: list) -> list:
    answered = {message.get("tool_call_id") for message in messages}
    return [call for message in messages for call in message.get("tool_calls") or [] if call["id"] not in answered]


def result(call: dict, content: dict) -> dict:
    return {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(content)}


def events(stream, turn: Turn):
    """The answer's events as (name, data), until it ends or the user stops it."""
    name = ""
    for line in stream:
        if turn.stopped:  # leaving the stream closes the line: Crocevia stops the model
            yield "stopped", {}
            return
        if line.startswith(b"event: "):
            name = line[7:].strip().decode()
        elif line.startswith(b"data: "):
            yield name, json.loads(line[6:])


def hear(stream, turn: Turn, chat: str, messages: list) -> None:
    """Hand the events on. The history is kept when it is whole, so that a message that failed can be sent again."""
    text, calls = "", []
    for name, data in events(stream, turn):
        if name == "stopped":
            turn.add("done", {"stop_reason": "end_turn"}, last=True)
        elif name == "done":
            said = {"role": "assistant", "content": text or None, "tool_calls": calls, "blocchi": data.pop("blocchi")}
            chats[chat] = [*messages, said]
            if calls:
                turn.add("pending", {"actions": [call | {"text": "Switch the light?"} for call in calls]})
            turn.add("done", data, last=True)
        else:
            text += data["text"] if name == "delta" else ""
            calls += [data] if name == "tool_call" else []
            turn.add(name, data, last=name == "error")


def think(turn: Turn, chat: str, messages: list) -> None:
    """One call of the model."""
    body = {"stream": True, "system": SYSTEM, "messages": messages, "tools": TOOLS}
    request = urllib.request.Request(f"{URL}/agent", json.dumps(body).encode(), HEADERS)
    try:
        with urllib.request.urlopen(request, timeout=120) as stream:
            hear(stream, turn, chat, messages)
    except urllib.error.HTTPError as refused:
        later = {"retry_after": refused.headers["Retry-After"]}
        turn.add("error", json.load(refused)["error"] | later, last=True)
    except OSError:
        pass
    if not turn.ended:
        turn.add("error", {"code": "servizio_non_disponibile", "message": "Crocevia does not answer."}, last=True)


def decide(turn: Turn, chat: str, call: dict, approved: bool) -> None:
    """Run the tool, or do not; tell the page, and the model when nothing waits any more."""
    if approved:
        light["on"] = bool(call["arguments"].get("on"))
        turn.add("tool_done", {"id": call["id"], "ok": True})
    chats[chat].append(result(call, {"light": light} if approved else {"status": "the user said no"}))
    if open_calls(chats[chat]):
        turn.add("done", {"stop_reason": "end_turn"}, last=True)
    else:
        think(turn, chat, chats[chat])


def begin(body: dict) -> Turn | None:
    """The turn that this body starts or goes back to; None for one that nobody knows."""
    chat, known = body["conversazione"], turns.get(body["turno"])
    if (known and not known.failed) or body["tipo"] == "riprendi":
        return known
    turn = Turn()
    messages = chats.get(chat, [])
    if body["tipo"] == "messaggio":
        waiting = [result(call, {"status": "in_attesa_conferma"}) for call in open_calls(messages)]
        content = [*body["allegati"], {"tipo": "testo", "testo": body["testo"]}] if body["allegati"] else body["testo"]
        work, arguments = think, (turn, chat, [*messages, *waiting, {"role": "user", "content": content}])
    else:
        call = next((call for call in open_calls(messages) if call["id"] == body.get("azione")), None)
        if call is None:
            return None
        work, arguments = decide, (turn, chat, call, body["esito"] == "approvata")
    turns[body["turno"]] = turn
    threading.Thread(target=work, args=arguments, daemon=True).start()
    return turn


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        name = FILES.get(self.path)
        if name is None:
            return self.reply(204 if self.path == "/favicon.ico" else 404)
        text = Path(__file__).with_name(name).read_text("utf-8").replace("URL", URL).replace("PROJECT", PROJECT)
        return self.reply(200, KINDS[name.split(".")[1]] + "; charset=utf-8", [text.encode()])

    def do_POST(self) -> None:
        # Only pages of this server can send JSON here without asking first: nobody else's page can talk in your name.
        if self.path != "/chat" or self.headers["Content-Type"] != "application/json":
            return self.reply(404)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if body["tipo"] == "nuova":
            chats.pop(body["conversazione"], None)
            return self.reply(204)
        if body["tipo"] == "ferma":
            if body["turno"] in turns:
                turns[body["turno"]].stopped = True
            return self.reply(204)
        turn = begin(body)
        if turn is None:
            return self.reply(404)
        return self.reply(200, "text/event-stream; charset=utf-8", turn.read(body.get("dopo", 0)))

    def reply(self, status: int, kind: str = "text/plain", pieces=()) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", CSP)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)


if __name__ == "__main__":
    port = int(os.environ.get("PORT", "8200"))
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
        server.serve_forever()
