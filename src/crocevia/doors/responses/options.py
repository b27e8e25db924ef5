"""Tools, their choice, the form of the answer and sampling: from the wire to core values, for both surfaces."""

from __future__ import annotations

from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from crocevia.core import json
from crocevia.core.calls import AnswerFormat, Effort, Reasoning, ToolChoice
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import TOOL_NAME_LENGTH, Tool
from crocevia.doors.responses import wire

_NO_PARAMETERS: Final = Raw(b'{"type":"object","properties":{}}')
NULL: Final = bytes(wire.NOTHING)
_WORDS: Final = frozenset({"auto", "none", "required"})


class Tools(msgspec.Struct, frozen=True):
    """The tools of a request."""

    offered: tuple[Tool, ...]
    """What the model sees."""
    choice: ToolChoice
    """What it may or must do with it."""
    shown: tuple[wire.ShownTool, ...]
    """All, as the answer repeats them."""
    shown_choice: str | dict[str, Any]
    paths: tuple[str, ...] = ()
    """Where each offered one stands in the request."""


def tools(given: list[wire.Tool] | None, choice: str | wire.Choice | None, inside: str = "") -> Tools:
    """inside: where a tool has its fields, if not in itself.

    Raises GatewayError(INVALID_REQUEST) that names the tool or the choice.
    """
    placed = _functions(given or [], inside)
    functions = {tool.name or "": tool for tool in placed.values()}
    offered = {name: _offered(tool) for name, tool in functions.items()}
    allowed, chosen, shown = _choose(choice, list(offered))
    visible = tuple(tool for name, tool in offered.items() if name in allowed)
    if chosen.mode == "required" and not visible:
        raise GatewayError(Reason.CHOICE_WITHOUT_TOOLS, param="tool_choice")
    paths = tuple(path for path, tool in placed.items() if tool.name in allowed)
    return Tools(visible, chosen, tuple(map(_shown, functions.values())), shown, paths)


def _functions(given: list[wire.Tool], inside: str) -> dict[str, wire.Tool]:
    """By their paths."""
    found: dict[str, wire.Tool] = {}
    names: set[str] = set()
    for index, tool in enumerate(given):
        if tool.type != "function":
            continue  # a hosted tool of somebody else's: nobody here could run it
        path, name = f"tools[{index}]{inside}", tool.name or ""
        if not 0 < len(name) <= TOOL_NAME_LENGTH:
            raise GatewayError(Reason.TOOL_NAME, param=f"{path}.name", path=f"{path}.name", limit=TOOL_NAME_LENGTH)
        if name in names:
            raise GatewayError(Reason.TOOL_REPEATED, param=f"{path}.name", index=index, name=name)
        if not _is_object(tool.parameters):
            raise GatewayError(Reason.PARAMETERS_NOT_OBJECT, param=f"{path}.parameters", path=f"{path}.parameters")
        json.check_part(tool.parameters, f"{path}.parameters")
        names.add(name)
        found[path] = tool
    return found


def _is_object(schema: Raw) -> bool:
    return bytes(schema)[:1] in (b"{", b"n")


def _offered(tool: wire.Tool) -> Tool:
    schema = bytes(tool.parameters)
    return Tool(
        name=tool.name or "",
        description=tool.description or "",
        parameters=_NO_PARAMETERS if schema == NULL else Raw(schema),
    )


def _shown(tool: wire.Tool) -> wire.ShownTool:
    schema = Raw(bytes(tool.parameters))
    return wire.ShownTool(name=tool.name or "", description=tool.description, parameters=schema, strict=tool.strict)


def _choose(choice: str | wire.Choice | None, names: list[str]) -> tuple[list[str], ToolChoice, str | dict[str, Any]]:
    """The tools that may be called, the choice, and how the answer repeats it."""
    if choice is None:
        return names, ToolChoice(), "auto"
    if isinstance(choice, str):
        if choice not in _WORDS:
            raise GatewayError(Reason.CHOICE_UNKNOWN, param="tool_choice")
        return names, ToolChoice(mode=choice), choice  # type: ignore[arg-type]  # one of the three words
    if choice.type == "function":
        name = choice.name or str((choice.function or {}).get("name", ""))
        if name not in names:
            raise GatewayError(Reason.CHOICE_OF_UNKNOWN, param="tool_choice", name=name[:80])
        return [name], ToolChoice(mode="required", name=name), {"type": "function", "name": name}
    if choice.type == "allowed_tools":
        return _allowed(choice, names)
    raise GatewayError(Reason.CHOICE_UNKNOWN, param="tool_choice")


def _allowed(choice: wire.Choice, names: list[str]) -> tuple[list[str], ToolChoice, dict[str, Any]]:
    nested = choice.allowed_tools or {}
    listed: Any = choice.tools if choice.tools is not None else nested.get("tools", [])
    mode = choice.mode or nested.get("mode") or "auto"
    if mode not in _WORDS or not isinstance(listed, list):
        raise GatewayError(Reason.CHOICE_UNKNOWN, param="tool_choice")
    wanted = [_listed_name(entry) for entry in listed]
    for name in wanted:
        if name not in names:
            raise GatewayError(Reason.CHOICE_OF_UNKNOWN, param="tool_choice", name=name[:80])
    shown = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name} for name in wanted]}
    return wanted, ToolChoice(mode=mode), shown  # type: ignore[arg-type]  # one of the three words


def _listed_name(entry: Any) -> str:
    if not isinstance(entry, dict):
        return ""
    return str(entry.get("name") or (entry.get("function") or {}).get("name", ""))


def answer_format(given: wire.Format | None, param: str) -> AnswerFormat | None:
    """None: plain text. Raises GatewayError(INVALID_REQUEST) for a form that is not whole."""
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return AnswerFormat(param=param)
    if given.type != "json_schema":
        raise GatewayError(Reason.FORMAT_UNKNOWN, param=f"{param}.type", path=f"{param}.type")
    schema = bytes(given.schema)
    for name, there in (("name", bool(given.name)), ("schema", schema != NULL)):
        if not there:
            raise GatewayError(Reason.FIELD_NEEDED, param=f"{param}.{name}", field=f"{param}.{name}")
    if schema[:1] != b"{":
        raise GatewayError(Reason.PARAMETERS_NOT_OBJECT, param=f"{param}.schema", path=f"{param}.schema")
    json.check_part(schema, f"{param}.schema")
    return AnswerFormat(
        param=param, name=given.name or "", schema=Raw(schema), strict=bool(given.strict), description=given.description
    )


def effort(given: str | None, param: str) -> Effort | None:
    """Raises GatewayError(INVALID_REQUEST) for an effort that there is not."""
    if given is not None and given not in _EFFORTS:
        raise GatewayError(Reason.CHOICE_OF, param=param, path=param, choices=", ".join(_EFFORTS))
    return given  # type: ignore[return-value]  # it is a known word


def reasoning(given: wire.Reasoning | None) -> Reasoning:
    """Raises GatewayError(INVALID_REQUEST) for an effort or a summary that there is not."""
    if given is None:
        return Reasoning()
    for name, value, known in (("effort", given.effort, _EFFORTS), ("summary", given.summary, _SUMMARIES)):
        if value is not None and value not in known:
            choices = ", ".join(known)
            raise GatewayError(Reason.CHOICE_OF, param=f"reasoning.{name}", path=f"reasoning.{name}", choices=choices)
    return Reasoning(effort=given.effort, summary=given.summary)  # type: ignore[arg-type]  # both are known words


_EFFORTS: Final[tuple[str, ...]] = get_args(Effort)
_SUMMARIES: Final = ("auto", "concise", "detailed")


def within(value: float | None, param: str, least: float, most: float) -> float | None:
    """Raises GatewayError(INVALID_REQUEST) outside the bounds."""
    if value is not None and not least <= value <= most:
        raise GatewayError(Reason.NUMBER_WITHIN, param=param, path=param, least=least, most=most)
    return value


def check_met(choice: ToolChoice, offered: tuple[Tool, ...], called: tuple[str, ...]) -> None:
    """Raises GatewayError(UPSTREAM_FAILED) when the model did not keep to what the caller demanded."""
    names = {tool.name for tool in offered}
    stray = next((name for name in called if name not in names), None)
    unmet = (
        stray is not None
        or (choice.mode == "required" and not called)
        or (choice.mode == "none" and called)
        or (choice.name is not None and any(name != choice.name for name in called))
    )
    if unmet:
        raise GatewayError(Reason.CHOICE_UNMET, param="tool_choice")
