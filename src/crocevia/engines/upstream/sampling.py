"""Sampling parameters: what a call carries of them, and what a model turned out to refuse."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.calls import ModelRequest, Sampling
from crocevia.core.errors import Code, GatewayError

ALL: Final = frozenset(Sampling.__struct_fields__)


def given(request: ModelRequest) -> dict[str, Any]:
    """The parameters that are set, by the names that OpenAI and most others give them."""
    values = request.options.sampling
    return {name: value for name in Sampling.__struct_fields__ if (value := getattr(values, name)) is not None}


def narrowed(
    request: ModelRequest, takes: frozenset[str], rejected: dict[str, frozenset[str]]
) -> tuple[ModelRequest, tuple[str, ...]]:
    """The request without what cannot be carried, and the names of that."""
    if request.options.sampling == _NONE:
        return request, ()
    refused = rejected.get(request.model, frozenset())
    left_out = tuple(name for name in given(request) if name not in takes or name in refused)
    if not left_out:
        return request, ()
    kept = msgspec.structs.replace(request.options.sampling, **dict.fromkeys(left_out))
    options = msgspec.structs.replace(request.options, sampling=kept)
    return msgspec.structs.replace(request, options=options), left_out


def learned(request: ModelRequest, failure: GatewayError, rejected: dict[str, frozenset[str]]) -> bool:
    """Whether the failure is about a parameter that the request carried; it is remembered for the model."""
    name = failure.param
    if (
        failure.code is not Code.UPSTREAM_REJECTED
        or name is None
        or getattr(request.options.sampling, name, None) is None
    ):
        return False
    rejected[request.model] = rejected.get(request.model, frozenset()) | {name}
    return True


_NONE: Final = Sampling()
