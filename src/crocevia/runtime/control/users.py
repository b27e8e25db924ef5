"""People: whoever owns workspaces, agents, teams and keys."""

from __future__ import annotations

from typing import Literal

from crocevia.storage import teams

from .context import Control


async def create(control: Control, name: str, role: Literal["operator", "member"] = "member") -> str:
    """The new user's id."""
    now = control.clock()
    return await control.database.write(lambda tx: teams.add_user(tx, name, role, now))
