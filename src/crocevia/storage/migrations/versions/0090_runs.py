"""runs of agents: teams of one that nobody lists, the chats of answers; what users may spend."""

import sqlalchemy as sa
from alembic import op

revision = "0090"
down_revision = "0080"


def upgrade() -> None:
    op.add_column("teams", sa.Column("implicit", sa.Integer(), server_default=sa.text("0"), nullable=False))
    op.add_column("responses", sa.Column("chat", sa.Text(), nullable=True))
    op.create_index(
        "ix_responses_unfinished",
        "responses",
        ["status"],
        sqlite_where=sa.text("status in ('queued', 'in_progress')"),
    )
    op.add_column("users", sa.Column("allowance", sa.Text(), server_default=sa.text("'{}'"), nullable=False))
    op.create_index(
        "ix_call_records_user",
        "call_records",
        ["user_id", "started_at"],
        sqlite_where=sa.text("user_id is not null"),
    )
