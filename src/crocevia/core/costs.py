"""What a unit of work costs, by currency, in exact decimals; unknown until everything in it is priced."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Literal

import msgspec

Basis = Literal["reported", "calculated", "mixed", "none"]


class Amount(msgspec.Struct, frozen=True):
    """currency: three capital letters. amount: a plain decimal that is not negative, as text."""

    currency: str
    amount: str


class UsageCost(msgspec.Struct, frozen=True, kw_only=True):
    """`totals` is there only when the scope is closed and nothing is pending."""

    status: Literal["pending", "complete"]
    basis: Basis
    scope_status: Literal["open", "closed"]
    revision: int
    """Grows with every price that came later."""
    as_of: float
    """Unix seconds."""
    invocation_count: int
    pending_invocation_count: int
    totals: tuple[Amount, ...] | None
    priced_subtotals: tuple[Amount, ...]
    """What is known."""
    late: tuple[int, ...] = ()
    """Which invocations of the scope, by their order, were priced after its end: a price is learnt once."""


def usage_cost(
    priced: Mapping[str, Decimal],
    *,
    invocations: int,
    pending: int,
    closed: bool,
    basis: Basis,
    as_of: float,
) -> UsageCost:
    """The cost of a scope. priced: what is known, by currency. Raises ValueError for what cannot be."""
    if not 0 <= pending <= invocations:
        raise ValueError("more pending than there are")
    known = amounts(priced)
    complete = closed and pending == 0
    return UsageCost(
        status="complete" if complete else "pending",
        basis=basis,
        scope_status="closed" if closed else "open",
        revision=0,
        as_of=as_of,
        invocation_count=invocations,
        pending_invocation_count=pending,
        totals=known if complete else None,
        priced_subtotals=known,
    )


def reconciled(cost: UsageCost, late: Mapping[int, Decimal], currency: str, as_of: float) -> UsageCost:
    """The same scope with later prices of some invocations, by their order: another revision; of none: itself.

    What was known stays as it was. Raises ValueError for an invocation that has its price already.
    """
    if not late:
        return cost
    if not late.keys().isdisjoint(cost.late) or not all(0 <= which < cost.invocation_count for which in late):
        raise ValueError("priced already, or no invocation of this scope")
    priced = {part.currency: Decimal(part.amount) for part in cost.priced_subtotals}
    priced[currency] = sum(late.values(), priced.get(currency, Decimal(0)))
    found = usage_cost(
        priced,
        invocations=cost.invocation_count,
        pending=cost.pending_invocation_count - len(late),
        closed=cost.scope_status == "closed",
        basis="calculated" if cost.basis in ("none", "calculated") else "mixed",
        as_of=as_of,
    )
    return msgspec.structs.replace(found, revision=cost.revision + 1, late=tuple(sorted((*cost.late, *late))))


def amounts(priced: Mapping[str, Decimal]) -> tuple[Amount, ...]:
    """Sorted by currency. Raises ValueError for a negative amount, or one that is no number."""
    return tuple(Amount(currency, plain(priced[currency])) for currency in sorted(priced))


def plain(amount: Decimal) -> str:
    """The shortest plain spelling: `0.42`, `3`, `0`. Raises ValueError if it is negative or no number."""
    if not amount.is_finite() or amount < 0:
        raise ValueError("not an amount")
    text = f"{abs(amount):f}"  # a zero may have a sign
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"
