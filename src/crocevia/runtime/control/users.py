"""People: whoever owns workspaces, agents, teams and keys."""

from __future__ import annotations

from typing import Literal

from crocevia.storage import users

from .context import Control


async def create(control: Control, name: str, role: Literal["operator", "member"] = "member") -> str:
    """The new user's id."""
    now = control.clock()
    return await control.database.write(lambda tx: users.add(tx, name, role, now))
