"""What an agent is to be run with, and where: in a chat that stays, or leaving nothing behind."""

from __future__ import annotations

from crocevia.core.messages import Message, ToolMessage, UserMessage
from crocevia.doors.responses.options import Tools
from crocevia.doors.responses.targets import Target
from crocevia.runtime.answers_store import StoredResponse
from crocevia.runtime.control.operators import Operator
from crocevia.runtime.gateway import CallDraft
from crocevia.runtime.turns.run_service import ChatPosition, RunRequest, RunSpec


def order(
    operator: Operator,
    target: Target,
    draft: CallDraft,
    tools: Tools,
    *,
    system: str | None,
    known: int,
    answer_id: str,
    place: ChatPosition | None,
    tool_calls: int | None = None,
    resumable: bool = False,
) -> RunSpec:
    """system: what joins the agent's own. known: how many messages of the draft were said in earlier requests.

    answer_id: the turn has the ULID of its answer, so that each leads to the other.
    """
    assert target.definition is not None
    said = draft.messages[known:]
    hidden = tools.choice.mode == "none" and target.acts  # the caller's are not to be called, the agent's own are
    offered = () if hidden else tools.offered
    return RunSpec(
        user_id=operator.user_id,
        agent=target.definition,
        workspace_id=target.workspace_id,
        turn_id=turn_of(answer_id),
        input=_shown(said),
        request=RunRequest(
            said=said,
            system=system,
            tools=offered,
            model=target.model,
            options=draft.options,
            door=draft.door,
            encode=draft.encode,
            bytes_in=draft.bytes_in,
        ),
        history=draft.messages[:known],
        position=place,
        tool_calls=tool_calls,
        forbidden=frozenset(tool.name for tool in tools.shown) - {tool.name for tool in offered},
        resumable=resumable,
    )


def turn_of(answer_id: str) -> str:
    """The turn that an answer is."""
    return "cmpl_" + answer_id.partition("_")[2]


def place_of(
    target: Target, chain: list[StoredResponse], *, named: bool, kept: bool, stays: bool
) -> ChatPosition | None:
    """Where the run belongs. named: it is part of a session that its caller names. kept: its answer is stored.

    stays: it goes on without its caller. The first continuation of a stored answer makes a session of it.
    """
    last = chain[-1] if chain else None
    chat_id = last.chat if last is not None else None
    if named:
        return ChatPosition(chat_id)
    if stays or target.asks or (kept and (last is not None or target.acts)):
        return ChatPosition(chat_id, None if last is None else turn_of(last.id))
    return None


def _shown(said: tuple[Message, ...]) -> str:
    """The input as readers of the chat see it."""
    for message in reversed(said):
        if isinstance(message, UserMessage):
            return message.text
        if isinstance(message, ToolMessage):
            break
    return ""
