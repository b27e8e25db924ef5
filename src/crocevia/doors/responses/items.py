"""Items of the wire -> messages of a conversation, each in its own place; nothing is flattened into text."""

from __future__ import annotations

import base64
import binascii
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import (
    AssistantMessage,
    FilePart,
    Message,
    Opaque,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crocevia.doors.responses import parts, wire
from crocevia.doors.responses.parts import Placing
from crocevia.runtime.gateway import Attachment, Prepared

_ID: Final = 80


class Placed(NamedTuple):
    """An item and where the caller put it. kept: it comes from an earlier request."""

    path: str
    item: wire.Item
    kept: bool = False


class Conversation(msgspec.Struct, frozen=True):
    """What items say."""

    system: tuple[str, ...]
    """What system and developer items say, in order."""
    documents: tuple[str, ...]
    """Texts of files, fenced."""
    messages: tuple[Message, ...]
    known: int = 0
    """How many of the messages come from earlier requests."""
    paths: tuple[str, ...] = ()
    """Where each message stands in the request."""
    repaired: tuple[str, ...] = ()
    """Paths of arguments that were no object."""


class Sealed(msgspec.Struct, frozen=True):
    """What an encrypted content of ours holds: an answer exactly as its engine gave it, or a summary."""

    dialect: str = ""
    blocks: list[Raw] = []
    summary: str = ""


def seal(content: Sealed) -> str:
    return base64.urlsafe_b64encode(json.encode(content)).decode()


def unseal(text: str | None) -> Sealed | None:
    """None for what is not ours: another provider's reasoning means nothing here."""
    if not text:
        return None
    try:
        return msgspec.json.decode(base64.b64decode(text, altchars=b"-_", validate=True), type=Sealed)
    except (binascii.Error, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def placed(given: str | list[wire.Item] | None, base: str = "input") -> list[Placed]:
    """The items of an input; a string is one message of the user's."""
    if given is None:
        return []
    if isinstance(given, str):
        return [Placed(base, wire.Item(type="message", role="user", content=given))]
    if len(given) > wire.MAX_ITEMS:
        raise GatewayError(Reason.ITEMS_MANY, param=base, limit=wire.MAX_ITEMS)
    return [Placed(f"{base}[{index}]", item) for index, item in enumerate(given)]


def is_reference(item: wire.Item) -> bool:
    return item.type == "item_reference" or (item.type is None and item.role is None)


def owner_of(item: wire.Item) -> str | None:
    """The id of the answer that a referenced item is part of; None if it is none of ours."""
    parts = (item.id or "").split("_")
    return f"resp_{parts[1]}" if is_reference(item) and len(parts) == 3 and parts[2].isdigit() else None


def sources(items: Iterable[Placed]) -> list[Attachment]:
    """Everything that has to be prepared in: files of this request, pictures of all."""
    found: list[Attachment] = []
    for path, item, kept in items:
        name = "output" if item.type == "function_call_output" else "content"
        content = item.output if name == "output" else item.content
        if isinstance(content, str) or content is None:
            continue
        for index, part in enumerate(content):
            one = parts.source(part, f"{path}.{name}[{index}]")
            if one is not None and (one.kind == "image" or not kept):
                found.append(one)
    return found


def converse(items: Sequence[Placed], prepared: Mapping[str, Prepared]) -> Conversation:
    """Raises GatewayError(INVALID_REQUEST) that names the item."""
    building = _Building(prepared)
    for place in items:
        building.outputs_of(place)
    for place in items:
        if not place.kept:
            building.begin_fresh()
        _ADD[_kind(place)](building, place)
    return building.whole()


def _kind(place: Placed) -> str:
    kind = place.item.type or ("message" if place.item.role is not None else "item_reference")
    if kind not in _ADD:
        raise GatewayError(Reason.ITEM_UNKNOWN, param=f"{place.path}.type", path=f"{place.path}.type")
    return kind


class _Building:
    """The conversation so far. What the assistant says in a row, words and calls, is one message."""

    def __init__(self, prepared: Mapping[str, Prepared]) -> None:
        self._placing = Placing(prepared)
        self._messages: list[Message] = []
        self._paths: list[str] = []
        self._repaired: list[str] = []
        self._path = ""
        self._system: list[str] = []
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._opaque: Opaque | None = None
        self._outputs: dict[str, deque[Placed]] = {}
        self._asked: set[str] = set()
        self._known: int | None = None

    def begin_fresh(self) -> None:
        """What was said before ends here; calls that are still open there get their results from what comes."""
        if self._known is None:
            if not self._calls:
                self._close()
            self._known = len(self._messages) + bool(self._calls)

    def outputs_of(self, place: Placed) -> None:
        """Results are looked for by id: they need not stand right behind their calls."""
        if place.item.type == "function_call_output":
            call_id = _needed(place, "call_id", place.item.call_id)
            self._outputs.setdefault(call_id, deque()).append(place)

    def message(self, place: Placed) -> None:
        role, content = place.item.role, place.item.content
        path = f"{place.path}.content"
        if role in ("system", "developer"):
            if text := parts.joined(content, path):
                self._system.append(text)
        elif role == "assistant":
            if self._calls and not self._text:
                self._close()
            self._begin(place)
            self._text.append(parts.joined(content, path))
        elif role == "user":
            self._close()
            said = self._placing.parts(content, path)
            if said:
                self._say(UserMessage(parts=said), place.path)
        else:
            raise GatewayError(Reason.ROLE_UNKNOWN, param=f"{place.path}.role", path=f"{place.path}.role")

    def function_call(self, place: Placed) -> None:
        item = place.item
        call_id = _needed(place, "call_id", item.call_id)
        name = _needed(place, "name", item.name)
        self._asked.add(call_id)
        self._begin(place)
        arguments, repaired = json.as_object((item.arguments or "{}").encode("utf-8", "surrogatepass"))
        if repaired:
            self._repaired.append(f"{place.path}.arguments")
        self._calls.append(ToolCall(id=call_id, name=name, arguments=arguments))

    def function_call_output(self, place: Placed) -> None:
        if place.item.call_id not in self._asked:
            raise GatewayError(
                Reason.OUTPUT_WITHOUT_CALL, param=place.path, path=place.path, id=(place.item.call_id or "")[:_ID]
            )
        self._close()

    def reasoning(self, place: Placed) -> None:
        sealed = unseal(place.item.encrypted_content)
        if sealed is not None and sealed.blocks:
            self._opaque = Opaque(dialect=sealed.dialect, blocks=Raw(json.encode(sealed.blocks)))

    def compaction(self, place: Placed) -> None:
        sealed = unseal(place.item.encrypted_content)
        if sealed is None or not sealed.summary:
            param = f"{place.path}.encrypted_content"
            raise GatewayError(Reason.COMPACTION_UNKNOWN, param=param, path=param)
        self._close()
        told = f"[Summary of the conversation so far]\n{sealed.summary}"
        self._say(UserMessage(parts=(TextPart(text=told),)), place.path)

    def item_reference(self, place: Placed) -> None:
        """What could be followed was; the rest adds nothing."""

    def whole(self) -> Conversation:
        self._close()
        known = self._known or 0
        return Conversation(
            tuple(self._system),
            tuple(self._placing.documents),
            tuple(self._messages),
            known,
            tuple(self._paths),
            tuple(self._repaired),
        )

    def _say(self, message: Message, path: str) -> None:
        self._messages.append(message)
        self._paths.append(path)

    def _begin(self, place: Placed) -> None:
        """A message of the assistant's is where its first item is."""
        if not self._text and not self._calls:
            self._path = place.path

    def _close(self) -> None:
        """End the assistant's message; the results of its calls follow at once."""
        text, calls, opaque = "".join(self._text), tuple(self._calls), self._opaque
        self._text, self._calls, self._opaque = [], [], None
        if not text and not calls:
            return
        self._say(AssistantMessage(text=text or None, tool_calls=calls, opaque=opaque), self._path)
        pictures: list[FilePart] = []
        for call in calls:
            place = self._output(call)
            content, shown = self._result(place)
            self._say(ToolMessage(call_id=call.id, content=content), place.path)
            pictures += shown
        if pictures:
            self._say(UserMessage(parts=tuple(pictures)), self._paths[-1])

    def _output(self, call: ToolCall) -> Placed:
        """The next result of this id: a provider may give several calls the same."""
        waiting = self._outputs.get(call.id)
        if not waiting:
            raise GatewayError(Reason.OUTPUT_MISSING, param="input", id=call.id[:_ID])
        return waiting.popleft() if len(waiting) > 1 else waiting[0]

    def _result(self, place: Placed) -> tuple[str, list[FilePart]]:
        found = self._placing.parts(place.item.output, f"{place.path}.output")
        text = "".join(part.text for part in found if isinstance(part, TextPart))
        return text, [part for part in found if isinstance(part, FilePart)]


_ADD: Final = {
    "message": _Building.message,
    "function_call": _Building.function_call,
    "function_call_output": _Building.function_call_output,
    "reasoning": _Building.reasoning,
    "compaction": _Building.compaction,
    "item_reference": _Building.item_reference,
}


def _needed(place: Placed, name: str, value: str | None) -> str:
    if not value:
        param = f"{place.path}.{name}"
        raise GatewayError(Reason.FIELD_NEEDED, param=param, field=param)
    return value


def decoded(stored: bytes) -> list[wire.Item]:
    """Items as they were kept. Raises GatewayError(INVALID_REQUEST) if they cannot be read any more."""
    try:
        return msgspec.json.decode(stored, type=list[wire.Item])
    except msgspec.MsgspecError:
        raise GatewayError(Reason.PREVIOUS_RESPONSE_MISSING, param="previous_response_id", id="") from None


__all__ = [
    "Conversation",
    "GatewayError",
    "Placed",
    "Sealed",
    "converse",
    "decoded",
    "placed",
    "seal",
    "sources",
    "unseal",
]
