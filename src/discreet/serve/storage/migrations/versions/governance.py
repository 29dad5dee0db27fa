"""What takes two curators: proposals, tokens that wait for one, when tokens were used, and where records are."""

import sqlalchemy as sa
from alembic import op

revision = "governance"
down_revision = "workers"


def upgrade() -> None:
    """Add them."""
    op.create_table(
        "serve_proposals",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("carried", sa.Float),
    )
    op.add_column("serve_tokens", sa.Column("used", sa.Float))
    op.add_column("serve_tokens", sa.Column("held", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("serve_datasets", sa.Column("places", sa.Text, nullable=False, server_default="[]"))
