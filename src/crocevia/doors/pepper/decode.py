"""From the wire to core values, with everything wrong named before a provider is paid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

import msgspec
from msgspec import UNSET, Raw

from crocevia.core import json
from crocevia.core.calls import GenerationOptions
from crocevia.core.errors import GatewayError, Reason, Word, say
from crocevia.core.messages import (
    TOOL_NAME_LENGTH,
    AssistantMessage,
    Message,
    Part,
    TextPart,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from crocevia.doors.pepper import blocks, wire
from crocevia.runtime.gateway import Attachment, CallDraft, Places, ProjectSpec, Wants, check_permission, placeholder

P = ParamSpec("P")
T = TypeVar("T")

_NO_PARAMETERS: Final = Raw(b'{"type":"object","properties":{}}')
_BRACE: Final = ord("{")
_NAMED_IDS: Final = 5  # how many ids an error lists, and how long each may be
_ID_LENGTH: Final = 80
_SESSION_LENGTH: Final = 200


def read(body: bytes) -> wire.Request:
    """The request's shape. Raises GatewayError(INVALID_REQUEST)."""
    return json.decode(body, wire.Request)


def draft(
    request: wire.Request, project: ProjectSpec, bytes_in: int, problems: list[GatewayError] | None = None
) -> CallDraft:
    """What the request asks of `project`. problems: takes every error, and what is wrong is left out.

    Without it raises GatewayError: INVALID_REQUEST, and DOCUMENTS_NOT_ENABLED or IMAGES_NOT_ENABLED for attachments.
    """
    history = _History(wants(project))
    for index, message in enumerate(request.messages):
        if problems is not None and not isinstance(message, wire.ToolResult):
            _attempt(problems, history.settle)
        _attempt(problems, history.add, index, message)
    if problems is not None:
        _attempt(problems, history.settle)
    _attempt(problems, history.close)
    seen: set[str] = set()
    tools = [_attempt(problems, _tool, index, tool, seen) for index, tool in enumerate(request.tools or ())]
    max_tokens = _attempt(problems, clamp, request.max_tokens) or wire.DEFAULT_MAX_TOKENS
    return _drafted(request, history, tuple(tool for tool in tools if tool is not None), max_tokens, bytes_in)


def _attempt(problems: list[GatewayError] | None, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    if problems is None:
        return work(*args, **kwargs)
    try:
        return work(*args, **kwargs)
    except GatewayError as error:
        problems.append(error.with_traceback(None))  # else it would hold the request by the frames it came through
        return None


def _drafted(
    request: wire.Request, history: _History, tools: tuple[Tool, ...], max_tokens: int, bytes_in: int
) -> CallDraft:
    session = request.session_id
    return CallDraft(
        door="pepper",
        encode=wire.ENCODE,
        messages=tuple(history.messages),
        system=request.system or None,
        tools=tools,
        options=GenerationOptions(
            max_tokens=max_tokens,
            stream=bool(request.stream),
            session=session[:_SESSION_LENGTH] if session else None,
        ),
        attachments=tuple(history.attachments),
        bytes_in=bytes_in,
        invalid_blocks=history.invalid_blocks,
        keeps_blocks=True,
        places=Places(history.origins),
        repaired=tuple(history.repaired),
    )


def wants(project: ProjectSpec) -> Wants:
    """Which files the project may send."""
    permissions = project.permissions
    return Wants(tenant=project.name, documents=permissions.documents, images=permissions.images)


def attachment(block: wire.Documento, param: str) -> Attachment:
    """A document or a photo as it came. param: where it stands."""
    return Attachment(param=param, data=block.dati, url=block.url, media_type=block.tipo_file, name=block.nome)


def clamp(wanted: int | float | None) -> int:
    """The specification's bounds of `max_tokens`. Raises GatewayError(INVALID_REQUEST) between whole numbers."""
    if wanted is None:
        return wire.DEFAULT_MAX_TOKENS
    if wanted != int(wanted):
        reason = say(Reason.SHAPE_KIND, wanted=say(Word.KIND_INT))
        raise GatewayError(Reason.JSON_SHAPE, param="max_tokens", path="max_tokens", reason=reason)
    return min(max(int(wanted), wire.MIN_MAX_TOKENS), wire.MAX_MAX_TOKENS)


# messages


class _Round:
    """The tool calls of one assistant message that still wait for their result."""

    __slots__ = ("answered", "index", "waiting")

    def __init__(self) -> None:
        self.index = 0
        self.waiting: dict[str, int] = {}
        self.answered: set[str] = set()

    def open(self, index: int, calls: tuple[ToolCall, ...]) -> None:
        """Two calls may have one id: some providers give every call the same, and then there are two results."""
        self.index = index
        self.waiting = {}
        for call in calls:
            self.waiting[call.id] = self.waiting.get(call.id, 0) + 1
        self.answered = set()

    def take(self, index: int, call_id: str) -> None:
        left = self.waiting.pop(call_id, 0)
        if left:
            if left > 1:
                self.waiting[call_id] = left - 1
            self.answered.add(call_id)
            return
        reason = Reason.TOOL_RESULT_REPEATED if call_id in self.answered else Reason.TOOL_RESULT_UNKNOWN
        raise GatewayError(reason, param=f"messages[{index}].tool_call_id", index=index, id=call_id[:_ID_LENGTH])

    def close(self) -> None:
        if self.waiting:
            ids = ", ".join(call_id[:_ID_LENGTH] for call_id in list(self.waiting)[:_NAMED_IDS])
            raise GatewayError(
                Reason.TOOL_RESULT_MISSING, param=f"messages[{self.index}].tool_calls", index=self.index, ids=ids
            )
        self.answered = set()


class _History:
    """The messages so far, as core values. origins: their indexes on the wire. spoiled, repaired: see `CallDraft`."""

    def __init__(self, wants: Wants) -> None:
        self.messages: list[Message] = []
        self.origins: list[int] = []
        self.invalid_blocks: dict[int, str] = {}
        self.repaired: list[str] = []
        self.attachments: list[Attachment] = []
        self._wants = wants
        self._pending = _Round()

    def add(self, index: int, message: wire.User | wire.Assistant | wire.ToolResult) -> None:
        if isinstance(message, wire.ToolResult):
            self._pending.take(index, message.tool_call_id)
            self._keep(index, ToolMessage(call_id=message.tool_call_id, content=message.content))
            return
        self._pending.close()
        if isinstance(message, wire.User):
            self._keep(index, self._user(index, message))
        else:
            self._assistant(index, message)

    def settle(self) -> None:
        """Give up what the open round still waits for, after naming it."""
        try:
            self._pending.close()
        finally:
            self._pending.waiting.clear()

    def close(self) -> None:
        self._pending.close()
        if not self.messages:
            raise GatewayError(Reason.MESSAGES_EMPTY, param="messages")

    def _keep(self, index: int, message: Message) -> None:
        self.messages.append(message)
        self.origins.append(index)

    def _user(self, index: int, message: wire.User) -> UserMessage:
        content = message.content
        if isinstance(content, str):
            parts: tuple[Part, ...] = (TextPart(text=content),)
        else:
            path = f"messages[{index}].content"
            parts = tuple(self._part(block, f"{path}[{at}]") for at, block in enumerate(content))
        if all(isinstance(part, TextPart) and not part.text.strip() for part in parts):
            raise GatewayError(Reason.CONTENT_EMPTY, param=f"messages[{index}].content", index=index)
        return UserMessage(parts=parts)

    def _part(self, block: wire.Testo | wire.Documento, path: str) -> Part:
        if isinstance(block, wire.Testo):
            return TextPart(text=block.testo)
        found = attachment(block, path)
        check_permission(found, self._wants)
        self.attachments.append(found)
        return placeholder(found)

    def _assistant(self, index: int, message: wire.Assistant) -> None:
        asked = message.tool_calls
        calls = None if asked is None else tuple(self._asked(index, at, call) for at, call in enumerate(asked))
        pieces = blocks.read(message.blocchi or (), calls)
        said = AssistantMessage(
            text=(message.content if pieces.provider_blocks is None else pieces.text) or None,
            tool_calls=pieces.calls if calls is None else calls,
            provider_blocks=pieces.provider_blocks,
        )
        self._pending.open(index, said.tool_calls)
        if said.text or said.tool_calls or said.provider_blocks:  # a silent model leaves nothing to send back
            if pieces.invalid_blocks is not None:
                self.invalid_blocks[len(self.messages)] = pieces.invalid_blocks
            self._keep(index, said)

    def _asked(self, index: int, position: int, call: wire.AskedTool) -> ToolCall:
        path = f"messages[{index}].tool_calls[{position}]"
        if not call.id or not call.name:
            raise GatewayError(Reason.TOOL_CALL_UNNAMED, param=path, path=path)
        _check_name(call.name, f"{path}.name")
        arguments, repaired = json.as_object(call.arguments)
        if repaired:
            self.repaired.append(f"{path}.arguments")
        return ToolCall(id=call.id, name=call.name, arguments=arguments)


# tools


def _check_name(name: str, path: str) -> None:
    if len(name) > TOOL_NAME_LENGTH:
        raise GatewayError(Reason.TOOL_NAME_REFUSED, param=path, path=path, limit=TOOL_NAME_LENGTH)


def _tool(index: int, tool: wire.OfferedTool, seen: set[str]) -> Tool:
    """`seen`: the names so far."""
    if not tool.name:
        raise GatewayError(Reason.TOOL_UNNAMED, param=f"tools[{index}].name", index=index)
    _check_name(tool.name, f"tools[{index}].name")
    if tool.name in seen:
        raise GatewayError(Reason.TOOL_REPEATED, param=f"tools[{index}].name", index=index, name=tool.name[:_ID_LENGTH])
    seen.add(tool.name)
    return Tool(name=tool.name, description=tool.description or "", parameters=_parameters(index, tool.parameters))


def _parameters(index: int, schema: Raw | msgspec.UnsetType) -> Raw:
    """A schema as it came."""
    if schema is UNSET:
        return _NO_PARAMETERS
    path = f"tools[{index}].parameters"
    if memoryview(schema)[0] != _BRACE:
        raise GatewayError(Reason.PARAMETERS_NOT_OBJECT, param=path, path=path)
    json.check_part(schema, path)
    return schema.copy()
