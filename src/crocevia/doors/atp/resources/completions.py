"""Completions of a chat, read only: turns write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec
from msgspec import UNSET, Meta, UnsetType

from crocevia.asgi.fields import read_query
from crocevia.asgi.http import Operation, Response, data
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.turn.plan import Totals
from crocevia.core.turn.snapshot import Snapshot
from crocevia.doors.atp.caller import Request, VersionRule
from crocevia.doors.atp.wire.common import Body, moment, moment_or_none
from crocevia.doors.atp.wire.costs import INACTIVE, BillingState, UsageCost, usage_cost
from crocevia.runtime.control import completions as control

MAX_PAGE = 1_000_000


class CompletionQuery(Body, frozen=True, kw_only=True):
    """Bounds are inclusive; without a zone they are UTC."""

    status: control.Status | None = None
    model_orchestrator: Annotated[str, Meta(max_length=255)] | None = None
    started_from: datetime | None = msgspec.field(default=None, name="started_at[from]")
    started_to: datetime | None = msgspec.field(default=None, name="started_at[to]")
    per_page: Annotated[int, Meta(ge=1, le=100)] = 15
    page: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 1


class SnapshotUsage(msgspec.Struct, frozen=True, kw_only=True):
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    duration_ms: int
    tool_calls: int


class SnapshotData(msgspec.Struct, frozen=True, kw_only=True):
    turn_id: str
    usage: SnapshotUsage
    cost: float | None
    chat_usage: SnapshotUsage
    chat_cost: float | None
    finish_reason: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class TerminalSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Frozen when the turn ended; nothing that was said is in it."""

    event_id: str
    occurred_at: datetime
    event_type: str
    data: SnapshotData
    v: int
    accepted_protocol_version: int


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True):
    prompt_tokens: int | UnsetType = UNSET
    completion_tokens: int | UnsetType = UNSET


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """cost_usd null: unknown, never zero. Version 2 has neither billing, usage_cost nor terminal_snapshot."""

    id: str
    workspace_id: str
    chat_id: str
    team_id: str
    user_id: str
    model_orchestrator: str | None
    models_subagents: tuple[str, ...]
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    usage: CompletionUsage
    cost_usd: float | None
    status: control.Status
    finish_reason: Literal["stop", "error", "canceled"] | None
    content_hash: str | None
    created_at: datetime
    updated_at: datetime
    billing: BillingState | UnsetType = UNSET
    usage_cost: UsageCost | UnsetType = UNSET
    terminal_snapshot: TerminalSnapshot | UnsetType | None = UNSET


class Links(msgspec.Struct, frozen=True, kw_only=True):
    first: str | None
    last: str | None
    prev: str | None
    next: str | None


class PageMeta(msgspec.Struct, frozen=True, kw_only=True):
    """from and to: the numbers of the first and the last item, from 1; null on an empty page."""

    current_page: int
    first_item: int | None = msgspec.field(name="from")
    last_page: int
    per_page: int
    to: int | None
    total: int


class CompletionCollection(msgspec.Struct, frozen=True, kw_only=True):
    data: list[Completion]
    links: Links
    meta: PageMeta


def completion(value: control.Completion, version: int) -> Completion | None:
    """As a version of the wire shows it; None if that version has no words for it (an unknown cost in version 2)."""
    cost = value.cost_usd
    if version == 2 and cost is None:
        if value.status != "running":
            return None
        cost = 0.0  # nothing has been accounted so far
    return Completion(
        id=value.id,
        workspace_id=value.workspace_id,
        chat_id=value.chat_id,
        team_id=value.team_id,
        user_id=value.user_id,
        model_orchestrator=value.model_orchestrator,
        models_subagents=value.models_subagents,
        started_at=moment(value.started_at),
        finished_at=moment_or_none(value.finished_at),
        duration_ms=value.duration_ms,
        usage=CompletionUsage(**{name: value.usage.get(name, UNSET) for name in CompletionUsage.__struct_fields__}),
        cost_usd=cost,
        status=value.status,
        finish_reason=value.finish_reason,
        content_hash=value.content_hash,
        created_at=moment(value.created_at),
        updated_at=moment(value.updated_at),
        billing=INACTIVE if version == 3 else UNSET,
        usage_cost=usage_cost(value.usage_cost) if version == 3 and value.usage_cost is not None else UNSET,
        terminal_snapshot=_snapshot(value.terminal_snapshot) if version == 3 else UNSET,
    )


def _snapshot(value: Snapshot | None) -> TerminalSnapshot | None:
    if value is None:
        return None
    why = {name: getattr(value, name) for name in ("finish_reason", "reason", "code", "message")}
    return TerminalSnapshot(
        event_id=value.event_id,
        occurred_at=moment(value.occurred_at / 1000),
        event_type=value.event_type,
        data=SnapshotData(
            turn_id=value.turn_id,
            usage=_usage(value.usage),
            cost=value.usage.cost_usd,
            chat_usage=_usage(value.chat_usage),
            chat_cost=value.chat_usage.cost_usd,
            **{name: text for name, text in why.items() if text is not None},
        ),
        v=value.wire,
        accepted_protocol_version=value.wire,
    )


def _usage(value: Totals) -> SnapshotUsage:
    return SnapshotUsage(**{name: getattr(value, name) for name in SnapshotUsage.__struct_fields__})


async def listed(request: Request) -> Response:
    query = read_query(request, CompletionQuery)
    wanted = control.Filter(
        status=query.status,
        model=query.model_orchestrator,
        started_from=_seconds(query.started_from),
        started_to=_seconds(query.started_to),
    )
    params = request.params
    page = await control.page(
        request.caller.control,
        request.caller.user_id,
        params["workspace_id"],
        params["chat_id"],
        wanted,
        query.page,
        query.per_page,
    )
    return Response(200, _collection(request, query, page))


async def get(request: Request) -> Response:
    params = request.params
    found = await control.get(
        request.caller.control,
        request.caller.user_id,
        params["workspace_id"],
        params["chat_id"],
        params["completion_id"],
    )
    return data(_shown(request, found))


def _collection(request: Request, query: CompletionQuery, page: control.CompletionPage) -> CompletionCollection:
    last = max(1, -(-page.total // query.per_page))
    before = (query.page - 1) * query.per_page
    count = len(page.items)
    kept = [(name, values[0]) for name, values in request.query.items() if name != "page"]

    def link(number: int) -> str:
        return f"{request.scope['path']}?{urlencode([*kept, ('page', str(number))])}"

    return CompletionCollection(
        data=[_shown(request, item) for item in page.items],
        links=Links(
            first=link(1),
            last=link(last),
            prev=link(min(query.page - 1, last)) if query.page > 1 else None,
            next=link(query.page + 1) if query.page < last else None,
        ),
        meta=PageMeta(
            current_page=query.page,
            first_item=before + 1 if count else None,
            last_page=last,
            per_page=query.per_page,
            to=before + count if count else None,
            total=page.total,
        ),
    )


def _shown(request: Request, value: control.Completion) -> Completion:
    assert request.caller.version is not None
    shown = completion(value, request.caller.version.number)
    if shown is None:
        raise GatewayError(Reason.CONTRACT_UPGRADE_REQUIRED)
    return shown


def _seconds(moment: datetime | None) -> float | None:
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


OPERATIONS = (
    Operation(
        "listCompletions",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}/completions",
        listed,
        "The completions of a chat, newest first. Version 2 has no word for an unknown cost: such a page is 426 there.",
        result=CompletionCollection,
        query=CompletionQuery,
        rule=VersionRule.BOTH,
    ),
    Operation(
        "getCompletion",
        "GET",
        "/workspaces/{workspace_id}/chats/{chat_id}/completions/{completion_id}",
        get,
        "One completion; contract 3 shows its immutable terminal snapshot.",
        result=Completion,
        wrapped=True,
        rule=VersionRule.BOTH,
    ),
)
