"""Calls of models for a turn: answers, summaries, titles. All are admitted, recorded and paid like any call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final

from crocevia.core.calls import GenerationOptions, ToolChoice
from crocevia.core.errors import Code, GatewayError, Reason
from crocevia.core.messages import Message, user
from crocevia.core.sizes import tokens
from crocevia.core.turn import Turn, normalise_title
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.files import filled
from crocevia.core.turn.files import spoken as spoken_of
from crocevia.core.turn.instance import Instance
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import Call, CallDraft, Gateway, Route
from crocevia.runtime.turns import attachments, prompts
from crocevia.runtime.turns.asides import UtilityCall
from crocevia.runtime.turns.budget import TurnBudget
from crocevia.runtime.turns.chat_sessions import now_ms
from crocevia.runtime.turns.driver import Driver
from crocevia.runtime.turns.hearing import DeltaWriter, RunObserver
from crocevia.runtime.turns.run_calls import drafted
from crocevia.runtime.turns.settings import TurnSettings
from crocevia.runtime.turns.steps import GONE, STOPPED, Bill, Step, bill_of, fault_of
from crocevia.runtime.turns.turn_setup import AgentSetup, TurnSetup

BACKOFF: Final = 0.25  # seconds before the second try, then twice as long each time
LONGEST_WAIT: Final = 20.0
DOOR: Final = "atp"
COMPACTION_SECONDS: Final = 600.0


class ModelRunner:
    """Thinks for the agents of one turn."""

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
        self._retry_after: dict[str, float] = {}
        self._titled = asyncio.Event()
        self._hurry = asyncio.Event()

    async def call_model(self, driver: Driver, want: w.CallModel) -> None:
        step = Step(driver.turn.id, want.instance, want.step, want.attempt)
        instance = driver.turn.instances[want.instance]
        if want.attempt > 1:
            await asyncio.sleep(self._retry_after.pop(instance.id, BACKOFF * 2 ** min(want.attempt - 2, 4)))
        if not await driver.report(step.started()):
            return
        part = self._setup.parts.get(instance.agent.name)
        if part is None:
            driver.tell(step.failed(GONE, Bill()))
        else:
            await self._think(driver, instance, part, step, want.separator)

    async def _think(self, driver: Driver, instance: Instance, part: AgentSetup, step: Step, lead: str) -> None:
        heard = DeltaWriter(driver, instance, lead, self._before_text(driver, instance))
        call: Call | None = None
        try:
            context, model = driver.turn.context(instance.id), instance.card.model
            context = await attachments.fill(self._control, self._gateway, driver.session.chat.user_id, model, context)
            draft = self._draft(driver, instance, part, context)
            route = self._gateway.route_model(driver.session.chat.user_id, model, draft)
            async with self._money(instance, route):
                call = self._open(driver, instance, draft, route)
                await self._listen(call, heard)
                cut, bill = call.cut is not None and call.fold.stop is None, bill_of(call, instance)
                await driver.report(step.failed(STOPPED, bill) if cut else step.answered(call, bill))
        except asyncio.CancelledError:
            if not driver.detached:
                heard.flush()
                driver.tell(step.failed(STOPPED, bill_of(call, instance)))
            raise
        except GatewayError as error:
            heard.close()
            if error.code is Code.DRAINING and (self._observer is None or self._observer.resumes):
                return  # the next process tries it again
            if self._observer is not None:
                self._observer.failed(error)
            self._retry_after[instance.id] = min(float(error.retry_after or BACKOFF), LONGEST_WAIT)
            driver.tell(step.failed(fault_of(error), bill_of(call, instance)))

    async def _listen(self, call: Call, heard: DeltaWriter) -> None:
        observer = self._observer
        if observer is not None:
            observer.began(call)
        async with call:
            async for batch in call:
                if observer is None or not observer.alone:
                    await heard.take(batch)
                if observer is not None:
                    await observer.take(batch)
        heard.flush()

    async def compact(self, driver: Driver, want: w.Compact) -> None:
        turn, instance = driver.turn, driver.turn.instances[want.instance]
        messages = (*turn.context(instance.id), user(prompts.SUMMARISE))
        part = self._setup.parts.get(instance.agent.name)
        aside = self._utility_call(driver, instance, messages, part.system if part else "", "compaction")
        try:
            await aside.listen(COMPACTION_SECONDS)
        finally:
            if not driver.detached:
                driver.tell(_summary(turn, instance, aside))

    async def make_title(self, driver: Driver, want: w.MakeTitle) -> None:
        turn = driver.turn
        aside = self._utility_call(driver, turn.root, (user(turn.input),), prompts.TITLE, "title")
        try:
            if not self._setup.derived:
                await aside.listen(self._settings.title_seconds, self._hurry)
        finally:
            self._titled.set()
            if not driver.detached:
                title, bill = normalise_title(aside.text.strip("\"'«»“” ")), aside.bill
                driver.tell(
                    e.TitleAnswered(
                        turn=turn.id,
                        at=now_ms(),
                        title=title,
                        usage=bill.usage,
                        cost_usd=bill.cost_usd,
                        unpriced=bill.unpriced,
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
            self._hurry.set()
            await self._titled.wait()

    def _money(self, instance: Instance, route: Route) -> AbstractAsyncContextManager[None]:
        """What the call may cost, set aside within the turn's limit. Raises like `_most`."""
        most = self._most(instance, route)
        return self._budget.reserve(most) if most else nullcontext()

    def _most(self, instance: Instance, route: Route) -> float:
        """What the call may cost at most; 0 without a limit. Raises GatewayError: MODEL_UNPRICED."""
        if instance.card.free or not self._budget.bounded:
            return 0.0
        model = instance.card.model
        most = self._gateway.most_usd(route)
        if most is None:
            raise GatewayError(Reason.MODEL_UNPRICED, model=model)
        return most

    def _open(self, driver: Driver, instance: Instance, draft: CallDraft, route: Route) -> Call:
        return self._gateway.open_model(driver.session.chat.user_id, instance.card.model, draft, route)

    def _draft(
        self, driver: Driver, instance: Instance, part: AgentSetup, messages: tuple[Message, ...], encode: str = "turn"
    ) -> CallDraft:
        aside = encode != "turn"
        if self._setup.request is not None and not aside:
            return drafted(self._setup.request, part, messages, instance.agent.name, going_on=instance.step > 0)
        return CallDraft(
            door=DOOR,
            encode=encode,
            messages=messages,
            system=part.system or None,
            tools=() if aside else part.tools,
            options=GenerationOptions(
                tool_choice=ToolChoice() if aside else _choice(instance, part),
                stream=not aside,
                session=driver.session.chat.id,
            ),
            agent=instance.agent.name,
            going_on=True,
        )

    def _utility_call(
        self, driver: Driver, instance: Instance, messages: tuple[Message, ...], system: str, encode: str
    ) -> UtilityCall:
        part = AgentSetup(name=instance.agent.name, system=system, tools=(), leads=False)
        draft = self._draft(driver, instance, part, filled(messages, spoken_of), encode)

        def opening() -> Call:
            route = self._gateway.route_model(driver.session.chat.user_id, instance.card.model, draft)
            self._most(instance, route)
            return self._open(driver, instance, draft, route)

        return UtilityCall(instance, opening)


def _choice(instance: Instance, part: AgentSetup) -> ToolChoice:
    """What the agent is configured to do in this answer; what it cannot do is not asked of it."""
    planned = instance.card.tool_choice
    wish = planned[instance.step] if instance.step < len(planned) else "auto"
    if wish in {tool.name for tool in part.tools}:
        return ToolChoice(mode="required", name=wish)
    if wish == "none" or (wish == "required" and part.tools):
        return ToolChoice(mode="none" if wish == "none" else "required")
    return ToolChoice()


def _summary(turn: Turn, instance: Instance, aside: UtilityCall) -> e.ContextAnswered:
    said, bill = aside.text, aside.bill
    asked = turn.input if instance.id == turn.root_id else instance.task
    return e.ContextAnswered(
        turn=turn.id,
        at=now_ms(),
        instance=instance.id,
        items=(prompts.summary(f"{said}\n\nThe request under way:\n{asked}"),) if said else (),
        summary=said,
        context_tokens=tokens(len(said) + len(asked)) if said else None,
        usage=bill.usage,
        cost_usd=bill.cost_usd,
        unpriced=bill.unpriced,
    )
