"""Queries across users for the operator's panel: chats, files and webhooks."""

from __future__ import annotations

from typing import Final

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.types import Integer

from crocevia.storage.attachments import StoredAttachment, chat_attachments
from crocevia.storage.chats import chats
from crocevia.storage.completions import completions
from crocevia.storage.database import Transaction
from crocevia.storage.log import chat_logs, journal, pending
from crocevia.storage.spending import budget_alerts
from crocevia.storage.statements import Row
from crocevia.storage.teams import teams
from crocevia.storage.users import users
from crocevia.storage.workspaces import workspaces

_turn: Final = completions.alias()
_newest: Final = (
    select(_turn.c.id)
    .where(_turn.c.chat_id == chats.c.id)
    .order_by(_turn.c.started_at.desc(), _turn.c.id.desc())
    .limit(1)
    .correlate(chats)
    .scalar_subquery()
)
_waiting: Final = (
    select(func.count())
    .select_from(pending)
    .where(pending.c.log == chat_logs.c.id, pending.c.state == "open")
    .correlate(chat_logs)
    .scalar_subquery()
)
_CHAT: Final = (
    select(
        chats.c.id,
        chats.c.user_id,
        chats.c.workspace_id,
        chats.c.title,
        chats.c.created_at,
        users.c.name.label("owner"),
        workspaces.c.name.label("workspace"),
        teams.c.name.label("team"),
        chat_logs.c.turn.label("open_turn"),
        _waiting.label("waiting"),
        completions.c.status,
        completions.c.started_at,
        completions.c.cost_usd,
    )
    .join(users, users.c.id == chats.c.user_id)
    .join(workspaces, workspaces.c.id == chats.c.workspace_id)
    .join(teams, teams.c.id == chats.c.team_id)
    .outerjoin(chat_logs, chat_logs.c.chat == chats.c.id)
    .outerjoin(completions, completions.c.id == _newest)
)
_CHATS: Final = (
    _CHAT.where(
        chats.c.id < bindparam("before"),
        or_(bindparam("only_open", type_=Integer) == 0, chat_logs.c.turn.is_not(None)),
    )
    .order_by(chats.c.id.desc())
    .limit(bindparam("most"))
)
_ONE: Final = _CHAT.where(chats.c.id == bindparam("which"))
_TURNS: Final = (
    select(completions.c.id, completions.c.status, completions.c.started_at, completions.c.duration_ms)
    .where(completions.c.chat_id == bindparam("chat"))
    .order_by(completions.c.started_at.desc(), completions.c.id.desc())
    .limit(bindparam("most"))
)
_ENTRIES: Final = (
    select(journal.c.seq, journal.c.body)
    .join(chat_logs, chat_logs.c.id == journal.c.log)
    .where(chat_logs.c.chat == bindparam("of"), journal.c.sub == 0, journal.c.seq < bindparam("before"))
    .order_by(journal.c.seq.desc())
    .limit(bindparam("most"))
)
_PENDING: Final = (
    select(
        pending.c.id,
        pending.c.turn,
        pending.c.kind,
        pending.c.deadline,
        chats.c.id.label("chat_id"),
        chats.c.user_id,
        chats.c.title,
        teams.c.name.label("team"),
    )
    .join(chat_logs, chat_logs.c.id == pending.c.log)
    .join(chats, chats.c.id == chat_logs.c.chat)
    .join(teams, teams.c.id == chats.c.team_id)
    .where(pending.c.state == "open", pending.c.deadline > bindparam("now"))
    .order_by(pending.c.deadline, pending.c.id)
    .limit(bindparam("most"))
)
_COUNT_PENDING: Final = (
    select(func.count()).select_from(pending).where(pending.c.state == "open", pending.c.deadline > bindparam("now"))
)
_WORKSPACES: Final = (
    select(workspaces.c.id, workspaces.c.user_id, workspaces.c.name, users.c.name.label("owner"))
    .join(users, users.c.id == workspaces.c.user_id)
    .order_by(workspaces.c.id)
    .limit(bindparam("most"))
)
_ATTACHMENTS: Final = (
    select(chat_attachments)
    .where(chat_attachments.c.deleted_at.is_(None), chat_attachments.c.expires_at > bindparam("now"))
    .order_by(chat_attachments.c.id.desc())
    .limit(bindparam("most"))
)
_ATTACHMENT: Final = select(chat_attachments).where(chat_attachments.c.id == bindparam("which"))
_ALERTS: Final = (
    select(budget_alerts).order_by(budget_alerts.c.created_at.desc(), budget_alerts.c.id).limit(bindparam("most"))
)
_AGAIN: Final = (
    update(budget_alerts)
    .where(budget_alerts.c.id == bindparam("event"))
    .values(due_at=bindparam("now"), delivered_at=None)
)


def chat_page(tx: Transaction, before: str, most: int, only_open: bool) -> list[Row]:
    """Chats of all users born before the chat `before`, newest first, each with its newest turn."""
    return tx.all(_CHATS, before=before, most=most, only_open=int(only_open))


def find_chat(tx: Transaction, chat_id: str) -> Row | None:
    """One of them."""
    return tx.first(_ONE, which=chat_id)


def turns_of(tx: Transaction, chat_id: str, most: int) -> list[Row]:
    """The newest turns of a chat, newest first. duration_ms None: under way."""
    return tx.all(_TURNS, chat=chat_id, most=most)


def entries_before(tx: Transaction, chat_id: str, before: int, most: int) -> list[Row]:
    """Public entries of a chat with a smaller seq, newest first."""
    return tx.all(_ENTRIES, of=chat_id, before=before, most=most)


def open_requests(tx: Transaction, now_ms: int, most: int) -> list[Row]:
    """What turns wait for, the most urgent first."""
    return tx.all(_PENDING, now=now_ms, most=most)


def count_requests(tx: Transaction, now_ms: int) -> int:
    """How many there are."""
    return int(tx.scalar(_COUNT_PENDING, now=now_ms))


def all_workspaces(tx: Transaction, most: int) -> list[Row]:
    """Oldest first."""
    return tx.all(_WORKSPACES, most=most)


def all_attachments(tx: Transaction, now: float, most: int) -> list[StoredAttachment]:
    """Attachments that are there, newest first."""
    return [StoredAttachment(**row._asdict()) for row in tx.all(_ATTACHMENTS, now=now, most=most)]


def find_attachment(tx: Transaction, attachment_id: str) -> StoredAttachment | None:
    """The attachment of this id, in whichever chat."""
    row = tx.first(_ATTACHMENT, which=attachment_id)
    return None if row is None else StoredAttachment(**row._asdict())


def alert_page(tx: Transaction, most: int) -> list[Row]:
    """Webhooks of all projects, newest first."""
    return tx.all(_ALERTS, most=most)


def alert_again(tx: Transaction, event: str, now: float) -> bool:
    """Make a webhook due once more; False if there is none of this id."""
    return tx.run(_AGAIN, event=event, now=now) == 1
