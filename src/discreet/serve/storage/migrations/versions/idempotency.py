"""Requests that may spend have keys, under which their first answer is kept."""

import sqlalchemy as sa
from alembic import op

revision = "idempotency"
down_revision = "further_columns"


def upgrade() -> None:
    """Nobody has given a key yet."""
    op.create_table(
        "serve_keys",
        sa.Column("person", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("job", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("answer", sa.Text),
    )
