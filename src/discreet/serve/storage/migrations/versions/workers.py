"""What the queue needs to be fair, and who works on it."""

import sqlalchemy as sa
from alembic import op

revision = "workers"
down_revision = "institution"


def upgrade() -> None:
    """Jobs say how much work they are and what they ask of a worker's version; workers say that they are there."""
    op.add_column("serve_jobs", sa.Column("needs", sa.Integer, nullable=False, server_default="1"))
    op.add_column("serve_jobs", sa.Column("size", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("ix_serve_jobs_turns", "serve_jobs", ["person", "started"])
    op.create_table(
        "serve_workers",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("work", sa.Integer, nullable=False),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("seen", sa.Float, nullable=False),
    )
