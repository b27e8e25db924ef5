"""A model call of a run, as its caller asked for it."""

from __future__ import annotations

import msgspec

from crocevia.core.calls import GenerationOptions, ToolChoice
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
        options=_options(request, part),
        bytes_in=0 if going_on else request.bytes_in,
        agent=agent,
        going_on=going_on,
    )


def _options(request: RunRequest, part: AgentSetup) -> GenerationOptions:
    """A caller can forbid its own tools, not the agent's; what it demands is demanded until the run ends with it."""
    own = len(part.tools) > len(request.tools)
    if own and request.options.tool_choice.mode == "none":
        return msgspec.structs.replace(request.options, tool_choice=ToolChoice())
    return request.options
