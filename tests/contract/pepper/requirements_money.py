"""What the specification asks about money and limits, and what is told of them."""

from __future__ import annotations

from tests.contract.requirements import Requirement as R

REQUIREMENTS: tuple[R, ...] = (
    R("P-MON-429", "429 budget_esaurito above the daily budget, with Retry-After.", "Errori"),
    R(
        "P-MON-DAY",
        "The budget's day is the calendar day of the project's zone, and the wait is the true one.",
        "Errori",
        divergence="The specification says «giornaliero» only; the zone is the project's `timezone`.",
    ),
    R(
        "P-MON-RESERVE",
        "Calls that run together cannot spend the same money.",
        "Errori",
        divergence="The specification is silent: an upper estimate is reserved at admission and settled at the end. "
        "While what is left is reserved, others get 429 budget_esaurito with Retry-After 1.",
    ),
    R(
        "P-MON-FREE",
        "An estimate above what is left is let through alone, so that small budgets can be used.",
        "Errori",
        divergence="Ours: the day may exceed its budget by one call's estimate error.",
    ),
    R(
        "P-MON-UNPRICED",
        "A model without a price under a budget is refused with 503 servizio_non_disponibile.",
        "Errori",
        divergence="The specification has no row; a gap in the configuration is the nearest one.",
    ),
    R(
        "P-MON-CACHE",
        "Cache reads cost a tenth and cache writes a quarter more where no price says otherwise.",
        "Non-streaming",
    ),
    R(
        "P-MON-CUT",
        "An abandoned stream is billed at what is known, marked as an estimate.",
        "Errori",
        divergence="The specification is silent.",
    ),
    R(
        "P-MON-HEAD",
        "Every answer of a known project tells remaining budget, remaining calls and resets in X-Pepper-… headers.",
        "Errori",
        divergence="Additive headers of ours.",
    ),
    R("P-MON-FAIL", "A call that fails before its first word, or is refused, costs nothing.", "Errori"),
    R("P-LIM-CON", "Too many calls at a time are 429 troppe_richieste with Retry-After.", "Errori", divergence="Ours."),
    R("P-LIM-NONE", "Limits that are not set do not exist: nothing is refused and no header is sent.", "Errori"),
)
