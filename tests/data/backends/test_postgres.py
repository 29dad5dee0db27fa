"""Records in PostgreSQL: the same bits as in a file, one state for all passes, and never a part of the rows."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from discreet import Bounds, DifferenceInMeans, Levels, Range, Uplift
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.postgres.copy import decoded
from discreet.data.records import Chunk, IntArray
from discreet.exceptions import InvalidInput, SourceFailed
from discreet.papers import ADUM, PrivATE
from discreet.testing import record_sums, seeded_noise
from tests.seeded_fits import BOUNDS, ESTIMATORS, fitted, study

ROLES = {"outcome": "y", "treatment": "t"}


@pytest.fixture
def database(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the test's database, which is empty again afterwards."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        # A source that was not closed would hold its tables for ever.
        connection.execute("SET lock_timeout = '10s'")
        yield connection
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


def write(
    connection: psycopg.Connection[Any], frame: pd.DataFrame, types: dict[str, str], name: str = "claims"
) -> None:
    """A table with the rows of a frame, what is missing as NULL."""
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(column), sql.SQL(kind)) for column, kind in types.items()
    )
    connection.execute(sql.SQL("CREATE TABLE claims ({})").format(columns))
    with connection.cursor() as cursor, cursor.copy("COPY claims FROM STDIN") as rows:
        for row in frame[list(types)].astype(object).itertuples(index=False):
            rows.write_row([None if value is None or value != value else value for value in row])


TYPES = {"y": "float8", "t": "int4", "age": "float8", "ward": "text", "dose": "int4", "e": "float8"}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_release_has_the_same_bits_as_from_a_file(
    postgres: str, database: psycopg.Connection[Any], tmp_path: Path, name: str
) -> None:
    frame = study()
    frame.to_parquet(tmp_path / "it.parquet")
    write(database, frame.sample(frac=1, random_state=1), TYPES)
    expected, expected_sums = fitted(name, tmp_path / "it.parquet")
    release, sums = fitted(name, postgres, relation="claims")
    assert len(sums) == len(expected_sums)
    for ours, theirs in zip(sums, expected_sums, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert release.to_dict() == expected.to_dict()


ODD = Bounds(
    outcome=(-2, 2),
    covariates={
        'the "ward" %s {}': Levels(("it's", "back\\slash", "é", "other"), other="other", fill="é"),
        "age": Range(20, 60, fill=40),
        "paid": (-90.5, 1e6),
        "visits": (0, 2**52),
        "smokes": [False, True],
    },
    treatment=("placebo", "the drug"),
    outcome_fill=0.5,
)


def odd_study(n: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "y": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 2, n)),
            "t": rng.choice(np.array(["placebo", "the drug"], dtype=object), n),
            'the "ward" %s {}': rng.choice(np.array(["it's", "back\\slash", "é", "E", None], dtype=object), n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 20, n)),
            "paid": [Decimal(int(cents)) / 1000 for cents in rng.integers(-(10**6), 10**9, n)],
            "visits": rng.integers(-(2**53), 2**53, n, endpoint=True),
            "smokes": rng.random(n) < 0.5,
        }
    )


def fingerprint(chunk: Chunk) -> IntArray:
    """A sum that depends on every bit of every record, and not on their order."""
    rows = np.ascontiguousarray(np.column_stack([chunk.y, chunk.t, chunk.x]))
    return (rows.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)).sum(axis=0).view(np.int64)


@pytest.mark.parametrize(
    "types",
    [
        ("float8", "text", "text", "float8", "numeric", "int8", "bool"),
        ("numeric", "varchar(20)", "varchar", "float8", "numeric(12, 3)", "numeric", "bool"),
        ("float8", "arm", "char(12)", "numeric", "numeric", "int8", "int2"),
    ],
)
def test_every_type_of_column_gives_the_same_numbers_as_in_memory(
    postgres: str, database: psycopg.Connection[Any], types: tuple[str, ...]
) -> None:
    frame = odd_study()
    database.execute("CREATE TYPE arm AS ENUM ('placebo', 'the drug')")
    stored = frame.assign(smokes=frame["smokes"].astype(int)) if types[-1] == "int2" else frame
    write(database, stored, dict(zip(frame.columns, types, strict=True)))
    with open_table(frame, TableSpec(bounds=ODD, **ROLES)) as here:
        expected = here.sum(fingerprint)
    with open_table(postgres, TableSpec(bounds=ODD, **ROLES), Options(relation="claims")) as there:
        np.testing.assert_array_equal(there.sum(fingerprint), expected)
    by = {"age": 3, "paid": 2, 'the "ward" %s {}': "levels"}
    estimator = Uplift(epsilon=1, bounds=ODD, by=by)
    with seeded_noise(1):
        released = estimator.fit_table(frame, **ROLES).release_.to_dict()
    with seeded_noise(1):
        assert estimator.fit_table(postgres, relation="claims", **ROLES).release_.to_dict() == released


def test_a_query_and_a_filter_choose_rows_inside_the_database(postgres: str, database: psycopg.Connection[Any]) -> None:
    frame = study(2_000)
    write(database, frame, TYPES)
    some = frame[(frame["age"] <= 60) & frame["ward"].isin(["a", "b"])]
    chosen = {"where": {"age": (None, 60), "ward": ["a", "b"]}}
    for name in ("ate", "uplift"):
        _, sums = fitted(name, some)
        for options in (
            chosen | {"relation": "public.claims"},
            {"query": "SELECT * FROM claims WHERE age <= 60 AND ward IN ('a', 'b') -- only some;"},
            chosen | {"query": "TABLE claims;"},
        ):
            _, found = fitted(name, postgres, **options)
            assert [ours.tolist() for ours in found] == [theirs.tolist() for theirs in sums]


def test_all_passes_see_one_state_of_a_table_that_changes(postgres: str, database: psycopg.Connection[Any]) -> None:
    frame = study(1_000)
    write(database, frame, TYPES)
    expected, _ = fitted("ate", frame)
    changes = []

    def change(*_: object) -> None:
        if len(changes) < 3:
            database.execute("INSERT INTO claims SELECT * FROM claims LIMIT 100; UPDATE claims SET y = 0")
            changes.append(1)

    release, _ = fitted("ate", postgres, relation="claims", progress=change)
    assert changes
    assert release.estimate == expected.estimate


def test_a_query_with_chance_in_it_releases_nothing(postgres: str, database: psycopg.Connection[Any]) -> None:
    write(database, study(1_000), TYPES)
    chance = "SELECT y + random() AS y, t, age, ward, dose, e FROM claims"
    estimator = ESTIMATORS["ate"]()
    with pytest.raises(SourceFailed, match="The records changed while they were being read"):
        estimator.fit_table(postgres, query=chance, **ROLES)
    assert not hasattr(estimator, "release_")


def test_a_connection_that_drops_between_two_chunks_is_an_error_and_never_a_part_of_the_sum(
    postgres: str, database: psycopg.Connection[Any]
) -> None:
    # More rows than a batch and the connection's buffers hold, so that the server is cut off while it sends.
    write(database, study(10_000), TYPES)
    database.execute("INSERT INTO claims SELECT claims.* FROM claims, generate_series(1, 15)")
    estimator = ESTIMATORS["ate"]()
    told: list[tuple[str, int]] = []

    def drop(pass_: str, done: int, _: int) -> None:
        told.append((pass_, done))
        if told[-1][0] == "pass 2" and told[-2][0] == "pass 1":
            ours = "WHERE application_name = 'discreet' AND datname = current_database()"
            found = database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {ours}")
            assert found.fetchall() == [(True,)]

    with pytest.raises(SourceFailed, match="The connection to PostgreSQL was lost"):
        estimator.fit_table(postgres, relation="claims", progress=drop, **ROLES)
    assert told[-1][0] == "pass 2"
    assert told[-1][1] < 160_000
    assert not hasattr(estimator, "release_")


@pytest.mark.parametrize("name", ["ate", "uplift"])
def test_a_server_that_goes_away_while_it_reads_is_an_error(
    postgres: str, database: psycopg.Connection[Any], name: str
) -> None:
    write(database, study(1_000), TYPES)
    last = "y = (SELECT max(y) FROM claims)"
    deadly = f"SELECT * FROM claims WHERE CASE WHEN {last} THEN pg_terminate_backend(pg_backend_pid()) ELSE true END"
    estimator = ESTIMATORS[name]()
    with pytest.raises(InvalidInput, match="The connection to PostgreSQL was lost"):
        estimator.fit_table(postgres, query=deadly, **ROLES)
    assert not hasattr(estimator, "release_")


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "neither": ({}, "needs relation= or query="),
    "both": ({"relation": "claims", "query": "SELECT 1"}, "needs relation= or query="),
    "no table": ({"relation": "nothing"}, "there is no such table"),
    "no name": ({"relation": "a.b.c"}, "relation must be a table's name"),
    "injection": ({"relation": 'claims"; DROP TABLE claims; --'}, "there is no such table"),
    "not SQL": ({"query": "SELEC * FROM claims"}, "not valid SQL"),
    "two statements": ({"query": "SELECT 1; DELETE FROM claims"}, "not valid SQL"),
    "writes": ({"query": "SELECT * FROM forget()"}, "would write"),
    "twice": ({"query": "SELECT *, y FROM claims"}, "two columns with the same name"),
    "empty": ({"query": "SELECT * FROM claims WHERE false"}, "fewer than 10 records"),
    "one arm": ({"query": "SELECT * FROM claims WHERE t = 1"}, "One arm is empty"),
}
# What stands in place of a column.
SPOILED = {
    "no text": ("1 AS ward", "'ward' must hold text .* type is int4"),
    "no number": ("now() AS age", "'age' must hold numbers"),
    "NULL": ("nullif(y, (SELECT max(y) FROM claims)) AS y", "'y' has missing values"),
    "infinite": ("'Infinity'::float8 AS y", "'y' has infinite values"),
    "level": ("'secret' AS ward", "'ward' has values outside"),
    "int8": (f"{2**53 + 1}::int8 AS age", r"'age' has .* beyond 2\*\*53"),
    "numeric": (f"-{2**60}::numeric AS age", r"'age' has .* beyond 2\*\*53"),
    "third arm": ("2 AS t", "'t' must hold 0 or 1"),
    "absent": ("1 AS nothing", "table has no column 'y': it has 't', 'age'"),
}
for _reason, (_change, _words) in SPOILED.items():
    _name = "y" if _reason == "absent" else _change.split()[-1]
    _others = ", ".join(name for name in ("y", "t", "age", "ward", "dose") if name != _name)
    REFUSED[_reason] = ({"query": f"SELECT {_others}, {_change} FROM claims"}, _words)


@pytest.mark.parametrize(("options", "reason"), REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("name", ["ate", "uplift"])
def test_what_cannot_be_used_is_refused_in_words_that_quote_nothing(
    postgres: str, database: psycopg.Connection[Any], options: dict[str, Any], reason: str, name: str
) -> None:
    write(database, study(200), TYPES)
    database.execute(
        "CREATE FUNCTION forget() RETURNS SETOF claims LANGUAGE sql AS 'DELETE FROM claims; TABLE claims' VOLATILE"
    )
    with pytest.raises(InvalidInput, match=reason) as refusal:
        ESTIMATORS[name]().fit_table(postgres, **options, **ROLES)
    assert "secret" not in str(refusal.value)
    assert database.execute("SELECT count(*) FROM claims").fetchall() == [(200,)]


@pytest.mark.parametrize("value", ["5e-324", "1e-170", "-1e-170", "1e300"])
@pytest.mark.parametrize("name", ["uplift", "adum"])
def test_one_tiny_or_huge_outcome_decides_nothing_but_its_own_sum(
    postgres: str, database: psycopg.Connection[Any], name: str, value: str
) -> None:
    write(database, study(200), TYPES)
    database.execute("UPDATE claims SET y = %s WHERE ctid = (SELECT min(ctid) FROM claims)", [float(value)])
    rows = database.execute("SELECT y, t, age, ward, dose FROM claims").fetchall()
    frame = pd.DataFrame(rows, columns=["y", "t", "age", "ward", "dose"])
    bounds = replace(BOUNDS, outcome=(-100, 100))
    made: Any = {
        "uplift": lambda: Uplift(epsilon=1, delta=1e-6, bounds=bounds, by={"age": 2}),
        "adum": lambda: ADUM(epsilon=1, bounds=bounds, by={"age": 2}),
    }[name]
    found = []
    for table, options in ((frame, {}), (postgres, {"relation": "claims"})):
        with seeded_noise(5), record_sums() as recorded:
            made().fit_table(table, **options, **ROLES)
        found.append([(of, sums.tolist()) for of, _, sums, _ in recorded])
    assert found[0] == found[1]


def test_a_password_is_in_no_refusal() -> None:
    estimator = DifferenceInMeans(epsilon=1, bounds=Bounds(outcome=(0, 1)))
    for url in (
        "postgresql://anna:hush@127.0.0.1:1/nowhere",
        "postgresql://anna:hush@127.0.0.1:port/nowhere",
        "postgresql://anna:hush@/%zz",
        "postgresql+psycopg://anna:hush@127.0.0.1/nowhere",
    ):
        with pytest.raises(InvalidInput, match="address") as refusal:
            estimator.fit_table(url, relation="claims", **ROLES)
        assert not re.search("hush|anna", f"{refusal.value!r} {estimator!r} {refusal.value.__cause__!r}")


def test_a_unit_with_more_rows_than_declared_is_refused(postgres: str, database: psycopg.Connection[Any]) -> None:
    write(database, study(300).assign(patient=np.arange(300) // 3), TYPES | {"patient": "int8"})
    people = {"relation": "claims", "unit": "patient", **ROLES}
    with pytest.raises(InvalidInput, match="'patient' has more rows than the 2 declared"):
        ESTIMATORS["means"]().fit_table(postgres, max_rows=2, **people)
    release = ESTIMATORS["means"]().fit_table(postgres, max_rows=3, **people).release_
    assert "patient" in release.guarantee.unit
    database.execute("UPDATE claims SET patient = NULL WHERE patient = 7")
    with pytest.raises(InvalidInput, match="column 'patient' has missing values"):
        ESTIMATORS["means"]().fit_table(postgres, max_rows=3, **people)


@pytest.mark.parametrize("column", ["patient", "name"])
def test_halves_by_a_hash_are_the_same_as_those_of_a_frame(
    postgres: str, database: psycopg.Connection[Any], column: str
) -> None:
    frame = study(300).assign(patient=np.arange(300)).assign(name=lambda rows: "it's " + rows["patient"].astype(str))
    write(database, frame, TYPES | {"patient": "int8", "name": "text"})
    found = []
    for source, options in ((frame, {}), (postgres, {"relation": "claims"})):
        estimator = PrivATE(epsilon=1, delta=1e-6, bounds=BOUNDS, calibration="proved", split="private", random_state=5)
        with seeded_noise(2), record_sums() as sums:
            estimator.fit_table(source, split_by=column, **ROLES, **options)
        found.append([exact.tolist() for _, _, exact, _ in sums])
    assert found[0] == found[1]


def sent(rows: np.ndarray) -> bytes:
    """A binary COPY as the server writes it."""
    body = b"".join(
        struct.pack(">h", len(row)) + b"".join(struct.pack(">id", 8, value) for value in row) for row in rows
    )
    return b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0) + body + b"\xff\xff"


@given(st.integers(0, 40), st.integers(1, 4), st.integers(1, 12), st.lists(st.integers(0, 2_000), max_size=8))
def test_rows_survive_however_the_blocks_are_cut(n: int, width: int, rows: int, cuts: list[int]) -> None:
    values = np.random.default_rng(n).normal(size=(n, width))
    data = sent(values)
    ends = sorted({*(min(cut, len(data)) for cut in cuts), len(data)})
    blocks = [data[a:b] for a, b in zip([0, *ends], ends, strict=False)]
    found = list(decoded(blocks, width, rows))
    assert all(len(batch) > 0 for batch in found)
    np.testing.assert_array_equal(np.concatenate([np.empty((0, width)), *found]), values)


@given(st.integers(0, 20), st.integers(1, 3), st.data())
def test_a_stream_that_ends_early_is_refused(n: int, width: int, data: st.DataObject) -> None:
    whole = sent(np.ones((n, width)))
    end = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(InvalidInput, match="fewer or other rows"):
        list(decoded([whole[:end]], width, 4))


def test_nothing_of_the_connection_is_printed(postgres: str, database: psycopg.Connection[Any]) -> None:
    write(database, study(50), TYPES)
    with open_table(postgres, TableSpec(bounds=BOUNDS, **ROLES), Options(relation="claims")) as records:
        assert "host" not in repr(records)
        assert records.source.connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS  # type: ignore[attr-defined]
    assert records.source.connection.closed  # type: ignore[attr-defined]


def test_what_the_documentation_shows_runs(postgres: str, database: psycopg.Connection[Any]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "databases-and-clusters.md").read_text()
    shown = re.findall(r"```py\n(.*?)```", page, re.DOTALL)[0]
    database.execute(
        "CREATE TABLE stays AS SELECT k % 40 AS days, k % 2 = 0 AS treated, 18 + k % 80 AS age, 2020 + k % 6 AS year, "
        "CASE k % 3 WHEN 0 THEN 'north' ELSE 'south' END AS ward, k AS patient FROM generate_series(1, 900) AS k; "
        "CREATE TABLE patients AS SELECT patient, age FROM stays; "
        "CREATE TABLE visits AS SELECT days, treated, year, ward, patient FROM stays"
    )
    with seeded_noise(0):
        found: dict[str, Any] = {}
        exec(compile(shown.replace("postgresql://reader@db.example/hospital", postgres), "page", "exec"), found)
    assert len(found["uplift"].table()) == 16
    assert found["ate"].release_.n == 300
