"""Tools, their choice, the form of the answer and sampling: from the wire to core values, for both surfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, get_args

import msgspec
from msgspec import UNSET, Raw

from crocevia.core import json
from crocevia.core.calls import AnswerFormat, Effort, Reasoning, ToolChoice
from crocevia.core.errors import GatewayError, Reason
from crocevia.core.messages import TOOL_NAME_LENGTH, Tool
from crocevia.doors.responses import wire

_ONE_TEXT: Final = Raw(
    b'{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}'
)
_NO_PARAMETERS: Final = Raw(b'{"type":"object","properties":{}}')
NULL: Final = bytes(wire.NOTHING)
_WORDS: Final = frozenset({"auto", "none", "required"})


class Told(msgspec.Struct, frozen=True):
    """How the caller knows a tool that the model is told of in another way."""

    name: str
    namespace: str | None
    custom: bool


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
    told: Mapping[str, Told] = {}
    """Free-form tools and those of namespaces, by the names that the model knows them by."""
    withheld: frozenset[str] = frozenset()
    """Those that may not be called."""
    skipped: tuple[str, ...] = ()
    """Tools that nobody here could run, for the record."""


_NO_TOOLS: Final = Tools((), ToolChoice(), (), "auto")


class _Place(NamedTuple):
    """A tool of the request, and where it stands."""

    path: str
    number: int
    tool: wire.Tool
    namespace: str | None
    again: bool
    """It may repeat the name of an earlier one, which stays."""

    @property
    def name(self) -> str:
        return wire.full_name(self.tool.name or "", self.namespace)


def tools(
    given: list[wire.Tool] | None,
    choice: str | wire.Choice | None,
    inside: str = "",
    more: Sequence[tuple[str, list[wire.Tool]]] = (),
) -> Tools:
    """inside: where a tool has its fields, if not in itself. more: those that stand elsewhere in the request.

    Raises GatewayError(INVALID_REQUEST) that names the tool or the choice.
    """
    if not given and not more and choice is None:
        return _NO_TOOLS
    places = list(_spread(given or [], "tools", inside))
    for base, others in more:
        places += _spread(others, base, inside, again=True)
    found = _checked([place for place in places if place.tool.type in _KINDS])
    offered = {name: _offered(name, place.tool) for name, place in found.items()}
    allowed, chosen, shown = _choose(choice, list(offered))
    visible = tuple(tool for name, tool in offered.items() if name in allowed)
    if chosen.mode == "required" and not visible:
        raise GatewayError(Reason.CHOICE_WITHOUT_TOOLS, param="tool_choice")
    return Tools(
        visible,
        chosen,
        tuple(map(_shown, found.values())),
        shown,
        tuple(place.path for name, place in found.items() if name in allowed),
        {name: _told(place) for name, place in found.items() if place.namespace or place.tool.type == "custom"},
        frozenset(offered) - frozenset(allowed),
        tuple(f"{place.path}: {place.tool.type[:40]}" for place in places if place.tool.type not in _KINDS),
    )


_KINDS: Final = frozenset({"function", "custom"})


def _spread(
    given: list[wire.Tool], base: str, inside: str, namespace: str | None = None, *, again: bool = False
) -> Iterator[_Place]:
    """The tools one by one, those of a namespace in its place. What is neither can be run by nobody here."""
    for index, tool in enumerate(given):
        path = f"{base}[{index}]"
        if tool.type == "namespace" and tool.tools and namespace is None:
            yield from _spread(tool.tools, f"{path}.tools", inside, tool.name, again=again)
        else:
            yield _Place(f"{path}{inside}", index, tool, namespace or tool.namespace, again)


def _checked(places: list[_Place]) -> dict[str, _Place]:
    """By their names."""
    found: dict[str, _Place] = {}
    for place in places:
        path, tool, name = place.path, place.tool, place.name
        if not tool.name or len(name) > TOOL_NAME_LENGTH:
            raise GatewayError(Reason.TOOL_NAME, param=f"{path}.name", path=f"{path}.name", limit=TOOL_NAME_LENGTH)
        if name in found:
            if place.again:
                continue
            raise GatewayError(Reason.TOOL_REPEATED, param=f"{path}.name", index=place.number, name=name)
        if not _is_object(tool.parameters):
            raise GatewayError(Reason.PARAMETERS_NOT_OBJECT, param=f"{path}.parameters", path=f"{path}.parameters")
        _check_schema(bytes(tool.parameters), f"{path}.parameters")
        found[name] = place
    return found


# The same few tools come with every call. What is wrong is raised, and not kept.
_check_schema: Final = lru_cache(maxsize=512)(json.check_part)


def _told(place: _Place) -> Told:
    return Told(place.tool.name or "", place.namespace, place.tool.type == "custom")


def _is_object(schema: Raw) -> bool:
    return bytes(schema)[:1] in (b"{", b"n")


def _offered(name: str, tool: wire.Tool) -> Tool:
    if tool.type == "custom":
        return Tool(name=name, description=_custom(tool), parameters=_ONE_TEXT)
    schema = bytes(tool.parameters)
    return Tool(
        name=name,
        description=tool.description or "",
        parameters=_NO_PARAMETERS if schema == NULL else Raw(schema),
    )


def _custom(tool: wire.Tool) -> str:
    """What a free-form tool is for, and the grammar of its text where it has one."""
    form = tool.format if isinstance(tool.format, dict) else {}
    inner = form.get("grammar")
    grammar: dict[str, Any] = inner if isinstance(inner, dict) else form
    definition = grammar.get("definition")
    told = [tool.description or ""]
    if isinstance(definition, str):
        told.append(f"`input` must follow this grammar ({str(grammar.get('syntax', ''))[:20]}):\n{definition}")
    return "\n\n".join(text for text in told if text)


def input_of(arguments: bytes) -> str:
    """The text that a free-form tool is called with; a model that did not keep to its one field is taken as it is."""
    try:
        given = msgspec.json.decode(arguments)
    except msgspec.MsgspecError:
        return arguments.decode("utf-8", "replace")
    texts = [given.get("input")] if "input" in given else list(given.values())
    return texts[0] if len(texts) == 1 and isinstance(texts[0], str) else arguments.decode()


def _shown(place: _Place) -> wire.ShownTool:
    tool = place.tool
    schema = Raw(bytes(tool.parameters))
    return wire.ShownTool(
        type=tool.type,
        name=tool.name or "",
        description=tool.description,
        parameters=schema,
        strict=tool.strict,
        namespace=place.namespace or UNSET,
    )


def _choose(choice: str | wire.Choice | None, names: list[str]) -> tuple[list[str], ToolChoice, str | dict[str, Any]]:
    """The tools that may be called, the choice, and how the answer repeats it."""
    if choice is None:
        return names, ToolChoice(), "auto"
    if isinstance(choice, str):
        if choice not in _WORDS:
            raise GatewayError(Reason.CHOICE_UNKNOWN, param="tool_choice")
        return names, ToolChoice(mode=choice), choice  # type: ignore[arg-type]  # one of the three words
    if choice.type in _KINDS:
        own = choice.name or str((choice.function or choice.custom or {}).get("name", ""))
        name = wire.full_name(own, choice.namespace)
        if name not in names:
            raise GatewayError(Reason.CHOICE_OF_UNKNOWN, param="tool_choice", name=name[:80])
        return [name], ToolChoice(mode="required", name=name), {"type": choice.type, "name": name}
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
    named = entry.get("function") or entry.get("custom") or {}
    return str(entry.get("name") or named.get("name", ""))


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


def check_met(tools: Tools, called: tuple[str, ...]) -> None:
    """Raises GatewayError(UPSTREAM_FAILED) when the model did not do what the caller demanded, or made up a tool."""
    choice, names = tools.choice, {tool.name for tool in tools.offered}
    stray = {name for name in called if name not in names}
    if stray and choice == ToolChoice() and not stray & tools.withheld:
        raise GatewayError(Reason.TOOL_MADE_UP)
    unmet = (
        stray
        or (choice.mode == "required" and not called)
        or (choice.mode == "none" and called)
        or (choice.name is not None and any(name != choice.name for name in called))
    )
    if unmet:
        raise GatewayError(Reason.CHOICE_UNMET, param="tool_choice")
