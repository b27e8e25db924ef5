"""Chats as the operator sees them: what they wait for, and a turn's events as readable steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from crocevia.core.turn import entries as e
from crocevia.storage import operator_view as rows
from crocevia.storage.chats import LAST
from crocevia.storage.database import Transaction

__all__ = ["LAST", "ChatRow", "Step", "Timeline", "TurnRow", "WaitingRequest", "chat", "chats", "requests", "timeline"]

MOST_STEPS: Final = 1000  # of one turn, the newest
MOST_REQUESTS: Final = 200
_PAGE: Final = 500
_MOST_ENTRIES: Final = 20_000  # that are looked at to find a turn
_NEWEST: Final = 2**62
_LONGEST: Final = 4000  # characters of a step's text

ChatState = Literal["running", "waiting", "succeeded", "failed", "canceled", "empty"]


class ChatRow(msgspec.Struct, frozen=True, kw_only=True):
    """A chat with its newest turn."""

    id: str
    user_id: str
    workspace_id: str
    title: str | None
    owner: str
    workspace: str
    team: str
    created_at: float
    open_turn: str | None
    waiting: int
    """Requests that are open."""
    state: ChatState
    started_at: float | None
    cost_usd: float | None
    """None: unknown."""


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """A turn in the list of its chat."""

    id: str
    status: str
    started_at: float
    duration_ms: int | None


class WaitingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Something a turn waits for."""

    id: str
    turn: str
    kind: Literal["approval", "tool"]
    chat_id: str
    user_id: str
    title: str | None
    team: str
    agent: str
    tool: str
    args: str
    """JSON text."""
    reason: str
    deadline: float
    """Unix seconds."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Events that belong together."""

    seq: int
    """Of the first one."""
    at: float
    type: str
    agent: str | None
    depth: int
    """Of the agent below the turn."""
    name: str | None
    text: str
    """What was said."""


class TeamInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An agent at work for another one."""

    instance_id: str
    name: str
    task: str
    """What it was given to do, in a few words."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Steps of a turn in order."""

    steps: list[Step]
    earlier: bool
    """Whether there were more than are shown."""
    head: int
    """The newest event's seq."""
    members: list[TeamInstance] = []
    """Who is at work below the agent that leads."""


class _Peek(msgspec.Struct):
    turn: str = ""


_peek: Final = msgspec.json.Decoder(_Peek)


def chats(tx: Transaction, before: str, most: int, only_open: bool) -> list[ChatRow]:
    """Everybody's chats born before the chat `before` (LAST: all), newest first."""
    return [_chat(row) for row in rows.chat_page(tx, before, most, only_open)]


def chat(tx: Transaction, chat_id: str) -> ChatRow | None:
    """The chat of this id, whoever owns it."""
    row = rows.find_chat(tx, chat_id)
    return None if row is None else _chat(row)


def turns(tx: Transaction, chat_id: str, most: int) -> list[TurnRow]:
    """Its newest turns, newest first."""
    return [TurnRow(**row._asdict()) for row in rows.turns_of(tx, chat_id, most)]


def requests(tx: Transaction, now: float) -> list[WaitingRequest]:
    """What turns wait for now, the most urgent first."""
    found = rows.open_requests(tx, int(now * 1000), MOST_REQUESTS)
    asked: dict[str, e.ApprovalRequest | e.ToolRequest] = {}
    for chat_id in dict.fromkeys(row.chat_id for row in found):
        asked.update(_asked(tx, chat_id, {row.id for row in found if row.chat_id == chat_id}))
    return [_request(row, asked[row.id]) for row in found if row.id in asked]


def timeline(tx: Transaction, chat_id: str, turn_id: str) -> Timeline:
    """What happened in a turn: deltas that belong together are one step."""
    newest_first: list[tuple[int, e.Entry]] = []
    inside = False
    for seq, body in _backwards(tx, chat_id):
        mine = _peek.decode(body).turn == turn_id
        if inside and not mine:
            break
        if mine:
            inside = True
            newest_first.append((seq, e.decode(body)))
    steps = _steps(reversed(newest_first))
    return Timeline(
        steps=steps[-MOST_STEPS:],
        earlier=len(steps) > MOST_STEPS,
        head=newest_first[0][0] if newest_first else 0,
        members=_members(entry for _, entry in reversed(newest_first)),
    )


def _members(entries: Iterable[e.Entry]) -> list[TeamInstance]:
    """Who was given something to do and has not ended, in the order in which they began."""
    found: dict[str, TeamInstance] = {}
    for entry in entries:
        if isinstance(entry, e.Delegated):
            child = entry.child_instance_id
            found[child] = TeamInstance(instance_id=child, name=entry.child_name, task=entry.title)
        elif isinstance(entry, e.AgentDone | e.AgentFailed):
            found.pop(entry.agent.instance_id, None)
    return list(found.values())


def _backwards(tx: Transaction, chat_id: str) -> Iterator[tuple[int, bytes]]:
    before = _NEWEST
    for _ in range(_MOST_ENTRIES // _PAGE):
        page = rows.entries_before(tx, chat_id, before, _PAGE)
        for row in page:
            yield row.seq, row.body
        if len(page) < _PAGE:
            return
        before = page[-1].seq


def _asked(tx: Transaction, chat_id: str, wanted: set[str]) -> dict[str, e.ApprovalRequest | e.ToolRequest]:
    found: dict[str, e.ApprovalRequest | e.ToolRequest] = {}
    for _, body in _backwards(tx, chat_id):
        if len(found) == len(wanted):
            break
        if b".request" not in body:
            continue
        entry = e.decode(body)
        if isinstance(entry, e.ApprovalRequest) and entry.approval_id in wanted:
            found[entry.approval_id] = entry
        elif isinstance(entry, e.ToolRequest) and entry.call_id in wanted:
            found[entry.call_id] = entry
    return found


def _request(row: Any, asked: e.ApprovalRequest | e.ToolRequest) -> WaitingRequest:
    return WaitingRequest(
        id=row.id,
        turn=row.turn,
        kind=row.kind,
        chat_id=row.chat_id,
        user_id=row.user_id,
        title=row.title,
        team=row.team,
        agent=asked.agent.name,
        tool=asked.tool_name,
        args=_json(asked.args),
        reason=getattr(asked, "reason", ""),
        deadline=row.deadline / 1000,
    )


def _chat(row: Any) -> ChatRow:
    fields = row._asdict()
    status = fields.pop("status")
    state = "waiting" if row.waiting else "running" if row.open_turn else status or "empty"
    return ChatRow(**fields | {"waiting": row.waiting or 0, "state": state})


# --- steps ---------------------------------------------------------------------------------------------------------

# An entry's own words, by its attribute; entries with none say it all with their type.
_NAMES: Final = ("tool_name", "child_name", "title", "name", "code")
_TEXTS: Final = ("text", "delta", "input", "task", "plan", "output", "args", "result", "reason", "message", "summary")
_JOINED: Final[dict[type, str]] = {
    e.AgentTextDelta: "agent.text",
    e.TextDone: "agent.text",
    e.AgentReasoningDelta: "agent.reasoning",
    e.ReasoningDone: "agent.reasoning",
}
_WHOLE: Final = (e.TextDone, e.ReasoningDone)


def _steps(entries: Iterator[tuple[int, e.Entry]]) -> list[Step]:
    steps: list[Step] = []
    newest: dict[str, int] = {}  # the place of each instance's newest step
    depths: dict[str, int] = {}
    tools: dict[str, str] = {}
    heard: set[tuple[str, str]] = set()
    for seq, entry in entries:
        agent = getattr(entry, "agent", None)
        instance = "" if agent is None else agent.instance_id
        if isinstance(entry, e.ToolDelta) or (isinstance(entry, _WHOLE) and (instance, _type(entry)) in heard):
            continue  # it was said already, piece by piece
        step = _step(seq, entry, depths, tools)
        place = newest.get(instance, -1)
        if type(entry) in _JOINED:
            heard.add((instance, step.type))
            if place >= 0 and steps[place].type == step.type:
                before = steps[place]
                steps[place] = msgspec.structs.replace(before, text=(before.text + step.text)[:_LONGEST])
                continue
        newest[instance] = len(steps)
        steps.append(step)
    return [msgspec.structs.replace(step, text=step.text.strip()) for step in steps]


def _type(entry: e.Entry) -> str:
    return _JOINED.get(type(entry), e.type_of(entry))


def _step(seq: int, entry: e.Entry, depths: dict[str, int], tools: dict[str, str]) -> Step:
    agent = getattr(entry, "agent", None)
    if agent is not None and agent.instance_id not in depths:
        depths[agent.instance_id] = depths.get(agent.parent_id or "", 0) + 1
    call_id, name = getattr(entry, "call_id", None), _first(entry, _NAMES)
    if call_id and name:
        tools[call_id] = name
    return Step(
        seq=seq,
        at=entry.at / 1000,
        type=_type(entry),
        agent=None if agent is None else agent.name,
        depth=0 if agent is None else depths[agent.instance_id],
        name=name or tools.get(call_id or ""),
        text=(_first(entry, _TEXTS) or "")[:_LONGEST],
    )


def _first(entry: e.Entry, names: tuple[str, ...]) -> str | None:
    for name in names:
        value = getattr(entry, name, None)
        if isinstance(value, Raw):
            return _json(value)
        if isinstance(value, str) and value:
            return value
    return None


def _json(raw: Raw) -> str:
    """JSON as people read it; a string without its quotes."""
    value = msgspec.json.decode(raw)
    return value if isinstance(value, str) else msgspec.json.format(raw, indent=2).decode()
