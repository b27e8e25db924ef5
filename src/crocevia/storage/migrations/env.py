"""Alembic's entry: the connection comes from `storage.migrate`, never from a configuration file."""

from alembic import context

from crocevia.storage.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
