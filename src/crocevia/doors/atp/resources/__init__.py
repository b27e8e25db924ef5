"""Thin handlers, one module per resource: each with its rows of the door's table."""

from crocevia.asgi.http import Operation
from crocevia.doors.atp.resources import (
    agents,
    api_keys,
    attachments,
    chats,
    completions,
    files,
    images,
    models,
    service,
    teams,
    tools,
    webhooks,
    wiki,
    workspaces,
)

TABLE: tuple[Operation, ...] = (
    *service.OPERATIONS,
    *workspaces.OPERATIONS,
    *tools.OPERATIONS,
    *chats.OPERATIONS,
    *completions.OPERATIONS,
    *files.OPERATIONS,
    *attachments.OPERATIONS,
    *images.OPERATIONS,
    *webhooks.OPERATIONS,
    *agents.OPERATIONS,
    *teams.OPERATIONS,
    *models.OPERATIONS,
    *api_keys.OPERATIONS,
    *wiki.OPERATIONS,
)
