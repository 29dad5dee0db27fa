"""The tables as they were when Alembic began to keep them: version 1 of the service."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "baseline"
down_revision = None


def _column(name: str, kind: Any, **kwargs: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **kwargs)


def upgrade() -> None:
    """Make them."""
    _accounts()
    _data()
    _results()
    facts = sa.table("serve_facts", sa.column("name"), sa.column("value"))
    op.bulk_insert(facts, [{"name": "version", "value": "1"}, {"name": "clock", "value": "0.0"}])


def _accounts() -> None:
    op.create_table(
        "serve_facts",
        sa.Column("name", sa.Text, primary_key=True),
        _column("value", sa.Text),
    )
    op.create_table(
        "serve_people",
        sa.Column("id", sa.Text, primary_key=True),
        _column("name", sa.Text),
        _column("role", sa.Text),
        _column("created", sa.Float),
    )
    op.create_table(
        "serve_tokens",
        sa.Column("id", sa.Text, primary_key=True),
        _column("person", sa.Text),
        _column("label", sa.Text),
        _column("digest", sa.Text),
        _column("scopes", sa.Text),
        _column("created", sa.Float),
        _column("expires", sa.Float),
        sa.Column("revoked", sa.Float),
    )
    op.create_index("ix_serve_tokens_person", "serve_tokens", ["person"])
    op.create_table(
        "serve_sessions",
        sa.Column("digest", sa.Text, primary_key=True),
        _column("token", sa.Text),
        _column("csrf", sa.Text),
        _column("expires", sa.Float),
    )
    op.create_index("ix_serve_sessions_token", "serve_sessions", ["token"])


def _data() -> None:
    op.create_table(
        "serve_datasets",
        sa.Column("id", sa.Text, primary_key=True),
        _column("title", sa.Text),
        _column("about", sa.Text),
        _column("source", sa.Text),
        _column("outcome", sa.Text),
        _column("treatment", sa.Text),
        _column("bounds", sa.Text),
        sa.Column("propensity", sa.Text),
        _column("n", sa.BigInteger),
        _column("n_public", sa.Boolean),
        sa.Column("n_about", sa.BigInteger),
        _column("claimed", sa.Boolean),
        _column("fingerprint", sa.Text),
        _column("version", sa.Integer),
        _column("curator", sa.Text),
        _column("created", sa.Float),
    )
    op.create_table(
        "serve_grants",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("person", sa.Text, primary_key=True),
    )
    op.create_table(
        "serve_jobs",
        sa.Column("id", sa.Text, primary_key=True),
        _column("dataset", sa.Text),
        _column("person", sa.Text),
        _column("kind", sa.Text),
        _column("request", sa.Text),
        _column("key", sa.Text),
        _column("state", sa.Text),
        _column("progress", sa.Integer),
        _column("created", sa.Float),
        sa.Column("started", sa.Float),
        sa.Column("visible", sa.Float),
        sa.Column("worker", sa.Text),
        sa.Column("lease", sa.Float),
        _column("stop", sa.Boolean),
        sa.Column("reservation", sa.Text),
        sa.Column("failure", sa.Text),
        sa.Column("release", sa.Text),
    )
    op.create_index("ix_serve_jobs_dataset", "serve_jobs", ["dataset"])
    op.create_index("ix_serve_jobs_person", "serve_jobs", ["person"])
    op.create_index("ix_serve_jobs_key", "serve_jobs", ["key"])
    op.create_index("ix_serve_jobs_state", "serve_jobs", ["state"])


def _results() -> None:
    op.create_table(
        "serve_releases",
        sa.Column("id", sa.Text, primary_key=True),
        _column("job", sa.Text, unique=True),
        _column("dataset", sa.Text),
        _column("person", sa.Text),
        _column("kind", sa.Text),
        _column("key", sa.Text),
        _column("title", sa.Text),
        _column("plain", sa.Text),
        _column("pictures", sa.Text),
        sa.Column("png", sa.LargeBinary),
        _column("published", sa.Boolean),
        _column("created", sa.Float),
    )
    op.create_index("ix_serve_releases_dataset", "serve_releases", ["dataset"])
    op.create_index("ix_serve_releases_person", "serve_releases", ["person"])
    op.create_index("ix_serve_releases_key", "serve_releases", ["key"])
    op.create_table(
        "serve_functions",
        sa.Column("release", sa.Text, primary_key=True),
        _column("head", sa.Text),
        _column("asked", sa.Integer),
    )
    op.create_table(
        "serve_answers",
        sa.Column("release", sa.Text, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        _column("call", sa.Text),
    )
