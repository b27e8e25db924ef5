"""Token counts of our own, for when the provider's never came."""

from __future__ import annotations

import msgspec

from crocevia.core.answers import Answer
from crocevia.core.calls import ModelRequest
from crocevia.core.sizes import characters, frame, tokens
from crocevia.core.usage import Usage


def known_usage(request: ModelRequest, answer: Answer) -> Usage:
    """What a cut call consumed: what the provider reported, else our estimate, and never less than reported."""
    reported = answer.usage
    received = tokens(len(answer.text) + len(answer.reasoning) + sum(len(c.arguments) for c in answer.tool_calls))
    output = max(reported.output_tokens or 0, received)
    prompt = reported.input_tokens
    return msgspec.structs.replace(
        reported,
        input_tokens=tokens(frame(request) + sum(map(characters, request.messages))) if prompt is None else prompt,
        output_tokens=output,
        estimated=reported.estimated or prompt is None or output != reported.output_tokens,
    )
