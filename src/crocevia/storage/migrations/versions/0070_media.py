"""attachments of chats; uploaded and generated pictures."""

import sqlalchemy as sa
from alembic import op

revision = "0070"
down_revision = "0064"


def upgrade() -> None:
    op.create_table(
        "chat_attachments",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("workspace_id", sa.Text(), nullable=False),
        sa.Column("chat_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mime_type", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.Column("attached_at", sa.Float(), nullable=True),
        sa.Column("deleted_at", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(
            ["chat_id"], ["chats.id"], name=op.f("fk_chat_attachments_chat_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_chat_attachments_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_chat_attachments")),
    )
    op.create_index(op.f("ix_chat_attachments_expires_at"), "chat_attachments", ["expires_at"])
    op.create_index(
        op.f("ix_chat_attachments_chat_id_idempotency_key"),
        "chat_attachments",
        ["chat_id", "idempotency_key"],
        unique=True,
    )
    op.create_index(op.f("ix_chat_attachments_user_id_deleted_at"), "chat_attachments", ["user_id", "deleted_at"])
    op.create_table(
        "image_uploads",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("mime_type", sa.Text(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("generation_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_image_uploads_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_image_uploads")),
    )
    op.create_index(op.f("ix_image_uploads_user_id"), "image_uploads", ["user_id"])
    op.create_index(op.f("ix_image_uploads_expires_at"), "image_uploads", ["expires_at"])
    op.create_table(
        "image_generations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("submitted_at", sa.Float(), nullable=True),
        sa.Column("completed_at", sa.Float(), nullable=True),
        sa.Column("expires_at", sa.Float(), nullable=False),
        sa.Column("result", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("files", sa.Text(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("cost_usd", sa.Float(), nullable=True),
        sa.Column("webhook_url", sa.Text(), nullable=False),
        sa.Column("webhook_event", sa.Text(), nullable=True),
        sa.Column("webhook_attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("webhook_due_at", sa.Float(), nullable=True),
        sa.CheckConstraint(
            "status in ('accepted', 'processing', 'succeeded', 'failed')", name=op.f("ck_image_generations_status")
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_image_generations_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_image_generations")),
    )
    op.create_index(op.f("ix_image_generations_expires_at"), "image_generations", ["expires_at"])
    op.create_index(op.f("ix_image_generations_user_id_created_at"), "image_generations", ["user_id", "created_at"])
    op.create_index(op.f("ix_image_generations_status"), "image_generations", ["status"])
    op.create_index(
        "ix_image_generations_due",
        "image_generations",
        ["webhook_due_at"],
        sqlite_where=sa.text("webhook_due_at is not null"),
    )
