"""a session's key without the agent that it may be spelled with: both spellings are one session."""

from alembic import op

revision = "0097"
down_revision = "0096"


def upgrade() -> None:
    op.execute(
        "UPDATE responses SET session = 'key:' || substr(session, length('key:agent:' || agent || ':') + 1)"
        " WHERE lower(substr(session, 1, length('key:agent:' || agent || ':'))) = lower('key:agent:' || agent || ':')"
        " AND length(session) > length('key:agent:' || agent || ':')"
    )
