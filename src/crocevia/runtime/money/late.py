"""Prices that became known after a turn had ended, of calls that were recorded without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from crocevia.core.catalogue import EngineSpec, ModelSpec
from crocevia.core.costs import UsageCost
from crocevia.core.turn import entries as e
from crocevia.policy.prices import cost as cost_of
from crocevia.runtime.money.prices import rates_of

Price: TypeAlias = Callable[[e.Invocation], int | None]
"""Nano-dollars of a call; None: still unknown."""


def pricing(models: Mapping[str, ModelSpec], engines: Mapping[str, EngineSpec]) -> Price:
    """Prices of what is declared now: the operator's own, else the public list's of the day of the call.

    A name that means another engine or another model of it by now prices nothing.
    """

    def price(call: e.Invocation) -> int | None:
        asked = call.unpriced
        model = models.get(asked.model) if asked is not None else None
        if asked is None or model is None or (model.engine, model.upstream) != (asked.engine, asked.upstream):
            return None
        return cost_of(call.usage, rates_of(model, engines.get(model.engine), call.at / 1000))

    return price


def unpriced(cost: UsageCost, calls: Sequence[e.Invocation]) -> dict[int, e.Invocation]:
    """Which calls of an ended turn have no price yet, by their order. Empty if these are not all its calls."""
    found = {at: call for at, call in enumerate(calls) if call.cost_usd is None and at not in cost.late}
    whole = len(calls) == cost.invocation_count and len(found) == cost.pending_invocation_count
    return found if whole else {}
