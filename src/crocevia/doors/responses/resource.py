"""The answer as a resource: what the request asked, as it was understood, and what came of it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError
from crocevia.core.events import StopReason
from crocevia.core.usage import Usage
from crocevia.doors.responses import errors, wire

_REASONS = {
    StopReason.MAX_TOKENS: "max_output_tokens",
    StopReason.INCOMPLETE: "unknown",
    StopReason.REFUSAL: "content_filter",
}


def opening(
    request: wire.Request,
    *,
    tools: list[wire.ShownTool],
    tool_choice: Any,
    response_id: str,
    created_at: int,
    previous: str | None,
    store: bool,
) -> wire.Resource:
    """The answer before there is one."""
    return wire.Resource(
        id=response_id,
        created_at=created_at,
        model=request.model or "",
        previous_response_id=previous,
        instructions=request.instructions,
        tools=tools,
        tool_choice=tool_choice,
        truncation=request.truncation or "disabled",
        parallel_tool_calls=request.parallel_tool_calls is not False,
        text=_text(request.text),
        top_p=_or(request.top_p, 1),
        temperature=_or(request.temperature, 1),
        presence_penalty=_or(request.presence_penalty, 0),
        frequency_penalty=_or(request.frequency_penalty, 0),
        top_logprobs=int(_or(request.top_logprobs, 0)),
        reasoning=_reasoning(request.reasoning),
        max_output_tokens=request.max_output_tokens,
        max_tool_calls=request.max_tool_calls,
        store=store,
        background=bool(request.background),
        service_tier="default",
        metadata=request.metadata or {},
        safety_identifier=request.safety_identifier,
        prompt_cache_key=request.prompt_cache_key,
    )


def ended(resource: wire.Resource, items: list[Raw], stop: StopReason | None, usage: Usage, now: int) -> wire.Resource:
    """The answer as it is at the end: complete, or cut short for a reason."""
    reason = _REASONS.get(stop) if stop is not None else None
    return msgspec.structs.replace(
        resource,
        status="incomplete" if reason else "completed",
        incomplete_details=wire.Incomplete(reason) if reason else None,
        completed_at=None if reason else now,
        output=items,
        usage=counted(usage),
    )


def failed(resource: wire.Resource, items: list[Raw], error: GatewayError, usage: Usage | None) -> wire.Resource:
    """The answer that did not come about."""
    failure = errors.failure(error)
    fault = wire.Fault(code=failure.get("code") or failure["type"], message=failure["message"])
    counts = counted(usage) if usage is not None else None
    return msgspec.structs.replace(resource, status="failed", error=fault, output=items, usage=counts)


def counted(usage: Usage) -> wire.Usage | None:
    """Tokens; None when the provider did not count the two that matter."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return wire.Usage(
        input_tokens=usage.input_tokens,
        input_tokens_details=wire.InputDetails(usage.cache_read_tokens or 0),
        output_tokens=usage.output_tokens,
        output_tokens_details=wire.OutputDetails(usage.reasoning_tokens or 0),
        total_tokens=usage.input_tokens + usage.output_tokens,
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def _reasoning(given: wire.Reasoning | None) -> dict[str, Any] | None:
    return None if given is None else {"effort": given.effort, "summary": given.summary}


def _text(given: wire.Text | None) -> dict[str, Any]:
    form = given.format if given is not None else None
    shown: dict[str, Any] = {"format": {"type": form.type if form else "text"}}
    if form is not None and form.type == "json_schema":
        shown["format"] |= {
            "name": form.name,
            "description": form.description,
            "schema": Raw(bytes(form.schema)),
            "strict": bool(form.strict),
        }
    if given is not None and given.verbosity:
        shown["verbosity"] = given.verbosity
    return shown
