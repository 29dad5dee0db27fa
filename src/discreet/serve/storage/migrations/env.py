"""What Alembic runs: every step in the transaction of whoever asked, so that a step that fails leaves no trace."""

from alembic import context

from discreet.serve.storage.migration import VERSION_TABLE
from discreet.serve.storage.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite, too, takes tables back when its transaction is one from the first statement on.
    transactional_ddl=True,
    # SQLite changes a column by making the table anew.
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
