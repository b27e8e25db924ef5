"""The operator's bounds on turns."""

from __future__ import annotations

from typing import Literal

import msgspec

from crocevia.core.turn import Limits


class TurnSettings(msgspec.Struct, frozen=True, kw_only=True):
    """on_restart: whether a turn that lost its process goes on or fails as `interrupted`. Times in seconds.

    sessions: chats kept in memory while nothing happens in them. title_seconds: for the title's call;
    title_wait_seconds: how long the first text waits for it. tool_seconds: for one server or knowledge tool.
    stop_seconds: for the last prompts of what is stopped.
    """

    on_restart: Literal["resume", "fail"] = "resume"
    limits: Limits = Limits()
    sessions: int = 256
    title_seconds: float = 15.0
    title_wait_seconds: float = 1.0
    tool_seconds: float = 120.0
    stop_seconds: float = 1.0
