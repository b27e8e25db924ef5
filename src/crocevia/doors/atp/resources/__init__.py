"""Thin handlers, one module per resource: each with its rows of the door's table."""

from ..operation import Operation
from . import agents, api_keys, attachments, chats, completions, files, models, service, teams, tools, wiki, workspaces

TABLE: tuple[Operation, ...] = (
    *service.OPERATIONS,
    *workspaces.OPERATIONS,
    *tools.OPERATIONS,
    *chats.OPERATIONS,
    *completions.OPERATIONS,
    *files.OPERATIONS,
    *attachments.OPERATIONS,
    *agents.OPERATIONS,
    *teams.OPERATIONS,
    *models.OPERATIONS,
    *api_keys.OPERATIONS,
    *wiki.OPERATIONS,
)
