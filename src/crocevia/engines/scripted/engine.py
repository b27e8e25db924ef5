"""A model that says what it is told: apps are tested with it, without a provider, a key or a bill.

Without a script it plays a small demonstration (demo.py). It keeps no state: everything it does follows
from the request, so the same request always gets the same answer. Tokens are words.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from crocevia.core.calls import Abilities, ModelRequest
from crocevia.core.catalogue import EngineSpec
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import (
    ModelEvent,
    ReasoningDelta,
    Stopped,
    StopReason,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReported,
)
from crocevia.core.images import ImageRequest, ImageResult, ImageSetting, Picture
from crocevia.core.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from crocevia.core.usage import Usage
from crocevia.engines.scripted import demo as scripted_demo
from crocevia.engines.scripted import images as scripted_images
from crocevia.engines.scripted.request_view import RequestView, look
from crocevia.engines.scripted.steps import (
    CallTool,
    CutStep,
    Delay,
    Fail,
    HalfTool,
    ReportUsage,
    SayReasoning,
    SayText,
    ScriptRule,
    Step,
    Stop,
    When,
    allowed_stops,
    parse,
)

if TYPE_CHECKING:
    from crocevia.engines.context import EngineContext

Beat: TypeAlias = float | list[ModelEvent]
"""One moment of an answer: seconds to wait, or a batch to yield."""

_ERRORS: Mapping[str, tuple[Reason, bool]] = {
    "overloaded": (Reason.UPSTREAM_OVERLOADED, True),
    "failed": (Reason.UPSTREAM_FAILED, True),
    "timeout": (Reason.UPSTREAM_TIMEOUT, True),
    "refused": (Reason.REFUSED, False),
    "rejected": (Reason.UPSTREAM_REJECTED, False),
}


def build(spec: EngineSpec, context: EngineContext) -> ScriptedEngine:
    """Raises GatewayError(INVALID_REQUEST) that names engine, rule and step when the script is wrong."""
    return ScriptedEngine(spec.name, None if spec.script is None else parse(spec.script, engine=spec.name))


class ScriptedEngine:
    """`rules` None: the demonstration."""

    dialect = "plain"

    def __init__(self, name: str, rules: tuple[ScriptRule, ...] | None) -> None:
        self.name = name
        self._rules = rules

    async def call(self, request: ModelRequest, *, deadline: float) -> AsyncGenerator[list[ModelEvent], None]:
        """Play the first rule that fits. Raises what the script says, and UPSTREAM_TIMEOUT at the deadline."""
        view = look(request)
        whole: list[ModelEvent] = []
        for beat in play(self._steps(view), view):
            if isinstance(beat, float):
                await _wait(beat, deadline)
            elif request.options.stream:
                yield beat
                await _wait(0, deadline)  # a long text must not hold the loop
            else:
                whole += beat
        if whole:
            yield whole

    def abilities(self, model: str) -> Abilities:
        """Documents come as text, so that rules can look for their words; a picture changes nothing."""
        return Abilities(images=True)

    def settings(self, model: str) -> tuple[ImageSetting, ...]:
        """It takes none."""
        return ()

    def check_request(self, request: ImageRequest) -> None:
        """Raises GatewayError(UNSUPPORTED) for what its brush cannot do."""
        if request.format not in (None, "png"):
            raise GatewayError(Reason.IMAGE_WISH_UNSUPPORTED, param="format", engine=self.name)

    async def generate(
        self, request: ImageRequest, inputs: tuple[Picture, ...], mask: Picture | None, *, deadline: float
    ) -> ImageResult:
        """Wait and fail as the script says; then a square (images.py)."""
        view = look(scripted_images.as_call(request))
        for beat in play(() if self._rules is None else self._steps(view), view):
            if isinstance(beat, float):
                await _wait(beat, deadline)
        usage = Usage(input_tokens=len(request.prompt.split()), output_tokens=0)
        square = scripted_images.square(request, inputs, mask)
        return ImageResult(images=(square,), usage=usage, ignored=tuple(sorted(request.settings)))

    async def probe(self) -> None:
        """There is nothing to reach."""

    async def close(self) -> None:
        """There is nothing to give back."""

    def _steps(self, view: RequestView) -> tuple[Step, ...]:
        if self._rules is None:
            return scripted_demo.steps(view)
        for rule in self._rules:
            if fits(rule.when, view):
                return rule.say
        raise GatewayError(Reason.SCRIPT_NO_RULE, engine=self.name)


async def _wait(seconds: float, deadline: float) -> None:
    left = deadline - asyncio.get_running_loop().time()
    await asyncio.sleep(max(0.0, min(seconds, left)))
    if seconds >= left:
        raise GatewayError(Reason.UPSTREAM_TIMEOUT)


def fits(when: When, view: RequestView) -> bool:
    """Whether every condition given in `when` holds."""
    return (
        (when.contains is None or when.contains.casefold() in view.last_user.casefold())
        and (when.tool_offered is None or any(tool.name == when.tool_offered for tool in view.request.tools))
        and (when.nth is None or when.nth == view.nth)
        and _after_tool(when.after_tool, view)
    )


def _after_tool(wanted: str | bool | None, view: RequestView) -> bool:
    if wanted is None:
        return True
    if isinstance(wanted, bool):
        return wanted == bool(view.results)
    return any(name == wanted for name, _ in view.results)


class _Take:
    """What has been said so far in one answer."""

    __slots__ = ("calls", "counted", "view", "words")

    def __init__(self, steps: tuple[Step, ...], view: RequestView) -> None:
        self.view = view
        self.calls = 0
        self.words = 0
        self.counted = not any(isinstance(step, ReportUsage) for step in steps)

    def usage(self) -> list[ModelEvent]:
        """Words counted so far, unless the script reports figures of its own."""
        if not self.counted:
            return []
        prompt = count_prompt(self.view.request)
        return [UsageReported(Usage(input_tokens=prompt, output_tokens=self.words))]

    def next_call(self) -> tuple[int, str]:
        """Index and id of the next tool call; ids do not repeat within a conversation."""
        index, self.calls = self.calls, self.calls + 1
        return index, f"call_{self.view.nth}_{index}"


def play(steps: tuple[Step, ...], view: RequestView) -> Iterator[Beat]:
    """The beats of an answer: ends with exactly one Stopped or raises GatewayError."""
    take = _Take(steps, view)
    for step in steps:
        yield from _PLAYERS[type(step)](step, take)
    if not steps or not isinstance(steps[-1], Stop):
        yield _stopped(allowed_stops(steps)[0], take)


def _stopped(reason: StopReason, take: _Take) -> list[ModelEvent]:
    return [*take.usage(), Stopped(reason)]


def _text(step: SayText, take: _Take) -> Iterator[Beat]:
    for piece in _pieces(step.text, step, take):
        yield from _spaced([TextDelta(piece)], step.every_ms)


def _reasoning(step: SayReasoning, take: _Take) -> Iterator[Beat]:
    for piece in _pieces(step.reasoning, step, take):
        yield from _spaced([ReasoningDelta(piece)], step.every_ms)


def _pieces(template: str, step: SayText | SayReasoning, take: _Take) -> list[str]:
    text = take.view.fill(template)
    take.words += len(text.split())
    if step.chars is None:
        return re.findall(r"\s*\S+\s*|\s+", text)
    return [text[at : at + step.chars] for at in range(0, len(text), step.chars)]


def _spaced(batch: list[ModelEvent], every_ms: float) -> Iterator[Beat]:
    if every_ms:
        yield every_ms / 1000
    yield batch


def _tool(step: CallTool, take: _Take) -> Iterator[Beat]:
    index, made_up = take.next_call()
    call = ToolCall(id=step.id or made_up, name=step.tool, arguments=step.spelled)
    spelled = bytes(call.arguments).decode()
    take.words += 1 + len(spelled.split())
    yield [ToolCallStarted(index, call.id, call.name)]
    middle = len(spelled) // 2
    for fragment in (spelled[:middle], spelled[middle:]):
        yield [ToolCallDelta(index, fragment)]
    yield [ToolCallDone(index, call)]


def _half_tool(step: HalfTool, take: _Take) -> Iterator[Beat]:
    index, made_up = take.next_call()
    take.words += 1 + len(step.fragment.split())
    yield [ToolCallStarted(index, made_up, step.half_tool)]
    yield [ToolCallDelta(index, step.fragment)]


def _report(step: ReportUsage, take: _Take) -> Iterator[Beat]:
    yield [UsageReported(step.figures)]


def _delay(step: Delay, take: _Take) -> Iterator[Beat]:
    yield step.delay_ms / 1000


def _cut(step: CutStep, take: _Take) -> Iterator[Beat]:
    yield from filter(None, [take.usage()])
    raise GatewayError(Reason.UPSTREAM_FAILED)


def _fail(step: Fail, take: _Take) -> Iterator[Beat]:
    reason, retryable = _ERRORS[step.error]
    if take.words:
        yield from filter(None, [take.usage()])
    raise GatewayError(reason, retry_after=step.retry_after, retryable=retryable)


def _stop(step: Stop, take: _Take) -> Iterator[Beat]:
    yield _stopped(step.stop, take)


_PLAYERS: Mapping[type[Step], Callable[[Any, _Take], Iterator[Beat]]] = {
    SayText: _text,
    SayReasoning: _reasoning,
    CallTool: _tool,
    HalfTool: _half_tool,
    ReportUsage: _report,
    Delay: _delay,
    CutStep: _cut,
    Fail: _fail,
    Stop: _stop,
}


def count_prompt(request: ModelRequest) -> int:
    """The words of everything the model is given: instructions, messages, tools."""
    texts = [request.system or "", *(_spelled(message) for message in request.messages)]
    texts += [f"{tool.name} {tool.description}" for tool in request.tools]
    return sum(len(text.split()) for text in texts)


def _spelled(message: Message) -> str:
    if isinstance(message, UserMessage):
        return message.text
    if isinstance(message, ToolMessage):
        return message.content
    return _spelled_assistant(message)


def _spelled_assistant(message: AssistantMessage) -> str:
    calls = (f"{call.name} {bytes(call.arguments).decode()}" for call in message.tool_calls)
    return " ".join([message.text or "", *calls])
