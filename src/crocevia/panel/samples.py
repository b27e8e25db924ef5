"""Code to copy, with this server's address. Keys are read from the environment, never written into it."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec

from crocevia.panel.chat_server import PROGRAM
from crocevia.runtime.control.declarations import Declaration, spell

PROJECT_KEY: Final = "CROCEVIA_PROJECT_KEY"
API_KEY: Final = "CROCEVIA_API_KEY"
OPERATOR_TOKEN: Final = "CROCEVIA_OPERATOR_TOKEN"  # noqa: S105  # the name of a variable


class Sample(msgspec.Struct, frozen=True):
    """Code to copy."""

    language: str
    """The name above the code."""
    code: str


def declaration(table: str, spec: Any) -> Sample:
    """The value as `crocevia apply` takes it."""
    declared: dict[str, Any] = {table: (spec,)}
    return Sample("crocevia apply", spell(Declaration(**declared)))


def agent_call(origin: str, project: str) -> list[Sample]:
    """One question to a project."""
    headers = {"X-Pepper-Project": project}
    body = '{"stream": true, "messages": [{"role": "user", "content": "Ciao! Chi sei?"}]}'
    return request(origin, "/agent", body, {"X-Pepper-Key": PROJECT_KEY}, headers)


def chat_events(origin: str, chat_id: str) -> list[Sample]:
    """Everything that happens in a chat, from its beginning on."""
    version = {"X-Envai-Contract-Version": "3", "Accept": "text/event-stream"}
    return request(origin, f"/api/v1/atp/v3/chats/{chat_id}/events", None, {"Authorization": API_KEY}, version)


def request(origin: str, path: str, body: str | None, secrets: dict[str, str], headers: dict[str, str]) -> list[Sample]:
    """The same request in three languages, a POST if there is a body. secrets: header to the variable that holds it."""
    return [
        Sample("curl", _curl(origin + path, body, secrets, headers)),
        Sample("Python", _python(origin + path, body, secrets, headers)),
        Sample("JavaScript", _javascript(origin + path, body, secrets, headers)),
    ]


def chat_server(origin: str, project: str) -> Sample:
    """A page with the chat and the server behind it, in one file."""
    return Sample("Chat page (Python)", PROGRAM.replace("@origin@", origin).replace("@project@", project))


def project(origin: str, name: str) -> list[Sample]:
    """Samples for a project's key."""
    return [*agent_call(origin, name), chat_server(origin, name)]


def kit_page(origin: str, project: str) -> list[Sample]:
    """A page with the chat, which talks to the page's own server."""
    return [
        Sample(
            "HTML",
            f"""<link rel="stylesheet" href="{origin}/kit.php?f=css">
<div id="chat"></div>
<script src="{origin}/kit.php?f=js"></script>
<script src="chat.js"></script>""",
        ),
        Sample(
            "chat.js",
            f"""PepperChat.attacca(document.getElementById("chat"), {{
  indirizzo: "/my-server/chat",
  progetto: "{quote(project, safe="")}",
  funzioni: {{ allegati: true }},
}});""",
        ),
        chat_server(origin, project),
    ]


def _prefix(header: str) -> str:
    return "Bearer " if header == "Authorization" else ""


def _curl(url: str, body: str | None, secrets: dict[str, str], headers: dict[str, str]) -> str:
    lines = [f"curl -N {url}"]
    lines += [f'-H "{name}: {_prefix(name)}${variable}"' for name, variable in secrets.items()]
    lines += [f'-H "{name}: {value}"' for name, value in headers.items()]
    if body is not None:
        lines += ['-H "Content-Type: application/json"', f"-d '{body}'"]
    return " \\\n  ".join(lines)


def _python(url: str, body: str | None, secrets: dict[str, str], headers: dict[str, str]) -> str:
    sent = [f'"{name}": f"{_prefix(name)}{{os.environ[\'{variable}\']}}"' for name, variable in secrets.items()]
    sent += [f'"{name}": "{value}"' for name, value in headers.items()]
    if body is not None:
        sent.append('"Content-Type": "application/json"')
    data = "" if body is None else f"    data={body!r}.encode(),\n"
    lines = "".join(f"        {line},\n" for line in sent)
    return (
        "import os\nimport urllib.request\n\n"
        f'request = urllib.request.Request(\n    "{url}",\n{data}    headers={{\n{lines}    }},\n)\n'
        "with urllib.request.urlopen(request) as answer:\n"
        '    for line in answer:\n        print(line.decode(), end="")'
    )


def _javascript(url: str, body: str | None, secrets: dict[str, str], headers: dict[str, str]) -> str:
    sent = [f'"{name}": `{_prefix(name)}${{process.env.{variable}}}`' for name, variable in secrets.items()]
    sent += [f'"{name}": "{value}"' for name, value in headers.items()]
    if body is not None:
        sent.append('"Content-Type": "application/json"')
    lines = "".join(f"    {line},\n" for line in sent)
    data = "" if body is None else f'  method: "POST",\n  body: JSON.stringify({body}),\n'
    return (
        "// on your server (Node 18 or newer): a key never goes into a page\n"
        f'const answer = await fetch("{url}", {{\n{data}  headers: {{\n{lines}  }},\n}});\n'
        "const decoder = new TextDecoder();\n"
        "for await (const piece of answer.body) process.stdout.write(decoder.decode(piece, { stream: true }));"
    )
