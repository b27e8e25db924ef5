"""corrections of a day's spend, webhooks of the soft threshold, conversations of the classic API."""

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0020"


def upgrade() -> None:
    op.create_table(
        "budget_corrections",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("amount", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_budget_corrections")),
    )
    op.create_index(op.f("ix_budget_corrections_project_at"), "budget_corrections", ["project", "at"])
    op.create_table(
        "budget_alerts",
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("day", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("due_at", sa.Float(), nullable=True),
        sa.Column("delivered_at", sa.Float(), nullable=True),
        sa.PrimaryKeyConstraint("project", "day", name=op.f("pk_budget_alerts")),
    )
    op.create_index(op.f("ix_budget_alerts_due_at"), "budget_alerts", ["due_at"])
    op.create_table(
        "conversation_messages",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation_messages")),
    )
    op.create_index(
        op.f("ix_conversation_messages_project_name_id"), "conversation_messages", ["project", "name", "id"]
    )
    op.create_index(op.f("ix_conversation_messages_project_at"), "conversation_messages", ["project", "at"])
