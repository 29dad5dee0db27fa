"""Releases that a curator shows to the public: behind a link, without sign-in."""

import sqlalchemy as sa
from alembic import op

revision = "public"
down_revision = "governance"


def upgrade() -> None:
    """Add the table of links."""
    op.create_table(
        "serve_public",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("link", sa.Text, nullable=False),
        sa.Column("curator", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_index("ix_serve_public_link", "serve_public", ["link"], unique=True)
