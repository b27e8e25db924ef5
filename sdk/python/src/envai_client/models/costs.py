"""Generated from the contract by scripts/generate.py: do not edit."""

from __future__ import annotations

from typing import Any

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
    started_at: str
    usage: dict[str, Any]
    cost_usd: float | None
    status: str
    created_at: str
    updated_at: str
    model_orchestrator: str | None = None
    finished_at: str | None = None
    duration_ms: int | None = None
    billing: BillingState | None = None
    usage_cost: UsageCost | None = None
    terminal_snapshot: CompletionTerminalSnapshot | None = None
    finish_reason: str | None = None
    content_hash: str | None = None


class CompletionCollection(Resource, frozen=True, kw_only=True):
    data: list[Completion]
    links: dict[str, Any]
    meta: dict[str, Any]


class CompletionTerminalSnapshot(Resource, frozen=True, kw_only=True):
    event_id: str
    occurred_at: str
    event_type: str
    data: dict[str, Any]
    v: int | None = None
    accepted_protocol_version: int | None = None


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
