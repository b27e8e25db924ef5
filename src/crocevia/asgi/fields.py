"""Check what a caller sent against the contract's limits, and tell every field that is wrong at once."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from crocevia.asgi.http import Request
from crocevia.core import json
from crocevia.core.declared import FieldError, Problem, Refused, join
from crocevia.core.errors import GatewayError, Reason, say
from crocevia.core.shapes import misfit

S = TypeVar("S", bound=msgspec.Struct)

MAX_DEPTH: Final = 64  # of objects and lists in each other


def read(data: bytes, kind: type[S]) -> S:
    """The struct that a JSON body spells.

    Raises GatewayError(INVALID_REQUEST) for what is no JSON object or too deep, Refused with every field otherwise.
    """
    table = json.decode(data)
    if not isinstance(table, dict):
        raise GatewayError(Reason.BODY_NOT_OBJECT)
    json.check_depth(table, limit=MAX_DEPTH)
    return convert(table, kind)


def convert(table: dict[str, Any], kind: type[S], *, strict: bool = True) -> S:
    """The struct that a table spells. strict False: text may stand for numbers (query parameters). Raises Refused."""
    try:
        return msgspec.convert(table, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise Refused(_problems(table, kind, strict) or [_problem(error)]) from None


def read_query(request: Request[Any], kind: type[S]) -> S:
    """The struct that the query spells; parameters that it does not know are ignored. Raises Refused."""
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    given = {name: values for name, values in request.query.items() if name in known}
    twice = [Problem(name, say(Reason.GIVEN_TWICE)) for name, values in given.items() if len(values) > 1]
    if twice:
        raise Refused(twice)
    return convert({name: values[0] for name, values in given.items()}, kind, strict=False)


def _problems(table: dict[str, Any], kind: type[msgspec.Struct], strict: bool) -> list[Problem]:
    found = []
    for name, required, alone in _alone(kind):
        if name not in table:
            if required:
                found.append(Problem(name, say(Reason.FIELD_MISSING)))
            continue
        try:
            msgspec.convert({name: table[name]}, alone, strict=strict)
        except msgspec.ValidationError as error:
            found.append(_problem(error))
    if kind.__struct_config__.forbid_unknown_fields:
        known = {name for name, _, _ in _alone(kind)}
        found += [Problem(name[:100], say(Reason.FIELD_UNKNOWN)) for name in table if name not in known]
    return found


@cache
def _alone(kind: type[msgspec.Struct]) -> tuple[tuple[str, bool, type[msgspec.Struct]], ...]:
    """Each field as a struct of its own, so that one that is wrong does not hide the next."""
    return tuple(
        (
            field.encode_name,
            field.required,
            msgspec.defstruct("Alone", [("field", field.type, UNSET)], rename={"field": field.encode_name}),
        )
        for field in msgspec.structs.fields(kind)
    )


def _problem(error: msgspec.ValidationError) -> Problem:
    place, reason = misfit(error)
    cause = error.__cause__
    if isinstance(cause, FieldError):
        return Problem(join(place, cause.field), say(cause.reason))
    return Problem(place or "body", reason)
