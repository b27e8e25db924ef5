"""Items of the wire and their parts -> messages of a conversation, each in its own place; nothing is flattened."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Raw

from crocevia.core import json
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import (
    AssistantMessage,
    FilePart,
    Message,
    Part,
    ProviderBlocks,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crocevia.doors.responses import wire
from crocevia.runtime.gateway import Attachment, Prepared

NO_RESULT: Final = "(this call was never answered)"
_ID: Final = 80
_KIND: Final = re.compile(r"[\w.:-]{1,40}")  # of an item that is skipped, as the record tells it
_LOCAL: Final = frozenset({"local_shell_call", "local_shell_call_output"})
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output"})
_TEXTS: Final = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
PICTURES: Final = frozenset({"input_image", "image_url"})
_ONLY_FILES: Final = "User sent file(s) with no text."  # their text is in the system prompt, for this request alone
_FILES: Final = frozenset({"input_file", "file"})


class Placed(NamedTuple):
    """An item and where the caller put it. kept: it comes from an earlier request. ours: it is of our own answer."""

    path: str
    item: wire.Item
    kept: bool = False
    ours: bool = False


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
    """For the record: paths of arguments that were no object, and items that no model can be given."""


class Sealed(msgspec.Struct, frozen=True):
    """What an encrypted content of ours holds: an answer exactly as its engine gave it, or a summary."""

    dialect: str = ""
    blocks: list[Raw] = []
    summary: str = ""
    says: str = ""
    """A digest of the text and the calls that the blocks say: an answer that was edited has lost its blocks."""


Opening: TypeAlias = Callable[[str], bytes | None]
"""Opens what was sealed for the caller; None for anything else."""


class _Stored(wire.Resource, frozen=True, kw_only=True):
    blocks: list[wire.Item]


def with_blocks(resource: wire.Resource, blocks: Sealed) -> wire.Resource:
    """An answer as it is stored: with what the conversation needs to go on, and its caller did not ask for."""
    plain = base64.urlsafe_b64encode(json.encode(blocks)).decode()
    kept = wire.Item(type="reasoning", encrypted_content=plain)
    return _Stored(blocks=[kept], **{name: getattr(resource, name) for name in resource.__struct_fields__})


def unsealed(text: str, opening: Opening, *, ours: bool) -> Sealed | None:
    """None for what is not ours: another provider's reasoning means nothing here. ours: it never left the server.

    Of what an earlier version let out unsealed the summary counts, which anybody may say.
    """
    data = opening(text)
    try:
        if data is not None:
            return msgspec.json.decode(data, type=Sealed)
        found = msgspec.json.decode(base64.b64decode(text, altchars=b"-_", validate=True), type=Sealed)
    except (binascii.Error, ValueError, msgspec.MsgspecError, RecursionError):
        return None
    return found if ours else Sealed(summary=found.summary)


def digest(text: str, calls: Iterable[tuple[str, str, bytes]]) -> str:
    """Of an answer: its text and the ids, names and arguments of its calls, however they are spelled."""
    spelled = [[call_id, name, Raw(json.canonical(json.as_object(given)[0]))] for call_id, name, given in calls]
    return sha256(json.encode([text, spelled])).hexdigest()


# parts of a content


def text_of(part: wire.Part, path: str) -> str | None:
    """The text of a part of words; None for a file or picture. Raises GatewayError for any other kind."""
    if part.type in _TEXTS:
        if part.text is None:
            raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.text", field=f"{path}.text")
        return part.text
    if part.type == "refusal":
        return part.refusal or ""
    if part.type in PICTURES or part.type in _FILES:
        return None
    raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}.type", path=f"{path}.type")


def joined(content: str | list[wire.Part] | None, path: str) -> str:
    """A content that is nothing but text. Raises GatewayError where it is more."""
    if content is None or isinstance(content, str):
        return content or ""
    found = []
    for index, part in enumerate(content):
        text = text_of(part, f"{path}[{index}]")
        if text is None:
            raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}[{index}].type", path=f"{path}[{index}].type")
        found.append(text)
    return "".join(found)


def source(part: wire.Part, path: str) -> Attachment | None:
    """Where the bytes of a file or picture are; None for text."""
    if part.type in PICTURES:
        return _picture(part, path)
    return _file(part, path) if part.type in _FILES else None


def _picture(part: wire.Part, path: str) -> Attachment:
    if part.source is not None:
        return _spelled(part.source, path, picture=True)
    address = part.image_url.url if isinstance(part.image_url, wire.ImageAddress) else part.image_url
    if not address:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.image_url", field=f"{path}.image_url")
    return Attachment(param=path, url=address, kind="image")


def _file(part: wire.Part, path: str) -> Attachment:
    if part.source is not None:
        return _spelled(part.source, path, picture=False)
    told, inside = (part, path) if part.file is None else (part.file, f"{path}.file")
    if told.file_id is not None:
        raise GatewayError(Reason.FILE_ID_UNKNOWN, param=f"{inside}.file_id", path=f"{inside}.file_id")
    name, data = told.filename, told.file_data
    if data is not None and data[:5].lower() != "data:":
        return Attachment(param=path, data=data, kind="document", name=name)
    address = data or told.file_url
    if not address:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{inside}.file_data", field=f"{inside}.file_data")
    return Attachment(param=path, url=address, kind="document", name=name)


def _spelled(spelled: wire.Source, path: str, *, picture: bool) -> Attachment:
    if spelled.type not in ("url", "base64"):
        raise GatewayError(Reason.PART_UNKNOWN, param=f"{path}.source.type", path=f"{path}.source.type")
    needed = "url" if spelled.type == "url" else "data"
    value = getattr(spelled, needed)
    if not value:
        raise GatewayError(Reason.FIELD_NEEDED, param=f"{path}.source.{needed}", field=f"{path}.source.{needed}")
    return Attachment(
        param=path,
        **{needed: value},
        kind="image" if picture else "document",
        media_type=spelled.media_type,
        name=spelled.filename,
    )


class Placing:
    """Puts what was prepared in where it belongs: documents' text beside the instructions, pictures in the message."""

    def __init__(self, prepared: Mapping[str, Prepared]) -> None:
        self._prepared = prepared
        self.documents: list[str] = []

    def parts(self, content: str | list[wire.Part] | None, path: str) -> tuple[Part, ...]:
        """The parts of a message of the user's."""
        if content is None or isinstance(content, str):
            return (TextPart(text=content),) if content else ()
        found: list[Part] = []
        for index, part in enumerate(content):
            where = f"{path}[{index}]"
            text = text_of(part, where)
            if text is not None:
                found.append(TextPart(text=text))
            elif (prepared := self._prepared.get(where)) is not None:
                found += self._place(prepared)
        if not found and content:
            found.append(TextPart(text=_ONLY_FILES))
        return tuple(found)

    def _place(self, prepared: Prepared) -> list[Part]:
        self.documents += [part.text for part in prepared.parts if isinstance(part, TextPart)]
        return [part for part in prepared.parts if isinstance(part, FilePart)]


# items


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


def readable(item: Raw) -> Raw:
    """An item whose kind is known as it is; of any other, whatever its shape, the kind alone."""
    try:
        kind = msgspec.json.decode(item, type=_Kind).type
    except msgspec.MsgspecError:
        return item
    return item if kind is None or kind in _ADD else Raw(json.encode({"type": kind}))


class _Kind(msgspec.Struct, frozen=True):
    type: str | None = None


def declared(items: Iterable[Placed]) -> list[tuple[str, list[wire.Tool]]]:
    """Tools that stand among the items, with their places."""
    return [
        (f"{place.path}.tools", place.item.tools)
        for place in items
        if place.item.type == "additional_tools" and place.item.tools
    ]


def owner_of(item: wire.Item) -> str | None:
    """The id of the answer that a referenced item is part of; None if it is none of ours."""
    parts = (item.id or "").split("_")
    return f"resp_{parts[1]}" if is_reference(item) and len(parts) == 3 and parts[2].isdigit() else None


def sources(items: Iterable[Placed]) -> list[Attachment]:
    """Everything that has to be taken in."""
    found: list[Attachment] = []
    for path, item, *_ in items:
        name = "output" if item.type in OUTPUTS else "content"
        content = item.output if name == "output" else item.content
        if isinstance(content, str) or content is None:
            continue
        for index, part in enumerate(content):
            one = source(part, f"{path}.{name}[{index}]")
            if one is not None:
                found.append(one)
    return found


def nobodys(text: str) -> None:
    """Where nothing is ever sealed."""


def converse(
    items: Sequence[Placed],
    prepared: Mapping[str, Prepared],
    *,
    opening: Opening = nobodys,
    forgiving: bool = False,
) -> Conversation:
    """opening: opens what was sealed for the caller. forgiving: calls of earlier requests need no result.

    Raises GatewayError(INVALID_REQUEST) that names the item.
    """
    building = _Building(prepared, opening, forgiving)
    usable = [place for place in items if not place.kept or _is_usable(place.item)]
    outputs = [place for place in usable if place.item.type in OUTPUTS]
    if outputs:
        for place in outputs:
            building.outputs_of(place)
        _check_outputs(outputs, usable)
    for place in usable:
        if not place.kept:
            building.begin_fresh()
        _ADD.get(kind_of(place.item), _Building.skip)(building, place)
    return building.whole()


def _is_usable(item: wire.Item) -> bool:
    """Whether an item of an earlier request still says something: a call that was cut off asks for nothing."""
    kind = kind_of(item)
    if kind in _CALLS:
        return bool(_call_id(item)) and item.status != "incomplete" and (kind in _LOCAL or bool(item.name))
    return kind not in OUTPUTS or bool(_call_id(item))


def kind_of(item: wire.Item) -> str:
    return item.type or ("message" if item.role is not None else "item_reference")


def _check_outputs(outputs: Sequence[Placed], items: Sequence[Placed]) -> None:
    """Raises GatewayError for a second result of the same call; what an earlier version let in goes on."""
    open_calls = Counter(_call_id(place.item) for place in items if place.item.type in _CALLS)
    for path, item, kept, _ in outputs:
        call_id = _call_id(item)
        open_calls[call_id] -= 1
        if open_calls[call_id] == -1 and not kept and call_id in _asked(items):
            raise GatewayError(Reason.OUTPUT_REPEATED, param=path, path=path, id=call_id[:_ID])


def _asked(items: Sequence[Placed]) -> set[str]:
    return {_call_id(place.item) for place in items if place.item.type in _CALLS}


def _call_id(item: wire.Item) -> str:
    return item.call_id or (item.id if item.type in _LOCAL else None) or ""


class _Building:
    """The conversation so far. What the assistant says in a row, words and calls, is one message."""

    def __init__(self, prepared: Mapping[str, Prepared], opening: Opening, forgiving: bool) -> None:
        self._placing = Placing(prepared)
        self._opening = opening
        self._forgiving = forgiving
        self._lenient = False
        self._messages: list[Message] = []
        self._paths: list[str] = []
        self._repaired: list[str] = []
        self._path = ""
        self._system: list[str] = []
        self._text: list[str] = []
        self._calls: list[ToolCall] = []
        self._sealed: tuple[str, Sealed] | None = None
        self._outputs: dict[str, deque[Placed]] = {}
        self._asked: set[str] = set()
        self._known: int | None = None

    def begin_fresh(self) -> None:
        """What was said before ends here; calls that are still open there get their results from what comes."""
        if self._known is None:
            if not any(self._outputs.get(call.id) for call in self._calls):
                self._lenient = self._forgiving
                self._close()
                self._lenient = False
            self._known = len(self._messages) + bool(self._calls)

    def outputs_of(self, place: Placed) -> None:
        """Results are looked for by id: they need not stand right behind their calls."""
        call_id = _needed(place, "call_id", _call_id(place.item))
        self._outputs.setdefault(call_id, deque()).append(place)

    def message(self, place: Placed) -> None:
        role, content = place.item.role, place.item.content
        path = f"{place.path}.content"
        if role in ("system", "developer"):
            if text := joined(content, path):
                self._system.append(text)
        elif role == "assistant":
            if self._calls and not self._text:
                self._close()
            self._begin(place)
            self._text.append(joined(content, path))
        elif role == "user":
            self._close()
            said = self._placing.parts(content, path)
            if said:
                self._messages.append(UserMessage(parts=said))
                self._paths.append(place.path)
        else:
            raise GatewayError(Reason.ROLE_UNKNOWN, param=f"{place.path}.role", path=f"{place.path}.role")

    def function_call(self, place: Placed) -> None:
        item = place.item
        name = wire.full_name(_needed(place, "name", item.name), item.namespace)
        arguments, repaired = json.as_object((item.arguments or "{}").encode("utf-8", "surrogatepass"))
        if repaired:
            self._repaired.append(f"{place.path}.arguments")
        self._call(place, name, arguments)

    def custom_tool_call(self, place: Placed) -> None:
        """A free-form tool is a function of one text."""
        name = wire.full_name(_needed(place, "name", place.item.name), place.item.namespace)
        self._call(place, name, Raw(json.encode({"input": place.item.input or ""})))

    def local_shell_call(self, place: Placed) -> None:
        """A command that ran on the caller's machine, with its result; without one it cannot be told."""
        if _call_id(place.item) in self._outputs:
            self._call(place, "local_shell", Raw(json.encode(place.item.action or {})))
        else:
            self.skip(place)

    def _call(self, place: Placed, name: str, arguments: Raw) -> None:
        call_id = _needed(place, "call_id", _call_id(place.item))
        self._asked.add(call_id)
        self._begin(place)
        self._calls.append(ToolCall(id=call_id, name=name, arguments=arguments))

    def function_call_output(self, place: Placed) -> None:
        call_id = _call_id(place.item)
        if call_id not in self._asked:
            if place.kept:
                return  # its call says nothing any more
            raise GatewayError(Reason.OUTPUT_WITHOUT_CALL, param=place.path, path=place.path, id=call_id[:_ID])
        self._close()

    def reasoning(self, place: Placed) -> None:
        sealed = self._opened(place)
        if sealed is not None and sealed.blocks:
            self._sealed = place.path, sealed
        elif place.item.encrypted_content:
            self._repaired.append(f"{place.path}: reasoning")

    def compaction(self, place: Placed) -> None:
        sealed = self._opened(place)
        if sealed is None or not sealed.summary:
            param = f"{place.path}.encrypted_content"
            raise GatewayError(Reason.COMPACTION_UNKNOWN, param=param, path=param)
        self._close()
        told = f"[Summary of the conversation so far]\n{sealed.summary}"
        self._say(UserMessage(parts=(TextPart(text=told),)), place.path)

    def _opened(self, place: Placed) -> Sealed | None:
        text = place.item.encrypted_content
        return unsealed(text, self._opening, ours=place.ours) if text else None

    def item_reference(self, place: Placed) -> None:
        """What could be followed was; the rest adds nothing."""

    def additional_tools(self, place: Placed) -> None:
        """They are among the tools of the request already."""

    def skip(self, place: Placed) -> None:
        """A kind of item that no model can be given: left out, and told in the record."""
        kind = place.item.type or ""
        self._repaired.append(f"{place.path}: {kind if _KIND.fullmatch(kind) else '?'}")

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
        if not self._text and not self._calls and self._sealed is None:
            return
        before, text, provider_blocks = self._blocks()
        calls = tuple(self._calls)
        self._text, self._calls = [], []
        if before:
            self._say(AssistantMessage(text=before), self._path)
        if not text and not calls:
            return
        self._say(AssistantMessage(text=text or None, tool_calls=calls, provider_blocks=provider_blocks), self._path)
        pictures: list[FilePart] = []
        for call in calls:
            place = self._output(call)
            content, shown = self._result(place)
            self._say(ToolMessage(call_id=call.id, content=content), place.path)
            pictures += shown
        if pictures:
            self._say(UserMessage(parts=tuple(pictures)), self._paths[-1])

    def _blocks(self) -> tuple[str, str, ProviderBlocks | None]:
        """What was said before the answer that the blocks are of, what they say, and they.

        The blocks of an answer of several steps are those of its last. What was edited or trimmed wins over blocks.
        """
        found, self._sealed = self._sealed, None
        if found is None:
            return "", "".join(self._text), None
        path, sealed = found
        provider_blocks = ProviderBlocks(dialect=sealed.dialect, blocks=Raw(json.encode(sealed.blocks)))
        calls = [(call.id, call.name, bytes(call.arguments)) for call in self._calls]
        for start in range(len(self._text) + 1):
            text = "".join(self._text[start:])
            if not sealed.says or sealed.says == digest(text, calls):
                return "".join(self._text[:start]), text, provider_blocks
        self._repaired.append(f"{path}: reasoning")
        return "", "".join(self._text), None

    def _output(self, call: ToolCall) -> Placed:
        """The next result of this id: a provider may give several calls the same."""
        waiting = self._outputs.get(call.id)
        if not waiting and self._lenient:
            return Placed("input", wire.Item(type="function_call_output", call_id=call.id, output=NO_RESULT))
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
    "custom_tool_call": _Building.custom_tool_call,
    "local_shell_call": _Building.local_shell_call,
    **dict.fromkeys(OUTPUTS, _Building.function_call_output),
    "reasoning": _Building.reasoning,
    "compaction": _Building.compaction,
    "item_reference": _Building.item_reference,
    "additional_tools": _Building.additional_tools,
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


def kept(stored: bytes, field: str | None = None) -> list[wire.Item]:
    """Items as they were kept, or those of a field; without what cannot be read any more."""
    try:
        whole: Any = msgspec.json.decode(stored, type=list[Raw] if field is None else dict[str, Raw])
        told = whole if field is None else msgspec.json.decode(whole.get(field, b"[]"), type=list[Raw])
    except msgspec.MsgspecError:
        return []
    found: list[wire.Item] = []
    for raw in told:
        with suppress(msgspec.MsgspecError):
            found.append(msgspec.json.decode(raw, type=wire.Item))
    return found


__all__ = [
    "Conversation",
    "GatewayError",
    "Placed",
    "Sealed",
    "converse",
    "decoded",
    "kept",
    "placed",
    "sources",
    "with_blocks",
]
