"""what became of the webhooks of generated pictures."""

import sqlalchemy as sa
from alembic import op

revision = "0095"
down_revision = "0090"


def upgrade() -> None:
    op.add_column("image_generations", sa.Column("webhook_status", sa.Integer(), nullable=True))
    op.add_column("image_generations", sa.Column("webhook_delivered_at", sa.Float(), nullable=True))
