"""How a turn advances: a pure fold over its journal, and what follows from it.

    Turn            the fold. `turn.apply(entry)` is the only mutator; it waits for nothing and stores nothing
    wants_of(turn)  what is outstanding, as values; empty exactly when the turn has ended
    advance(turn, fact, at)   apply a fact and all that follows from it -> the entries to append, in order
    open_turn, recover        the same for a first message, and for a journal found after a crash
    Chat, hydrate   the fold over all turns of a chat: context, totals, title

Entries are facts (`entries.py`): what the world reported (a model's answer, a tool's result, a steer) and what the
machine decided (a tool starts, a child is delegated, an agent is done). The decisions live in a table of rules
(`rules.py`, `closing.py`), each reading the state and naming the next entry that is due. So a turn can be cut
anywhere: applied again, it wants the same and decides the same.

A driver is one task per turn that owns it, with an inbox:

    loop:
        facts = what is in the inbox, in order; [None] if turn.deadline came first
        entries = [entry for fact in facts for entry in advance(turn, fact, now)]
        await log.append(chat, fence, entries, effects)     raises: throw the turn away, hydrate, recover, go on
        publish nothing: readers follow the log
        new = wants_of(turn);  begin(new - old);  stop(old - new)

A begun want is a task of its own that performs and reports facts to the inbox:

    CallModel   first `ModelStarted(instance, step, attempt)`; once it is appended, read `turn.context(instance)`,
                call, report coalesced deltas (`want.separator` before the first text), then `ModelAnswered` or
                `ModelFailed`. Stopped: report `ModelFailed(interrupted=True)` with the usage known so far.
    RunTool     run it, report `ToolComplete`.       AskClient   unless published: sign, report `request_client(…)`
    StartChild  report its `AgentStarted`.           Compact     summarise, report `ContextAnswered`
    MakeTitle   report `TitleAnswered`; no text of the root goes out before it, but for 1 s at most
    Escalate, AskApproval     nothing
    End         give the stopped tasks 1 s for their last words, report `TurnClosing`

Commands (steer, cancel, approval, tool output, claim) become facts the same way: `TurnSteered`, `CancelAsked`,
`ApprovalResponse`, `ToolResult`, `ToolClaimed`. Whether they still count is decided where the command row is written,
not here; a fact that answers nothing any more is dropped by `advance`.
"""

from crocevia.core.turn.advance import advance, interrupted, open_turn, recover, request_client
from crocevia.core.turn.chat import ChatState, hydrate
from crocevia.core.turn.delegation import team_tools
from crocevia.core.turn.entries import Entry, Unreadable
from crocevia.core.turn.machine import Turn
from crocevia.core.turn.plan import AgentCard, Plan, ToolCard, Totals, TurnLimits
from crocevia.core.turn.snapshot import Snapshot, snapshot_of
from crocevia.core.turn.titles import derive_title, normalise_title
from crocevia.core.turn.wants import wants_of

__all__ = [
    "AgentCard",
    "ChatState",
    "Entry",
    "Plan",
    "Snapshot",
    "ToolCard",
    "Totals",
    "Turn",
    "TurnLimits",
    "Unreadable",
    "advance",
    "derive_title",
    "hydrate",
    "interrupted",
    "normalise_title",
    "open_turn",
    "recover",
    "request_client",
    "snapshot_of",
    "team_tools",
    "wants_of",
]
