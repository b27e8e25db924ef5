"""Query parameters, checked like a body."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from crocevia.core.declared import Problem, Refused
from crocevia.core.errors import Reason, say
from crocevia.doors.atp import fields
from crocevia.doors.atp.operation import Request

S = TypeVar("S", bound=msgspec.Struct)


def read_query(request: Request, kind: type[S]) -> S:
    """The struct that the query spells; parameters that it does not know are ignored. Raises Refused."""
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    given = {name: values for name, values in request.query.items() if name in known}
    twice = [Problem(name, say(Reason.GIVEN_TWICE)) for name, values in given.items() if len(values) > 1]
    if twice:
        raise Refused(twice)
    return fields.convert({name: values[0] for name, values in given.items()}, kind, strict=False)
