"""What the decoder says of JSON of the wrong shape, as a sentence of ours: where it stands, and what should be there.

msgspec says «Expected `int`, got `str` - at `$.max_tokens`», and quotes the value of an unknown tag or choice. The
path and the kinds are kept; of the caller's text, no more than the name of a field.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import msgspec

from crocevia.core.errors import Reason, Sentence, Word, say

_NAME: Final = 100  # characters of a field that the caller made up
# Too few, too many.
_LENGTHS: Final = {
    "str": (Reason.SHAPE_TEXT_SHORT, Reason.SHAPE_TEXT_LONG),
    "bytes": (Reason.SHAPE_TEXT_SHORT, Reason.SHAPE_TEXT_LONG),
    "array": (Reason.SHAPE_LIST_SHORT, Reason.SHAPE_LIST_LONG),
    "object": (Reason.SHAPE_OBJECT_SHORT, Reason.SHAPE_OBJECT_LONG),
}
_KINDS: Final = {
    "int": Word.KIND_INT,
    "float": Word.KIND_FLOAT,
    "str": Word.KIND_STR,
    "bool": Word.KIND_BOOL,
    "null": Word.KIND_NULL,
    "array": Word.KIND_ARRAY,
    "object": Word.KIND_OBJECT,
    "datetime": Word.KIND_DATETIME,
    "date": Word.KIND_DATE,
    "uuid": Word.KIND_UUID,
}
_TYPE: Final = re.compile(r"Expected `([^`]+)`(?:, got `([^`]+)`)?")
_LENGTH: Final = re.compile(
    r"Expected `(str|bytes|array|object)` of (?:length|at (?:least|most) length) ?(>=|<=)? ?(\d+)"
)
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (>=|<=|>|<) (\S+)")
_FIELD: Final = re.compile(r"Object (missing required|contains unknown) field `(.*)`", re.DOTALL)
_BOUNDS: Final = {
    ">=": Reason.SHAPE_LEAST,
    "<=": Reason.SHAPE_MOST,
    ">": Reason.SHAPE_ABOVE,
    "<": Reason.SHAPE_BELOW,
}
_OTHERS: Final = (
    ("Invalid enum value", Reason.FIELD_NOT_OFFERED),
    ("Invalid value", Reason.FIELD_NOT_OFFERED),
    ("Number out of range", Reason.SHAPE_HUGE),
    ("Expected `str` matching", Reason.SHAPE_PATTERN),
    ("Invalid RFC3339", Reason.SHAPE_MOMENT),
    ("Expected `datetime` with", Reason.SHAPE_MOMENT),
    ("Expected `array` of", Reason.SHAPE_LIST_LENGTH),
)


class Misfit(NamedTuple):
    """path: `messages[2].content`, empty for the whole. reason: goes on where a path ends: «must be text»."""

    path: str
    reason: Sentence


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
        return Misfit(
            f"{path}.{name}" if path else name, say(Reason.FIELD_MISSING if missing else Reason.FIELD_UNKNOWN)
        )
    return Misfit(path, _reason(reason))


def _reason(text: str) -> Sentence:
    if found := _LENGTH.match(text):
        few = found[2] == ">=" or " at least " in text
        exact = found[2] is None and " at " not in text
        if not exact:
            return say(_LENGTHS[found[1]][0 if few else 1], limit=int(found[3]))
    if found := _BOUND.match(text):
        return say(_BOUNDS[found[1]], limit=found[2])
    for start, other in _OTHERS:
        if text.startswith(start):
            return say(other)
    found = _TYPE.match(text)
    if found is None:
        return say(Reason.SHAPE_WRONG)
    wanted = _either(found[1].split(" | "))
    if wanted is None:
        return say(Reason.SHAPE_WRONG)
    got = _kind(found[2]) if found[2] else None
    return (
        say(Reason.SHAPE_KIND, wanted=wanted) if got is None else say(Reason.SHAPE_KIND_FOUND, wanted=wanted, found=got)
    )


def _either(kinds: list[str]) -> Sentence | None:
    """«text or a list or null»; None for a kind that has no word."""
    words = [_kind(kind) for kind in kinds]
    said = words[0]
    for word in words[1:]:
        if said is None or word is None:
            return None
        said = say(Word.KIND_OR, one=said, other=word)
    return said


def _kind(name: str) -> Sentence | None:
    return say(_KINDS[name]) if name in _KINDS else None
