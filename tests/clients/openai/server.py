"""A live server whose model follows a script, and what every client must get out of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.documents.zoo import pdf, photo
from tests.live import LiveServer, live_server

from .endless import Endless, endless_provider
from .features import needed

SETTINGS = "[gateway.http.endpoints.responses]\nenabled = true\n[gateway.http.models]\nexposeCatalog = true\n"
SETTINGS += "[calls]\nprogress_seconds = 2\n"
FAULTS = {
    "early": ["busy", "drop", "mute"],  # an error status, a cut and silence before the first word
    "late": ["break", "hush", "spoil"],  # a cut, silence and an error event after it
}
SCRIPT = """
[[engines]]
name = "embedded"
kind = "scripted"
script = [
  { when = { after_tool = true }, say = [{ text = "It is {tool_result}." }] },
  { when = { contains = "weather", tool_offered = "get_weather" }, say = [
    { reasoning = "The tool knows." }, { tool = "get_weather", arguments = { city = "Rome" } } ] },
  { when = { contains = "final", tool_offered = "final_result" }, say = [
    { tool = "final_result", arguments = { city = "Rome", degrees = 21 } } ] },
  { when = { contains = "city as json" }, say = [{ text = "{\\"city\\": \\"Rome\\", \\"degrees\\": 21}", chars = 5 }] },
  { when = { contains = "run a command", tool_offered = "exec_command" }, say = [
    { tool = "exec_command", arguments = { cmd = "echo crossroads" } } ] },
  { when = { contains = "run a command", tool_offered = "shell" }, say = [
    { tool = "shell", arguments = { command = ["echo", "crossroads"] } } ] },
  { when = { contains = "slowly" }, say = [{ text = "one two three four five six seven", every_ms = 400 }] },
  { when = { contains = "break" }, say = [{ text = "half of it" }, { cut = true }] },
  { when = { contains = "busy" }, say = [{ error = "failed" }] },
  { when = { contains = "drop" }, say = [{ cut = true }] },
  { when = { contains = "mute" }, say = [{ delay_ms = 60000 }] },
  { when = { contains = "hush" }, say = [{ text = "half of it" }, { delay_ms = 60000 }] },
  { when = { contains = "spoil" }, say = [{ text = "half of it" }, { error = "failed" }] },
  { when = { contains = "drip" }, say = [{ text = "slow bytes", chars = 1, every_ms = 100 }] },
  { when = { nth = 2 }, say = [{ text = "the second answer" }] },
  { say = [{ text = "You said: {last_user}", chars = 3 }, { usage = { input_tokens = 11, output_tokens = 4 } }] },
]
"""
PICTURE = "data:image/png;base64," + base64.b64encode(photo("PNG", (32, 32))).decode()
FILE = "data:text/plain;base64," + base64.b64encode(b"The code word is papaya.").decode()

PDF = base64.b64encode(pdf(["The code word is papaya."])).decode()
ENDLESS = """
[[engines]]
name = "endless"
kind = "openai-chat"
base_url = "{url}/v1"

[[models]]
name = "Endless"
engine = "endless"
upstream = "endless"

[[agents]]
name = "endless"
mode = "primary"
model = "Endless"
system_prompt = "Wait."
"""


@dataclass(frozen=True)
class Clients:
    """What the clients are let loose on."""

    server: LiveServer
    endless: Endless


@contextmanager
def serving(folder: Path, more: str = "") -> Iterator[Clients]:
    """more: what else is declared."""
    with endless_provider() as endless:
        declared = SCRIPT + ENDLESS.format(url=endless.url) + more
        with live_server(folder, declaration=declared, settings=SETTINGS) as server:
            yield Clients(server, endless)


def environment(clients: Clients) -> dict[str, str]:
    server = clients.server
    return {
        "BASE": f"{server.url}/v1",
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": str(server.secrets["operator_token"]),
        "PICTURE": PICTURE,
        "FILE": FILE,
        "PDF": PDF,
        "ENDLESS": clients.endless.url,
        "FAULTS": json.dumps(FAULTS),
    }


EXPECTED: dict[str, Any] = {
    "text": "You said: hi",
    "stream": "You said: hi",
    "tools": "It is sunny in Rome.",
    "stream_tools": "It is sunny in Rome.",
    "structured": {"city": "Rome", "degrees": 21},
    "image": "You said: look",
    "file": "You said: read",
    "chained": "the second answer",
    "cancelled": True,
    "failed": True,
    "faults": [],  # those that ended otherwise than in the client's own error, or too late
    "drip": "slow bytes",
    "refused": True,
    "chat": "You said: hi",
    "chat_stream": "You said: hi",
    "chat_tools": "It is sunny in Rome.",
    "chat_structured": {"city": "Rome", "degrees": 21},
    "models": True,
}


def check(results: dict[str, Any], client: str, *more: str) -> None:
    """Everything that was tried came out as it must, and all that the client can do, and `more`, was tried."""
    missing = {*needed(client), *more} - set(results)
    assert not missing, missing
    wrong = {name: value for name, value in results.items() if value != EXPECTED[name]}
    assert not wrong, wrong
