"""What the decoder says of JSON of the wrong shape, as a sentence of ours: where it stands, and what should be there.

msgspec says «Expected `int`, got `str` - at `$.max_tokens`», and quotes the value of an unknown tag or choice. The
path and the kinds are kept; of the caller's text, no more than the name of a field.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from crocevia.core.errors import Message, say

_NAME: Final = 100  # characters of a field that the caller made up
_LENGTHS: Final = {"str": "shape_text", "bytes": "shape_text", "array": "shape_list", "object": "shape_object"}
_KINDS: Final = frozenset({"int", "float", "str", "bool", "null", "array", "object", "datetime", "date", "uuid"})
_TYPE: Final = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`)?")
_LENGTH: Final = re.compile(
    r"Expected `(str|bytes|array|object)` of (?:length|at (?:least|most) length) ?(>=|<=)? ?(\d+)"
)
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)")
_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_BOUNDS: Final = {">=": "shape_least", "<=": "shape_most", ">": "shape_above", "<": "shape_below"}
_OTHERS: Final = (
    ("Invalid enum value", "field_not_offered"),
    ("Invalid value", "field_not_offered"),
    ("Number out of range", "shape_huge"),
    ("Expected `str` matching", "shape_pattern"),
    ("Invalid RFC3339", "shape_moment"),
    ("Expected `datetime` with", "shape_moment"),
    ("Expected `array` of", "shape_list_length"),
)


class Misfit(NamedTuple):
    """path: `messages[2].content`, empty for the whole. reason: goes on where a path ends: «must be text»."""

    path: str
    reason: Message


def misfit(error: msgspec.ValidationError) -> Misfit:
    """What is wrong, without the value that is."""
    reason, _, at = str(error).rpartition(" - at `")
    if not reason:
        reason, at = at, ""
    path = at.rstrip("`").replace("[...]", "").removeprefix("$").removeprefix(".")
    field = _FIELD.match(reason)
    if field is not None:
        name = field[2][:_NAME]
        missing = field[1] == "missing required"
        return Misfit(f"{path}.{name}" if path else name, say("field_missing" if missing else "field_unknown"))
    return Misfit(path, _reason(reason))


def _reason(text: str) -> Message:
    if found := _LENGTH.match(text):
        few = found[2] == ">=" or " at least " in text
        exact = found[2] is None and " at " not in text
        if not exact:
            return say(f"{_LENGTHS[found[1]]}_{'short' if few else 'long'}", limit=int(found[3]))
    if found := _BOUND.match(text):
        return say(_BOUNDS[found[1]], limit=found[2])
    for start, key in _OTHERS:
        if text.startswith(start):
            return say(key)
    found = _TYPE.match(text)
    if found is None:
        return say("shape_wrong")
    wanted = _either(found[1].split(" | "))
    if wanted is None:
        return say("shape_wrong")
    got = _kind(found[2]) if found[2] else None
    return say("shape_kind", wanted=wanted) if got is None else say("shape_kind_found", wanted=wanted, found=got)


def _either(kinds: list[str]) -> Message | None:
    """«text or a list or null»; None for a kind that has no word."""
    words = [_kind(kind) for kind in kinds]
    said = words[0]
    for word in words[1:]:
        if said is None or word is None:
            return None
        said = say("kind_or", one=said, other=word)
    return said


def _kind(name: str) -> Message | None:
    return say(f"kind_{name}") if name in _KINDS else None
