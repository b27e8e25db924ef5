"""An assistant for a house: the whole tool loop of the agent call, in plain Python.

    python examples/house_agent.py
    python examples/house_agent.py --yes "Turn the climate of the salone off"

The model decides, this program acts: it offers two tools, runs what the model asks for, asks you before it changes
anything, sends the results back, and stops when the model has its answer. It needs a running server (`make run`) and
the project key that was printed at its first start:

    export CROCEVIA_PROJECT_KEY=…

Address and project can be set too: CROCEVIA_URL (http://127.0.0.1:8111) and CROCEVIA_PROJECT (default).
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

SYSTEM = "You are the assistant of a house. Use the tools to see and to act. Be brief."
QUESTION = "What is the temperature at home?"
MAX_ROUNDS = 8
SILENCE = 120  # seconds without a byte; the server says `: ping` every 15
WAITING = {"status": "in_attesa_conferma"}

TOOLS = [
    {
        "name": "get_home_status",
        "description": "Short status of the home: temperature, presence, gate, climate of each room.",
        "parameters": {"type": "object", "properties": {}, "required": []},
    },
    {
        "name": "set_climate",
        "description": "Switch the climate of a room on or off.",
        "parameters": {
            "type": "object",
            "properties": {
                "target": {"type": "string", "enum": ["salone", "zona_notte"]},
                "action": {"type": "string", "enum": ["on", "off"]},
            },
            "required": ["target", "action"],
        },
    },
]
NEEDS_CONFIRMATION = {"set_climate"}


class Problem(Exception):
    """Something the person in front of the screen should read."""


class House:
    """The hands. A real one would talk to real devices."""

    def __init__(self) -> None:
        self.climate = {"salone": "on", "zona_notte": "off"}

    def run(self, tool: str, arguments: dict) -> dict:
        """The result of a tool. A mistake is a result too: the model reads it and tries again."""
        if tool == "get_home_status":
            return {"temperature_c": 19.5, "presence": "Andrea", "gate": "closed", "climate": dict(self.climate)}
        if tool == "set_climate":
            return self.set_climate(arguments.get("target"), arguments.get("action"))
        return {"error": f"there is no tool called {tool}"}

    def set_climate(self, target: object, action: object) -> dict:
        if target not in self.climate or action not in ("on", "off"):
            return {"error": f"target is one of {', '.join(self.climate)}; action is on or off"}
        self.climate[str(target)] = str(action)
        return {"ok": True, "target": target, "climate": action}


class Server:
    """POST /agent, streamed."""

    def __init__(self, url: str, project: str, key: str) -> None:
        self.url = urlsplit(url)
        if self.url.scheme not in ("http", "https") or not self.url.hostname:
            raise Problem(f"{url} is not an http address")
        self.headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "X-Pepper-Key": key,
            "X-Pepper-Project": project,
        }

    def call(self, body: dict) -> Iterator[tuple[str, dict]]:
        """The events of one answer as (name, data), up to and including `done`. Raises Problem."""
        secure = self.url.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self.url.hostname or "", self.url.port, timeout=SILENCE)
        try:
            connection.request("POST", f"{self.url.path.rstrip('/')}/agent", json.dumps(body).encode(), self.headers)
            answer = connection.getresponse()
            if answer.status != 200:
                raise Problem(refusal(answer))
            yield from until_done(events(answer))
        except ConnectionRefusedError:
            raise Problem(f"Nothing answers at {self.url.geturl()}. Start the server with `make run`.") from None
        except (OSError, http.client.HTTPException) as error:
            raise Problem(f"The connection to {self.url.geturl()} broke: {error!r}") from None
        finally:
            connection.close()


def refusal(answer: http.client.HTTPResponse) -> str:
    """An answer that is not 200, for people."""
    try:
        error = json.loads(answer.read())["error"]
        said = f"{error['code']}: {error['message']}"
    except (ValueError, KeyError, TypeError):
        said = answer.reason
    later = answer.headers.get("Retry-After")
    return f"The server answered {answer.status}, {said}" + (f" (try again in {later} s)" if later else "")


def events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, dict]]:
    """Server-sent events as (name, data). Lines that begin with a colon are only there to keep the connection alive."""
    name, data = "message", []
    for raw in answer:
        line = raw.decode().rstrip("\r\n")
        if not line:
            if data:
                yield name, json.loads("\n".join(data))
            name, data = "message", []
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))


def until_done(heard: Iterator[tuple[str, dict]]) -> Iterator[tuple[str, dict]]:
    for name, data in heard:
        if name == "error":
            raise Problem(f"The answer ended early, {data.get('code')}: {data.get('message')}")
        yield name, data
        if name == "done":
            return
    raise Problem("The connection closed before the answer was complete.")


def listen(heard: Iterator[tuple[str, dict]]) -> tuple[dict, dict]:
    """Print an answer as it comes. Gives back the assistant message that belongs in the history, and `done`."""
    texts, calls, done = [], [], {}
    for name, data in heard:
        if name == "delta":
            if not texts:
                print("Pepper:  ", end="")
            texts.append(data["text"])
            print(data["text"], end="", flush=True)
        elif name == "tool_call":
            calls.append(data)
        elif name == "done":
            done = data
    print(end="\n" if texts else "")
    return spoken("".join(texts), calls, done), done


def spoken(text: str, calls: list[dict], done: dict) -> dict:
    """The assistant message of an answer."""
    # Text and tool calls of one answer are one message; the text goes back exactly as it came, `blocchi` untouched.
    message = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    if done.get("blocchi"):
        message["blocchi"] = done["blocchi"]
    return message


def act(house: House, call: dict, *, always: bool) -> dict:
    """Run one tool call, after asking where it changes something; its result as a message."""
    shown = f"{call['name']}({', '.join(f'{key}={value}' for key, value in call['arguments'].items())})"
    if call["name"] in NEEDS_CONFIRMATION and not always and not confirmed(shown):
        result: dict = WAITING
    else:
        result = house.run(call["name"], call["arguments"])
    content = json.dumps(result)
    print(f"  tool:  {shown} -> {content}")
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


def confirmed(shown: str) -> bool:
    if not sys.stdin.isatty():
        print(f"  {shown} waits for a confirmation, and nobody is here to give it (--yes allows it)")
        return False
    return input(f"  Run {shown}? [y/N] ").strip().lower() in ("y", "yes", "s", "si", "sì")


def converse(server: Server, question: str, *, always: bool) -> None:
    """One question of the user: calls and tools, until the model has its answer."""
    house, session = House(), str(uuid.uuid4())
    messages: list[dict] = [{"role": "user", "content": question}]
    print(f"You:      {question}")
    written = 0
    for round_number in range(1, MAX_ROUNDS + 1):
        body = {"stream": True, "max_tokens": 1024, "session_id": session, "system": SYSTEM}
        message, done = listen(server.call({**body, "messages": messages, "tools": TOOLS}))
        messages.append(message)
        usage = done.get("usage") or {}
        written += usage.get("output_tokens") or 0
        if done.get("stop_reason") != "tool_use":
            # Each round sends the history again: the last one's input is the whole, outputs add up.
            read = usage.get("input_tokens") or 0
            print(f"({done.get('versione')}: rounds {round_number}, tokens in {read}, out {written})")
            return
        # Every call gets its result, also one that still waits: without it the next request is refused.
        messages += [act(house, call, always=always) for call in message.get("tool_calls", [])]
    raise Problem(f"Still asking for tools after {MAX_ROUNDS} rounds: stopped.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", nargs="?", default=QUESTION)
    parser.add_argument("--yes", action="store_true", help="do not ask before changing something in the house")
    parser.add_argument("--url", default=os.environ.get("CROCEVIA_URL", "http://127.0.0.1:8111"))
    parser.add_argument("--project", default=os.environ.get("CROCEVIA_PROJECT", "default"))
    parser.add_argument("--key", default=os.environ.get("CROCEVIA_PROJECT_KEY", ""))
    chosen = parser.parse_args()
    try:
        if not chosen.key:
            raise Problem(
                "No project key. `make run` printed it at its first start, as project_key; paste it here:\n"
                "  export CROCEVIA_PROJECT_KEY=…\n"
                "(or use --key; `crocevia apply` can give a project a new one)"
            )
        converse(Server(chosen.url, chosen.project, chosen.key), chosen.question, always=chosen.yes)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
