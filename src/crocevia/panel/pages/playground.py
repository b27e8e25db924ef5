"""The chat kit on any project, with the stream as it comes beside it.

The kit talks to `/panel/playground/chat` the way it talks to an app's server: the history stays here, in memory, and
the agent call is made as the project, so that no key reaches the browser.
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from starlette.responses import JSONResponse, Response

from crocevia.core import json
from crocevia.core.errors import Code, GatewayError
from crocevia.kit import SWITCHES
from crocevia.panel import words
from crocevia.panel.conversation_stream import Stream
from crocevia.panel.web import Answer, Ask, Page, Shown, read_body

LARGEST: Final = 32 << 20


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """address: where the kit posts to. switches: of the kit, on here."""

    project: str | None
    model: str | None
    projects: tuple[str, ...]
    address: str
    switches: tuple[str, ...]
    has_kit: bool


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """What the kit posts. Fields that this page has no use for are left unread."""

    tipo: Literal["messaggio", "conferma", "nuova", "riprendi", "ferma"]
    conversazione: str
    progetto: str = ""
    testo: str = ""
    allegati: list[dict[str, Any]] = []


async def show(ask: Ask) -> Answer:
    projects = ask.services.catalogue.current.projects
    name = ask.query.get("project", "")
    project = projects.get(name) or next(iter(projects.values()), None)
    context = Context(
        project=project.name if project else None,
        model=project.model if project else None,
        projects=tuple(projects),
        address="/panel/playground/chat",
        switches=tuple(switch.name for switch in SWITCHES if switch.name in ("allegati", "lettura", "nuova")),
        has_kit="/kit.php" in ask.services.paths,
    )
    return Shown(
        template="playground", context=context, title=words.say(ask.language, "nav.playground"), nav="playground"
    )


async def chat(ask: Ask) -> Answer:
    posted = json.decode(await read_body(ask.request, LARGEST), Posted)
    session = ask.session
    assert session is not None
    kept, owner = ask.state.conversations, f"{session.digest}/{posted.conversazione[:100]}"
    if posted.tipo == "nuova":
        kept.drop(owner, posted.progetto)
    if posted.tipo in ("nuova", "ferma"):
        return Response(status_code=204)
    if posted.tipo != "messaggio":
        return _refusal(GatewayError(Code.UNSUPPORTED))
    history = [*kept.get(owner, posted.progetto), _message(posted)]
    return Stream(
        ask.services.agent_call,
        posted.progetto,
        history,
        on_end=lambda messages: kept.put(owner, posted.progetto, messages),
    )


def _message(posted: Posted) -> dict[str, Any]:
    text = [{"tipo": "testo", "testo": posted.testo}] if posted.testo else []
    return {"role": "user", "content": [*posted.allegati, *text] if posted.allegati else posted.testo}


def _refusal(error: GatewayError) -> Response:
    return JSONResponse({"error": {"code": error.code.value, "message": ""}}, 409)


PAGES: Final = (
    Page(path="/panel/playground", get=show),
    Page(path="/panel/playground/chat", post=chat),
)
