"""no column for a wait that never was: admission answers at once."""

from alembic import op

revision = "0096"
down_revision = "0095"


def upgrade() -> None:
    op.drop_column("call_records", "queue_seconds")
