"""Rows of chats. Their events are the log's affair."""

from __future__ import annotations

from typing import Final

import msgspec
from sqlalchemy import Column, Float, ForeignKey, Index, Table, Text, bindparam, func, select, update

from crocevia.core.ids import new_id
from crocevia.storage.database import Transaction
from crocevia.storage.metadata import metadata
from crocevia.storage.rows import inserting, setting
from crocevia.storage.statements import Row

# Ids sort by birth: (workspace_id, id) is the order of a list and the key of its pages.
chats = Table(
    "chats",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("workspace_id", Text, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=False),
    Column("user_id", Text, ForeignKey("users.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("team_id", Text, ForeignKey("teams.id"), nullable=False, index=True),
    Column("title", Text),
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Index(None, "workspace_id", "id"),
)


class Chat(msgspec.Struct, frozen=True):
    """A durable conversation with a team. The fields stand as the table's columns do."""

    id: str
    workspace_id: str
    user_id: str
    team_id: str
    title: str | None
    """None: not named yet."""
    created_at: float
    updated_at: float


_OWNED: Final = chats.c.user_id == bindparam("owner")
_FIND: Final = select(chats).where(chats.c.id == bindparam("which"), _OWNED)
_ANY: Final = select(chats).where(chats.c.id == bindparam("which"))
_PAGE: Final = (
    select(chats)
    .where(chats.c.workspace_id == bindparam("within"), chats.c.id < bindparam("before"), _OWNED)
    .order_by(chats.c.id.desc())
    .limit(bindparam("most"))
)
_OF_TEAM: Final = select(func.count()).select_from(chats).where(chats.c.team_id == bindparam("team"))
_ADD: Final = inserting(chats, *Chat.__struct_fields__)
_NAME: Final = update(chats).where(chats.c.id == bindparam("which")).values(setting("title", "updated_at"))

LAST: Final = "~"  # after every id


def add(tx: Transaction, user_id: str, workspace_id: str, team_id: str, now: float) -> Chat:
    """A new chat without a title."""
    made = Chat(
        id=new_id("cht"),
        workspace_id=workspace_id,
        user_id=user_id,
        team_id=team_id,
        title=None,
        created_at=now,
        updated_at=now,
    )
    tx.run(_ADD, **msgspec.structs.asdict(made))
    return made


def find(tx: Transaction, user_id: str, chat_id: str) -> Chat | None:
    """The user's chat of this id, in whichever workspace."""
    row = tx.first(_FIND, owner=user_id, which=chat_id)
    return None if row is None else _value(row)


def find_any(tx: Transaction, chat_id: str) -> Chat | None:
    """The chat of this id, whoever owns it."""
    row = tx.first(_ANY, which=chat_id)
    return None if row is None else _value(row)


def page(tx: Transaction, user_id: str, workspace_id: str, before: str, most: int) -> list[Chat]:
    """The chats of a workspace born before the chat `before` (LAST: all), newest first."""
    return [_value(row) for row in tx.all(_PAGE, owner=user_id, within=workspace_id, before=before, most=most)]


def count_of_team(tx: Transaction, team_id: str) -> int:
    """How many chats have this team."""
    found: int = tx.scalar(_OF_TEAM, team=team_id)
    return found


def set_title(tx: Transaction, chat_id: str, title: str, now: float) -> bool:
    """Name the chat; False if there is no such chat."""
    return tx.run(_NAME, which=chat_id, title=title, updated_at=now) == 1


def _value(row: Row) -> Chat:
    return Chat(*row)
