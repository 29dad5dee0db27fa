"""People whom an institution signs in: who they are there, sign-ins that have begun, and their sessions."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "institution"
down_revision = "idempotency"


def _column(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False)


def upgrade() -> None:
    """Everybody who is there already is known by tokens alone."""
    op.add_column("serve_people", sa.Column("subject", sa.Text))
    op.add_column("serve_people", sa.Column("confirmed", sa.Float))
    op.create_index("ix_serve_people_subject", "serve_people", ["subject"], unique=True)
    op.create_table(
        "serve_sign_ins",
        sa.Column("state", sa.Text, primary_key=True),
        _column("cookie", sa.Text),
        _column("nonce", sa.Text),
        _column("verifier", sa.Text),
        _column("target", sa.Text),
        _column("expires", sa.Float),
    )
    op.create_table(
        "serve_visits",
        sa.Column("digest", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, nullable=False, index=True),
        _column("csrf", sa.Text),
        _column("expires", sa.Float),
        _column("checked", sa.Float),
        _column("confirmed", sa.Float),
        _column("held", sa.Text),
    )
