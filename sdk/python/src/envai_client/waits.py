"""Waiting within a deadline."""

from __future__ import annotations

from .clock import monotonic
from .effects import Flow, Sleep
from .errors import RequestTimeoutError


def pause(seconds: float, deadline: float | None) -> Flow[None]:
    """Sleep; raises RequestTimeoutError at once if the deadline falls within."""
    if deadline is not None and monotonic() + seconds >= deadline:
        raise RequestTimeoutError("the operation's timeout would pass before the next attempt")
    yield Sleep(seconds, deadline)
