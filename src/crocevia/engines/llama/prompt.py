"""What the small model is shown: chat messages for llama.cpp's server, from a `ModelRequest`. Pure.

Strategy for tools, each part measured with the default weights: the model learns the form from a fixed conversation
about other tools, which every call shares and the server keeps cached; the caller's instructions and tools follow it; a
tool's result is written into the user's turn, since a turn of its own makes the model repeat the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import AssistantMessage, FilePart, Message, Tool, ToolCall, ToolMessage, UserMessage
from crocevia.engines.llama.schema import arguments_schema

ChatMessage: TypeAlias = dict[str, str]

_RULES = """You are an assistant that can use tools. Every answer is one JSON object:
{"name": TOOL, "arguments": {...}} to call a tool, or {"reply": TEXT} to speak to the user.
Call a tool when the user asks about something that a tool can read or wants something that a tool can do. \
For greetings, thanks and general knowledge, reply. \
When the result of a tool is given, reply with what it says, in the language of the user."""

_LESSON_SYSTEM = "You look after a garden."
_LESSON_TOOLS = """- read_garden {}: Read the sensors of the garden: soil, water tank, gate.
- set_sprinkler {"zone": "lawn"|"roses", "state": "start"|"stop"}: Start or stop the water in a zone.
- find_train {"destination": string}: Find the next train.
- send_note {"to": string, "text": string}: Send a note to somebody."""
_SENSORS = '{"soil": "dry", "tank_percent": 80, "gate": "open"}'

# (what the user says, results of tools so far, the right answer)
_LESSONS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("Is the water tank full?", "", {"name": "read_garden", "arguments": {}}),
    ("Is the water tank full?", f"read_garden returned: {_SENSORS}", {"reply": "Almost: the tank is at 80%."}),
    ("Good morning!", "", {"reply": "Good morning! How can I help?"}),
    (
        "Please start the water on the roses",
        "",
        {"name": "set_sprinkler", "arguments": {"zone": "roses", "state": "start"}},
    ),
    (
        "Please start the water on the roses",
        'set_sprinkler returned: {"ok": true}',
        {"reply": "Done: the water is running on the roses."},
    ),
    ("Who wrote Hamlet?", "", {"reply": "Hamlet was written by William Shakespeare."}),
    ("com'è la terra in giardino?", "", {"name": "read_garden", "arguments": {}}),
    ("com'è la terra in giardino?", f"read_garden returned: {_SENSORS}", {"reply": "La terra è secca."}),
    ("What is 6 times 4?", "", {"reply": "6 times 4 is 24."}),
    ("When does the next train to Rome leave?", "", {"name": "find_train", "arguments": {"destination": "Rome"}}),
    ("Grazie!", "", {"reply": "Prego!"}),
    ("ferma l'acqua sul prato", "", {"name": "set_sprinkler", "arguments": {"zone": "lawn", "state": "stop"}}),
    (
        "Tell Anna that dinner is ready",
        "",
        {"name": "send_note", "arguments": {"to": "Anna", "text": "Dinner is ready"}},
    ),
)


def chat(system: str | None, messages: Sequence[Message]) -> list[ChatMessage]:
    """A conversation in plain text. Raises GatewayError(UNSUPPORTED) for files."""
    head = [{"role": "system", "content": system}] if system else []
    return [*head, *_history(messages, _plain, "")]


def chat_with_tools(system: str | None, tools: Sequence[Tool], messages: Sequence[Message]) -> list[ChatMessage]:
    """A conversation whose next answer is one JSON object. Raises GatewayError(UNSUPPORTED) for files."""
    shown = "\n".join(map(_signature, tools))
    spoken = list(lesson())
    spoken += _turn(f"{_introduction(system or '', shown)}\n\nUser: Ciao", {"reply": "Ciao!"})
    for tool in tools:
        for example in tool.examples:
            call = {"name": tool.name, "arguments": msgspec.json.decode(example.arguments)}
            spoken += _turn(f"User: {example.utterance}", call)
    return [*spoken, *_history(messages, _as_reply, "User: ")]


def lesson() -> Iterator[ChatMessage]:
    """The part that all conversations with tools begin with."""
    yield {"role": "system", "content": _RULES}
    yield from _turn(f"{_introduction(_LESSON_SYSTEM, _LESSON_TOOLS)}\n\nUser: Hi", {"reply": "Hi!"})
    for said, results, answer in _LESSONS:
        yield from _turn(f"User: {said}\n\n{results}" if results else f"User: {said}", answer)


def answered_calls(messages: Sequence[Message]) -> frozenset[tuple[str, bytes]]:
    """The calls that have their result since the user last spoke, in the form of `call_key`."""
    found: dict[str, ToolCall] = {}
    keys: set[tuple[str, bytes]] = set()
    for message in messages:
        if isinstance(message, UserMessage):
            found.clear()
            keys.clear()
        elif isinstance(message, AssistantMessage):
            found.update((call.id, call) for call in message.tool_calls)
        elif message.call_id in found:
            keys.add(call_key(found[message.call_id]))
    return frozenset(keys)


def call_key(call: ToolCall) -> tuple[str, bytes]:
    """The same for two calls that mean the same."""
    return call.name, msgspec.json.encode(msgspec.json.decode(call.arguments), order="deterministic")


def _history(messages: Sequence[Message], spell: Callable[[str], str], mark: str) -> Iterator[ChatMessage]:
    """User turns with the results that followed them, and what was answered in words."""
    names = {
        call.id: call.name
        for message in messages
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    pending: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            pending.append(_result(names.get(message.call_id, "tool"), message))
        elif isinstance(message, UserMessage):
            pending.append(mark + _text_of(message))
        elif not message.tool_calls and message.text:
            yield {"role": "user", "content": "\n\n".join(pending) or f"{mark}..."}
            yield {"role": "assistant", "content": spell(message.text)}
            pending = []
    if pending:
        yield {"role": "user", "content": "\n\n".join(pending)}


def _result(name: str, message: ToolMessage) -> str:
    return f"{name} {'failed' if message.is_error else 'returned'}: {message.content}"


def _text_of(message: UserMessage) -> str:
    if any(isinstance(part, FilePart) for part in message.parts):
        raise GatewayError(Reason.UNSUPPORTED, what="files")
    return message.text


def _plain(text: str) -> str:
    return text


def _as_reply(text: str) -> str:
    return _json({"reply": text})


def _turn(said: str, answer: dict[str, Any]) -> tuple[ChatMessage, ChatMessage]:
    return {"role": "user", "content": said}, {"role": "assistant", "content": _json(answer)}


def _introduction(system: str, tools: str) -> str:
    return f"{system}\n\nTools:\n{tools}" if system else f"Tools:\n{tools}"


def _signature(tool: Tool) -> str:
    properties = arguments_schema(tool.parameters).get("properties", {})
    shown = ", ".join(f"{_json(name)}: {_kind(value)}" for name, value in properties.items())
    return f"- {tool.name} {{{shown}}}: {' '.join(tool.description.split())}"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "|".join(map(_json, schema["enum"]))
    if "const" in schema:
        return _json(schema["const"])
    if "anyOf" in schema:
        return "|".join(map(_kind, schema["anyOf"]))
    return str(schema.get("type", "any"))


def _json(value: Any) -> str:
    # With the spaces of the standard library: the form the model was measured with.
    return json.dumps(value, ensure_ascii=False)
