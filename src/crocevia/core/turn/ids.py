"""Ids inside a turn are derived, not drawn, so that deciding twice gives the same one. Same form as `core.ids`."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Final

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _DIGITS for low in _DIGITS)
_MIX: Final = 0x9E_3779_B97F  # odd
_SHIFTS: Final = range(70, -1, -10)


def derive(prefix: str, at: int, *parts: str | int) -> str:
    """The id of the thing that `parts` name, born at `at` (ms UTC). Unique if one of the parts is a drawn id."""
    digest = blake2b("\x00".join(map(str, parts)).encode(), digest_size=10).digest()
    number = int.from_bytes(digest, "big")
    return f"{prefix}_{_moment(at)}" + "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])


@lru_cache(maxsize=256)
def _second(at: int) -> str:
    return "".join([_PAIRS[at >> shift & 1023] for shift in range(30, -1, -10)])


def _moment(at: int) -> str:
    """The ten digits that say when: the first eight last for a second."""
    at &= 0xFFFF_FFFF_FFFF
    return _second(at >> 10) + _PAIRS[at & 1023]


def event_id(epoch: str, seq: int, at: int) -> str:
    """The wire id of a public entry. Not stored: the chat's epoch and the seq say it all.

    Readers of long chats wait for thousands of these: what the epoch adds is computed once, and the seq is mixed in
    by a multiplication that maps no two of a chat to the same digits.
    """
    start, offset = _of_epoch(epoch)
    number = (offset + seq * _MIX) & 0xFF_FFFF_FFFF
    last = _PAIRS[number >> 30] + _PAIRS[number >> 20 & 1023] + _PAIRS[number >> 10 & 1023] + _PAIRS[number & 1023]
    return f"evt_{_moment(at)}{start}{last}"


@lru_cache(maxsize=1024)
def _of_epoch(epoch: str) -> tuple[str, int]:
    digest = blake2b(epoch.encode(), digest_size=10).digest()
    number = int.from_bytes(digest[:5], "big")
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(30, -1, -10)]), int.from_bytes(digest[5:], "big")
