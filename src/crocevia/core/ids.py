"""Identifiers: a prefix that says what, and a lower-case ULID that sorts by birth."""

from __future__ import annotations

import os
import re
import time
from threading import Lock
from typing import Final

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(high + low for high in _DIGITS for low in _DIGITS)
_ULID: Final = re.compile(r"[0-7][0-9a-hjkmnp-tv-z]{25}", re.IGNORECASE)


_last = 0
_turn: Final = Lock()


def ulid() -> str:
    """26 characters: 48 bits of milliseconds, then 80 random bits. Those of one process sort in the order of birth."""
    global _last
    number = (time.time_ns() // 1_000_000 << 80) | int.from_bytes(os.urandom(10))
    with _turn:
        if number <= _last:  # the same millisecond, or a clock that stepped back: go on from the last, by a leap
            number = _last + (number & 0xFFFF_FFFF) + 1
        _last = number
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])


def new_id(prefix: str) -> str:
    """`new_id("usr")` is `usr_<ulid>`."""
    return f"{prefix}_{ulid()}"


def is_id(value: str, prefix: str) -> bool:
    """Whether `value` is `<prefix>_<ulid>`; the ULID may be in either case."""
    head, mark, tail = value.partition("_")
    return head == prefix and mark == "_" and _ULID.fullmatch(tail) is not None
