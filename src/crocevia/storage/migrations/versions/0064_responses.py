"""answers that callers can come back to."""

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0060"


def upgrade() -> None:
    op.create_table(
        "responses",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("agent", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("previous_id", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("visible", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.Column("input", sa.LargeBinary(), nullable=False),
        sa.Column("resource", sa.LargeBinary(), nullable=False),
        sa.Column("events", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_responses")),
    )
    op.create_index(op.f("ix_responses_expires_at"), "responses", ["expires_at"])
    op.create_index(
        "ix_responses_session",
        "responses",
        ["subject", "agent", "session", "created_at"],
        sqlite_where=sa.text("session is not null"),
    )
