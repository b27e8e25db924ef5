"""Ids inside a turn are derived, not drawn, so that deciding twice gives the same one. Same form as `core.ids`."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _DIGITS for low in _DIGITS)
_SHIFTS: Final = range(70, -1, -10)


def derive(prefix: str, at: int, *parts: str | int) -> str:
    """The id of the thing that `parts` name, born at `at` (ms UTC). Unique if one of the parts is a drawn id."""
    digest = blake2b("\x00".join(map(str, parts)).encode(), digest_size=10).digest()
    number = int.from_bytes(digest, "big")
    return f"{prefix}_{_moment(at)}" + "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


@lru_cache(maxsize=256)
def _moment(at: int) -> str:
    """The ten digits that say when: events come in bursts of one millisecond."""
    return "".join([_PAIRS[(at & 0xFFFF_FFFF_FFFF) >> shift & 1023] for shift in range(40, -1, -10)])


def event_id(epoch: str, seq: int, at: int) -> str:
    """The wire id of a public entry. Not stored: the chat's epoch and the seq say it all."""
    return derive("evt", at, epoch, seq)
