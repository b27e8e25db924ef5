"""What the contract asks of turns and their streams, by our numbers. Sections are those of the specification."""

from __future__ import annotations

from tests.contract.requirements import Requirement as R

TURNS: tuple[R, ...] = (
    R("T-MSG-1", "A message opens one turn: 202 with its id, which is that of the orchestrator's completion.", "4.4"),
    R("T-MSG-2", "One turn at a time per chat (409 turn_in_progress); other chats go on.", "4.4"),
    R("T-MSG-3", "The same Idempotency-Key and body give the same turn at any time; another body is 409.", "9"),
    R("T-MSG-4", "A chat whose team is gone gets a clear error; there is no fallback team.", "4.2"),
    R(
        "T-EVT-1",
        "turn.started first, one terminal last; agent.text.done before agent.done; children before root.",
        "11",
    ),
    R(
        "T-EVT-4",
        "A file that an agent writes into the workspace is told of as agent.artifact before its tool is done.",
        "11.3",
    ),
    R("T-EVT-2", "Usage is complete on every event that carries it; cost mirrors it; each agent counts once.", "11.9"),
    R("T-EVT-3", "chat_usage sums the turns without the time between them.", "11.9"),
    R("T-SSE-1", "One data line per event, no terminator, no comments; a ping after the replay.", "11.1"),
    R(
        "T-SSE-2",
        "The stream stays open across turns; after, Last-Event-ID and epoch say where it goes on.",
        "12",
        divergence="A cursor that is no number is 400 invalid_request in both versions; version 3 lists 400 only for "
        "the version header.",
    ),
    R("T-SSE-3", "A cursor that cannot be resumed is 409 cursor_expired before the stream opens.", "12"),
    R(
        "T-SSE-4",
        "Both versions show the same events.",
        "23",
        divergence="Unknown costs are null in version 2 too, though client 1.0.0a2 takes numbers only.",
    ),
    R(
        "T-SSE-5",
        "Without a header the paths of version 2 are live; with 2 they give a finite snapshot; with 3, 426.",
        "23",
        divergence="A snapshot is encoded from neutral events, so turns of either version are in it.",
    ),
    R(
        "T-CAP-1",
        "Capabilities list exactly what is emitted and works.",
        "10.1",
        divergence="Version 2 leaves out the family chat and chat_title: both official clients refuse them there. "
        "agent.plan and agent.tool.delta are neither announced nor emitted: nothing here plans or runs in pieces.",
    ),
    R("T-CLI-1", "A client tool is offered only if it is registered and named by the agent.", "14.1"),
    R("T-CLI-2", "Requests are signed with Ed25519 over call id, name and canonical arguments.", "14.2"),
    R(
        "T-CLI-3",
        "An output counts once: 204, then 409, the same again too (9); unknown 404; late 409 tool_timed_out; 128 KiB.",
        "14.4",
    ),
    R("T-CLI-4", "A runner can claim a call, so that no other runs it.", "12"),
    R("T-CLI-5", "A model whose call's arguments are no JSON object is told so; the turn goes on.", "14"),
    R(
        "T-DEL-1",
        "Delegation in the foreground suspends, in the background interleaves; each has its own context.",
        "11.6",
    ),
    R("T-DEL-2", "Depth, children, rounds and time are bounded, and the bound is named.", "11.6"),
    R(
        "T-STE-1",
        "A steer enters the prompt at the next boundary, or is reported dropped.",
        "16",
        divergence="Without a turn it is 409 no_turn_in_progress, which the contract lists for cancel and forgot here.",
    ),
    R("T-CAN-1", "Cancel reaches every member and tool and ends in exactly one turn.cancelled.", "16"),
    R("T-APP-1", "Approvals approve, deny, expire closed; a second answer is 409.", "15"),
    R("T-APP-2", "A member escalates to its orchestrator, who decides or asks the user.", "15"),
    R("T-FRK-1", "Fork copies the whole context into an empty idle chat of the same owner and workspace.", "16"),
    R("T-RST-1", "Restore replaces the context, opens no turn and leaves the title.", "16"),
    R(
        "T-TTL-1",
        "An untitled chat is named in its first turn, before the first text; the name is stored first.",
        "11.7",
    ),
    R("T-CMP-1", "A context near the window is summarised, with two events and its cost counted.", "11"),
    R("T-KNO-1", "Knowledge tools read, search and, where allowed, write wiki, skills and MEMORY.md.", "11.8"),
    R("T-REC-1", "A turn goes on after a restart, or fails honestly where so configured.", "23"),
    R("T-REC-2", "A history that cannot be read is 503 context_unavailable until it is restored, never empty.", "23"),
    R("T-DRN-1", "A draining server opens no turn (503 gateway_draining); everything else goes on.", "10.1"),
    R("T-KEY-1", "A revoked key ends its open streams.", "6"),
)
