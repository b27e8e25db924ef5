"""Every table, one module per aggregate. Times are Unix seconds (REAL); values that no query looks into are JSON text.

A column exists where a query filters, joins or sums.
"""

from __future__ import annotations

from typing import Final

from crocevia.storage.schema.calls import call_records
from crocevia.storage.schema.catalogue import engines, meta, models, project_keys, projects, recipes
from crocevia.storage.schema.chats import chat_attachments, chats, completions
from crocevia.storage.schema.conversations import conversation_messages
from crocevia.storage.schema.images import image_generations, image_uploads
from crocevia.storage.schema.log import chat_logs, commands, journal, pending
from crocevia.storage.schema.metadata import metadata
from crocevia.storage.schema.panel import audit, panel_sessions
from crocevia.storage.schema.people import api_keys, users, workspaces
from crocevia.storage.schema.responses import responses
from crocevia.storage.schema.spending import budget_alerts, budget_corrections
from crocevia.storage.schema.teams import agents, team_members, teams, user_tools

__all__ = [
    "SCHEMA",
    "agents",
    "api_keys",
    "audit",
    "budget_alerts",
    "budget_corrections",
    "call_records",
    "chat_attachments",
    "chat_logs",
    "chats",
    "commands",
    "completions",
    "conversation_messages",
    "engines",
    "image_generations",
    "image_uploads",
    "journal",
    "meta",
    "metadata",
    "models",
    "panel_sessions",
    "pending",
    "project_keys",
    "projects",
    "recipes",
    "responses",
    "team_members",
    "teams",
    "user_tools",
    "users",
    "workspaces",
]

SCHEMA: Final = "0096"  # the newest migration
