"""What an owner may say of an agent: a rule per tool, and the agent's own bounds. An unknown rule means no."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args

import msgspec
from msgspec import Meta

from crocevia.core.catalogue import ToolRule

ANY_TOOL: Final = "*"
"""Stands for every tool that has no rule of its own."""
_RULES: Final = frozenset(get_args(ToolRule))

_Count = Annotated[int, Meta(gt=0, le=1_000_000_000)]


class AgentConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The part of `config` that the server acts on; whatever else its owner keeps there is theirs."""

    max_rounds: _Count | None = None
    """Model answers; None: the turn's limit."""
    parallel_tools: _Count | None = None
    """Calls at work at once; None: the turn's limit."""
    approval_seconds: _Count | None = None
    """How long the user may take to answer an approval."""
    compact_at: Annotated[float, Meta(gt=0, le=1)] | None = None
    """The fraction of the model's context at which it is summarised."""
    tool_choice: str | tuple[str, ...] | None = None
    """What the model must do in its first answers, one by one; a single one is for the first."""


_KINDS: Final = {field.name: field.type for field in msgspec.structs.fields(AgentConfig)}


def rule_of(permissions: Mapping[str, ToolRule], tool: str) -> ToolRule:
    """The tool's own rule, else that of `*`; a tool without a rule is allowed."""
    return permissions.get(tool) or permissions.get(ANY_TOOL, "allow")


def read_permissions(permissions: Mapping[str, Any]) -> tuple[dict[str, ToolRule], list[str]]:
    """The rule of each tool, and the names of those whose rule nobody knows: they are denied."""
    unknown = [tool for tool, rule in permissions.items() if not (isinstance(rule, str) and rule in _RULES)]
    return {tool: "deny" if tool in unknown else rule for tool, rule in permissions.items()}, unknown


def read_config(config: Mapping[str, Any]) -> tuple[AgentConfig, list[str]]:
    """The agent's bounds, and the names of the fields that say nothing which can be meant: those are not set."""
    known: dict[str, Any] = {}
    wrong: list[str] = []
    for name, kind in _KINDS.items():
        if name not in config:
            continue
        try:
            known[name] = msgspec.convert(config[name], kind)
        except (msgspec.ValidationError, RecursionError):
            wrong.append(name)
    return AgentConfig(**known), wrong
