"""A model call of a run, as its caller asked for it."""

from __future__ import annotations

from crocevia.core.calls import ToolChoice
from crocevia.core.messages import Message
from crocevia.core.turn.brief import Brief
from crocevia.runtime.gateway import CallDraft
from crocevia.runtime.turns.casting import Part


def drafted(brief: Brief, part: Part, messages: tuple[Message, ...], agent: str, *, going_on: bool) -> CallDraft:
    """going_on: it is not the first call of the run."""
    return CallDraft(
        door=brief.door,
        encode=brief.encode,
        messages=messages,
        system=part.system or None,
        tools=part.tools,
        max_tokens=brief.max_tokens,
        stream=brief.stream,
        session=brief.session,
        bytes_in=0 if going_on else brief.bytes_in,
        tool_choice=_choice(brief, part),
        parallel_tool_calls=brief.parallel,
        format=brief.format,
        sampling=brief.sampling,
        thinking=brief.thinking,
        agent=agent,
        going_on=going_on,
    )


def _choice(brief: Brief, part: Part) -> ToolChoice:
    """A caller can forbid its own tools, not the agent's; what it demands is demanded until the run ends with it."""
    own = len(part.tools) > len(brief.tools)
    return ToolChoice() if own and brief.choice.mode == "none" else brief.choice
