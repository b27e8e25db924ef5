"""Thin handlers, one module per resource: each with its rows of the door's table."""

from ..operation import Operation
from . import api_keys, service, workspaces

TABLE: tuple[Operation, ...] = (
    *service.OPERATIONS,
    *workspaces.OPERATIONS,
    *api_keys.OPERATIONS,
)
