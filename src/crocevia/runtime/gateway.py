"""What doors see of the runtime: who is asking, and calls."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from crocevia.core.calls import Abilities, Engine, ModelRequest
from crocevia.core.catalogue import ModelSpec, ProjectSpec, UserSpec
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.ids import new_id
from crocevia.documents.intake import PEPPER as PEPPER_FILES
from crocevia.documents.intake import RESPONSES as RESPONSES_FILES
from crocevia.documents.intake import Attachment, Limits, Prepared
from crocevia.policy.admission import Admission, Permit
from crocevia.policy.prices import ceiling, usd
from crocevia.runtime.calls import DEFAULT_LIMITS, Attempt, Call, CallLimits, Cut
from crocevia.runtime.drafts import CallDraft, compose
from crocevia.runtime.fitting import Places
from crocevia.runtime.intake import Intake, Wants, check_permission, fill, placeholder
from crocevia.runtime.money.spend import CallReservation, Remaining, Spend, project_of_user, prompt_tokens
from crocevia.runtime.reasoning.block_digests import BlockDigests
from crocevia.runtime.reasoning.routing import ReasoningRouter, Route, RoutingRequest, block_note
from crocevia.runtime.records import Durable
from crocevia.runtime.unary_calls import UnaryCall, UnaryDraft
from crocevia.storage.records import FallbackCall, OpenedCall, SettledCall

__all__ = [
    "PEPPER_FILES",
    "RESPONSES_FILES",
    "Attachment",
    "Call",
    "CallDraft",
    "CallLimits",
    "Cut",
    "Estimate",
    "Gateway",
    "Intake",
    "Limits",
    "Places",
    "Prepared",
    "Profile",
    "ProjectSpec",
    "Route",
    "UnaryCall",
    "UnaryDraft",
    "Wants",
    "check_permission",
    "placeholder",
]

DRAIN_SECONDS: Final = 10.0

EngineSource: TypeAlias = Callable[[str], Engine]
"""The working engine of a name. Raises GatewayError(UNAVAILABLE) when there is none."""


class View(Protocol):
    """The part of `runtime.catalogue.Catalogue` that a call needs."""

    @property
    def models(self) -> dict[str, ModelSpec]: ...
    @property
    def users(self) -> dict[str, UserSpec]: ...
    @property
    def revision(self) -> int: ...
    def owner_of(self, key: bytes) -> ProjectSpec | None: ...


class Holder(Protocol):
    """The catalogue of this moment."""

    @property
    def current(self) -> View: ...


class Recorder(Protocol):
    """Where records go; nothing here waits. failing: the store takes nothing at the moment."""

    @property
    def failing(self) -> bool: ...
    def open(self, record: OpenedCall | FallbackCall) -> Durable: ...
    def put(self, record: SettledCall) -> None: ...


class Profile(msgspec.Struct, frozen=True):
    """The model that a project has, and what its engine does with it."""

    model: ModelSpec
    abilities: Abilities


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A call's money before it is made, in USD. Budgets None: there is none."""

    prompt_tokens: int
    most_usd: float | None = None
    """None: the price is unknown."""
    budget_usd: float | None = None
    budget_left_usd: float | None = None
    refusal: GatewayError | None = None
    """What admission would say of the money now."""


class Gateway:
    """Admits calls. One per server; belongs to one event loop."""

    def __init__(
        self,
        catalogue: Holder,
        engines: EngineSource,
        records: Recorder,
        *,
        limits: CallLimits = DEFAULT_LIMITS,
        spend: Spend | None = None,
        memory: BlockDigests | None = None,
        intake: Intake | None = None,
        on_round: Callable[[ProjectSpec, bool], None] = lambda project, blocks_missing: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """on_round: told whether an app left out the provider blocks of its open tool round, at every such call."""
        self.admission = Admission()
        self.spend = spend or Spend(clock=clock)
        self.draining = False
        self._catalogue = catalogue
        self._engines = engines
        self._router = ReasoningRouter(engines, memory or BlockDigests(os.urandom(32)))
        self.intake = intake or Intake()
        self._on_round = on_round
        self._records = records
        self._limits = limits
        self._clock = clock
        self._calls: set[Call | UnaryCall] = set()
        self._users: dict[tuple[str, str], tuple[UserSpec | None, ProjectSpec]] = {}

    @property
    def active(self) -> int:
        """Calls under way."""
        return len(self._calls)

    def authenticate(self, key: bytes) -> ProjectSpec:
        """The project whose key this is. Raises GatewayError(UNAUTHENTICATED), the same for every reason."""
        found = self._catalogue.current.owner_of(key)
        if found is None:
            raise GatewayError(Reason.UNAUTHENTICATED)
        return found

    def route_model(self, user_id: str, model: str, draft: CallDraft) -> Route:
        """Who would answer a user, who is a tenant like a project, on a model of the catalogue. Raises like `route`."""
        return self.route(self._tenant(user_id, model), draft)

    def check_model(self, user_id: str, model: str, draft: CallDraft) -> None:
        """Refuse what no engine could be told, in the caller's own terms, before an agent's run is opened for it.

        Raises GatewayError(INVALID_REQUEST). What else may be wrong is for the run to meet.
        """
        try:
            self.route_model(user_id, model, draft)
        except GatewayError as error:
            if error.code is Code.INVALID_REQUEST:
                raise

    def open_model(
        self, user_id: str, model: str, draft: CallDraft, route: Route | None = None, call_id: str | None = None
    ) -> Call:
        """A call by a user on a model of the catalogue. route: of `route_model`, if it was asked. call_id: of its
        record, if there is one already. Raises like `route` and `open_call`.
        """
        draft = msgspec.structs.replace(draft, user_id=user_id)
        route = route or self.route_model(user_id, model, draft)
        return self.open_call(self._tenant(user_id, model), draft, route, call_id)

    def most_usd(self, route: Route) -> float | None:
        """What the call would cost at most; None: nobody knows the price."""
        rates = self.spend.rates(route.model)
        if rates is None:
            return None
        return usd(ceiling(prompt_tokens(route.request, route.model), route.request.options.max_tokens, rates))

    def _tenant(self, user_id: str, model: str) -> ProjectSpec:
        bounds = self._catalogue.current.users.get(user_id)
        known = self._users.get((user_id, model))
        if known is None or known[0] is not bounds:
            known = self._users[user_id, model] = (bounds, project_of_user(user_id, model, bounds))
        return known[1]

    def abilities(self, name: str) -> Abilities:
        """What the engine does with a model of the catalogue. Raises GatewayError(UNAVAILABLE)."""
        return self.profile(ProjectSpec(name="", model=name)).abilities

    def profile(self, project: ProjectSpec) -> Profile:
        """What the project's model can do. Raises GatewayError(UNAVAILABLE)."""
        model = self._model(project)
        return Profile(model, self._engines(model.engine).abilities(model.upstream))

    def estimate(self, project: ProjectSpec, route: Route) -> Estimate:
        """What a call would cost at most, and whether the budget has room for it now. Nothing stays set aside."""
        rates, left, refusal = self.spend.rates(route.model), self.remaining(project), None
        prompt = prompt_tokens(route.request, route.model)
        try:
            self.spend.reserve(project, route.model, route.request, self._clock(), prompt=prompt).release()
        except GatewayError as error:
            refusal = error
        return Estimate(
            prompt_tokens=prompt,
            most_usd=None if rates is None else usd(ceiling(prompt, route.request.options.max_tokens, rates)),
            budget_usd=None if left.budget is None else usd(left.budget),
            budget_left_usd=None if left.budget_left is None else usd(left.budget_left),
            refusal=refusal,
        )

    def _model(self, project: ProjectSpec) -> ModelSpec:
        model = self._catalogue.current.models.get(project.model)
        if model is None:
            raise GatewayError(Reason.MODEL_MISSING, model=project.model)
        return model

    def route(self, project: ProjectSpec, draft: CallDraft) -> Route:
        """Who would answer, and with what; nothing is admitted yet. Raises GatewayError: as its router does."""
        models, model = self._catalogue.current.models, self._model(project)
        return self._router.route(RoutingRequest(model=model, draft=draft, request=compose(model, draft)), models)

    def check_room(self, project: ProjectSpec) -> None:
        """Refuse what admission is sure to refuse, before files are read for it. Raises GatewayError."""
        self.check_open()
        left = self.remaining(project)
        if left.hourly is not None and not left.hourly_left:
            wait = max(1, left.hourly_reset or 1)
            raise GatewayError(Reason.RATE_LIMITED, retry_after=wait, limit=left.hourly, seconds=wait)

    def check_open(self, *, going_on: bool = False) -> None:
        """Raises GatewayError when nothing is admitted now: DRAINING, UNAVAILABLE (the store takes no records)."""
        if not going_on:
            self.check_draining()
        if self._records.failing:
            raise GatewayError(Reason.UNAVAILABLE, retry_after=1)

    def check_draining(self) -> None:
        """Raises GatewayError(DRAINING) when nothing new is begun."""
        if self.draining:
            raise GatewayError(Reason.DRAINING, retry_after=int(DRAIN_SECONDS))

    async def attach(self, route: Route, attachments: tuple[Attachment, ...], wants: Wants) -> Route:
        """Put files in the place of their placeholders, as the engine of `route` takes them.

        Raises GatewayError: INVALID_REQUEST, DOCUMENTS_NOT_ENABLED, IMAGES_NOT_ENABLED, UNSUPPORTED, UNAVAILABLE.
        """
        abilities = route.engine.abilities(route.request.model)
        return with_files(route, await self.prepare(route, attachments, wants, abilities))

    async def prepare(
        self, route: Route, attachments: tuple[Attachment, ...], wants: Wants, abilities: Abilities
    ) -> tuple[Prepared, ...]:
        """Files as an engine of these abilities takes them. Raises like `attach`."""
        return await self.intake.prepare(attachments, wants, abilities, max_pages=route.model.max_pages)

    async def read_files(self, model: str, attachments: tuple[Attachment, ...], wants: Wants) -> tuple[Prepared, ...]:
        """Files as a model of the catalogue takes them. Raises like `attach`."""
        known = self.profile(ProjectSpec(name="", model=model))
        return await self.intake.prepare(attachments, wants, known.abilities, max_pages=known.model.max_pages)

    def open_call(self, project: ProjectSpec, draft: CallDraft, route: Route, call_id: str | None = None) -> Call:
        """Admit a call and open its record; enter it at once, since it holds a slot from here on.

        route: what `route` said of it, files attached. Raises GatewayError: DRAINING, UNAVAILABLE, MODEL_UNPRICED,
        BUDGET_EXHAUSTED, RATE_LIMITED, CONCURRENCY_LIMITED.
        """
        self.check_open(going_on=draft.going_on)
        catalogue = self._catalogue.current
        now = self._clock()
        reservation, permit = self._admit(project, route.model, route.request, now)
        call_id = call_id or new_id("call")
        durable = self._records.open(
            OpenedCall(
                id=call_id,
                started_at=now,
                door=draft.door,
                catalogue_revision=catalogue.revision,
                encode=draft.encode,
                project=project.name if draft.user_id is None else None,
                user_id=draft.user_id,
                agent=draft.agent,
                model=route.model.name,
                engine=route.engine.name,
                session_id=draft.options.session,
                reserved_usd=reservation.reserved_usd,
                bytes_in=draft.bytes_in,
            )
        )
        call = Call(
            call_id,
            Attempt(route, reservation, durable),
            permit=permit,
            limits=self._limits,
            fallback=lambda attempt: self._fallback(project, call_id, attempt),
            on_end=self._end,
        )
        self._calls.add(call)
        if draft.keeps_blocks and route.blocks_missing is not None:
            self._on_round(project, route.blocks_missing and route.asked.model.reasoning != "off")
        return call

    def unary_call(self, draft: UnaryDraft) -> UnaryCall:
        """Admit a call that is no conversation and open its record; enter it at once, like one of `open_call`.

        Raises GatewayError: like `open_call`.
        """
        self.check_open()
        now = self._clock()
        reservation, permit = self._admit(self._tenant(draft.user_id, draft.model.name), draft.model, draft.asked, now)
        call_id = new_id("call")
        durable = self._records.open(
            OpenedCall(
                id=call_id,
                started_at=now,
                door=draft.door,
                catalogue_revision=self._catalogue.current.revision,
                encode=draft.encode,
                user_id=draft.user_id,
                model=draft.model.name,
                engine=draft.engine,
                reserved_usd=reservation.reserved_usd,
                bytes_in=draft.bytes_in,
            )
        )
        call = UnaryCall(call_id, reservation, permit, durable, seconds=draft.seconds, on_end=self._end_unary)
        self._calls.add(call)
        return call

    def _admit(
        self, tenant: ProjectSpec, model: ModelSpec, request: ModelRequest, now: float
    ) -> tuple[CallReservation, Permit]:
        reservation = self.spend.reserve(tenant, model, request, now)
        try:
            hourly, concurrency = tenant.hourly_limit, tenant.max_concurrency
            return reservation, self.admission.admit(tenant.name, hourly=hourly, concurrency=concurrency, now=now)
        except GatewayError:
            reservation.release()
            raise

    def remaining(self, project: ProjectSpec) -> Remaining:
        """What the project may still do at this moment."""
        now, limit = self._clock(), project.hourly_limit
        budget = left = reset = hourly_left = frees = None
        if project.daily_budget_usd is not None:
            day = self.spend.status(project)
            budget = self.spend.budget(project).daily or 0
            left = max(0, budget - day.spent - day.reserved)
            reset = day.day.seconds_left(now)
        if limit is not None:
            used, frees = self.admission.used(project.name, now)
            hourly_left = max(0, limit - used)
        return Remaining(
            budget=budget,
            budget_left=left,
            budget_reset=reset,
            hourly=limit,
            hourly_left=hourly_left,
            hourly_reset=frees,
        )

    def drain(self, grace: float = DRAIN_SECONDS) -> None:
        """Admit nothing more; whatever still runs after `grace` seconds is cut. Idempotent."""
        if not self.draining:
            self.draining = True
            asyncio.get_running_loop().call_later(grace, self.cut_all)

    def cut_all(self) -> None:
        """End every call now."""
        for call in tuple(self._calls):
            call.interrupt(Cut.DRAINED)

    def _fallback(self, project: ProjectSpec, call_id: str, rejected: Attempt) -> Attempt | None:
        again = self._router.fallback(rejected.route, self._catalogue.current.models)
        if again is None:
            return None
        again = with_files(again, rejected.route.files)
        rejected.reservation.release()  # a provider bills nothing for what it rejects
        reservation = self.spend.reserve(project, again.model, again.request, self._clock())
        instead = FallbackCall(
            id=call_id, model=again.model.name, engine=again.engine.name, reserved_usd=reservation.reserved_usd
        )
        return Attempt(again, reservation, self._records.open(instead))

    def _end_unary(self, call: UnaryCall, settled: SettledCall) -> None:
        self._calls.discard(call)
        self._records.put(settled)

    def _end(self, call: Call, settled: SettledCall) -> None:
        self._calls.discard(call)
        notes: dict[str, Any] = call.route.notes()
        if call.fold.thinks and call.fold.stop is not None:
            notes |= block_note(self._router.memory, call.route, [piece.block for piece in call.fold.answer().blocks])
        if notes:
            settled = msgspec.structs.replace(
                settled,
                notes={**(settled.notes or {}), **notes},
                model=call.model.name,
                engine=call.route.engine.name,
            )
        self._records.put(settled)


def with_files(route: Route, taken: tuple[Prepared, ...]) -> Route:
    """The route with its placeholders replaced, in order."""
    return msgspec.structs.replace(route, request=fill(route.request, taken), files=taken)
