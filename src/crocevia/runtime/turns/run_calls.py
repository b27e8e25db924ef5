"""A model call of a run, as its caller asked for it."""

from __future__ import annotations

from crocevia.core.calls import ToolChoice
from crocevia.core.messages import Message
from crocevia.core.turn.run_request import RunRequest
from crocevia.runtime.gateway import CallDraft
from crocevia.runtime.turns.turn_setup import AgentSetup


def drafted(
    request: RunRequest, part: AgentSetup, messages: tuple[Message, ...], agent: str, *, going_on: bool
) -> CallDraft:
    """going_on: it is not the first call of the run."""
    return CallDraft(
        door=request.door,
        encode=request.encode,
        messages=messages,
        system=part.system or None,
        tools=part.tools,
        max_tokens=request.max_tokens,
        stream=request.stream,
        session=request.session,
        bytes_in=0 if going_on else request.bytes_in,
        tool_choice=_choice(request, part),
        parallel_tool_calls=request.parallel,
        format=request.format,
        sampling=request.sampling,
        thinking=request.thinking,
        agent=agent,
        going_on=going_on,
    )


def _choice(request: RunRequest, part: AgentSetup) -> ToolChoice:
    """A caller can forbid its own tools, not the agent's; what it demands is demanded until the run ends with it."""
    own = len(part.tools) > len(request.tools)
    return ToolChoice() if own and request.choice.mode == "none" else request.choice
