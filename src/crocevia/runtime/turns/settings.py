"""The operator's bounds on turns."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.core.turn import TurnLimits


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Times in seconds."""

    on_restart: Literal["resume", "fail"] = "resume"
    """Whether a turn that lost its process goes on or fails as `interrupted`."""
    limits: TurnLimits = TurnLimits()
    idle_chats: int = 256
    """Chats kept in memory while nothing happens in them."""
    title_seconds: float = 15.0
    """For the title's model call."""
    title_wait_seconds: float = 1.0
    """How long the first text waits for the title."""
    tool_seconds: float = 120.0
    """For one server or knowledge tool."""
    stop_seconds: float = 1.0
    """For the last facts of what is stopped."""
