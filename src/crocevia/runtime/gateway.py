"""What doors see of the runtime: who is asking, and calls."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from crocevia.core.calls import Abilities, AnswerFormat, Engine, ModelRequest, Sampling, ToolChoice
from crocevia.core.catalogue import ModelSpec, ProjectSpec
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.ids import new_id
from crocevia.core.messages import Message, Tool
from crocevia.documents.intake import PEPPER as PEPPER_FILES
from crocevia.documents.intake import Taken
from crocevia.policy.admission import Admission
from crocevia.policy.prices import ceiling, usd
from crocevia.runtime.money.spend import Remaining, Spend, prompt_tokens
from crocevia.runtime.reasoning.fingerprints import Fingerprints
from crocevia.runtime.reasoning.routing import Question, Route, Router, proof
from crocevia.storage.records import OpenedCall, SettledCall

from .calls import DEFAULT_LIMITS, Answerer, Call, CallLimits, Cut
from .intake import Attachment, Attachments, Wants, check_permission, fill, placeholder

__all__ = [
    "PEPPER_FILES",
    "Attachment",
    "Call",
    "CallDraft",
    "CallLimits",
    "Cut",
    "Estimate",
    "Gateway",
    "Profile",
    "ProjectSpec",
    "Route",
    "Wants",
    "check_permission",
    "placeholder",
]

REASONING_TOKENS: Final = 16_000  # the least `max_tokens` of a model that reasons
DRAIN_SECONDS: Final = 10.0

EngineSource: TypeAlias = Callable[[str], Engine]
"""The working engine of a name. Raises GatewayError(UNAVAILABLE) when there is none."""


class View(Protocol):
    """The part of `runtime.catalogue.Catalogue` that a call needs."""

    @property
    def models(self) -> dict[str, ModelSpec]: ...
    @property
    def revision(self) -> int: ...
    def project_of(self, name: str, key: bytes) -> ProjectSpec | None: ...


class Holder(Protocol):
    """The catalogue of this moment."""

    @property
    def current(self) -> View: ...


class Recorder(Protocol):
    """Where records go; `put` never waits. failing: the store takes nothing at the moment."""

    @property
    def failing(self) -> bool: ...
    def put(self, record: OpenedCall | SettledCall) -> None: ...


class CallDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A call as a door understood it. `system` None: the model's own instructions. `bytes_in`: of the request.

    user_id, agent: for the record, when no project is asking. spoiled: by index, why the pieces of a message could
    not be read. keeps_pieces: the protocol lets the caller send them back. origins: indexes of the messages as the
    caller counts them; empty: the same. going_on: it continues what was admitted before, so it is not refused for
    draining.
    """

    door: str
    encode: str
    messages: tuple[Message, ...]
    system: str | None = None
    tools: tuple[Tool, ...] = ()
    max_tokens: int = 4096
    stream: bool = True
    session: str | None = None
    bytes_in: int = 0
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    format: AnswerFormat | None = None
    sampling: Sampling = Sampling()
    user_id: str | None = None
    agent: str | None = None
    spoiled: Mapping[int, str] = {}
    origins: tuple[int, ...] = ()
    keeps_pieces: bool = False
    going_on: bool = False


class Profile(msgspec.Struct, frozen=True):
    """The model that a project has, and what its engine does with it."""

    model: ModelSpec
    abilities: Abilities


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A call's money before it is made, in USD. most_usd None: nobody knows the price. Budgets None: there is none.

    refusal: what admission would say of the money now.
    """

    prompt_tokens: int
    most_usd: float | None = None
    budget_usd: float | None = None
    budget_left_usd: float | None = None
    refusal: GatewayError | None = None


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
        memory: Fingerprints | None = None,
        attachments: Attachments | None = None,
        on_round: Callable[[ProjectSpec, bool], None] = lambda project, blockless: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """on_round: told whether an app left out the pieces of its open tool round, at every such call."""
        self.admission = Admission()
        self.spend = spend or Spend(clock=clock)
        self.draining = False
        self._catalogue = catalogue
        self._engines = engines
        self._router = Router(engines, memory or Fingerprints(os.urandom(32)))
        self._attachments = attachments or Attachments()
        self._on_round = on_round
        self._records = records
        self._limits = limits
        self._clock = clock
        self._calls: set[Call] = set()
        self._users: dict[tuple[str, str], ProjectSpec] = {}

    @property
    def active(self) -> int:
        """Calls under way."""
        return len(self._calls)

    def authenticate(self, project: str, key: bytes) -> ProjectSpec:
        """The project whose key this is. Raises GatewayError(UNAUTHENTICATED), the same for every reason."""
        found = self._catalogue.current.project_of(project, key)
        if found is None:
            raise GatewayError(Code.UNAUTHENTICATED)
        return found

    def open_model(self, user_id: str, model: str, draft: CallDraft) -> Call:
        """A call by a user, who is a tenant like a project, on a model of the catalogue. Raises like `open_call`."""
        tenant = self._users.get((user_id, model))
        if tenant is None:
            tenant = self._users[user_id, model] = ProjectSpec(name=f"user:{user_id}", model=model)
        return self.open_call(tenant, msgspec.structs.replace(draft, user_id=user_id))

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
            self.spend.reserve(project, route.model, route.request, self._clock()).release()
        except GatewayError as error:
            refusal = error
        return Estimate(
            prompt_tokens=prompt,
            most_usd=None if rates is None else usd(ceiling(prompt, route.request.max_tokens, rates)),
            budget_usd=None if left.budget is None else usd(left.budget),
            budget_left_usd=None if left.budget_left is None else usd(left.budget_left),
            refusal=refusal,
        )

    def _model(self, project: ProjectSpec) -> ModelSpec:
        model = self._catalogue.current.models.get(project.model)
        if model is None:
            raise GatewayError(Code.UNAVAILABLE, say("model_missing", model=project.model))
        return model

    def route(self, project: ProjectSpec, draft: CallDraft) -> Route:
        """Who would answer, and with what; nothing is admitted yet. Raises GatewayError: see `Router.route`."""
        models, model = self._catalogue.current.models, self._model(project)
        question = Question(
            model=model,
            request=compose(model, draft),
            max_tokens=draft.max_tokens,
            spoiled=draft.spoiled,
            keeps_pieces=draft.keeps_pieces,
        )
        return self._router.route(question, models)

    def check_room(self, project: ProjectSpec) -> None:
        """Refuse what admission is sure to refuse, before files are read for it. Raises GatewayError."""
        self._check_open()
        left = self.remaining(project)
        if left.hourly is not None and not left.hourly_left:
            wait = max(1, left.hourly_reset or 1)
            sentence = say(Code.RATE_LIMITED.value, limit=left.hourly, seconds=wait)
            raise GatewayError(Code.RATE_LIMITED, sentence, retry_after=wait)

    def _check_open(self, *, going_on: bool = False) -> None:
        if self.draining and not going_on:
            raise GatewayError(Code.DRAINING, retry_after=int(DRAIN_SECONDS))
        if self._records.failing:
            raise GatewayError(Code.UNAVAILABLE, retry_after=1)

    async def attach(self, route: Route, attachments: tuple[Attachment, ...], wants: Wants) -> Route:
        """Put files in the place of their placeholders, as the engine of `route` takes them.

        Raises GatewayError: INVALID_REQUEST, DOCUMENTS_NOT_ENABLED, IMAGES_NOT_ENABLED, UNSUPPORTED, UNAVAILABLE.
        """
        abilities = route.engine.abilities(route.request.model)
        return with_files(route, await self.take(route, attachments, wants, abilities))

    async def take(
        self, route: Route, attachments: tuple[Attachment, ...], wants: Wants, abilities: Abilities
    ) -> tuple[Taken, ...]:
        """Files as an engine of these abilities takes them. Raises like `attach`."""
        return await self._attachments.take(attachments, wants, abilities, max_pages=route.model.max_pages)

    async def read_files(self, model: str, attachments: tuple[Attachment, ...], wants: Wants) -> tuple[Taken, ...]:
        """Files as a model of the catalogue takes them. Raises like `attach`."""
        known = self.profile(ProjectSpec(name="", model=model))
        return await self._attachments.take(attachments, wants, known.abilities, max_pages=known.model.max_pages)

    def open_call(self, project: ProjectSpec, draft: CallDraft, route: Route | None = None) -> Call:
        """Admit a call and open its record; enter it at once, since it holds a slot from here on.

        route: what `route` said of it, if it was asked. Raises GatewayError: DRAINING, UNAVAILABLE, MODEL_UNPRICED,
        BUDGET_EXHAUSTED, RATE_LIMITED, CONCURRENCY_LIMITED.
        """
        self._check_open(going_on=draft.going_on)
        catalogue = self._catalogue.current
        route = route or self.route(project, draft)
        now = self._clock()
        charge = self.spend.reserve(project, route.model, route.request, now)
        try:
            permit = self.admission.admit(
                project.name, hourly=project.hourly_limit, concurrency=project.max_concurrency, now=now
            )
        except GatewayError:
            charge.release()
            raise
        call_id = new_id("call")
        call = Call(
            call_id,
            Answerer(route, charge),
            permit=permit,
            limits=self._limits,
            retreat=lambda answerer: self._retreat(project, answerer),
            on_end=lambda call, settled: self._end(call, settled, draft.origins),
        )
        self._calls.add(call)
        if draft.keeps_pieces and route.blockless is not None:
            self._on_round(project, route.blockless and route.asked.model.reasoning != "off")
        self._records.put(
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
                session_id=draft.session,
                reserved_usd=charge.reserved_usd,
                bytes_in=draft.bytes_in,
            )
        )
        return call

    def remaining(self, project: ProjectSpec) -> Remaining:
        """What the project may still do at this moment."""
        left = Remaining()
        if project.daily_budget_usd is not None:
            now, day = self._clock(), self.spend.standing(project)
            budget = self.spend.budget(project).daily or 0
            left = Remaining(
                budget=budget,
                budget_left=max(0, budget - day.spent - day.reserved),
                budget_reset=day.day.seconds_left(now),
            )
        if project.hourly_limit is None:
            return left
        used, frees = self.admission.used(project.name, self._clock())
        return msgspec.structs.replace(
            left, hourly=project.hourly_limit, hourly_left=max(0, project.hourly_limit - used), hourly_reset=frees
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

    def _retreat(self, project: ProjectSpec, rejected: Answerer) -> Answerer | None:
        again = self._router.retreat(rejected.route, self._catalogue.current.models)
        if again is None:
            return None
        again = with_files(again, rejected.route.files)
        rejected.charge.release()  # a provider bills nothing for what it rejects
        return Answerer(again, self.spend.reserve(project, again.model, again.request, self._clock()))

    def _end(self, call: Call, settled: SettledCall, origins: tuple[int, ...]) -> None:
        self._calls.discard(call)
        notes: dict[str, Any] = call.route.notes(origins)
        if call.fold.thinks and call.fold.stop is not None:
            notes |= proof(self._router.memory, call.route, [piece.block for piece in call.fold.answer().blocks])
        if notes:
            settled = msgspec.structs.replace(
                settled,
                notes={**(settled.notes or {}), **notes},
                model=call.model.name,
                engine=call.route.engine.name,
            )
        self._records.put(settled)


def with_files(route: Route, taken: tuple[Taken, ...]) -> Route:
    """The route with its placeholders replaced, in order."""
    return msgspec.structs.replace(route, request=fill(route.request, taken), files=taken)


def compose(model: ModelSpec, draft: CallDraft) -> ModelRequest:
    """The request for `model`: its instructions and the caller's, and room to reason."""
    return ModelRequest(
        model=model.upstream,
        messages=draft.messages,
        system=_instructions(model, draft.system),
        tools=draft.tools,
        max_tokens=draft.max_tokens if model.reasoning == "off" else max(draft.max_tokens, REASONING_TOKENS),
        stream=draft.stream,
        reasoning=model.reasoning,
        session=draft.session,
        tool_choice=draft.tool_choice,
        parallel_tool_calls=draft.parallel_tool_calls,
        format=draft.format,
        sampling=draft.sampling,
    )


def _instructions(model: ModelSpec, system: str | None) -> str | None:
    if not system:
        return model.instructions
    if model.voice_in_apps and model.instructions:
        return f"{model.instructions}\n\n{system}"
    return system
