"""The one JSON codec: strict, bounded, and never an exception other than `GatewayError`.

msgspec raises RecursionError on deep nesting and passes invalid UTF-8 through `Raw`; both become a clear
`INVALID_REQUEST` here. Duplicate keys: the last one wins. NaN and Infinity are not JSON and are refused.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar, overload

import msgspec
from msgspec import Raw

from crocevia.core.errors import GatewayError, Reason
from crocevia.core.shapes import misfit

T = TypeVar("T")

MAX_DEPTH: Final = 128  # of objects and lists in each other, where anything may stand

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
encode_into = _encoder.encode_into


@overload
def decode(data: bytes | bytearray | memoryview) -> Any: ...
@overload
def decode(data: bytes | bytearray | memoryview, type: type[T]) -> T: ...
def decode(data: bytes | bytearray | memoryview, type: Any = Any) -> Any:
    """Decode a caller's JSON into `type`. Raises GatewayError(INVALID_REQUEST) that names the path, never the value."""
    check_utf8(data)
    try:
        return msgspec.json.decode(data, type=type)
    except msgspec.ValidationError as error:
        path, reason = misfit(error)
        if path:
            raise GatewayError(Reason.JSON_SHAPE, param=path, path=path, reason=reason) from None
        raise GatewayError(Reason.JSON_SHAPE_WHOLE, reason=reason) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise GatewayError(Reason.JSON_MALFORMED) from None


def check_utf8(data: bytes | bytearray | memoryview) -> None:
    """Raise GatewayError(INVALID_REQUEST) unless `data` is well-formed UTF-8."""
    try:
        str(data, "utf-8")
    except UnicodeDecodeError:
        raise GatewayError(Reason.JSON_NOT_UTF8) from None


def check_depth(value: Any, param: str | None = None, *, limit: int = MAX_DEPTH) -> None:
    """Raises GatewayError(INVALID_REQUEST) above `limit` levels: what is taken must be able to be given on."""
    level = [value]
    for _ in range(limit):
        level = [
            below
            for holder in level
            for below in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(below, dict | list)
        ]
        if not level:
            return
    raise GatewayError(Reason.JSON_TOO_DEEP, param=param, limit=limit)


def check_part(data: bytes | Raw, param: str | None = None) -> None:
    """Raise GatewayError(INVALID_REQUEST) for JSON kept as it came that is too deep or that no reader would take.

    So far it was only skipped over: half a surrogate or a number without bounds shows when it is read.
    """
    spelled = bytes(data)
    try:
        value = msgspec.json.decode(spelled)
    except RecursionError:
        raise GatewayError(Reason.JSON_TOO_DEEP, param=param, limit=MAX_DEPTH) from None
    except (msgspec.MsgspecError, UnicodeError):
        raise GatewayError(Reason.JSON_PART, param=param, path=param or "$") from None
    if spelled.count(b"{") + spelled.count(b"[") > MAX_DEPTH:
        check_depth([value], param, limit=MAX_DEPTH + 1)


def _number(spelled: str) -> int | float:
    # A program that keeps JSON as values may write 1.0 as 1.
    number = float(spelled)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


_EXACT = 2.0**53
_plain = msgspec.json.Decoder(float_hook=_number)
_sorted = msgspec.json.Encoder(order="sorted")


def as_object(data: bytes | Raw) -> tuple[Raw, bool]:
    """The arguments of a call that was answered long ago, and whether they had to be repaired.

    An object stays as it was spelled, unless it is inside a text; nothing is an empty object; anything else, broken as
    it may be, is put into one, so that one bad call does not make its conversation unanswerable for ever.
    """
    spelled = bytes(data).strip()
    try:
        check_part(spelled)
        value = msgspec.json.decode(spelled)
    except (GatewayError, msgspec.MsgspecError, RecursionError, UnicodeError):
        return _wrapped(spelled.decode("utf-8", "replace"))
    if isinstance(value, dict):
        return Raw(spelled), False
    if isinstance(value, str):
        inner, _ = as_object(value.encode("utf-8", "surrogatepass"))
        return inner, True
    return (Raw(b"{}"), True) if value is None else _wrapped(spelled.decode())


def _wrapped(text: str) -> tuple[Raw, bool]:
    return (Raw(encode({"arguments": text})) if text.strip() else Raw(b"{}")), True


def canonical(data: bytes | Raw) -> bytes:
    """One spelling for all spellings of the same JSON: sorted members, no blanks, one form for every number.

    Raises msgspec.MsgspecError, RecursionError or UnicodeError for what is no JSON.
    """
    return _sorted.encode(_plain.decode(data))
