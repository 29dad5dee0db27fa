"""The same records, wherever they live and in whatever order, give the same integers and so the same release."""

import hashlib
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet import ATE, Bounds, DifferenceInMeans, Ledger, Uplift
from discreet.data.backends import TableSpec, open_table
from discreet.data.bounds import Levels, Range
from discreet.exceptions import InvalidInput, SourceFailed
from discreet.testing import record_sums, seeded_noise
from tests.seeded_fits import BOUNDS, ESTIMATORS, fitted, headline, study

# What was released before records could live anywhere else than in memory and files; the digest is of the integers of
# the first two rounds, which no linear algebra has touched.
BEFORE = {
    "ate": (1.505262540532, "82e9e1cf6dd77ffd", 25),
    "ate, add-remove": (1.5562156928982167, "ad4482089799157b", 26),
    "ate, known": (1.5487085196968404, "82e9e1cf6dd77ffd", 17),
    "att": (1.6644295791446668, "82e9e1cf6dd77ffd", 26),
    "ato": (1.5941960910604491, "82e9e1cf6dd77ffd", 26),
    "means": (1.9457172194728891, "82e9e1cf6dd77ffd", 10),
    "cate": (3.6691709132878696, "82e9e1cf6dd77ffd", 29),
    "uplift": (1.5929319980049617, "0ac34c69b5596d48", 3),
    "uplift, auto": (1.645639425958675, "70620838fadb2a1e", 3),
    "uplift, signed": (0.31100780383425974, "0ac34c69b5596d48", 4),
    "uplift, weighted": (1.4484801468598345, "0ac34c69b5596d48", 3),
    "policy value": (0.779623996458547, "1372633cbad3eacd", 21),
    "adum": (66.5253479893273, "6e83052696fb4755", 2),
}
FRAME = study()
WHOLE = FRAME.assign(y=FRAME["y"].round().astype(np.int64))
CELLS = [name for name in ESTIMATORS if "uplift" in name or name == "adum"]


def shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=5)


def parquet(frame: pd.DataFrame, folder: Path) -> str:
    frame.to_parquet(folder / "one.parquet", row_group_size=1_000)
    return str(folder / "one.parquet")


def parts(frame: pd.DataFrame, folder: Path) -> str:
    """Several files, rows in another order, row groups of any length, columns in another order too."""
    mixed = shuffled(frame)
    mixed[:1_234].to_parquet(folder / "part-0.parquet", row_group_size=77)
    mixed[1_234:5_000][mixed.columns[::-1]].to_parquet(folder / "part-1.parquet")
    mixed[5_000:].to_parquet(folder / "part-2.parquet", row_group_size=100, compression="zstd")
    return str(folder / "part-*.parquet")


def csv(frame: pd.DataFrame, folder: Path) -> str:
    shuffled(frame).to_csv(folder / "one.csv", index=False)
    return str(folder / "one.csv")


def relation(frame: pd.DataFrame, folder: Path) -> Any:
    return duckdb.connect().from_arrow(pa.Table.from_pandas(shuffled(frame)))


def connection(frame: pd.DataFrame, folder: Path) -> Any:
    opened = duckdb.connect(folder / "some.duckdb")
    opened.from_arrow(pa.Table.from_pandas(frame)).create("records")
    return opened, "SELECT * FROM records ORDER BY hash(age)"


TABLES = {
    "pandas": lambda frame, folder: shuffled(frame),
    "polars": lambda frame, folder: pl.from_pandas(shuffled(frame)),
    "lazy": lambda frame, folder: pl.scan_parquet(parts(frame, folder)),
    "arrow": lambda frame, folder: pa.Table.from_pandas(shuffled(frame)),
    "dataset": lambda frame, folder: ds.dataset(parquet(shuffled(frame), folder)),
    "parquet": parquet,
    "parts": parts,
    "csv": csv,
    "relation": relation,
    "connection": connection,
}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, bool], Any]:
    found = {(name, False): fitted(name, FRAME) for name in ESTIMATORS}
    return found | {(name, True): fitted(name, WHOLE) for name in CELLS}


def assert_same(one: Any, other: Any) -> None:
    assert headline(one[0]) == headline(other[0])
    assert len(one[1]) == len(other[1])
    for left, right in zip(one[1], other[1], strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("name", BEFORE)
def test_a_seeded_fit_releases_what_it_always_did(name: str, expected: Any) -> None:
    release, sums = expected[name, False]
    estimate, digest, rounds = BEFORE[name]
    assert headline(release) == pytest.approx(estimate, rel=1e-9)
    assert hashlib.sha256(sums[0].tobytes() + sums[1].tobytes()).hexdigest()[:16] == digest
    assert len(sums) == rounds


# Rounds of estimates without cells are alike to an engine: one of them is tried everywhere, the others in few places.
STREAMED = [
    ("parts", "ate"),
    ("lazy", "ate"),
    ("relation", "ate, add-remove"),
    ("csv", "ate, known"),
    ("parts", "cate"),
    ("parts", "policy value"),
    ("lazy", "policy value"),
    ("parts", "did"),
    ("lazy", "did"),
    ("relation", "did"),
]
EVERYWHERE = [(kind, name) for kind in TABLES for name in ["means", *CELLS]]


@pytest.mark.parametrize(("kind", "name"), EVERYWHERE + STREAMED)
def test_every_engine_gives_the_same_bits(kind: str, name: str, expected: Any, tmp_path: Path) -> None:
    assert_same(fitted(name, TABLES[kind](FRAME, tmp_path)), expected[name, False])


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", CELLS)
def test_outcomes_that_engines_count_give_the_same_bits(kind: str, name: str, expected: Any, tmp_path: Path) -> None:
    assert_same(fitted(name, TABLES[kind](WHOLE, tmp_path)), expected[name, True])


def test_two_processes_give_the_same_bits_as_one(tmp_path: Path, expected: Any) -> None:
    told: list[int] = []
    pattern = parts(FRAME, tmp_path)
    both = fitted("ate, known", pattern, workers=2, progress=lambda what, done, total: told.append(done))
    assert_same(both, expected["ate, known", False])
    assert max(told) == len(FRAME)


AWKWARD = Bounds(
    outcome=(0, 2),
    outcome_fill=1,
    covariates={
        "x": Range(-1, 1, fill=0.25),
        "code": Levels((1, 2, 5), other=5, fill=2),
        "word": Levels(("a", "b"), other="b", fill="a"),
        "flag": [False, True],
        "price": (0, 10),
    },
    treatment=("no", "yes"),
)


def awkward(n: int = 3_000) -> pa.Table:
    """NULL and NaN, values on edges and beyond them, dictionaries, booleans, decimals."""
    rng = np.random.default_rng(3)
    x = rng.choice(np.array([-np.nextafter(0.5, 1), -0.5, -1.0, 0.0, -0.0, 0.5, 1.0, 3.0, np.nan, 5e-324]), n)
    y = pa.array(rng.choice(np.array([0, 1, 2, 7, -3]), n), mask=rng.random(n) < 0.1)
    prices = [None if k == 0 else Decimal(int(k)) / 100 for k in rng.integers(0, 1_500, n)]
    return pa.table(
        {
            "y": y,
            "x": pa.array(x, mask=rng.random(n) < 0.1),
            "code": pa.array(rng.integers(0, 7, n), pa.int32(), mask=rng.random(n) < 0.1),
            "word": pa.array(rng.choice(np.array(["a", "b", "c", None]), n)).dictionary_encode(),
            "flag": pa.array(rng.random(n) < 0.5),
            "price": pa.array([Decimal("0.10") if price is None else price for price in prices], pa.decimal128(9, 2)),
            "t": pa.array(np.where(np.arange(n) % 3, "no", "yes")),
        }
    )


def awkward_tables(folder: Path) -> dict[str, Any]:
    table = awkward()
    pq.write_table(table, folder / "it.parquet", row_group_size=500)
    opened = duckdb.connect()
    opened.from_arrow(table).create("it")
    return {
        "arrow": table,
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "lazy": pl.from_arrow(table).lazy(),
        "parquet": str(folder / "it.parquet"),
        "relation": opened.table("it"),
        "dataset": ds.dataset(folder / "it.parquet"),
    }


@pytest.mark.parametrize("by", [{"x": [-1, -0.5, 0, 0.5, 1], "code": "levels"}, {"word": "levels", "flag": "levels"}])
def test_missing_values_edges_dictionaries_and_booleans_mean_the_same_everywhere(tmp_path: Path, by: Any) -> None:
    found = {}
    for kind, table in awkward_tables(tmp_path).items():
        with seeded_noise(0), record_sums() as recorded:
            Uplift(epsilon=1, bounds=AWKWARD, by=by).fit_table(table, outcome="y", treatment="t")
        found[kind] = np.concatenate([sums for _, _, sums, _ in recorded])
    for kind, sums in found.items():
        np.testing.assert_array_equal(sums, found["arrow"], err_msg=kind)


def test_decimals_are_the_nearest_floats_everywhere(tmp_path: Path) -> None:
    def kernel(chunk: Any) -> Any:
        bits: Any = np.ascontiguousarray(chunk.x[:, 4]).view(np.int64)
        return (bits >> 12).sum(keepdims=True)

    found = set()
    for table in awkward_tables(tmp_path).values():
        with open_table(table, TableSpec(outcome="y", treatment="t", bounds=AWKWARD)) as records:
            found.add(int(records.sum(kernel)[0]))
    prices = np.array([float(price) for price in awkward()["price"].to_pylist()])
    assert found == {int((np.clip((prices - 5) / 5, -1, 1).view(np.int64) >> 12).sum())}


SIMPLE = Bounds(outcome=(0, 1), covariates={"x": (0, 10)})
BEYOND = {
    "whole numbers": pa.array([2**53 + 1, *range(39)], pa.int64()),
    "unsigned ones": pa.array([2**63, *range(39)], pa.uint64()),
    "decimals": pa.array([Decimal(2**60), *map(Decimal, range(39))], pa.decimal128(38, 0)),
}


def simple(x: Any) -> pa.Table:
    return pa.table({"y": np.arange(40) % 2, "t": np.arange(40) // 2 % 2, "x": x})


@pytest.mark.parametrize("x", BEYOND.values(), ids=BEYOND)
@pytest.mark.parametrize("kind", ["arrow", "lazy", "relation", "parquet", "csv"])
def test_numbers_beyond_float_precision_are_refused_by_every_engine(tmp_path: Path, kind: str, x: Any) -> None:
    table = simple(x)
    pq.write_table(table, tmp_path / "it.parquet")
    pd.DataFrame(table.to_pydict()).to_csv(tmp_path / "it.csv", index=False)
    tables = {
        "arrow": table,
        "lazy": pl.from_arrow(table).lazy(),
        "relation": duckdb.connect().from_arrow(table),
        "parquet": str(tmp_path / "it.parquet"),
        "csv": str(tmp_path / "it.csv"),
    }
    uplift = Uplift(epsilon=1, bounds=SIMPLE, by={"x": 2})
    means = ATE(epsilon=1, delta=1e-6, bounds=SIMPLE)
    for estimator in (uplift, means):
        with pytest.raises(InvalidInput, match=r"column 'x'.*beyond 2\*\*53, which float64 cannot distinguish"):
            estimator.fit_table(tables[kind], outcome="y", treatment="t")
        assert not hasattr(estimator, "release_")


UNUSABLE = {
    "a missing value": ({"x": None}, "column 'x'.* has missing values"),
    "NaN": ({"x": float("nan")}, "column 'x'.* has missing values"),
    "infinity": ({"x": float("inf")}, "column 'x'.* has infinite values"),
    "less than infinity": ({"x": float("-inf")}, "column 'x'.* has infinite values"),
    "a third arm": ({"t": 2}, "must hold 0 or 1"),
    "no arm": ({"t": None}, "must hold 0 or 1"),
    "no outcome": ({"y": None}, "has missing values"),
}


@pytest.mark.parametrize(("change", "reason"), UNUSABLE.values(), ids=UNUSABLE)
@pytest.mark.parametrize("whole", [True, False])
def test_engines_that_add_up_themselves_refuse_what_arrays_refuse(change: Any, reason: str, whole: bool) -> None:
    rows = simple(np.arange(40) / 4).to_pylist()
    rows[17] |= change
    y = pa.int8() if whole else pa.float64()
    table = pa.Table.from_pylist(rows, pa.schema([("y", y), ("t", pa.int16()), ("x", pa.float64())]))
    for engine in (pl.from_arrow(table).lazy(), duckdb.connect().from_arrow(table), table):
        with pytest.raises(InvalidInput, match=reason):
            Uplift(epsilon=1, bounds=SIMPLE, by={"x": 4}).fit_table(engine, outcome="y", treatment="t")


# Arrow leaves NaN out of a file's statistics, and DuckDB believes that no number is larger than the largest there.
HIDDEN = {
    "a range": ("x", {"x": (0, 10)}, {"x": 4}, "column 'x' has missing values"),
    "one part": ("x", {"x": (-50, 100)}, {"x": 3}, "column 'x' has missing values"),
    "uneven parts": ("x", {"x": (-50, 100)}, {"x": [-50, -1, 20, 100]}, "column 'x' has missing values"),
    "levels": ("one", {"one": [1.0, 2.0]}, {"one": "levels"}, "column 'one' has missing values"),
    "a probability": ("e", {"x": (0, 10)}, {"x": 4}, "column 'e' must lie inside"),
}


def hidden(column: str, whole: bool) -> pa.Table:
    x = np.arange(40) / 4
    columns = {"x": x, "e": np.full(40, 0.5), "one": np.ones(40)}
    columns[column][17] = np.nan
    y, t = np.arange(40) % 2, np.arange(40) // 2 % 2
    return pa.table(columns | {"y": y if whole else y * 1.0, "t": t})


@pytest.mark.parametrize(("column", "covariates", "by", "reason"), HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("whole", [True, False])
def test_numbers_that_statistics_hide_are_refused(
    column: str, covariates: Any, by: Any, reason: str, whole: bool, tmp_path: Path
) -> None:
    pq.write_table(hidden(column, whole), tmp_path / "it.parquet")
    bounds = Bounds(outcome=(0, 1), covariates=covariates, propensity=(0.1, 0.9))
    uplift = Uplift(epsilon=1, bounds=bounds, by=by, propensity="e" if column == "e" else None)
    with pytest.raises(InvalidInput, match=reason):
        uplift.fit_table(str(tmp_path / "it.parquet"), outcome="y", treatment="t")


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("where", [None, {"x": (0, 9)}, {"one": [1.0]}])
def test_numbers_that_statistics_hide_are_filled_or_left_out(where: Any, whole: bool, tmp_path: Path) -> None:
    table = hidden("one" if where == {"one": [1.0]} else "x", whole)
    pq.write_table(table, tmp_path / "it.parquet")
    found = []
    for source in (table, str(tmp_path / "it.parquet")):
        with seeded_noise(0), record_sums() as recorded:
            Uplift(
                epsilon=1, bounds=Bounds(outcome=(0, 1), covariates={"x": Range(0, 20, fill=1)}), by={"x": 4}
            ).fit_table(source, outcome="y", treatment="t", where=where)
        found.append([sums.tolist() for _, _, sums, _ in recorded])
    assert found[0] == found[1]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("ends", [(-3, 3), (0, 0.7), (-32, 0.5)])
def test_numbers_next_to_edges_and_far_out_are_in_the_same_cells_everywhere(ends: Any, whole: bool) -> None:
    edges = np.linspace(*ends, 11)
    x = np.concatenate(
        [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), [1e9, -1e9, 1.7e308, -1.7e308]]
    )
    y = np.resize([0, 1, -5, 9, 1], len(x))
    table = pa.table({"y": y if whole else y * 1.0, "t": np.arange(len(x)) % 2, "x": x})
    found = []
    for source in (table, duckdb.connect().from_arrow(table)):
        with seeded_noise(0), record_sums() as recorded:
            Uplift(epsilon=1, bounds=Bounds(outcome=(0, 1), covariates={"x": ends}), by={"x": 10}).fit_table(
                source, outcome="y", treatment="t"
            )
        found.append([sums.tolist() for _, _, sums, _ in recorded])
    assert found[0] == found[1]


def test_cells_come_from_the_bounds_and_empty_ones_are_there_too() -> None:
    table = duckdb.connect().from_arrow(simple(np.full(40, 3.0)))
    with seeded_noise(0), record_sums() as recorded:
        Uplift(epsilon=1, bounds=SIMPLE, by={"x": 10}).fit_table(table, outcome="y", treatment="t")
    pairs = recorded[-1][2].reshape(10, 4)
    assert pairs.shape == (10, 4)
    assert pairs[3].all()
    assert not np.delete(pairs, 3, axis=0).any()


def test_a_table_that_changes_between_rounds_is_refused_and_nothing_is_released(tmp_path: Path) -> None:
    path = Path(parquet(FRAME, tmp_path))
    other = FRAME.assign(y=FRAME["y"].to_numpy()[::-1])
    estimator = DifferenceInMeans(epsilon=1, bounds=BOUNDS)

    def swap(what: str, done: int, total: int) -> None:
        if what == "pass 2":
            other.to_parquet(path, row_group_size=1_000)

    with pytest.raises(SourceFailed, match=r"changed while they were being read.*stays spent"):
        estimator.fit_table(path, outcome="y", treatment="t", progress=swap)
    assert not hasattr(estimator, "release_")


def test_the_same_number_of_other_rows_is_noticed_by_the_checksum() -> None:
    opened = duckdb.connect()
    opened.from_arrow(pa.Table.from_pandas(FRAME)).create("it")

    def swap(what: str, done: int, total: int) -> None:
        if what == "pass 2" and done == total:
            opened.cursor().execute("UPDATE it SET y = -y WHERE age > 94")

    with pytest.raises(SourceFailed, match="changed while they were being read"):
        DifferenceInMeans(epsilon=1, bounds=BOUNDS).fit_table(
            opened.sql("SELECT * FROM it"), outcome="y", treatment="t", progress=swap
        )


def test_a_truncated_file_is_refused_and_no_part_of_it_is_released(tmp_path: Path) -> None:
    path = Path(parquet(FRAME, tmp_path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InvalidInput, match="not readable as Parquet"):
        ATE(epsilon=1, delta=1e-6, bounds=BOUNDS).fit_table(path, outcome="y", treatment="t")
    # The end, which says what is where, is intact, but pages in the middle are not.
    path.write_bytes(whole[:20_000] + os.urandom(len(whole) // 4) + whole[20_000 + len(whole) // 4 :])
    for estimator in (ATE(epsilon=1, delta=1e-6, bounds=BOUNDS), Uplift(epsilon=1, bounds=BOUNDS, by={"age": 4})):
        with pytest.raises(InvalidInput):
            estimator.fit_table(path, outcome="y", treatment="t")
        assert not hasattr(estimator, "release_")


def test_a_full_disk_is_one_sentence_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise duckdb.IOException("No space left on device while writing secret")

    monkeypatch.setattr("discreet.data.backends.duckdb.answered", full)
    estimator = Uplift(epsilon=1, bounds=BOUNDS, by={"age": 4})
    for table in (parquet(FRAME, tmp_path), relation(FRAME, tmp_path)):
        with pytest.raises(InvalidInput, match=r"could not be read to its end: check .* the space left") as refusal:
            estimator.fit_table(table, outcome="y", treatment="t")
        assert "secret" not in str(refusal.value)
        assert not hasattr(estimator, "release_")


def test_a_parquet_table_lets_go_of_its_connection(tmp_path: Path) -> None:
    pq.write_table(simple(np.arange(40) / 4), tmp_path / "it.parquet")
    with open_table(str(tmp_path / "it.parquet"), TableSpec(outcome="y", treatment="t", bounds=SIMPLE)) as records:
        connection: duckdb.DuckDBPyConnection = records.source.connection  # type: ignore[attr-defined]
        connection.execute("SELECT 1")
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT 1")


def test_names_of_directories_are_no_columns(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    FRAME.to_parquet(tmp_path / "year=2020" / "one.parquet")
    with pytest.raises(InvalidInput, match="no column 'year'"):
        fitted("uplift", str(tmp_path / "*" / "*.parquet"), where={"year": 2020})


def test_an_interrupt_ends_the_fit_and_leaves_no_release(tmp_path: Path) -> None:
    def stop(what: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    estimator = DifferenceInMeans(epsilon=1, bounds=BOUNDS)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit_table(parquet(FRAME, tmp_path), outcome="y", treatment="t", progress=stop)
    assert not hasattr(estimator, "release_")


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "arrays": (np.zeros((40, 3)), {}, "arrays go to fit"),
    "a reader": (pa.Table.from_pandas(FRAME).to_reader(), {}, "read only once, but every round reads it again"),
    "a series": (pl.Series("y", [1.0]), {}, "table must be a frame of polars"),
    "a connection without a query": (duckdb.connect(), {}, "query must be the text of a SELECT"),
    "a query that fails": (duckdb.connect(), {"query": "SELECT secret FROM nowhere"}, "try it there first"),
    "a query of a frame": (FRAME, {"query": "SELECT 1"}, "belong to a database"),
    "a query of a lazy frame": (pl.from_pandas(FRAME).lazy(), {"query": "SELECT 1"}, "belong to a database"),
    "a lazy frame without a column": (pl.from_pandas(FRAME).lazy(), {"outcome": "z"}, "table has no column 'z'"),
    "a frame without a column": (FRAME, {"outcome": "z"}, "table has no column 'z'"),
    "text for numbers": (pl.from_pandas(FRAME.assign(z="a")).lazy(), {"outcome": "z"}, "column 'z' must hold numbers"),
    "no rows": (FRAME[:0], {}, "fewer than 10"),
    "no lazy rows": (pl.from_pandas(FRAME[:0]).lazy(), {}, "fewer than 10"),
    "no rows in DuckDB": (duckdb.connect().from_arrow(pa.Table.from_pandas(FRAME[:0])), {}, "fewer than 10"),
    "a column twice": (FRAME, {"outcome": "t"}, "must be different columns"),
    "a number for a name": (FRAME, {"outcome": 3}, "outcome must be the name of a column"),
}


@pytest.mark.parametrize(("table", "changes", "reason"), REFUSED.values(), ids=REFUSED)
def test_tables_that_cannot_be_used_are_refused(table: Any, changes: Any, reason: str) -> None:
    estimator = Uplift(epsilon=1, bounds=BOUNDS, by={"age": 4})
    with pytest.raises(InvalidInput, match=reason):
        estimator.fit_table(table, **({"outcome": "y", "treatment": "t"} | changes))


def test_a_number_of_workers_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    for workers in (0, True, 1_000):
        with pytest.raises(InvalidInput, match="workers must be a whole number from 1"):
            fitted("uplift", parquet(FRAME, tmp_path), workers=workers)


@pytest.mark.parametrize("kind", sorted(set(TABLES) - {"parquet", "parts"}))
def test_engines_that_cannot_divide_a_table_refuse_processes_before_anything_is_spent(
    kind: str, tmp_path: Path
) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("trial", epsilon=3.0, delta=0.0)
    table = TABLES[kind](FRAME, tmp_path)
    with pytest.raises(InvalidInput, match=r"workers= is for Parquet files.*, so leave it out\."):
        fitted("uplift", table, workers=2, ledger=ledger, dataset="trial")
    assert {request.state for request in ledger.requests("trial")} == {"cancelled"}
    with pytest.raises(InvalidInput, match="workers must be a whole number from 1"):
        fitted("uplift", table, workers=0)
    fitted("uplift", table, workers=1)
