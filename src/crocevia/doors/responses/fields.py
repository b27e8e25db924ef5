"""What becomes of the fields of a request that are not simply taken: refused by name, checked, or known to be ignored.

A field that clients know from elsewhere is never dropped in silence: the caller would believe in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from crocevia.core.errors import GatewayError, Reason


class Unkept(NamedTuple):
    """A field that cannot be kept to. instead: the one of this surface. nothing: values that ask for nothing."""

    instead: str = ""
    nothing: tuple[Any, ...] = ()


RESPONSES: Final[Mapping[str, Unkept]] = {
    "response_format": Unkept("text.format"),
    "max_tokens": Unkept("max_output_tokens"),
    "max_completion_tokens": Unkept("max_output_tokens"),
    "messages": Unkept("input"),
    "reasoning_effort": Unkept("reasoning.effort"),
    "verbosity": Unkept("text.verbosity"),
    "functions": Unkept("tools", ([],)),
    "function_call": Unkept("tool_choice", ("auto", "none")),
    "web_search_options": Unkept(),
    "conversation": Unkept("previous_response_id"),
    "prompt": Unkept(),
    "moderation": Unkept(),
    "audio": Unkept(),
    "image": Unkept(),
    "modalities": Unkept("", (["text"],)),
    "prediction": Unkept(),
    "logit_bias": Unkept("", ({},)),
    "logprobs": Unkept("", (False,)),
    "top_logprobs": Unkept("", (0,)),
    "context_management": Unkept("truncation", ([],)),
    "background_options": Unkept(),
    "n": Unkept("", (1,)),
    "stop": Unkept("", ([],)),
    "seed": Unkept(),
}
CHAT: Final[Mapping[str, Unkept]] = {
    "functions": Unkept("tools", ([],)),
    "function_call": Unkept("tool_choice", ("auto", "none")),
    "web_search_options": Unkept(),
    "conversation": Unkept(),
    "prompt": Unkept("messages"),
    "moderation": Unkept(),
    "audio": Unkept(),
    "image": Unkept(),
    "modalities": Unkept("", (["text"],)),
    "prediction": Unkept(),
    "logit_bias": Unkept("", ({},)),
    "logprobs": Unkept("", (False,)),
    "top_logprobs": Unkept("", (0,)),
    "input": Unkept("messages"),
    "instructions": Unkept("messages"),
    "previous_response_id": Unkept("messages"),
    "text": Unkept("response_format", ({"format": {"type": "text"}}, {})),
    "reasoning": Unkept("reasoning_effort"),
    "max_output_tokens": Unkept("max_completion_tokens"),
    "max_tool_calls": Unkept(),
    "include": Unkept("", ([],)),
    "truncation": Unkept("", ("disabled",)),
    "background": Unkept("", (False,)),
    "background_options": Unkept(),
    "context_management": Unkept("", ([],)),
}
IGNORED_RESPONSES: Final = frozenset({"access_programs", "prompt_cache_options", "prompt_cache_retention"})
IGNORED_CHAT: Final = IGNORED_RESPONSES | {"metadata", "store"}
"""Hints that change no answer here, whatever they say."""

TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")
VERBOSITIES: Final[Mapping[str, str | None]] = {
    "low": "Keep your answers short.",
    "medium": None,
    "high": "Answer at length and in detail.",
}
_SEALED: Final = "reasoning.encrypted_content"
INCLUDED: Final = (
    _SEALED,
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
)
"""What may be asked for; but for the first, it is of tools that do not run here, and never there."""
_LONGEST: Final = 64  # characters of an identifier


def _checking(refused: Mapping[str, Unkept]) -> Callable[[msgspec.Struct], None]:
    values_of = attrgetter(*refused)
    none_set = (None,) * len(refused)

    def check(request: msgspec.Struct) -> None:
        """Raises GatewayError(INVALID_REQUEST) for the first field that cannot be kept to."""
        values = values_of(request)
        if values == none_set:
            return
        for (name, how), value in zip(refused.items(), values, strict=True):
            if value is None or any(value == nothing and type(value) is type(nothing) for nothing in how.nothing):
                continue
            if how.instead:
                raise GatewayError(Reason.FIELD_ELSEWHERE, param=name, path=name, instead=how.instead)
            raise GatewayError(Reason.FIELD_UNSUPPORTED, param=name, path=name)

    return check


check_responses: Final = _checking(RESPONSES)
check_chat: Final = _checking(CHAT)


def check_hints(tier: str | None, **identifiers: str | None) -> None:
    """What both surfaces take and do not act on must be what it claims to be."""
    for name, value in identifiers.items():
        if value is not None and len(value) > _LONGEST:
            raise GatewayError(Reason.IDENTIFIER_LONG, param=name, path=name, limit=_LONGEST)
    one_of(tier, "service_tier", TIERS)


def one_of(value: str | None, param: str, choices: tuple[str, ...]) -> None:
    """Raises GatewayError(INVALID_REQUEST) for anything else."""
    if value is not None and value not in choices:
        raise GatewayError(Reason.CHOICE_OF, param=param, path=param, choices=", ".join(choices))


def check_include(include: list[str] | None) -> None:
    """Raises GatewayError(INVALID_REQUEST) for what there is not."""
    for index, name in enumerate(include or ()):
        one_of(name, f"include[{index}]", INCLUDED)


def asks_for_sealed(include: list[str] | None) -> bool:
    return _SEALED in (include or ())


def verbosity(value: str | None, param: str) -> str | None:
    """What a model is told for it."""
    one_of(value, param, tuple(VERBOSITIES))
    return VERBOSITIES[value] if value is not None else None
