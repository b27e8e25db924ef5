"""Agents: who may lead a team or work in one."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from crocevia.core.agent_rules import read_config, read_permissions
from crocevia.core.errors import GatewayError, Reason
from crocevia.runtime.control import models
from crocevia.runtime.control.context import MOST, Control, check_room, missing
from crocevia.storage import agents as rows
from crocevia.storage import teams
from crocevia.storage.agents import Mode, StoredAgent
from crocevia.storage.database import Transaction

__all__ = ["Mode", "StoredAgent", "create", "delete", "get", "listed", "update"]

_DEFAULTS: Final[dict[str, Any]] = {
    "description": None,
    "model": None,
    "tools_enabled": [],
    "external_tools_enabled": [],
    "permissions": {},
    "can_write_knowledge": False,
    "can_write_skills": False,
    "config": {},
}


async def create(control: Control, user_id: str, fields: dict[str, Any]) -> StoredAgent:
    """fields: name, system_prompt and mode at least. Raises GatewayError(INVALID_REQUEST)."""
    _check(control, fields)
    _check_rules(fields)
    now = control.clock()

    def work(tx: Transaction) -> StoredAgent:
        check_room(rows.count(tx, user_id))
        _check_name(tx, user_id, fields["name"])
        return rows.add(tx, user_id, _DEFAULTS | fields, now)

    return await control.database.write(work)


async def listed(control: Control, user_id: str) -> list[StoredAgent]:
    """Oldest first."""
    return await control.database.read(lambda tx: rows.listed(tx, user_id, MOST))


async def get(control: Control, user_id: str, agent_id: str) -> StoredAgent:
    """Raises GatewayError(NOT_FOUND)."""
    return await control.database.read(lambda tx: _owned(tx, user_id, agent_id))


async def update(control: Control, user_id: str, agent_id: str, changes: dict[str, Any]) -> StoredAgent:
    """Raises GatewayError: NOT_FOUND, INVALID_REQUEST."""
    _check_rules(changes)
    now = control.clock()

    def work(tx: Transaction) -> StoredAgent:
        before = _owned(tx, user_id, agent_id)
        # A model that has since gone may stay; another one must be there.
        _check(control, {name: value for name, value in changes.items() if value != getattr(before, name)})
        if changes.get("name", before.name) != before.name:
            _check_name(tx, user_id, changes["name"])
        if changes.get("mode", "primary") != "primary":
            _check_leads_nothing(tx, agent_id, "mode")
        changed = msgspec.structs.replace(before, **changes, updated_at=now, unreadable=())
        rows.save(tx, changed)
        return changed

    return await control.database.write(work)


async def delete(control: Control, user_id: str, agent_id: str) -> None:
    """Takes its memberships with it; the other members of those teams close up.

    Raises GatewayError: NOT_FOUND, INVALID_REQUEST while it leads a team.
    """

    def work(tx: Transaction) -> None:
        _owned(tx, user_id, agent_id)
        teams.drop_implicit(tx, agent_id)
        _check_leads_nothing(tx, agent_id, "agent_id", implicit=True)
        teams.leave_all(tx, user_id, agent_id)
        rows.drop(tx, agent_id)

    await control.database.write(work)


def _owned(tx: Transaction, user_id: str, agent_id: str) -> StoredAgent:
    found = rows.find(tx, user_id, agent_id)
    if found is None:
        raise missing("agent")
    return found


def _check(control: Control, fields: dict[str, Any]) -> None:
    model = fields.get("model")
    if model is not None and not models.is_offered(control, model):
        raise GatewayError(Reason.MODEL_NOT_OFFERED, param="model")
    if _holds(fields.get("config"), "max_tokens"):
        raise GatewayError(Reason.CONFIG_MAX_TOKENS, param="config")


def _check_rules(changes: dict[str, Any]) -> None:
    """Also what stays as it is: nobody who writes a rule that is none may think that it holds."""
    if read_permissions(changes.get("permissions", {}))[1]:
        raise GatewayError(Reason.TOOL_RULE_UNKNOWN, param="permissions")
    for name in read_config(changes.get("config", {}))[1]:
        raise GatewayError(Reason.CONFIG_VALUE, param=f"config.{name}")


def _check_name(tx: Transaction, user_id: str, name: str) -> None:
    if rows.find_named(tx, user_id, name) is not None:
        raise GatewayError(Reason.NAME_TAKEN, param="name")


def _check_leads_nothing(tx: Transaction, agent_id: str, param: str, *, implicit: bool = False) -> None:
    led = teams.led_by(tx, agent_id, implicit=implicit)
    if led:
        raise GatewayError(Reason.LEADS_TEAMS, param=param, teams=", ".join(led))


def _holds(value: Any, key: str) -> bool:
    """Whether an object at any depth has this key."""
    if isinstance(value, dict):
        return key in value or any(_holds(below, key) for below in value.values())
    return isinstance(value, list) and any(_holds(below, key) for below in value)
