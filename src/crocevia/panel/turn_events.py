"""A turn's entries as the events that the chat kit reads: the leading agent's text, and the tools of all agents."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.turn import entries as e


class TurnEvents:
    """Folds one turn from its beginning; each entry gives the events that it adds.

    team: the name that the kit shows for the answer. question: the text of a confirmation without a reason.
    approvals: the kit's id of an action to the approval's id. over: the turn has ended.
    """

    def __init__(self, turn: str, team: str, question: str) -> None:
        self.approvals: dict[str, str] = {}
        self.over = False
        self._turn = turn
        self._team = team
        self._question = question
        self._known_tools: set[str] = set()  # ids of tools that the page has been told of
        self._text = ""  # of the leading agent since its last tool
        self._repeated = ""  # the text of an abandoned attempt, which the page has already
        self._denied: set[str] = set()

    def of(self, entry: e.Entry) -> list[tuple[str, dict[str, Any]]]:
        """The events of this entry, by name and data."""
        if entry.turn != self._turn or self.over:
            return []
        make = _MAKERS.get(type(entry))
        return [] if make is None else make(self, entry)

    def text(self, entry: e.AgentTextDelta) -> list[tuple[str, dict[str, Any]]]:
        if entry.agent.parent_id is not None:  # a member's text goes to the agent that delegated
            return []
        self._text += entry.delta
        if self._repeated.startswith(self._text):
            return []
        new = entry.delta
        if self._repeated:  # sent before, up to here or with another continuation
            new = self._text[len(self._repeated) :] if self._text.startswith(self._repeated) else f"\n\n{self._text}"
            self._repeated = ""
        return [("delta", {"text": new})]

    def reset(self, entry: e.TextReset) -> list[tuple[str, dict[str, Any]]]:
        if entry.agent.parent_id is None:
            self._repeated, self._text = self._text, ""
        return []

    def done(self, entry: e.TextDone) -> list[tuple[str, dict[str, Any]]]:
        if entry.agent.parent_id is not None:
            return []
        missing = entry.text if not self._text else ""
        self._text = self._repeated = ""
        return [("delta", {"text": missing})] if missing else []

    def delegated(self, entry: e.Delegated) -> list[tuple[str, dict[str, Any]]]:
        return self._tool(entry.child_instance_id, entry.child_name, {"title": entry.title, "task": entry.task})

    def agent_done(self, entry: e.AgentDone) -> list[tuple[str, dict[str, Any]]]:
        return self._ended(entry.agent.instance_id, entry.status == "completed")

    def tool(self, entry: e.ToolStart | e.ToolRequest) -> list[tuple[str, dict[str, Any]]]:
        return self._tool(entry.call_id, _name(entry), _value(entry.args))

    def complete(self, entry: e.ToolComplete | e.ToolResult) -> list[tuple[str, dict[str, Any]]]:
        return self._ended(entry.call_id, not entry.is_error)

    def asks(self, entry: e.ApprovalRequest) -> list[tuple[str, dict[str, Any]]]:
        self.approvals[entry.call_id] = entry.approval_id
        args = _value(entry.args)
        text = entry.reason or self._question
        action = {"id": entry.call_id, "name": entry.tool_name, "text": text, "arguments": args}
        return [*self._tool(entry.call_id, _name(entry), args), ("pending", {"actions": [action]})]

    def answered(self, entry: e.ApprovalResponse) -> list[tuple[str, dict[str, Any]]]:
        if not entry.approve:
            self._denied |= {call for call, approval in self.approvals.items() if approval == entry.approval_id}
        return []

    def end(self, entry: e.Terminal) -> list[tuple[str, dict[str, Any]]]:
        self.over = True
        if isinstance(entry, e.TurnFailed):
            return [("error", {"code": entry.code, "message": entry.message})]
        usage = {"input_tokens": entry.usage.input_tokens, "output_tokens": entry.usage.output_tokens}
        return [("done", {"stop_reason": "end_turn", "usage": usage, "versione": self._team, "blocchi": []})]

    def _tool(self, call: str, name: str, arguments: Any) -> list[tuple[str, dict[str, Any]]]:
        if call in self._known_tools:
            return []
        self._known_tools.add(call)
        self._text = self._repeated = ""
        return [("tool_call", {"id": call, "name": name, "arguments": arguments})]

    def _ended(self, call: str, ok: bool) -> list[tuple[str, dict[str, Any]]]:
        if call not in self._known_tools or call in self._denied:
            return []
        return [("tool_done", {"id": call, "ok": ok})]


def _name(entry: e.ToolStart | e.ToolRequest | e.ApprovalRequest) -> str:
    return entry.tool_name if entry.agent.parent_id is None else f"{entry.agent.name} · {entry.tool_name}"


def _value(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw)


_MAKERS: Final[dict[type, Any]] = {
    e.AgentTextDelta: TurnEvents.text,
    e.TextReset: TurnEvents.reset,
    e.TextDone: TurnEvents.done,
    e.Delegated: TurnEvents.delegated,
    e.AgentDone: TurnEvents.agent_done,
    e.ToolStart: TurnEvents.tool,
    e.ToolRequest: TurnEvents.tool,
    e.ToolComplete: TurnEvents.complete,
    e.ToolResult: TurnEvents.complete,
    e.ApprovalRequest: TurnEvents.asks,
    e.ApprovalResponse: TurnEvents.answered,
    e.TurnCompleted: TurnEvents.end,
    e.TurnCancelled: TurnEvents.end,
    e.TurnFailed: TurnEvents.end,
}
