"""Costs of ended turns that nobody knew then, completed with prices that are known now.

Only the completion changes. A turn's events, its terminal snapshot and its chat's totals say what was known then, and
budgets keep what they settled: nobody's day is overdrawn by a price that came later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from decimal import Decimal
from itertools import groupby

import msgspec

from crocevia.core.catalogue import EngineSpec, ModelSpec
from crocevia.core.costs import UsageCost, reconciled
from crocevia.core.turn import entries as e
from crocevia.log import entries_of
from crocevia.policy.prices import NANO, usd
from crocevia.runtime.control.audit import Actor, note
from crocevia.runtime.money.late import Price, pricing, unpriced
from crocevia.storage import completions, declared
from crocevia.storage.completions import Pending
from crocevia.storage.database import Transaction


class Late(msgspec.Struct, frozen=True):
    """A turn with some later prices."""

    turn: str
    cost: UsageCost
    """Its next revision."""
    priced: tuple[tuple[str, int], ...]
    """(model, nano-dollars) of each call."""


class UnpricedCalls(msgspec.Struct, frozen=True):
    """late: what can be told now. unpriced: calls that stay without a price, by model ("": nobody kept whose)."""

    late: list[Late]
    unpriced: dict[str, int]


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """priced: calls that have a cost now, `cost_usd` together. unpriced: calls that have none yet."""

    model: str
    priced: int
    cost_usd: float
    unpriced: int


class PricingReport(msgspec.Struct, frozen=True, kw_only=True):
    """completed: turns with a total now. advanced: turns with more known than before, but no total yet."""

    completed: int
    advanced: int
    models: list[ModelRow]


def find(tx: Transaction, now: float) -> UnpricedCalls:
    """What the prices of this moment complete. Reads the journal of every chat with a pending cost."""
    price = pricing(declared.load(tx, ModelSpec), declared.load(tx, EngineSpec))
    found = UnpricedCalls([], Counter())
    for chat, turns in groupby(completions.pending(tx), key=lambda turn: turn.chat_id):
        for turn, calls in _calls(tx, chat, list(turns)):
            late = _late(turn, calls, price, found.unpriced, now)
            if late is not None:
                found.late.append(late)
    return found


def settle(tx: Transaction, actor: Actor, late: Iterable[Late], now: float) -> list[Late]:
    """Write what was found, with a line in the audit list; those that nobody had written meanwhile."""
    written = [turn for turn in late if completions.reconcile(tx, turn.turn, turn.cost, now)]
    if written:
        total = sum(amount for turn in written for _, amount in turn.priced)
        told = {"turns": str(len(written)), "cost_usd": f"{usd(total):.6f}"}
        note(tx, actor, "reconciled", "completions", "costs", {name: (None, text) for name, text in told.items()})
    return written


def report(late: list[Late], left: dict[str, int]) -> PricingReport:
    """What these turns have now, and what stays unknown."""
    calls: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for turn in late:
        for model, amount in turn.priced:
            calls[model] += 1
            spent[model] += amount
    completed = sum(turn.cost.totals is not None for turn in late)
    return PricingReport(
        completed=completed,
        advanced=len(late) - completed,
        models=[
            ModelRow(model=name, priced=calls[name], cost_usd=usd(spent[name]), unpriced=left.get(name, 0))
            for name in sorted(calls.keys() | left.keys())
        ],
    )


def _late(turn: Pending, calls: list[e.Invocation], price: Price, left: dict[str, int], now: float) -> Late | None:
    known: dict[int, int] = {}
    priced: list[tuple[str, int]] = []
    waiting = unpriced(turn.cost, calls)
    if not waiting:
        left[""] = left.get("", 0) + turn.cost.pending_invocation_count
    for at, call in waiting.items():
        amount, model = price(call), call.unpriced.model if call.unpriced is not None else ""
        if amount is None:
            left[model] = left.get(model, 0) + 1
        else:
            known[at] = amount
            priced.append((model, amount))
    if not known:
        return None
    amounts = {at: Decimal(amount) / NANO for at, amount in known.items()}
    return Late(turn.id, reconciled(turn.cost, amounts, "USD", now), tuple(priced))


def _calls(tx: Transaction, chat: str, turns: list[Pending]) -> list[tuple[Pending, list[e.Invocation]]]:
    """What each of a chat's turns asked of models, as its tally counted it: up to its end."""
    heard: dict[str, list[e.Invocation]] = {turn.id: [] for turn in turns}
    ended: set[str] = set()
    with suppress(e.Unreadable):  # one damaged chat is no reason to leave the others as they are
        for entry in entries_of(tx, chat):
            if isinstance(entry, e.INVOCATIONS) and entry.turn in heard and entry.turn not in ended:
                heard[entry.turn].append(entry)
            elif isinstance(entry, e.TERMINAL):
                ended.add(entry.turn)
    return [(turn, heard[turn.id]) for turn in turns]
