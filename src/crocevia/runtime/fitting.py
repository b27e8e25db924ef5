"""A request made to meet the needs of the engine that answers it, and its answer told in the caller's own names. Pure.

Everything that reaches an engine passes through `fit`, whoever asked. What can be meant in only one way is repaired;
the rest is refused with its place in the caller's own request. Names of tools and ids of calls are mapped both ways.
"""

from __future__ import annotations

import operator
import re
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

import msgspec
from msgspec import Raw

from crocevia.core.calls import GenerationOptions, ModelRequest, Sampling
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.events import ModelEvent, ProviderBlock, ToolCallDone, ToolCallStarted
from crocevia.core.messages import (
    AssistantMessage,
    Message,
    Part,
    ProviderBlocks,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crocevia.core.needs import CallBlock, EngineNeeds, Spelling
from crocevia.runtime.tool_schemas import parameters

NO_TEXT: Final = "(no text)"
NO_OUTPUT: Final = "(no output)"

_LONGEST_ID: Final = 64  # of a provider's ids: callers keep them, and other providers must take them
_DIGEST: Final = 8
_NO_SAMPLING: Final = Sampling()
_CALLS: Final = frozenset({ToolCallStarted, ToolCallDone, ProviderBlock})


class Places(msgspec.Struct, frozen=True):
    """Where things stand in the caller's own request."""

    messages: Sequence[int | str] = ()
    """Each message: its index among the caller's `messages`, or its path. Empty: the same indexes."""
    tools: Sequence[str] = ()
    """The path of each tool. Empty: `tools[0]` and so on."""

    def message(self, index: int) -> str:
        place = self.messages[index] if index < len(self.messages) else index
        return place if isinstance(place, str) else f"messages[{place}]"

    def index(self, index: int) -> int:
        """Of a message, as its caller counts."""
        place = self.messages[index] if index < len(self.messages) else index
        return index if isinstance(place, str) else place

    def tool(self, index: int) -> str:
        return self.tools[index] if index < len(self.tools) else f"tools[{index}]"


NOWHERE: Final = Places()


class Fitted(msgspec.Struct, frozen=True):
    """A request that its engine takes."""

    request: ModelRequest
    names: Mapping[str, str] = {}
    """The caller's names of tools by those that the engine is told; without those that are the same."""
    changed: tuple[str, ...] = ()
    """What was repaired, for the record."""
    call_block: CallBlock | None = None
    """How calls look among the engine's blocks."""


def fit(request: ModelRequest, needs: EngineNeeds, places: Places = NOWHERE) -> Fitted:
    """Raises GatewayError(INVALID_REQUEST) that names what cannot be repaired by its place."""
    talk = _is_talk(request.messages)
    if talk and not request.tools and request.options.sampling == _NO_SAMPLING:
        return Fitted(request, call_block=needs.call_block)
    names = _names(request, needs.tool_names)
    conversation = _Conversation(needs, names)
    messages = request.messages if talk else conversation.of(request.messages)
    _check_end(request, messages, needs, places)
    tools = _tools(request.tools, names, needs, places)
    options = _options(request.options, names, needs)
    if options.sampling is not request.options.sampling:
        conversation.changed["sampling"] = None
    if not names and not conversation.changed and tools is request.tools:
        return Fitted(request, call_block=needs.call_block)
    request = msgspec.structs.replace(request, messages=messages, tools=tools, options=options)
    told = {sent: own for own, sent in names.items()}
    return Fitted(request, told, tuple(conversation.changed), needs.call_block)


def _is_talk(messages: Sequence[Message]) -> bool:
    """Whether user and assistant say something by turns, the user first and last: every engine takes that as it is."""
    for index, message in enumerate(messages):
        if index % 2:
            text = message.text if type(message) is AssistantMessage and not message.tool_calls else None
            if not text or text.isspace():
                return False
        elif type(message) is not UserMessage or _has_blank(message.parts):
            return False
    return len(messages) % 2 == 1


# names of tools, ids of calls


def spelled(name: str, rule: Spelling) -> str:
    """A name as the rule wants it: itself, or what is nearest to it."""
    if _pattern(rule).fullmatch(name):
        return name
    bare = re.sub(rf"[^{rule.characters}]", "_", name) or "_"
    return bare if len(bare) <= rule.length else _marked(bare, name, rule)


def _marked(bare: str, name: str, rule: Spelling) -> str:
    """The beginning of a name with a digest of the whole, which keeps it apart from its like."""
    return f"{bare[: rule.length - _DIGEST - 1]}_{sha256(name.encode('utf-8', 'replace')).hexdigest()[:_DIGEST]}"


@lru_cache(maxsize=64)
def _pattern(rule: Spelling) -> re.Pattern[str]:
    return re.compile(rf"[{rule.characters}]{{1,{rule.length}}}")


def _names(request: ModelRequest, rule: Spelling | None) -> dict[str, str]:
    """What the engine is told for each name that it would not take."""
    if rule is None:
        return {}
    given = {tool.name for tool in request.tools}
    for message in request.messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            given.update([call.name for call in message.tool_calls])
    strange = given and _strange(given, rule)
    if not strange:
        return {}
    taken = given - strange
    found: dict[str, str] = {}
    for name in sorted(strange):
        told = spelled(name, rule)
        if told in taken:
            told = _marked(told, name, rule)
        taken.add(told)
        found[name] = told
    return found


def _strange(names: set[str], rule: Spelling) -> set[str]:
    fullmatch = _pattern(rule).fullmatch
    return {name for name in names if not fullmatch(name)}


def _tools(tools: tuple[Tool, ...], names: Mapping[str, str], needs: EngineNeeds, places: Places) -> tuple[Tool, ...]:
    """These themselves where all are taken as they are."""
    if not tools:
        return tools
    found = tuple([_tool(tool, names, needs, places, index) for index, tool in enumerate(tools)])
    return tools if all(map(operator.is_, found, tools)) else found


def _tool(tool: Tool, names: Mapping[str, str], needs: EngineNeeds, places: Places, index: int) -> Tool:
    schema = parameters(tool, needs, lambda: places.tool(index))
    name = names.get(tool.name, tool.name)
    if name == tool.name and schema is tool.parameters:
        return tool
    return msgspec.structs.replace(tool, name=name, parameters=schema)


# options


def _options(options: GenerationOptions, names: Mapping[str, str], needs: EngineNeeds) -> GenerationOptions:
    sampling = options.sampling if options.sampling == _NO_SAMPLING else _sampling(options.sampling, needs)
    choice = options.tool_choice
    if choice.name is not None and choice.name in names:
        choice = msgspec.structs.replace(choice, name=names[choice.name])
    if sampling is options.sampling and choice is options.tool_choice:
        return options
    return msgspec.structs.replace(options, sampling=sampling, tool_choice=choice)


def _sampling(sampling: Sampling, needs: EngineNeeds) -> Sampling:
    """Within the ranges of the engine, without stops that it would refuse."""
    least, most = needs.temperature
    asked = sampling.temperature
    temperature = None if asked is None else min(max(asked, least), most)
    stop = tuple(one for one in sampling.stop or () if (one if needs.blank_stops else one.strip())) or None
    if temperature == asked and stop == sampling.stop:
        return sampling
    return msgspec.structs.replace(sampling, temperature=temperature, stop=stop)


# messages


def _check_end(request: ModelRequest, messages: tuple[Message, ...], needs: EngineNeeds, places: Places) -> None:
    rule = needs.ends_with_assistant
    if rule == "always" or (rule == "without_reasoning" and request.reasoning == "off"):
        return
    last = messages[-1] if messages else None
    if isinstance(last, AssistantMessage) and not last.tool_calls:  # doors name calls without results
        place = places.message(len(request.messages) - 1)
        raise GatewayError(Reason.CONVERSATION_ENDS_WITH_ASSISTANT, param=place, path=place)


class _Conversation:
    """The messages so far, as the engine takes them. Every call comes through here: what is to be left alone must be
    seen at a glance.
    """

    __slots__ = ("_ids", "_messages", "_names", "_needs", "_takes", "_waiting", "changed")

    def __init__(self, needs: EngineNeeds, names: Mapping[str, str]) -> None:
        self._needs = needs
        self._names = names
        self._messages: list[Message] = []
        self._takes = None if needs.call_ids is None else _pattern(needs.call_ids).fullmatch
        self._ids: set[str] = set()
        self._waiting: dict[str, list[str]] = {}
        self.changed: dict[str, None] = {}

    def of(self, given: Sequence[Message]) -> tuple[Message, ...]:
        for message in given:
            if isinstance(message, UserMessage):
                self._user(message)
            elif isinstance(message, AssistantMessage):
                self._assistant(message)
            else:
                self._messages.append(self._result(message))
        return self._whole()

    def _whole(self) -> tuple[Message, ...]:
        """A history that was shortened may begin with an answer: where no engine takes that, a stand-in goes first."""
        messages = self._messages
        if self._needs.begins_with_user and messages and isinstance(messages[0], AssistantMessage):
            messages.insert(0, UserMessage(parts=(TextPart(text=NO_TEXT),)))
            self.changed["first_message"] = None
        return tuple(messages)

    def _user(self, message: UserMessage) -> None:
        if not self._needs.blank_texts and _has_blank(message.parts):
            parts = tuple(part for part in message.parts if not _is_blank(part))
            message = UserMessage(parts=parts or (TextPart(text=NO_TEXT),))
            self.changed["blank_texts"] = None
        last = self._messages[-1] if self._needs.alternating and self._messages else None
        if isinstance(last, UserMessage):
            self._messages[-1] = UserMessage(parts=_joined(last.parts, message.parts))
            self.changed["joined_messages"] = None
        else:
            self._messages.append(message)

    def _assistant(self, message: AssistantMessage) -> None:
        if message.tool_calls:
            message = self._calls(message)
        elif message.provider_blocks is None and _is_empty(message.text):
            self.changed["blank_texts"] = None
            return  # a model that said nothing leaves nothing to send back
        last = self._messages[-1] if self._needs.alternating and self._messages else None
        if isinstance(last, AssistantMessage) and _can_join(last, message):
            text = "\n\n".join(one for one in (last.text, message.text) if one)
            self._messages[-1] = msgspec.structs.replace(message, text=text or None)
            self.changed["joined_messages"] = None
        else:
            self._messages.append(message)

    def _calls(self, message: AssistantMessage) -> AssistantMessage:
        """The calls under names and ids that the engine takes, each id once in the conversation."""
        calls = tuple([self._call(call) for call in message.tool_calls])
        if all(map(operator.is_, calls, message.tool_calls)):
            return message
        provider_blocks = message.provider_blocks
        if provider_blocks is not None:
            provider_blocks = _relabelled(provider_blocks, self._needs.call_block, calls)
        return msgspec.structs.replace(message, tool_calls=calls, provider_blocks=provider_blocks)

    def _call(self, call: ToolCall) -> ToolCall:
        name, call_id = self._names.get(call.name, call.name), self._id(call.id)
        waiting = self._waiting.get(call.id)
        if waiting is None:
            self._waiting[call.id] = [call_id]
        else:
            waiting.append(call_id)
        if call_id == call.id and name == call.name:
            return call
        return ToolCall(id=call_id, name=name, arguments=call.arguments)

    def _id(self, own: str) -> str:
        """Itself, or a digest: the same every time, and another for each time that the id is used."""
        takes, told, times = self._takes, own, 0
        while told in self._ids or (takes is not None and not takes(told)):
            again = f"{own} {times}" if times else own
            told = f"call_{sha256(again.encode('utf-8', 'replace')).hexdigest()[:32]}"
            times += 1
        if told != own:
            self.changed["call_ids"] = None
        self._ids.add(told)
        return told

    def _result(self, message: ToolMessage) -> ToolMessage:
        waiting = self._waiting.get(message.call_id)
        call_id = waiting.pop(0) if waiting else message.call_id
        content = message.content
        if not self._needs.blank_texts and _is_empty(content):
            content = NO_OUTPUT
        if call_id == message.call_id and content is message.content:
            return message
        self.changed["results"] = None
        return msgspec.structs.replace(message, call_id=call_id, content=content)


def _is_empty(text: str | None) -> bool:
    return not text or text.isspace()  # which looks at one letter of most texts, and copies none


def _is_blank(part: Part) -> bool:
    return isinstance(part, TextPart) and _is_empty(part.text)


def _has_blank(parts: tuple[Part, ...]) -> bool:
    if len(parts) == 1:
        return _is_blank(parts[0])
    return not parts or any(map(_is_blank, parts))


def _joined(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    """Texts that meet become one: simple servers take nothing but a text."""
    last, following = first[-1] if first else None, second[0] if second else None
    if isinstance(last, TextPart) and isinstance(following, TextPart):
        return (*first[:-1], TextPart(text=f"{last.text}\n\n{following.text}"), *second[1:])
    return (*first, *second)


def _can_join(first: AssistantMessage, second: AssistantMessage) -> bool:
    return first.provider_blocks is None and second.provider_blocks is None and not first.tool_calls


def _relabelled(
    provider_blocks: ProviderBlocks, shape: CallBlock | None, calls: tuple[ToolCall, ...]
) -> ProviderBlocks | None:
    """A provider's blocks with their calls under these ids and names; None where they do not hold just these calls."""
    if shape is None:
        return None
    left = list(calls)
    blocks: list[bytes] = []
    try:
        for raw in msgspec.json.decode(provider_blocks.blocks, type=list[Raw]):
            fields = msgspec.json.decode(raw, type=dict[str, Any])
            if fields.get("type") == shape.kind:
                call = left.pop(0)
                blocks.append(_replaced(raw, {shape.id: call.id, shape.name: call.name}))
            else:
                blocks.append(bytes(raw))
    except (msgspec.MsgspecError, RecursionError, UnicodeError, IndexError):
        return None
    return None if left else msgspec.structs.replace(provider_blocks, blocks=Raw(b"[" + b",".join(blocks) + b"]"))


def _replaced(raw: Raw, changes: Mapping[str, str]) -> bytes:
    """An object with some of its texts replaced, spelled as it came otherwise."""
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    return msgspec.json.encode(members | {key: Raw(msgspec.json.encode(text)) for key, text in changes.items()})


# the answer


class Labels:
    """An answer's calls under the caller's names, each with an id that the conversation has not seen."""

    __slots__ = ("_ids", "_messages", "_names", "_seen", "_shape", "_told")

    def __init__(self, request: ModelRequest, fitted: Fitted) -> None:
        """request: as its caller made it, with the ids that its caller knows."""
        self._messages = request.messages
        self._names = fitted.names
        self._shape = fitted.call_block
        self._seen: set[str] | None = None
        self._ids: dict[int, str] = {}
        self._told: dict[str, deque[ToolCall]] = {}

    def batch(self, events: list[ModelEvent]) -> list[ModelEvent]:
        for event in events:
            if type(event) in _CALLS:
                return [self._event(event) for event in events]
        return events

    def _event(self, event: ModelEvent) -> ModelEvent:
        if isinstance(event, ToolCallStarted):
            name, call_id = self._names.get(event.name, event.name), self._id(event.index, event.id)
            return event if (name, call_id) == (event.name, event.id) else ToolCallStarted(event.index, call_id, name)
        if isinstance(event, ToolCallDone):
            return self._done(event)
        return self._block(event) if isinstance(event, ProviderBlock) else event

    def _done(self, event: ToolCallDone) -> ToolCallDone:
        call = event.call
        name, call_id = self._names.get(call.name, call.name), self._id(event.index, call.id)
        if (name, call_id) == (call.name, call.id):
            return event
        told = ToolCall(id=call_id, name=name, arguments=call.arguments)
        self._told.setdefault(call.id, deque()).append(told)
        return ToolCallDone(event.index, told)

    def _block(self, event: ProviderBlock) -> ProviderBlock:
        """What travels back must say what the call says."""
        if not self._told or self._shape is None:
            return event
        fields = msgspec.json.decode(event.block, type=dict[str, Any])
        waiting = self._told.get(fields.get(self._shape.id, "")) if fields.get("type") == self._shape.kind else None
        if not waiting:
            return event
        call = waiting.popleft()
        block = _replaced(event.block, {self._shape.id: call.id, self._shape.name: call.name})
        return ProviderBlock(event.dialect, Raw(block), event.thinks)

    def _id(self, index: int, own: str) -> str:
        """The provider's, unless it is used already or too long for others."""
        known = self._ids.get(index)
        if known is not None:
            return known
        if self._seen is None:
            messages = self._messages
            said = (one for one in messages if isinstance(one, AssistantMessage))
            self._seen = {call.id for message in said for call in message.tool_calls}
        told = own
        if own in self._seen or not 0 < len(own) <= _LONGEST_ID:
            told = f"call_{uuid.uuid4().hex[:24]}"
        self._seen.add(told)
        self._ids[index] = told
        return told
