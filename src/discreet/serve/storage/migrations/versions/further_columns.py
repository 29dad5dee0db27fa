"""Data sets declare columns that some estimators take besides outcome, treatment and covariates."""

import sqlalchemy as sa
from alembic import op

revision = "further_columns"
down_revision = "baseline"


def upgrade() -> None:
    """Data sets that exist have none."""
    op.add_column("serve_datasets", sa.Column("columns", sa.Text))
