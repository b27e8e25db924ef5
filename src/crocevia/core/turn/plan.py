"""What a turn was opened with. Stored in its first entry, so that a rebuilt turn never asks the present catalogue."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from crocevia.core.catalogue import ToolRule
from crocevia.core.usage import Usage

ToolKind = Literal["server", "client", "knowledge"]
CardKind = Literal["server", "client", "knowledge", "caller"]
DELEGATE = "delegate_task"
ANSWER = "answer_escalation"


class Limits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bounds of one turn. None: unlimited. Times in milliseconds, cost in USD.

    rounds: model answers per instance. depth: how deep members may delegate (root is 0). children: delegations
    per turn. parallel_tools: calls of one instance at work at once; the rest of them queue. attempts: tries of
    one model call. interruptions: model calls lost to restarts, per instance. tool_calls: of the platform's own
    tools, per turn; what is asked beyond is refused.
    """

    rounds: int = 50
    depth: int = 2
    children: int = 16
    parallel_tools: int = 8
    attempts: int = 2
    interruptions: int = 100
    wall_ms: int | None = 3_600_000
    cost_usd: float | None = None
    tool_calls: int | None = None


class AgentCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One agent of the team. `free`: its engine costs exactly 0. `tools`: the names its model may call.

    limits: its own bounds (`rounds`, `parallel_tools`), else the turn's. approval_ms: how long its user may think.
    compact_at: the fraction of `context_window` (tokens) at which its context is summarised.
    tool_choice: what its model must do in its first answers, one by one: `auto`, `none`, `required` or a tool's name.
    """

    name: str
    model: str
    free: bool = False
    tools: tuple[str, ...] = ()
    permissions: dict[str, ToolRule] = {}
    rounds: int | None = None
    parallel_tools: int | None = None
    approval_ms: int = 300_000
    context_window: int | None = None
    compact_at: float = 0.8
    tool_choice: tuple[str, ...] = ()


class ToolCard(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool of this turn. `idempotent`: may run again after a crash. timeout_ms: for client tools.

    A `caller` tool is run by whoever started the turn, after its end: calling it hands the turn over.
    """

    name: str
    kind: CardKind
    idempotent: bool = False
    timeout_ms: int = 120_000


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The team (`agents[0]` leads it), its tools, the bounds, and whether the chat still needs a title."""

    agents: tuple[AgentCard, ...]
    tools: tuple[ToolCard, ...] = ()
    limits: Limits = Limits()
    title: bool = False

    def agent(self, name: str) -> AgentCard | None:
        return next((card for card in self.agents if card.name == name), None)

    def tool(self, name: str) -> ToolCard | None:
        return next((card for card in self.tools if card.name == name), None)


class Totals(Struct, frozen=True, kw_only=True):
    """What an instance, a turn or a chat consumed. `cost_usd` None: some part of it is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    duration_ms: int = 0
    tool_calls: int = 0

    def __add__(self, other: Totals) -> Totals:
        known = self.cost_usd is not None and other.cost_usd is not None
        return Totals(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd if known else None,  # type: ignore[operator]  # both known
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
