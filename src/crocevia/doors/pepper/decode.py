"""From the wire to core values, with everything wrong named before a provider is paid."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from crocevia.core import json
from crocevia.core.catalogue import Permissions
from crocevia.core.errors import Code, GatewayError, say
from crocevia.core.messages import AssistantMessage, Message, TextPart, Tool, ToolCall, ToolMessage, UserMessage
from crocevia.runtime.gateway import CallDraft, ProjectSpec

from . import wire

_NO_PARAMETERS: Final = Raw(b'{"type":"object","properties":{}}')
_BRACE: Final = ord("{")
_NAMED_IDS: Final = 5  # how many ids an error lists, and how long each may be
_ID_LENGTH: Final = 80
_SESSION_LENGTH: Final = 200


def read(body: bytes) -> wire.Request:
    """The request's shape. Raises GatewayError(INVALID_REQUEST)."""
    return json.decode(body, wire.Request)


def draft(request: wire.Request, project: ProjectSpec, bytes_in: int) -> CallDraft:
    """What the request asks of `project`.

    Raises GatewayError: INVALID_REQUEST, and DOCUMENTS_NOT_ENABLED or IMAGES_NOT_ENABLED for attachments.
    """
    if not request.messages:
        raise _wrong("messages_empty", "messages")
    session = request.session_id
    return CallDraft(
        door="pepper",
        encode=wire.ENCODE,
        messages=_messages(request.messages, project),
        system=request.system or None,
        tools=_tools(request.tools or []),
        max_tokens=_clamp(request.max_tokens),
        stream=bool(request.stream),
        session=session[:_SESSION_LENGTH] if session else None,
        bytes_in=bytes_in,
    )


def _clamp(wanted: int | None) -> int:
    if wanted is None:
        return wire.DEFAULT_MAX_TOKENS
    return min(max(wanted, wire.MIN_MAX_TOKENS), wire.MAX_MAX_TOKENS)


# messages


class _Round:
    """The tool calls of one assistant message that still wait for their result."""

    __slots__ = ("answered", "index", "waiting")

    def __init__(self) -> None:
        self.index = 0
        self.waiting: dict[str, None] = {}
        self.answered: set[str] = set()

    def open(self, index: int, calls: tuple[ToolCall, ...]) -> None:
        self.index = index
        self.waiting = dict.fromkeys(call.id for call in calls)
        self.answered = set()
        if len(self.waiting) != len(calls):
            raise _wrong("tool_call_repeated", f"messages[{index}].tool_calls", index=index)

    def take(self, index: int, call_id: str) -> None:
        if call_id in self.waiting:
            del self.waiting[call_id]
            self.answered.add(call_id)
            return
        key = "tool_result_repeated" if call_id in self.answered else "tool_result_unknown"
        raise _wrong(key, f"messages[{index}].tool_call_id", index=index, id=call_id[:_ID_LENGTH])

    def close(self) -> None:
        if self.waiting:
            ids = ", ".join(call_id[:_ID_LENGTH] for call_id in list(self.waiting)[:_NAMED_IDS])
            raise _wrong("tool_result_missing", f"messages[{self.index}].tool_calls", index=self.index, ids=ids)
        self.answered = set()


def _messages(found: list[wire.User | wire.Assistant | wire.ToolResult], project: ProjectSpec) -> tuple[Message, ...]:
    messages: list[Message] = []
    pending = _Round()
    for index, message in enumerate(found):
        if isinstance(message, wire.ToolResult):
            pending.take(index, message.tool_call_id)
            messages.append(ToolMessage(call_id=message.tool_call_id, content=message.content))
            continue
        pending.close()
        if isinstance(message, wire.User):
            messages.append(_user(index, message, project))
            continue
        said = _assistant(index, message)
        pending.open(index, said.tool_calls)
        if said.text or said.tool_calls:  # a model that said nothing leaves nothing to send back
            messages.append(said)
    pending.close()
    if not messages:
        raise _wrong("messages_empty", "messages")
    return tuple(messages)


def _user(index: int, message: wire.User, project: ProjectSpec) -> UserMessage:
    content = message.content
    parts = [TextPart(text=content)] if isinstance(content, str) else [_part(block, project) for block in content]
    if all(part.text.isspace() or not part.text for part in parts):
        raise _wrong("content_empty", f"messages[{index}].content", index=index)
    return UserMessage(parts=tuple(parts))


def _part(block: wire.Testo | wire.Documento, project: ProjectSpec) -> TextPart:
    if isinstance(block, wire.Testo):
        return TextPart(text=block.testo)
    image = (block.tipo_file or "").startswith("image/")
    permissions: Permissions = project.permissions
    if image and not permissions.images:
        raise GatewayError(Code.IMAGES_NOT_ENABLED, say(Code.IMAGES_NOT_ENABLED.value, project=project.name))
    if not image and not permissions.documents:
        raise GatewayError(Code.DOCUMENTS_NOT_ENABLED, say(Code.DOCUMENTS_NOT_ENABLED.value, project=project.name))
    raise GatewayError(Code.UNSUPPORTED, say(Code.UNSUPPORTED.value, what="documento"))


def _assistant(index: int, message: wire.Assistant) -> AssistantMessage:
    calls = tuple(_asked(index, position, call) for position, call in enumerate(message.tool_calls or ()))
    return AssistantMessage(text=message.content or None, tool_calls=calls)


def _asked(index: int, position: int, call: wire.AskedTool) -> ToolCall:
    path = f"messages[{index}].tool_calls[{position}]"
    if not call.id or not call.name:
        raise _wrong("tool_call_unnamed", path, path=path)
    if memoryview(call.arguments)[0] != _BRACE:
        raise _wrong("arguments_not_object", f"{path}.arguments", path=f"{path}.arguments")
    return ToolCall(id=call.id, name=call.name, arguments=call.arguments.copy())


# tools


def _tools(offered: list[wire.OfferedTool]) -> tuple[Tool, ...]:
    tools: dict[str, Tool] = {}
    for index, tool in enumerate(offered):
        if not tool.name:
            raise _wrong("tool_unnamed", f"tools[{index}].name", index=index)
        if tool.name in tools:
            raise _wrong("tool_repeated", f"tools[{index}].name", index=index, name=tool.name[:_ID_LENGTH])
        tools[tool.name] = Tool(
            name=tool.name, description=tool.description or "", parameters=_parameters(index, tool.parameters)
        )
    return tuple(tools.values())


class _Schema(msgspec.Struct):
    type: Any = None
    properties: Any = UNSET


def _parameters(index: int, schema: Raw | msgspec.UnsetType) -> Raw:
    """An object schema, spelled as it came unless it left out what can only mean one thing."""
    if schema is UNSET:
        return _NO_PARAMETERS
    path = f"tools[{index}].parameters"
    if memoryview(schema)[0] != _BRACE:
        raise _wrong("parameters_not_object", path, path=path)
    root = msgspec.json.decode(schema, type=_Schema)
    empty = root.properties == []  # how PHP spells an object without members
    if root.type not in (None, "object") or not (empty or root.properties is UNSET or _is_object(root.properties)):
        raise _wrong("parameters_not_object", path, path=path)
    if root.type == "object" and not empty:
        return schema.copy()
    members: dict[str, Raw] = msgspec.json.decode(schema, type=dict[str, Raw])
    fixed = members | {"type": Raw(b'"object"')} | ({"properties": Raw(b"{}")} if empty else {})
    return Raw(json.encode(fixed))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _wrong(key: str, param: str, **args: str | int) -> GatewayError:
    return GatewayError(Code.INVALID_REQUEST, say(key, **args), param=param)
