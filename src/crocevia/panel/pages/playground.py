"""The chat kit on any project or team, with the stream as it comes beside it.

The kit talks to `/panel/playground/chat` the way it talks to an app's server: the history stays here, in memory, and
the agent call is made as the project, so that no key reaches the browser. Teams: see `playground_team`.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.responses import JSONResponse, Response

from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.kit import SWITCHES
from crocevia.panel.conversation_stream import ConversationStream
from crocevia.panel.demo_tool import Messages, open_calls, result
from crocevia.panel.kit_wire import KitRequest, event
from crocevia.panel.web import Page, PageRequest, PageResponse, PageView, read_body
from crocevia.panel.writing import load

LARGEST: Final = 32 << 20
_FILES: Final = "allegati"
_ON: Final = (_FILES, "lettura", "conferme", "nuova")


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """At most one of `project` and `team` is set."""

    project: str | None
    model: str | None
    team: str | None
    projects: tuple[str, ...]
    teams: tuple[str, ...]
    address: str
    """Where the kit posts to."""
    switches: tuple[str, ...]
    """Of the kit, those that are on here."""
    has_kit: bool
    tool: bool
    """Whether the demo tool is offered."""


async def show(request: PageRequest) -> PageResponse:
    projects = request.services.catalogue.current.projects
    teams = tuple(await load(request, "teams"))
    kind, _, name = request.query.get("to", "").partition("/")
    team = _chosen(teams, request.query.get("team") or (name if kind == "team" else ""))
    chosen = _chosen(projects, request.query.get("project") or (name if kind == "project" else ""))
    if team is None and chosen is None:
        chosen = next(iter(projects), None)
        team = next(iter(teams), None) if chosen is None else None
    project = projects[chosen] if chosen is not None and team is None else None
    tool = project is not None and request.query.get("tool") == "on"
    context = Context(
        project=project.name if project else None,
        model=project.model if project else None,
        team=team,
        projects=tuple(projects),
        teams=teams,
        address=_address(team, tool),
        switches=tuple(
            switch.name for switch in SWITCHES if switch.name in _ON and (not team or switch.name != _FILES)
        ),
        has_kit="/kit.php" in request.services.paths,
        tool=tool,
    )
    return PageView(template="playground", context=context, title=request.t("nav.playground"), nav="playground")


def _chosen(names: Container[str], name: str) -> str | None:
    return name if name in names else None


def _address(team: str | None, tool: bool) -> str:
    if team is not None:
        return f"/panel/playground/team?team={quote(team, safe='')}"
    return "/panel/playground/chat?tool=on" if tool else "/panel/playground/chat"


async def chat(request: PageRequest) -> PageResponse:
    sent = json.decode(await read_body(request.http, LARGEST), KitRequest)
    owner = f"{request.signed_in.digest}/{sent.conversation[:100]}"
    conversations, project = request.state.conversations, sent.project or ""
    if sent.kind == "nuova":
        conversations.drop(owner, project)
    if sent.kind in ("nuova", "ferma"):
        return Response(status_code=204)
    history, first = conversations.get(owner, project), b""
    waiting = open_calls(history)
    if sent.kind == "messaggio":
        history += [*(result(call, None) for call in waiting), _message(sent)]
    elif sent.kind == "conferma":
        call = next((call for call in waiting if call["id"] == sent.action), None)
        if call is None:
            return _refusal(GatewayError(Reason.NOT_FOUND), 404)
        first = _decide(history, call, sent.approved)
        conversations.put(owner, project, history)  # the tool has run, whatever becomes of the call
        if len(waiting) > 1:  # the others wait for their own answer
            return Response(first + event("done", {"stop_reason": "end_turn"}), media_type="text/event-stream")
    else:
        return _refusal(GatewayError(Reason.UNSUPPORTED, what=sent.kind), 409)
    return ConversationStream(
        request.services.agent_call,
        project,
        history,
        on_end=lambda messages: conversations.put(owner, project, messages),
        tools=request.query.get("tool") == "on" or any(message.get("tool_calls") for message in history),
        first=first,
        question=request.t("playground.question"),
    )


def _decide(history: Messages, call: dict[str, Any], approved: bool) -> bytes:
    """Run the tool, or do not; returns the event that tells the page."""
    history.append(result(call, approved))
    return event("tool_done", {"id": call["id"], "ok": True}) if approved else b""


def _message(sent: KitRequest) -> dict[str, Any]:
    text = [{"tipo": "testo", "testo": sent.text}] if sent.text else []
    return {"role": "user", "content": [*sent.attachments, *text] if sent.attachments else sent.text}


def _refusal(error: GatewayError, status: int) -> Response:
    return JSONResponse({"error": {"code": error.code.value, "message": ""}}, status)


PAGES: Final = (
    Page(path="/panel/playground", get=show),
    Page(path="/panel/playground/chat", post=chat),
)
