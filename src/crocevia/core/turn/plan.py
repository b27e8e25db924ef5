"""What a turn was opened with. Stored in its first entry, so that a rebuilt turn never asks the present catalogue."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from crocevia.core.catalogue import ToolRule
from crocevia.core.usage import Usage, add_usd

ToolKind = Literal["server", "client", "knowledge"]
CardKind = Literal["server", "client", "knowledge", "caller"]
DELEGATE = "delegate_task"
ANSWER = "answer_escalation"


class TurnLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of one turn. None: unlimited."""

    rounds: int = 50
    """Model answers per instance."""
    depth: int = 2
    """How deep members may delegate; the root is 0."""
    children: int = 16
    """Delegations per turn."""
    parallel_tools: int = 8
    """Calls of one instance at work at once; further ones queue."""
    attempts: int = 2
    """Tries of one model call."""
    interruptions: int = 100
    """Model calls lost to restarts, per instance."""
    wall_ms: int | None = 3_600_000
    cost_usd: float | None = None
    tool_calls: int | None = None
    """Calls of the platform's own tools per turn; further ones are refused."""


class AgentCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent of the team."""

    name: str
    model: str
    free: bool = False
    """Its engine costs exactly 0."""
    tools: tuple[str, ...] = ()
    """Names of the tools its model may call."""
    permissions: dict[str, ToolRule] = {}
    """By tool name, `*` for those without a rule of their own; a tool without a rule is allowed."""
    rounds: int | None = None
    """None: the turn's limit."""
    parallel_tools: int | None = None
    """None: the turn's limit."""
    approval_ms: int = 300_000
    """How long the user may take to answer an approval."""
    context_window: int | None = None
    """Tokens; None: unknown, so its context is never summarised."""
    compact_at: float = 0.8
    """The fraction of `context_window` at which its context is summarised."""
    tool_choice: tuple[str, ...] = ()
    """What its model must do in its first answers, one by one: `auto`, `none`, `required` or a tool's name."""


class ToolCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of this turn.

    A `caller` tool is run by whoever started the turn, after its end: calling it hands the turn over.
    """

    name: str
    kind: CardKind
    idempotent: bool = False
    """It may run again after a crash."""
    timeout_ms: int = 120_000
    """For a client's answer."""


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who works in a turn, with what, within which bounds."""

    agents: tuple[AgentCard, ...]
    """The first one leads."""
    tools: tuple[ToolCard, ...] = ()
    limits: TurnLimits = TurnLimits()
    title: bool = False
    """The chat still needs a title."""

    def agent(self, name: str) -> AgentCard | None:
        return next((card for card in self.agents if card.name == name), None)

    def tool(self, name: str) -> ToolCard | None:
        return next((card for card in self.tools if card.name == name), None)


class Totals(Struct, frozen=True, kw_only=True):
    """What an instance, a turn or a chat consumed."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None: some part of it is unknown."""
    duration_ms: int = 0
    tool_calls: int = 0

    def __add__(self, other: Totals) -> Totals:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Totals(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=add_usd(self.cost_usd, other.cost_usd) if known else None,  # type: ignore[arg-type]  # both known
            duration_ms=self.duration_ms + other.duration_ms,
            tool_calls=self.tool_calls + other.tool_calls,
        )

    def lasting(self, duration_ms: int) -> Totals:
        """The same, with another duration: parallel work is not longer than the clock."""
        return Totals(
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost_usd=self.cost_usd,
            duration_ms=max(0, duration_ms),
            tool_calls=self.tool_calls,
        )


def spent(usage: Usage, cost_usd: float | None) -> Totals:
    """What one model call consumed; token counts that nobody reported count as none."""
    return Totals(input_tokens=usage.input_tokens or 0, output_tokens=usage.output_tokens or 0, cost_usd=cost_usd)
