"""Calls of models for a turn: answers, summaries, titles. All are admitted, recorded and paid like any call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import Final

import msgspec

from crocevia.core.calls import GenerationOptions, ToolChoice
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.events import ModelEvent, ReasoningDelta, Stopped, StopReason, TextDelta
from crocevia.core.ids import new_id
from crocevia.core.messages import Message, user
from crocevia.core.sizes import tokens
from crocevia.core.turn import Turn, normalise_title
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.files import filled
from crocevia.core.turn.files import spoken as as_names
from crocevia.core.turn.instance import Instance
from crocevia.core.turn.rules import LIMIT_TOOL_CALLS
from crocevia.core.turn.run_request import RunRequest
from crocevia.log import Coalescer, Piece
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import Call, CallDraft, Gateway, Route
from crocevia.runtime.turns import attachments, prompts
from crocevia.runtime.turns.attempts import (
    AGENT_GONE,
    FIRST_BACKOFF,
    INTERRUPTED,
    MAX_BACKOFF,
    CallCost,
    ModelAttempt,
    cost_of,
    fault_of,
)
from crocevia.runtime.turns.chat_sessions import RunObserver
from crocevia.runtime.turns.driver import Driver
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.turn_setup import AgentSetup, TurnSetup

DOOR: Final = "atp"
COMPACTION_SECONDS: Final = 600.0


class ModelRunner:
    """Calls the models of one turn's agents."""

    def __init__(
        self,
        gateway: Gateway,
        setup: TurnSetup,
        settings: TurnSettings,
        control: Control,
        budget: TurnBudget,
        observer: RunObserver | None = None,
    ) -> None:
        self._gateway = gateway
        self._control = control
        self._setup = setup
        self._settings = settings
        self._budget = budget
        self._observer = observer
        self._asked = asyncio.Event()
        """Set once the first call of an agent is admitted or refused: the title's money comes after the answer's."""
        self._titled = asyncio.Event()
        self._title_overdue = asyncio.Event()

    async def call_model(self, driver: Driver, want: w.CallModel) -> None:
        attempt = ModelAttempt(driver.turn.id, want.instance, want.step, want.attempt, driver.now, new_id("call"))
        instance = driver.turn.instances[want.instance]
        if want.attempt > 1:
            await asyncio.sleep(_backoff(driver, instance))
        if not await driver.commit(attempt.started()):
            return
        agent = self._setup.agents.get(instance.agent.name)
        if agent is None:
            driver.post(attempt.failed(AGENT_GONE, CallCost()))
        else:
            try:
                await self._attempt(driver, instance, agent, attempt, want.separator)
            finally:
                self._asked.set()

    async def _attempt(
        self, driver: Driver, instance: Instance, agent: AgentSetup, attempt: ModelAttempt, separator: str
    ) -> None:
        writer = DeltaWriter(driver, instance, separator, self._before_text(driver, instance))
        call: Call | None = None
        try:
            context, model = driver.turn.context(instance.id), instance.card.model
            context = await attachments.fill(self._control, self._gateway, driver.session.chat.user_id, model, context)
            draft = self._draft(driver, instance, agent, context)
            route = self._gateway.route_model(driver.session.chat.user_id, model, draft)
            async with self._reserved(instance, route):
                call = self._open(driver, instance, draft, route, attempt.call)
                self._asked.set()
                broken = await self._stream(driver, call, writer)
                cost = cost_of(call, instance)
                interrupted = call.cut is not None and call.fold.stop is None
                await driver.commit(
                    attempt.failed(INTERRUPTED, cost)
                    if interrupted
                    else _heeded(
                        driver.turn, attempt.answered(call, cost, broken, self._setup.caller_tools), self._setup
                    )
                )
        except asyncio.CancelledError:
            if not driver.detached:
                writer.flush()
                driver.post(attempt.failed(INTERRUPTED, cost_of(call, instance)))
            raise
        except GatewayError as error:
            writer.close()
            if error.code is Code.DRAINING and (self._observer is None or self._observer.resumable):
                return  # the next process tries it again
            if self._observer is not None:
                self._observer.call_failed(error)
            pause = min(float(error.retry_after or FIRST_BACKOFF), MAX_BACKOFF)
            driver.post(attempt.failed(fault_of(error), cost_of(call, instance), pause))

    async def _stream(self, driver: Driver, call: Call, writer: DeltaWriter) -> str | None:
        """Hear the answer out. The tool whose arguments could not be read, if that ended it."""
        observer = self._observer
        if observer is not None:
            observer.call_started(call, partial(_fail_turn, driver))
        journalled = observer is None or not observer.sole_reader
        try:
            async with call:
                async for batch in call:
                    if journalled:
                        await writer.write(batch)
                    if observer is not None:
                        await observer.receive(batch)
        except GatewayError as error:
            broken = await self._broken_tool(call, error)
            if broken is None:
                raise
            return broken
        finally:
            writer.flush()
        return None

    async def _broken_tool(self, call: Call, error: GatewayError) -> str | None:
        """Whose arguments could not be read, if the model can be told: not of a caller that heard half a call."""
        if error.reason is not Reason.TOOL_ARGUMENTS_MALFORMED:
            return None
        told = str(error.details["tool"])
        name = call.route.fitted.names.get(told, told)
        if name in self._setup.caller_tools:
            return None
        if self._observer is not None:
            await self._observer.receive([Stopped(StopReason.TOOL_USE)])
        return name

    async def compact(self, driver: Driver, want: w.Compact) -> None:
        turn, instance = driver.turn, driver.turn.instances[want.instance]
        messages = (*turn.context(instance.id), user(prompts.SUMMARISE))
        agent = self._setup.agents.get(instance.agent.name)
        call = self._utility_call(driver, instance, messages, agent.system if agent else "", "compaction")
        try:
            await call.run(COMPACTION_SECONDS)
        finally:
            if not driver.detached:
                driver.post(_summary(driver, instance, call))

    async def make_title(self, driver: Driver, want: w.MakeTitle) -> None:
        turn = driver.turn
        call = self._utility_call(driver, turn.root, (user(turn.input),), prompts.TITLE, "title")
        try:
            if not self._setup.derive_title:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._settings.title_wait_seconds):
                        await self._asked.wait()
                await call.run(self._settings.title_seconds, self._title_overdue)
        finally:
            self._titled.set()
            if not driver.detached:
                cost = call.cost
                driver.post(
                    e.TitleAnswered(
                        turn=turn.id,
                        at=driver.now(),
                        title=normalise_title(call.text.strip("\"'«»“” ")),
                        usage=cost.usage,
                        cost_usd=cost.cost_usd,
                        unpriced=cost.unpriced,
                    )
                )

    def _before_text(self, driver: Driver, instance: Instance) -> Callable[[], asyncio.Future[None]] | None:
        """What the first text of the root waits for: the title, but not for long."""
        turn = driver.turn
        if instance.id != turn.root_id or not turn.plan.title or turn.title is not None or turn.title_answer:
            return None
        return lambda: asyncio.ensure_future(self._wait_for_title())

    async def _wait_for_title(self) -> None:
        try:
            async with asyncio.timeout(self._settings.title_wait_seconds):
                await self._titled.wait()
        except TimeoutError:
            self._title_overdue.set()
            await self._titled.wait()

    def _reserved(self, instance: Instance, route: Route) -> AbstractAsyncContextManager[None]:
        """The call's highest cost, set aside within the turn's limit. Raises like `_highest_cost`."""
        highest = self._highest_cost(instance, route)
        return self._budget.reserve(highest) if highest else nullcontext()

    def _highest_cost(self, instance: Instance, route: Route) -> float:
        """In USD; 0 without a limit. Raises GatewayError: MODEL_UNPRICED."""
        if instance.card.free or not self._budget.limited:
            return 0.0
        highest = self._gateway.most_usd(route)
        if highest is None:
            raise GatewayError(Reason.MODEL_UNPRICED, model=instance.card.model)
        return highest

    def _open(
        self, driver: Driver, instance: Instance, draft: CallDraft, route: Route, call_id: str | None = None
    ) -> Call:
        return self._gateway.open_model(driver.session.chat.user_id, instance.card.model, draft, route, call_id)

    def _draft(self, driver: Driver, instance: Instance, agent: AgentSetup, messages: tuple[Message, ...]) -> CallDraft:
        request = self._setup.request
        if request is not None:
            return _requested(request, agent, messages, instance)
        return CallDraft(
            door=DOOR,
            encode="turn",
            messages=messages,
            system=agent.system or None,
            tools=agent.tools,
            options=GenerationOptions(tool_choice=_tool_choice(instance, agent), session=driver.session.chat.id),
            agent=instance.agent.name,
            going_on=True,
        )

    def _utility_call(
        self, driver: Driver, instance: Instance, messages: tuple[Message, ...], system: str, encode: str
    ) -> UtilityCall:
        draft = CallDraft(
            door=DOOR,
            encode=encode,
            messages=filled(messages, as_names),
            system=system or None,
            options=GenerationOptions(stream=False, session=driver.session.chat.id),
            agent=instance.agent.name,
            going_on=True,
        )

        def open_call() -> Call:
            route = self._gateway.route_model(driver.session.chat.user_id, instance.card.model, draft)
            self._highest_cost(instance, route)
            return self._open(driver, instance, draft, route)

        return UtilityCall(instance, open_call)


def _backoff(driver: Driver, instance: Instance) -> float:
    """Seconds until the next attempt, also when another process heard how long to wait."""
    if instance.retry_at is None:
        return float(FIRST_BACKOFF * 2 ** min(instance.attempt - 2, 4))
    return min(max(0, instance.retry_at - driver.now()) / 1000, MAX_BACKOFF)


def _fail_turn(driver: Driver, code: str, message: str) -> None:
    driver.post(e.TurnFailing(turn=driver.turn.id, at=driver.now(), code=code, message=message))


def _heeded(turn: Turn, answer: e.ModelAnswered, setup: TurnSetup) -> e.ModelAnswered:
    """Without calls of the agent's own tools once it was told that it has none left: they are ignored."""
    told = any(call.refusal is not None and call.refusal[0] == LIMIT_TOOL_CALLS for call in turn.calls.values())
    heeded = tuple(call for call in answer.calls if call.name in setup.caller_tools) if told else answer.calls
    if len(heeded) == len(answer.calls):
        return answer
    return msgspec.structs.replace(answer, calls=heeded, unreadable=(), provider_blocks=None)


def _requested(request: RunRequest, agent: AgentSetup, messages: tuple[Message, ...], instance: Instance) -> CallDraft:
    """A call of a run, as its caller asked for it."""
    going_on = instance.step > 0
    return CallDraft(
        door=request.door,
        encode=request.encode,
        messages=messages,
        system=agent.system or None,
        tools=agent.tools,
        options=_requested_options(request, agent),
        bytes_in=0 if going_on else request.bytes_in,
        repaired=() if going_on else request.repaired,
        agent=instance.agent.name,
        going_on=going_on,
    )


def _requested_options(request: RunRequest, agent: AgentSetup) -> GenerationOptions:
    """A caller can forbid its own tools, not the agent's; what it demands is demanded until the run ends with it."""
    has_own_tools = len(agent.tools) > len(request.tools)
    if has_own_tools and request.options.tool_choice.mode == "none":
        return msgspec.structs.replace(request.options, tool_choice=ToolChoice())
    return request.options


def _tool_choice(instance: Instance, agent: AgentSetup) -> ToolChoice:
    """What the agent is configured to do in this answer; what it cannot do is not demanded of it."""
    configured = instance.card.tool_choice
    choice = configured[instance.step] if instance.step < len(configured) else "auto"
    if choice in {tool.name for tool in agent.tools}:
        return ToolChoice(mode="required", name=choice)
    if choice == "none" or (choice == "required" and agent.tools):
        return ToolChoice(mode="none" if choice == "none" else "required")
    return ToolChoice()


def _summary(driver: Driver, instance: Instance, call: UtilityCall) -> e.ContextAnswered:
    turn, text, cost = driver.turn, call.text, call.cost
    task = turn.input if instance.id == turn.root_id else instance.task
    return e.ContextAnswered(
        turn=turn.id,
        at=driver.now(),
        instance=instance.id,
        items=(prompts.summary(f"{text}\n\nThe request under way:\n{task}"),) if text else (),
        summary=text,
        context_tokens=tokens(len(text) + len(task)) if text else None,
        usage=cost.usage,
        cost_usd=cost.cost_usd,
        unpriced=cost.unpriced,
    )


class DeltaWriter:
    """Writes what a model streams into the journal, in deltas of a reasonable size."""

    def __init__(
        self,
        driver: Driver,
        instance: Instance,
        separator: str,
        before_text: Callable[[], asyncio.Future[None]] | None,
    ) -> None:
        """separator: goes before the first text. before_text: what that text waits for."""
        self._driver = driver
        self._agent = instance.agent
        self._separator = separator
        self._before_text = before_text
        self._pieces = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._open = True

    async def write(self, batch: list[ModelEvent]) -> None:
        for event in batch:
            if isinstance(event, TextDelta):
                if not event.text:
                    continue
                if self._before_text is not None:
                    wait, self._before_text = self._before_text, None
                    await wait()
                self._post(self._pieces.add("text", self._separator + event.text, time.monotonic()))
                self._separator = ""
            elif isinstance(event, ReasoningDelta):
                self._post(self._pieces.add("reasoning", event.text, time.monotonic()))
        due = self._pieces.due
        if due is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self.flush)

    def flush(self) -> None:
        """Post what is held."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._open:
            self._post(self._pieces.flush())

    def close(self) -> None:
        """Post what is held, and nothing after it."""
        self.flush()
        self._open = False

    def _post(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            make = e.AgentTextDelta if piece.kind == "text" else e.AgentReasoningDelta
            self._driver.post(
                make(turn=self._driver.turn.id, at=self._driver.now(), agent=self._agent, delta=piece.text)
            )


class UtilityCall:
    """A call that answers nobody in the turn: a summary, a title."""

    def __init__(self, instance: Instance, open_call: Callable[[], Call]) -> None:
        self.text = ""
        """The answer; empty unless it is complete."""
        self._instance = instance
        self._open_call = open_call
        self._call: Call | None = None

    async def run(self, seconds: float, stop: asyncio.Event | None = None) -> None:
        """Ends after `seconds`, or when `stop` is set."""
        tasks = [asyncio.create_task(self._run())]
        if stop is not None:
            tasks.append(asyncio.create_task(_wait(stop)))
        try:
            await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self) -> None:
        with suppress(GatewayError):
            call = self._call = self._open_call()
            async with call:
                await call.answer()
            self.text = call.fold.answer().text.strip()

    @property
    def cost(self) -> CallCost:
        return cost_of(self._call, self._instance)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


class TurnBudget:
    """Reserves money within the turn's cost limit: calls at the same time never count on the same dollar.

    One per turn; belongs to one event loop.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._limit = turn.plan.limits.cost_usd
        self._reserved = 0.0
        self._calls = 0
        self._released = asyncio.Event()

    @property
    def limited(self) -> bool:
        return self._limit is not None

    @asynccontextmanager
    async def reserve(self, amount: float) -> AsyncIterator[None]:
        """Set `amount` USD aside while a call runs. One that does not fit waits for the others, then goes alone.

        Leave only once the turn knows what the call cost. Waits for ever when all is spent: the turn is ending.
        """
        while not self._fits(amount):
            self._released.clear()
            await self._released.wait()
        self._reserved += amount
        self._calls += 1
        try:
            yield
        finally:
            self._reserved -= amount
            self._calls -= 1
            self._released.set()

    def _fits(self, amount: float) -> bool:
        if self._limit is None:
            return True
        if self._turn.cost_limit_reached:
            return False
        return not self._calls or self._reserved + amount <= self._limit - self._turn.known_cost
