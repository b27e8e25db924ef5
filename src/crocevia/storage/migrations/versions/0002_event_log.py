"""the event log."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "chat_logs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chat", sa.Text(), nullable=False),
        sa.Column("epoch", sa.Text(), nullable=False),
        sa.Column("first_seq", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("fence", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease_until", sa.Integer(), nullable=True),
        sa.Column("turn", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_logs")),
        sa.UniqueConstraint("chat", name=op.f("uq_chat_logs_chat")),
    )
    op.create_index("ix_chat_logs_turn", "chat_logs", ["turn"], sqlite_where=sa.text("turn is not null"))
    op.create_table(
        "journal",
        sa.Column("log", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("sub", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["log"], ["chat_logs.id"], name=op.f("fk_journal_log"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("log", "seq", "sub", name=op.f("pk_journal")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "commands",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("log", sa.Integer(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["log"], ["chat_logs.id"], name=op.f("fk_commands_log"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_commands")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_commands_log_kind_key"), "commands", ["log", "kind", "key"], unique=True)
    op.create_index("ix_commands_log_id", "commands", ["log", "id"])
    op.create_table(
        "pending",
        sa.Column("log", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("turn", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("deadline", sa.Integer(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["log"], ["chat_logs.id"], name=op.f("fk_pending_log"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("log", "id", name=op.f("pk_pending")),
        sqlite_with_rowid=False,
    )
