"""Every table, for those who compare or migrate them all: the modules are imported for what they register."""

from __future__ import annotations

from crocevia.storage import (  # noqa: F401
    agents,
    api_keys,
    attachments,
    chats,
    completions,
    conversations,
    declared,
    images,
    log,
    meta,
    panel,
    project_keys,
    records,
    responses,
    spending,
    teams,
    user_tools,
    users,
    workspaces,
)
from crocevia.storage.metadata import SCHEMA, metadata

__all__ = ["SCHEMA", "metadata"]
