"""What a turn waits for. Values: the driver starts those it has not begun, and stops those that are gone."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Ending = Literal["completed", "cancelled", "failed"]


class CallModel(Struct, frozen=True):
    """Call the model of `instance`. `lead` goes before the first text delta, so that steps do not run together."""

    instance: str
    step: int
    attempt: int
    lead: str = ""


class RunTool(Struct, frozen=True):
    """Run a server or knowledge tool; its `agent.tool.start` is already in the journal."""

    call_id: str


class AskClient(Struct, frozen=True):
    """Sign and publish (unless it is published), then wait for the client."""

    call_id: str


class Escalate(Struct, frozen=True):
    """A member's question lies with its orchestrator. Nothing to do but wait."""

    escalation_id: str


class AskApproval(Struct, frozen=True):
    """A question lies with the user. Nothing to do but wait: `Turn.deadline` covers its time."""

    approval_id: str


class StartChild(Struct, frozen=True):
    """Prepare the member's own context, then report its `agent.started`."""

    instance: str


class Compact(Struct, frozen=True):
    instance: str
    step: int


class MakeTitle(Struct, frozen=True):
    pass


class End(Struct, frozen=True):
    """Stop what still runs, let it say its last word (1 s at most), then report `TurnClosing`."""

    ending: Ending
    code: str = ""


Want: TypeAlias = CallModel | RunTool | AskClient | Escalate | AskApproval | StartChild | Compact | MakeTitle | End
