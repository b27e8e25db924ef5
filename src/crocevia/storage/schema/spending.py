"""Corrections of a day's spend, and webhooks of the soft threshold. Amounts are whole nano-dollars."""

from __future__ import annotations

from sqlalchemy import Column, Float, Index, Integer, Table, Text, text

from crocevia.storage.schema.metadata import metadata

# amount: added to the spend of the day that holds `at`; negative gives back. The audit list says who and why.
budget_corrections = Table(
    "budget_corrections",
    metadata,
    Column("id", Text, primary_key=True, nullable=False),
    Column("project", Text, nullable=False),
    Column("at", Float, nullable=False),
    Column("amount", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Index(None, "project", "at"),
)

# One webhook per project and day: the key is what keeps it from firing twice. body: what is sent, at every attempt.
# due_at null: delivered, or given up (delivered_at null).
budget_alerts = Table(
    "budget_alerts",
    metadata,
    Column("project", Text, primary_key=True, nullable=False),
    Column("day", Text, primary_key=True, nullable=False),
    Column("id", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("status", Integer),
    Column("due_at", Float, index=True),
    Column("delivered_at", Float),
)
