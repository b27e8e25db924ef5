"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from datetime import datetime

from .base import Resource


class BillingState(Resource, frozen=True, kw_only=True):
    status: str


class Completion(Resource, frozen=True, kw_only=True):
    id: str
    workspace_id: str
    chat_id: str
    team_id: str
    user_id: str
    models_subagents: list[str]
    started_at: datetime
    usage: CompletionUsage
    cost_usd: float | None
    status: str
    created_at: datetime
    updated_at: datetime
    model_orchestrator: str | None = None
    finished_at: datetime | None = None
    duration_ms: int | None = None
    billing: BillingState | None = None
    usage_cost: UsageCost | None = None
    terminal_snapshot: CompletionTerminalSnapshot | None = None
    finish_reason: str | None = None
    content_hash: str | None = None


class CompletionCollection(Resource, frozen=True, kw_only=True):
    data: list[Completion]
    links: CompletionCollectionLinks
    meta: CompletionCollectionMeta


class CompletionCollectionLinks(Resource, frozen=True, kw_only=True):
    first: str | None = None
    last: str | None = None
    prev: str | None = None
    next: str | None = None


class CompletionCollectionMeta(Resource, frozen=True, kw_only=True):
    current_page: int | None = None
    from_: int | None = None
    last_page: int | None = None
    per_page: int | None = None
    to: int | None = None
    total: int | None = None


class CompletionTerminalSnapshot(Resource, frozen=True, kw_only=True):
    event_id: str
    occurred_at: datetime
    event_type: str
    data: CompletionTerminalSnapshotData
    v: int | None = None
    accepted_protocol_version: int | None = None


class CompletionTerminalSnapshotChatUsage(Resource, frozen=True, kw_only=True):
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    duration_ms: int
    sprite_ms: int | None = None
    sprite_ram_gb_ms: int | None = None
    tool_calls: int | None = None
    billing: BillingState | None = None
    usage_cost: UsageCost | None = None


class CompletionTerminalSnapshotData(Resource, frozen=True, kw_only=True):
    turn_id: str
    usage: CompletionTerminalSnapshotUsage | None = None
    cost: float | None = None
    finish_reason: str | None = None
    reason: str | None = None
    code: str | None = None
    message: str | None = None
    chat_usage: CompletionTerminalSnapshotChatUsage | None = None
    chat_cost: float | None = None


class CompletionTerminalSnapshotUsage(Resource, frozen=True, kw_only=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    duration_ms: int | None = None
    sprite_ms: int | None = None
    sprite_ram_gb_ms: int | None = None
    tool_calls: int | None = None
    cost_usd: float | None = None
    billing: BillingState | None = None
    usage_cost: UsageCost | None = None


class CompletionUsage(Resource, frozen=True, kw_only=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    sprite_cpu_ms: int | None = None
    sprite_ram_gb_ms: int | None = None


class CurrencyAmount(Resource, frozen=True, kw_only=True):
    currency: str
    amount: str


class UsageCost(Resource, frozen=True, kw_only=True):
    status: str
    basis: str
    scope_status: str
    revision: int
    as_of: str
    invocation_count: int
    pending_invocation_count: int
    totals: list[CurrencyAmount] | None
    priced_subtotals: list[CurrencyAmount]
