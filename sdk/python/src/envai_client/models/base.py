"""What every resource shares: fields that a newer server adds stay readable, and no text of anybody is printed."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

from ..errors import InvalidResponseError
from ..secrets import redacted

T = TypeVar("T")
Value: TypeAlias = object
"""Any JSON value."""


class Resource(msgspec.Struct, frozen=True, kw_only=True):
    """A resource as the server sent it. `extra` holds the fields this version of the SDK does not know."""

    extra: dict[str, object] = msgspec.field(default_factory=dict, name="(extra)")

    def __repr__(self) -> str:
        return redacted(self)  # resources carry tokens, prompts and signed URLs


def decode(kind: type[T], raw: Any) -> T:
    """Convert parsed JSON to `kind`, a resource or a list of them; raises InvalidResponseError with `raw` kept."""
    try:
        value = msgspec.convert(raw, kind, strict=True)
    except msgspec.ValidationError as problem:
        raise InvalidResponseError(where(problem), raw=raw) from None
    keep_unknown(value, raw)
    return value


def where(problem: Exception) -> str:
    """The path msgspec complains about, without the offending value."""
    text = str(problem)
    return text if len(text) < 200 else text[:200]


def keep_unknown(value: Any, raw: Any) -> None:
    """Fill `extra` of `value` and of the resources inside it from `raw`, in place, before anyone else sees them."""
    if isinstance(value, list):
        for item, source in zip(value, raw, strict=True):
            if isinstance(item, (list, Resource)):
                keep_unknown(item, source)
    elif isinstance(value, Resource):
        known, nested = plan(type(value))
        for name in raw.keys() - known:
            value.extra[name] = raw[name]
        for attribute, name in nested:
            if raw.get(name) is not None:
                keep_unknown(getattr(value, attribute), raw[name])


@cache
def plan(kind: type[Resource]) -> tuple[frozenset[str], tuple[tuple[str, str], ...]]:
    """The wire names `kind` knows, and its (attribute, wire name) pairs that hold resources."""
    fields = msgspec.structs.fields(kind)
    nested = tuple((f.name, f.encode_name) for f in fields if f.name != "extra" and holds_resource(f.type))
    return frozenset(f.encode_name for f in fields), nested


def holds_resource(kind: Any) -> bool:
    if get_origin(kind) in (list, Union, UnionType):
        return any(holds_resource(option) for option in get_args(kind))
    return isinstance(kind, type) and issubclass(kind, Resource)
