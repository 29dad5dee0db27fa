"""Commands on databases and clusters: the same release as from a file, and one sentence where that cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import psycopg
import pytest
from typer.testing import CliRunner, Result

from discreet.cli import app
from discreet.testing import seeded_noise
from tests.seeded_fits import BOUNDS, study

WHAT = {
    "ate": ["--epsilon", "1", "--delta", "1e-6"],
    "cate": ["--epsilon", "2", "--delta", "1e-6"],
    "uplift": ["--epsilon", "1", "--by", "age=4", "--by", "ward=levels"],
}


def saved(tmp_path: Path) -> str:
    """The path of a bounds file."""
    BOUNDS.save(tmp_path / "bounds.toml")
    return str(tmp_path / "bounds.toml")


@pytest.fixture
def bounds(tmp_path: Path) -> str:
    return saved(tmp_path)


def run(what: str, source: str, bounds: str, *more: str) -> Result:
    roles = ["--outcome", "y", "--treatment", "t", "--bounds", bounds]
    with seeded_noise(5):
        return CliRunner().invoke(app, [what, source, *roles, *WHAT[what], *more])


def released(what: str, source: str, bounds: str, out: Path, *more: str) -> Any:
    result = run(what, source, bounds, "--out", str(out), *more)
    assert result.exit_code == 0, result.output
    return json.loads(out.read_text())


@pytest.fixture
def claims(postgres: str) -> Any:
    """A table of the study in PostgreSQL."""
    frame = study(800)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE claims (y float8, t int4, age float8, ward text, dose int4, e float8)")
        with connection.cursor() as cursor, cursor.copy("COPY claims FROM STDIN") as rows:
            for row in frame.astype(object).itertuples(index=False):
                rows.write_row(row)
        yield postgres
        connection.execute("DROP TABLE claims")


@pytest.mark.parametrize("what", WHAT)
def test_a_database_gives_the_same_release_as_a_file(claims: str, tmp_path: Path, bounds: str, what: str) -> None:
    study(800).to_parquet(tmp_path / "it.parquet")
    expected = released(what, str(tmp_path / "it.parquet"), bounds, tmp_path / "file.json")
    assert released(what, claims, bounds, tmp_path / "table.json", "--table", "claims") == expected
    query = "SELECT * FROM public.claims WHERE y IS NOT NULL"
    assert released(what, claims, bounds, tmp_path / "query.json", "--query", query) == expected


REFUSED = {
    "table of a file": (["it.parquet", "--table", "claims"], "table"),
    "cluster and table": (["it.parquet", "--spark", "local[1]", "--table", "claims"], "--table and --query are for"),
    "no table": (["postgresql://anna:hush@127.0.0.1:1/nowhere"], "needs relation= or query="),
    "no server": (["postgresql://anna:hush@127.0.0.1:1/nowhere", "--table", "claims"], "does not answer"),
    "another scheme": (["mysql://anna:hush@127.0.0.1:1/nowhere", "--table", "claims"], "address of no known kind"),
}


@pytest.mark.parametrize(("words", "reason"), REFUSED.values(), ids=REFUSED)
def test_refusals_are_one_sentence_without_a_password(
    tmp_path: Path, bounds: str, monkeypatch: pytest.MonkeyPatch, words: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(study(50)).to_parquet("it.parquet")
    result = run("uplift", words[0], bounds, *words[1:])
    assert result.exit_code == 2
    assert reason in result.output
    assert "hush" not in result.output
    assert len(result.output.strip().splitlines()) == 1
