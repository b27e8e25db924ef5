"""Money of calls: set aside at admission, settled at the end, with the projects' own days and thresholds."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from crocevia.core import sizes
from crocevia.core.calls import ModelRequest
from crocevia.core.catalogue import ModelSpec, ProjectSpec, UserSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import AssistantMessage, FilePart, Message, UserMessage
from crocevia.core.usage import Usage
from crocevia.policy.budget import Budget, BudgetStatus, Ledger, Reservation
from crocevia.policy.prices import Rates, ceiling, cost, declared, nano, usd

IMAGE_TOKENS: Final = 5000  # of the largest picture that a provider takes
DOCUMENT_BYTES_PER_TOKEN: Final = 2
DOCUMENT_TOKENS: Final = 1_000_000  # no context window holds more
UNPRICED_SECONDS: Final = 60  # until an operator may have set a price; a running server sees it within one
MESSAGE_TOKENS: Final = 16  # what surrounds a message

RatesOf = Callable[[ModelSpec], Rates | None]
Told = Callable[[ProjectSpec, BudgetStatus], None]
"""The soft threshold of a project was reached; called on the event loop, once per day."""


def declared_rates(model: ModelSpec) -> Rates | None:
    """What the operator declared, and nothing else."""
    return None if model.prices is None else declared(model.prices)


def budget_of(project: ProjectSpec) -> Budget:
    """The project's budget in nano-dollars."""
    daily, soft = project.daily_budget_usd, project.soft_threshold_usd
    return Budget(None if daily is None else nano(daily), None if soft is None else nano(soft), project.timezone)


def project_of_user(user_id: str, model: str = "", bounds: UserSpec | None = None) -> ProjectSpec:
    """A user as a tenant with a model, and with a project's kind of bounds."""
    name = f"user:{user_id}"
    if bounds is None:
        return ProjectSpec(name=name, model=model)
    return ProjectSpec(
        name=name,
        model=model,
        hourly_limit=bounds.hourly_limit,
        daily_budget_usd=bounds.daily_budget_usd,
        max_concurrency=bounds.max_concurrency,
        timezone=bounds.timezone,
    )


class CallReservation:
    """One call's money, from its admission on. Settled exactly once; later calls only give the same answer."""

    __slots__ = ("_cost", "_reservation", "_settled", "_spend", "project", "rates")

    def __init__(self, spend: Spend, project: ProjectSpec, rates: Rates | None, reservation: Reservation) -> None:
        self._spend = spend
        self.project = project
        self.rates = rates
        self._reservation = reservation
        self._settled = False
        self._cost: int | None = None

    @property
    def counts(self) -> bool:
        """Whether tokens cost anything here, so that a missing count is worth estimating."""
        return self.rates is not None and not self.rates.free

    @property
    def budgeted(self) -> bool:
        """Whether it counts against a budget."""
        return self.project.daily_budget_usd is not None

    @property
    def reserved_usd(self) -> float | None:
        """What the call may cost at most; None if nobody knows."""
        return None if self.rates is None else usd(self._reservation.estimate)

    def settle(self, usage: Usage) -> float | None:
        """What it cost, in USD; None if unknown. The money that is left is free again from here on."""
        if not self._settled:
            self._settled = True
            self._cost = cost(usage, self.rates)
            self._reservation.settle(self._cost or 0)
            self._spend.look(self.project)
        return None if self._cost is None else usd(self._cost)

    def release(self) -> None:
        """The call never happened."""
        self._settled = True
        self._reservation.release()


class Spend:
    """Every project's money. Synchronous; belongs to one event loop. on_soft: see `Told`."""

    def __init__(
        self,
        rates: RatesOf = declared_rates,
        *,
        clock: Callable[[], float] = time.time,
        on_soft: Told = lambda project, status: None,
    ) -> None:
        self.ledger = Ledger()
        self.rates = rates
        self.on_soft = on_soft
        self._clock = clock
        self._budgets: dict[str, tuple[ProjectSpec, Budget]] = {}

    def budget(self, project: ProjectSpec) -> Budget:
        """See `budget_of`."""
        known = self._budgets.get(project.name)
        if known is None or known[0] is not project:
            known = self._budgets[project.name] = (project, budget_of(project))
        return known[1]

    def reserve(
        self, project: ProjectSpec, model: ModelSpec, request: ModelRequest, now: float, *, prompt: int | None = None
    ) -> CallReservation:
        """Set the call's money aside. prompt: `prompt_tokens` of the request, where they are known.

        Raises GatewayError: BUDGET_EXHAUSTED with `retry_after`; MODEL_UNPRICED if the project has a budget and
        nobody knows what the model costs.
        """
        rates, budget = self.rates(model), self.budget(project)
        if rates is None and budget.daily is not None:
            raise GatewayError(Reason.MODEL_UNPRICED, retry_after=UNPRICED_SECONDS, model=model.name)
        estimate = 0
        if rates is not None and not rates.free:
            prompt = prompt_tokens(request, model) if prompt is None else prompt
            estimate = ceiling(prompt, request.options.max_tokens, rates)
        return CallReservation(self, project, rates, self.ledger.reserve(project.name, budget, estimate, now))

    def status(self, project: ProjectSpec) -> BudgetStatus:
        """What the project spent and reserved today."""
        return self.ledger.status(project.name, self.budget(project), self._clock())

    def look(self, project: ProjectSpec) -> None:
        """Tell of the soft threshold, if it is reached and was not told today."""
        budget = self.budget(project)
        if budget.soft is not None:
            crossed = self.ledger.cross(project.name, budget, self._clock())
            if crossed is not None:
                self.on_soft(project, crossed)


def prompt_tokens(request: ModelRequest, model: ModelSpec) -> int:
    """How many tokens the prompt has at most, as far as its sizes tell."""
    text = sizes.frame(request) + sum(map(_characters, request.messages))
    most = sizes.tokens(text, sizes.CAUTIOUS) + MESSAGE_TOKENS * (len(request.messages) + len(request.tools))
    most += sum(_files(message) for message in request.messages if isinstance(message, UserMessage))
    return most if model.context_window is None else min(most, model.context_window)


def _characters(message: Message) -> int:
    said = sizes.characters(message)
    if isinstance(message, AssistantMessage) and message.provider_blocks is not None:
        return max(said, len(message.provider_blocks.blocks))
    return said


def _files(message: UserMessage) -> int:
    return sum(_file(part) for part in message.parts if isinstance(part, FilePart))


def _file(part: FilePart) -> int:
    return IMAGE_TOKENS if part.kind == "image" else min(len(part.data) // DOCUMENT_BYTES_PER_TOKEN, DOCUMENT_TOKENS)


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """What a project may still do. Money in nano-dollars, resets in seconds; None: there is no such limit."""

    budget: int | None = None
    budget_left: int | None = None
    budget_reset: int | None = None
    hourly: int | None = None
    hourly_left: int | None = None
    hourly_reset: int | None = None
