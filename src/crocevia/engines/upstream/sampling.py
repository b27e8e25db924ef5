"""Sampling parameters: what a call carries of them, and what a model turned out to refuse."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec

from crocevia.core.calls import ModelRequest, Rejected, Sampling
from crocevia.core.errors import GatewayError
from crocevia.engines.upstream.errors import ParameterRefused

ALL: Final = frozenset(Sampling.__struct_fields__)
REMEMBERED_SECONDS: Final = 3600.0


def given(request: ModelRequest) -> dict[str, Any]:
    """The parameters that are set, by the names that OpenAI and most others give them."""
    values = request.options.sampling
    return {name: value for name in Sampling.__struct_fields__ if (value := getattr(values, name)) is not None}


def narrowed(request: ModelRequest, takes: frozenset[str], rejected: Rejected) -> tuple[ModelRequest, tuple[str, ...]]:
    """The request without what cannot be carried, and the names of that."""
    if request.options.sampling == _NONE:
        return request, ()
    refused, now = rejected.get(request.model, {}), time.monotonic()
    left_out = tuple(name for name in given(request) if name not in takes or refused.get(name, 0) > now)
    if not left_out:
        return request, ()
    kept = msgspec.structs.replace(request.options.sampling, **dict.fromkeys(left_out))
    options = msgspec.structs.replace(request.options, sampling=kept)
    return msgspec.structs.replace(request, options=options), left_out


def refused(request: ModelRequest, failure: GatewayError, rejected: Rejected) -> str | None:
    """The parameter that the request carried and the failure is about; remembered for a while where it always is."""
    if not isinstance(failure, ParameterRefused) or failure.param is None:
        return None
    if getattr(request.options.sampling, failure.param, None) is None:
        return None
    if failure.always:
        rejected.setdefault(request.model, {})[failure.param] = time.monotonic() + REMEMBERED_SECONDS
    return failure.param


_NONE: Final = Sampling()
