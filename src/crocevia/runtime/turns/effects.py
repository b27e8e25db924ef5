"""Rows that agree with the journal because they are written in the same transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from hashlib import sha256

from crocevia.core.costs import UsageCost, usage_cost
from crocevia.core.turn import Turn, snapshot_of
from crocevia.core.turn import entries as e
from crocevia.log import Appended, Effect
from crocevia.storage import chats, completions
from crocevia.storage.database import Transaction


class CostCounter:
    """Counts the model calls of one turn and what they cost."""

    __slots__ = ("calls", "known", "unknown")

    def __init__(self) -> None:
        self.calls = 0
        self.unknown = 0
        """Calls whose cost is unknown."""
        self.known = Decimal(0)
        """USD, of the others."""

    def add(self, entries: Sequence[e.Entry]) -> None:
        for entry in entries:
            if isinstance(entry, e.INVOCATIONS):
                self.calls += 1
                self.unknown += entry.cost_usd is None
                self.known += Decimal(str(entry.cost_usd or 0))


def effects_of(chat: chats.Chat, turn: Turn, entries: Sequence[e.Entry], costs: CostCounter) -> list[Effect]:
    """What these entries change beside the journal. costs: these entries included."""
    return list(_effects(chat, turn, entries, costs))


def _effects(chat: chats.Chat, turn: Turn, entries: Sequence[e.Entry], costs: CostCounter) -> Iterator[Effect]:
    for entry in entries:
        if isinstance(entry, e.TurnOpened):
            yield _opened(chat, entry)
        elif isinstance(entry, e.ChatTitleUpdated):
            yield _titled(chat.id, entry)
        elif isinstance(entry, e.TERMINAL):
            yield _ended(turn, entry, costs)


def _opened(chat: chats.Chat, entry: e.TurnOpened) -> Effect:
    at = entry.at / 1000
    row = completions.Completion(
        id=entry.turn,
        workspace_id=chat.workspace_id,
        chat_id=chat.id,
        team_id=chat.team_id,
        user_id=chat.user_id,
        model_orchestrator=entry.plan.agents[0].model,
        started_at=at,
        created_at=at,
        updated_at=at,
    )
    return lambda tx, appended: completions.add(tx, row)


def _titled(chat_id: str, entry: e.ChatTitleUpdated) -> Effect:
    def effect(tx: Transaction, appended: Appended) -> None:
        chats.set_title(tx, chat_id, entry.title, entry.at / 1000)

    return effect


def _ended(turn: Turn, entry: e.Terminal, costs: CostCounter) -> Effect:
    members = dict.fromkeys(item.agent.model for item in turn.instances.values() if item.id != turn.root_id)
    text = turn.root.text
    cost = _usage_cost(costs, entry.at)

    def effect(tx: Transaction, appended: Appended) -> None:
        # The terminal is the last entry of its append.
        snapshot = snapshot_of(entry, appended.epoch, appended.last, turn.wire)
        completions.close(
            tx,
            snapshot,
            usage_cost=cost,
            models_subagents=tuple(members),
            content_hash=sha256(text.encode()).hexdigest() if text else None,
        )

    return effect


def closed_unread(entry: e.Terminal) -> Effect:
    """The end of a turn whose entries nobody can read."""
    costs = CostCounter()
    costs.calls = costs.unknown = 1

    def effect(tx: Transaction, appended: Appended) -> None:
        snapshot = snapshot_of(entry, appended.epoch, appended.last, wire=3)
        completions.close(tx, snapshot, usage_cost=_usage_cost(costs, entry.at))

    return effect


def _usage_cost(costs: CostCounter, at: int) -> UsageCost:
    some_known = costs.calls > costs.unknown
    return usage_cost(
        {"USD": costs.known} if some_known else {},
        invocations=costs.calls,
        pending=costs.unknown,
        closed=True,
        basis="calculated" if some_known else "none",
        as_of=at / 1000,
    )
