"""What a `scripted` engine without a script does: call the tool that is asked for, quote its result, else echo."""

from __future__ import annotations

import re
from typing import Any

from crocevia.core import json
from crocevia.core.errors import GatewayError
from crocevia.core.messages import Tool
from crocevia.engines.scripted.request_view import RequestView
from crocevia.engines.scripted.samples import sample, words
from crocevia.engines.scripted.steps import CallTool, SayText, Step

_QUOTED = 400
# A tool `get_home_status` is asked for by «home status» too: what people say is the thing, seldom the verb.
_VERBS = words("get set list read fetch find show search do run make add create update delete call")


def steps(view: RequestView) -> tuple[Step, ...]:
    """The answer to this call."""
    if view.results:
        return (SayText(text="; ".join(f"{name}: {_short(content)}" for name, content in view.results)),)
    tool = asked_for(view.last_user, view.request.tools)
    if tool is not None:
        return (SayText(text=f"Let me call {tool.name}. "), CallTool(tool=tool.name, arguments=_arguments(tool, view)))
    return (SayText(text=f"You said: {_short(view.last_user)}"),)


def _short(text: str) -> str:
    return text if len(text) <= _QUOTED else text[:_QUOTED] + "…"


def asked_for(text: str, tools: tuple[Tool, ...]) -> Tool | None:
    """The tool named in `text` («call get_home_status»), else the one with most words of its name in it."""
    lowered = text.casefold()
    named = next((tool for tool in tools if _names(tool.name.casefold(), lowered)), None)
    if named is not None:
        return named
    said = words(text)
    best = max(tools, key=lambda tool: len(_telling_words(tool.name) & said), default=None)
    return best if best is not None and _telling_words(best.name) & said else None


def _names(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) is not None


def _telling_words(name: str) -> set[str]:
    found = words(re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name))
    return found - _VERBS or found or {name}


def _arguments(tool: Tool, view: RequestView) -> dict[str, Any]:
    try:
        schema = json.decode(bytes(tool.parameters))
    except GatewayError:
        return {}
    made = sample(schema, hint=view.last_user)
    return made if isinstance(made, dict) else {}
