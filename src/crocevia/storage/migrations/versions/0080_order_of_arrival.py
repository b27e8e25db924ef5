"""the journal's bodies in the order of their arrival."""

import sqlalchemy as sa
from alembic import op

revision = "0080"
down_revision = "0070"


def upgrade() -> None:
    op.rename_table("journal", "journal_by_chat")
    op.create_table(
        "journal",
        sa.Column("pos", sa.Integer(), nullable=False),
        sa.Column("log", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("sub", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["log"], ["chat_logs.id"], name=op.f("fk_journal_log"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pos", name=op.f("pk_journal")),
    )
    op.execute(
        "INSERT INTO journal (log, seq, sub, body) SELECT log, seq, sub, body FROM journal_by_chat"
        " ORDER BY log, seq, sub"
    )
    op.drop_table("journal_by_chat")
    op.create_index(op.f("ix_journal_log_seq_sub"), "journal", ["log", "seq", "sub"], unique=True)
