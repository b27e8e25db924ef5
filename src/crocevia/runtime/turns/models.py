"""Calls of models for a turn: answers, summaries, titles. All are admitted, recorded and paid like any call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.errors import Code, GatewayError
from crocevia.core.events import ModelEvent, ReasoningDelta, StopReason, TextDelta
from crocevia.core.messages import Message, Opaque, ToolCall, user
from crocevia.core.texts import render
from crocevia.core.turn import Turn, normalise_title
from crocevia.core.turn import entries as e
from crocevia.core.turn import wants as w
from crocevia.core.turn.files import filled
from crocevia.core.turn.files import spoken as spoken_of
from crocevia.core.turn.instance import Instance
from crocevia.core.usage import Usage
from crocevia.log import Coalescer, Piece
from crocevia.runtime.control.context import Control
from crocevia.runtime.gateway import Call, CallDraft, Gateway

from . import files, words
from .casting import Cast, Part
from .driver import Driver
from .rooms import now_ms
from .settings import TurnSettings
from .signing import canonical

BACKOFF: Final = 0.25  # seconds before the second try, then twice as long each time
LONGEST_WAIT: Final = 20.0
_AGAIN: Final = frozenset(
    {
        Code.RATE_LIMITED,
        Code.CONCURRENCY_LIMITED,
        Code.UPSTREAM_FAILED,
        Code.UPSTREAM_OVERLOADED,
        Code.UPSTREAM_TIMEOUT,
    }
)
DOOR: Final = "atp"
COMPACTION_SECONDS: Final = 600.0


class Bill(msgspec.Struct, frozen=True):
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


class Mind:
    """Thinks for the agents of one turn."""

    def __init__(self, gateway: Gateway, cast: Cast, settings: TurnSettings, control: Control) -> None:
        self._gateway = gateway
        self._control = control
        self._cast = cast
        self._settings = settings
        self._retry_after: dict[str, float] = {}
        self._titled = asyncio.Event()
        self._hurry = asyncio.Event()

    async def call_model(self, driver: Driver, want: w.CallModel) -> None:
        step = _Step(driver.turn.id, want.instance, want.step, want.attempt)
        instance = driver.turn.instances[want.instance]
        if want.attempt > 1:
            await asyncio.sleep(self._retry_after.pop(instance.id, BACKOFF * 2 ** min(want.attempt - 2, 4)))
        if not await driver.report(step.started()):
            return
        part = self._cast.parts.get(instance.agent.name)
        if part is None:
            driver.tell(step.failed(_GONE, Bill()))
        else:
            await self._think(driver, instance, part, step, want.lead)

    async def _think(self, driver: Driver, instance: Instance, part: Part, step: _Step, lead: str) -> None:
        heard = _Heard(driver, instance, lead, self._before_text(driver, instance))
        call: Call | None = None
        try:
            context, model = driver.turn.context(instance.id), instance.card.model
            context = await files.fill(self._control, self._gateway, driver.room.chat.user_id, model, context)
            call = self._open(driver, instance, part, context)
            async with call:
                async for batch in call:
                    await heard.take(batch)
            heard.flush()
            driver.tell(step.answered(call, _bill(call, instance)))
        except asyncio.CancelledError:
            if not driver.parted:
                heard.flush()
                driver.tell(step.failed(_STOPPED, _bill(call, instance)))
            raise
        except GatewayError as error:
            heard.close()
            if error.code is Code.DRAINING:
                return  # the next process tries it again
            self._retry_after[instance.id] = min(float(error.retry_after or BACKOFF), LONGEST_WAIT)
            driver.tell(step.failed(_fault(error), _bill(call, instance)))

    async def compact(self, driver: Driver, want: w.Compact) -> None:
        turn, instance = driver.turn, driver.turn.instances[want.instance]
        messages = (*turn.context(instance.id), user(words.SUMMARISE))
        part = self._cast.parts.get(instance.agent.name)
        aside = self._aside(driver, instance, messages, part.system if part else "", "compaction")
        try:
            await aside.listen(COMPACTION_SECONDS)
        finally:
            if not driver.parted:
                driver.tell(_summary(turn, instance, aside))

    async def make_title(self, driver: Driver, want: w.MakeTitle) -> None:
        turn = driver.turn
        aside = self._aside(driver, turn.root, (user(turn.input),), words.TITLE, "title")
        try:
            if not self._cast.derived:
                await aside.listen(self._settings.title_seconds, self._hurry)
        finally:
            self._titled.set()
            if not driver.parted:
                title, bill = normalise_title(aside.text.strip("\"'«»“” ")), aside.bill
                driver.tell(
                    e.TitleAnswered(turn=turn.id, at=now_ms(), title=title, usage=bill.usage, cost_usd=bill.cost_usd)
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

    def _open(
        self, driver: Driver, instance: Instance, part: Part, messages: tuple[Message, ...], encode: str = "turn"
    ) -> Call:
        aside = encode != "turn"
        draft = CallDraft(
            door=DOOR,
            encode=encode,
            messages=messages,
            system=part.system or None,
            tools=() if aside else part.tools,
            stream=not aside,
            session=driver.room.chat.id,
            agent=instance.agent.name,
            going_on=True,
        )
        return self._gateway.open_model(driver.room.chat.user_id, instance.card.model, draft)

    def _aside(
        self, driver: Driver, instance: Instance, messages: tuple[Message, ...], system: str, encode: str
    ) -> _Aside:
        part = Part(name=instance.agent.name, system=system, tools=(), leads=False)
        spoken = filled(messages, spoken_of)
        return _Aside(instance, lambda: self._open(driver, instance, part, spoken, encode))


def _summary(turn: Turn, instance: Instance, aside: _Aside) -> e.ContextAnswered:
    said, bill = aside.text, aside.bill
    asked = turn.input if instance.id == turn.root_id else instance.task
    return e.ContextAnswered(
        turn=turn.id,
        at=now_ms(),
        instance=instance.id,
        items=(words.summary(f"{said}\n\nThe request under way:\n{asked}"),) if said else (),
        summary=said,
        context_tokens=(len(said) + len(asked)) // 4 if said else None,
        usage=bill.usage,
        cost_usd=bill.cost_usd,
    )


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


class _Aside:
    """A call whose pieces nobody reads. text: what it said, "" unless it came to its end."""

    def __init__(self, instance: Instance, opening: Callable[[], Call]) -> None:
        self.text = ""
        self._instance = instance
        self._opening = opening
        self._call: Call | None = None

    async def listen(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """It is over after `seconds`, or when `hurry` is set."""
        watching = [asyncio.create_task(self._listen())]
        if hurry is not None:
            watching.append(asyncio.create_task(_wait(hurry)))
        try:
            await asyncio.wait(watching, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _listen(self) -> None:
        with suppress(GatewayError):
            call = self._call = self._opening()
            async with call:
                async for _ in call:
                    pass
            self.text = call.fold.answer().text.strip()

    @property
    def bill(self) -> Bill:
        return _bill(self._call, self._instance)


class _Heard:
    """What a model says, on its way into the journal in pieces of a reasonable size."""

    def __init__(
        self,
        driver: Driver,
        instance: Instance,
        lead: str,
        before_text: Callable[[], asyncio.Future[None]] | None,
    ) -> None:
        self._driver = driver
        self._agent = instance.agent
        self._lead = lead
        self._before_text = before_text
        self._pieces = Coalescer()
        self._timer: asyncio.TimerHandle | None = None
        self._open = True

    async def take(self, batch: list[ModelEvent]) -> None:
        for event in batch:
            if isinstance(event, TextDelta):
                if self._before_text is not None and event.text:
                    wait, self._before_text = self._before_text, None
                    await wait()
                self._add("text", self._lead + event.text if event.text else "")
                self._lead = "" if event.text else self._lead
            elif isinstance(event, ReasoningDelta):
                self._add("reasoning", event.text)
        due = self._pieces.due
        if due is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self.flush)

    def _add(self, kind: str, text: str) -> None:
        self._tell(self._pieces.add("text" if kind == "text" else "reasoning", text, time.monotonic()))

    def flush(self) -> None:
        """Send what is held."""
        self._stop_timer()
        if self._open:
            self._tell(self._pieces.flush())

    def close(self) -> None:
        """Send what is held, and nothing after it."""
        self.flush()
        self._open = False

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            make = e.TextDelta if piece.kind == "text" else e.ReasoningDelta
            self._driver.tell(make(turn=self._driver.turn.id, at=now_ms(), agent=self._agent, delta=piece.text))


class _Fault(msgspec.Struct, frozen=True):
    code: str
    message: str
    retryable: bool
    interrupted: bool = False


def _fault(error: GatewayError) -> _Fault:
    return _Fault(error.code.value, render(error.message, "en"), error.retryable or error.code in _AGAIN)


_GONE: Final = _Fault("agent_unavailable", "this agent is not in the team any more", False)
_STOPPED: Final = _Fault("interrupted", "", True, interrupted=True)
_GARBLED: Final = _Fault("invalid_arguments", "the model called a tool with arguments that cannot be read", True)


class _Step(msgspec.Struct, frozen=True):
    """One try of one call of an agent's model, and what can be reported of it."""

    turn: str
    instance: str
    step: int
    attempt: int

    def started(self) -> e.ModelStarted:
        return e.ModelStarted(turn=self.turn, at=now_ms(), instance=self.instance, step=self.step, attempt=self.attempt)

    def failed(self, fault: _Fault, bill: Bill) -> e.ModelFailed:
        return e.ModelFailed(
            turn=self.turn,
            at=now_ms(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            code=fault.code,
            message=fault.message,
            retryable=fault.retryable,
            interrupted=fault.interrupted,
            usage=bill.usage,
            cost_usd=bill.cost_usd,
        )

    def answered(self, call: Call, bill: Bill) -> e.Entry:
        answer = call.fold.answer()
        if not all(_readable(asked) for asked in answer.tool_calls):
            return self.failed(_GARBLED, bill)
        return e.ModelAnswered(
            turn=self.turn,
            at=now_ms(),
            instance=self.instance,
            step=self.step,
            attempt=self.attempt,
            text=answer.text,
            reasoning=answer.reasoning,
            calls=answer.tool_calls,
            opaque=_opaque(answer),
            usage=bill.usage,
            cost_usd=bill.cost_usd,
            stop=(answer.stop or StopReason.END).value,
        )


def _readable(asked: ToolCall) -> bool:
    try:
        return canonical(asked.arguments).startswith(b"{")
    except ValueError:
        return False


def _opaque(answer: Answer) -> Opaque | None:
    if not answer.blocks:
        return None
    blocks = b"[" + b",".join(bytes(piece.block) for piece in answer.blocks) + b"]"
    return Opaque(dialect=answer.blocks[0].dialect, blocks=msgspec.Raw(blocks), thinks=bool(answer.reasoning))


def _bill(call: Call | None, instance: Instance) -> Bill:
    """What the call consumed; one that was never admitted, or whose engine is ours, costs nothing."""
    if call is None:
        return Bill()
    usage, cost_usd = call.bill
    return Bill(usage, 0.0 if instance.card.free else cost_usd)
