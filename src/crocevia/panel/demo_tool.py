"""The playground's own tool: a light that is switched only after a confirmation, to try confirmations."""

from __future__ import annotations

from typing import Any, Final

from crocevia.core import json

Messages = list[dict[str, Any]]

NAME: Final = "set_light"
TOOL: Final[dict[str, Any]] = {
    "name": NAME,
    "description": "Switch the light of the room on or off.",
    "parameters": {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]},
}


def open_calls(messages: Messages) -> list[dict[str, Any]]:
    """Tool calls of the conversation that have no result yet."""
    answered = {message.get("tool_call_id") for message in messages}
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    return [call for call in calls if call["id"] not in answered]


def result(call: dict[str, Any], approved: bool | None) -> dict[str, Any]:
    """The tool message for a call. approved None: the conversation went on without a decision."""
    if approved and call.get("name") == NAME:
        content: dict[str, Any] = {"light": "on" if (call.get("arguments") or {}).get("on") else "off"}
    elif approved:
        content = {"error": "There is no such tool."}
    else:
        content = {"status": "waiting for a confirmation" if approved is None else "the user said no"}
    return {"role": "tool", "tool_call_id": call["id"], "content": json.encode(content).decode()}
