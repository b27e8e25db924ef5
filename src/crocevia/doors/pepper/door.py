"""The door: which address is whose, and what each of them takes, answers and refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from crocevia.asgi.document import About, describing
from crocevia.asgi.http import Door, Operation
from crocevia.core import json
from crocevia.doors.pepper import wire, wire_classic, wire_reports
from crocevia.doors.pepper.agent import agent
from crocevia.doors.pepper.caller import AnswerRule, Identify, ProjectCaller, Request, authenticate_key, project_header
from crocevia.doors.pepper.capabilities import capabilities
from crocevia.doors.pepper.classic import ask, forget
from crocevia.doors.pepper.errors import refuse
from crocevia.doors.pepper.kit import read_kit
from crocevia.doors.pepper.verify import verify
from crocevia.runtime.classic import Classic
from crocevia.runtime.gateway import Gateway

DOCUMENT: Final = "/pepper/openapi.json"
PAGE: Final = "/pepper/docs"

_ABOUT: Final = About(
    title="Crocevia: Pepper Agent API",
    about="One question to one model: the application owns the tools and the history. The project goes with its key.",
    failure=wire.Refusal,
    security={"key": {"type": "apiKey", "in": "header", "name": "X-Pepper-Key"}},
)
_CALL: Final = (400, 401, 403, 413, 422, 429, 502, 503)
_PROJECT: Final[dict[str, tuple[dict[str, Any], bool]]] = {"X-Pepper-Project": ({"type": "string"}, False)}


def pepper_door(
    gateway: Gateway, classic: Classic, model_of: Callable[[str], str | None], *, max_body: int = wire.MAX_BODY
) -> Door:
    """Everything. model_of: the model's name of a project; None if there is no such project. max_body: bytes."""
    rows = (
        agent_row(gateway, max_body),
        *call_rows(gateway, max_body),
        *classic_rows(classic, max_body),
        kit_row(model_of),
    )
    return _door((*rows, *describing(_ABOUT, rows, DOCUMENT, PAGE)), partial(authenticate_key, gateway))


def agent_door(gateway: Gateway, identify: Identify, *, max_body: int = wire.MAX_BODY) -> Door:
    """The agent call alone, for callers that need no key. identify: the project by its name."""

    async def authenticate(request: Request) -> ProjectCaller:
        return ProjectCaller(project_header(request), identify)

    return _door((agent_row(gateway, max_body),), authenticate)


def _door(table: tuple[Operation, ...], authenticate: Any) -> Door:
    return Door(
        name="pepper",
        table=table,
        authenticate=authenticate,
        refuse=refuse,
        decode=json.decode,
        challenge=b"X-Pepper-Key",
    )


def agent_row(gateway: Gateway, max_body: int) -> Operation:
    """The agent call."""
    return Operation(
        "agent",
        "POST",
        "/agent",
        partial(agent, gateway),
        "One step of an agent: an answer, or calls of the application's tools; with `stream` as events.",
        rule=AnswerRule.LIMITED,
        max_body=max_body,
        aliases=("/agent.php",),
        headers=_PROJECT,
        body=wire.Request,
        result=wire.Reply,
        also=("text/event-stream",),
        refuses=_CALL,
    )


def call_rows(gateway: Gateway, max_body: int) -> tuple[Operation, ...]:
    """What is asked about a call."""
    return (
        Operation(
            "verifica",
            "POST",
            "/agent/verifica",
            partial(verify, gateway),
            "What would become of this request, without asking any model.",
            max_body=max_body,
            aliases=("/agent/verifica.php",),
            headers=_PROJECT,
            body=wire.Request,
            result=wire_reports.Report,
            refuses=(400, 401, 403, 413, 503),
        ),
        Operation(
            "capacita",
            "GET",
            "/capacita.php",
            partial(capabilities, gateway, max_body),
            "What the project's model can do, and which limits the project has.",
            head=True,
            aliases=("/capacita",),
            headers={"X-Pepper-Project": ({"type": "string"}, True)},
            result=wire_reports.Capabilities,
            refuses=(401, 503),
        ),
    )


def classic_rows(classic: Classic, max_body: int) -> tuple[Operation, ...]:
    """The classic API."""
    return (
        Operation(
            "classica",
            "POST",
            "/api.php",
            partial(ask, classic),
            "The classic call: a content by a recipe, with conversations that the server remembers.",
            rule=AnswerRule.LIMITED,
            max_body=max_body,
            aliases=("/api",),
            headers=_PROJECT,
            body=wire_classic.Richiesta,
            result=wire_classic.Risposta,
            refuses=_CALL,
        ),
        Operation(
            "dimentica",
            "DELETE",
            "/api.php",
            partial(forget, classic),
            "Forget a conversation of the classic call. The answer says whether there was one of that name.",
            rule=AnswerRule.LIMITED,
            aliases=("/api",),
            headers=_PROJECT,
            query=wire_classic.Cancellazione,
            result=wire_classic.Cancellata,
            refuses=(400, 401, 503),
        ),
    )


def kit_row(model_of: Callable[[str], str | None]) -> Operation:
    """The chat kit."""
    return Operation(
        "kit",
        "GET",
        "/kit.php",
        partial(read_kit, model_of),
        "The chat kit's version, the name of a project's model, or one of the kit's files.",
        head=True,
        query=wire_reports.KitQuery,
        query_errors="replace",
        result=dict[str, Any],
        also=("text/javascript", "text/css"),
        refuses=(400, 404),
        public=True,
    )
