"""Costs on the wire: numbers or null, and exact decimals by currency."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from crocevia.core.costs import Amount
from crocevia.core.costs import UsageCost as Known
from crocevia.doors.atp.wire.common import moment


class BillingState(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["inactive"] = "inactive"


INACTIVE = BillingState()


class UsageCost(msgspec.Struct, frozen=True, kw_only=True):
    status: Literal["pending", "complete"]
    basis: Literal["reported", "calculated", "mixed", "none"]
    scope_status: Literal["open", "closed"]
    revision: int
    as_of: datetime
    invocation_count: int
    pending_invocation_count: int
    totals: tuple[Amount, ...] | None
    priced_subtotals: tuple[Amount, ...]


def usage_cost(value: Known) -> UsageCost:
    """As the wire shows it."""
    fields = {name: getattr(value, name) for name in UsageCost.__struct_fields__}
    return UsageCost(**fields | {"as_of": moment(value.as_of)})
