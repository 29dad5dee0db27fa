"""Which way an engine adds up must not depend on single records, and it reads a table in one way only."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, DifferenceInMeans, Ledger, Uplift
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends import duckdb as duck
from discreet.data.backends.polars import PolarsSource
from discreet.data.bounds import Levels
from discreet.data.partition import Partition
from discreet.estimators._allocation import CROSS, LEVEL
from discreet.exceptions import InvalidInput, SourceFailed
from discreet.papers import ADUM, PrivATE
from discreet.testing import frozen_noise, record_sums

BOUNDS = Bounds(outcome=(0, 1), covariates={"x1": (-1, 1), "x2": (-1, 1)})
BY = {"x1": 2, "x2": 2}
HUGE = 1.7e308


def rows(n: int = 200, huge: bool = False, **more: Any) -> pa.Table:
    x = np.zeros(n)
    x[0] = HUGE if huge else 0.0
    return pa.table(
        {"t": pa.array(np.arange(n) % 2, pa.int32()), "y": pa.array(np.arange(n) // 2 % 2, pa.int32())}
        | {"x1": x, "x2": x}
        | more
    )


def sums(table: Any, bounds: Bounds = BOUNDS, by: Any = BY, **options: Any) -> list[Any]:
    with frozen_noise(), record_sums() as recorded:
        Uplift(epsilon=1, delta=1e-6, bounds=bounds, by=by).fit_table(table, outcome="y", treatment="t", **options)
    return [found.tolist() for _, _, found, _ in recorded]


@pytest.fixture
def no_sweeps(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Engines that add up themselves, and must not ask for anything else."""
    with monkeypatch.context() as patch:
        patch.setattr("discreet.data.backends.base.Sweep", lambda *_: pytest.fail("a sweep took over"))
        yield


@pytest.mark.parametrize(
    "engine", [duckdb.from_arrow, lambda table: pl.from_arrow(table).lazy()], ids=["duckdb", "polars"]
)
def test_large_numbers_do_not_decide_how_an_engine_adds_up(engine: Any, no_sweeps: None) -> None:
    table = rows(huge=True)
    assert sums(engine(table)) == sums(table)


@pytest.mark.parametrize("change", ["short", "unusable"])
def test_a_sweep_without_objection_does_not_add_up_instead(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = duck.DuckSource.group

    def group(self: Any, *asked: Any) -> Any:
        found = honest(self, *asked)
        assert found is not None
        fewer = np.maximum(found.counts - 1, 0)
        return replace(found, counts=fewer) if change == "short" else replace(found, usable=False)

    monkeypatch.setattr(duck.DuckSource, "group", group)
    with pytest.raises(InvalidInput, match="reads it in two ways"):
        sums(duckdb.from_arrow(rows()))


def test_later_rounds_say_that_earlier_ones_were_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    honest, calls = duck.DuckSource.group, []

    def group(self: Any, *asked: Any) -> Any:
        calls.append(1)
        found = honest(self, *asked)
        assert found is not None
        return replace(found, usable=len(calls) == 1)

    monkeypatch.setattr(duck.DuckSource, "group", group)
    with open_table(duckdb.from_arrow(rows()), TableSpec(outcome="y", treatment="t", bounds=BOUNDS)) as records:
        assert records.group_sums(Partition.of(BY, BOUNDS), ()) is not None
        with pytest.raises(SourceFailed, match=r"reads it in two ways.*stays spent"):
            records.group_sums(Partition.of(BY, BOUNDS), ())


WAYS = {
    "another case": ({"y": "Y"}, {}, "has no column 'y' in some file, but 'Y'"),
    "another type": ({}, {"x1": pa.float32()}, "column 'x1' has other types in some files"),
    "another type of the unit": ({}, {"id": pa.string()}, "column 'id' has other types in some files"),
}


@pytest.mark.parametrize(("names", "types", "reason"), WAYS.values(), ids=WAYS)
def test_parquet_files_that_differ_are_refused(names: Any, types: Any, reason: str, tmp_path: Path) -> None:
    table = rows(id=pa.array(range(200)))
    pq.write_table(table, tmp_path / "a.parquet")
    for name, kind in types.items():
        table = table.set_column(table.column_names.index(name), name, table[name].cast(kind))
    pq.write_table(table.rename_columns([names.get(name, name) for name in table.column_names]), tmp_path / "b.parquet")
    with pytest.raises(InvalidInput, match=reason):
        sums(str(tmp_path / "*.parquet"), unit="id", max_rows=2)


def test_texts_of_any_kind_and_columns_that_a_file_lacks_are_no_difference(tmp_path: Path) -> None:
    bounds = Bounds(outcome=(0, 1), outcome_fill=1, covariates={"g": Levels(("a", "b"))})
    words = pa.array(["a", "b"] * 100)
    one = rows(g=words.dictionary_encode())
    pq.write_table(one, tmp_path / "a.parquet")
    pq.write_table(rows(g=words.cast(pa.large_string())).drop_columns("y"), tmp_path / "b.parquet")
    both = pa.concat_tables([rows(g=words), rows(g=words).drop_columns("y")], promote_options="default")
    assert sums(str(tmp_path / "*.parquet"), bounds, {"g": "levels"}) == sums(both, bounds, {"g": "levels"})


@pytest.mark.parametrize("second", ["y", "Y"])
def test_two_columns_of_one_name_are_refused(second: str, tmp_path: Path) -> None:
    table = rows()
    double = pa.Table.from_arrays([*table.columns, table["x1"]], names=[*table.column_names, second])
    pq.write_table(double, tmp_path / "double.parquet")
    opened = duckdb.connect()
    opened.from_arrow(table).create("it")
    asked = f'SELECT *, x1 AS "{second}" FROM it'
    for each in (str(tmp_path / "double.parquet"), (opened, asked), opened.sql(asked)):
        with pytest.raises(InvalidInput, match="two columns with the same name, apart from case"):
            sums(each)


@pytest.mark.parametrize("how", ["SET default_collation = 'NOCASE'", "SELECT 1"])
def test_text_is_compared_to_the_letter_whatever_its_collation(how: str) -> None:
    bounds = Bounds(outcome=(0, 1), covariates={"g": Levels(("a", "b"), other="b")})
    table = rows(g=["A", "a", "B", "c"] * 50)
    opened = duckdb.connect()
    opened.execute(how)
    opened.execute("CREATE TABLE it (t INT, y INT, x1 DOUBLE, x2 DOUBLE, g VARCHAR COLLATE NOCASE)")
    opened.register("table_", table)
    opened.execute("INSERT INTO it SELECT * FROM table_")
    by = {"g": "levels"}
    assert sums(opened, bounds, by, relation="it") == sums(table, bounds, by)
    with open_table(
        opened,
        TableSpec(outcome="y", treatment="t", bounds=bounds, where={"g": "a"}),
        duck.Options(relation="it"),  # type: ignore[attr-defined]
    ) as found:
        assert found.n == 50


UNITS = rows(400, id=np.arange(400) // 2)


def changing(method: str, monkeypatch: pytest.MonkeyPatch, source: Any, change: Any) -> None:
    """Let somebody else change the table after a method of the source has run for the first time."""
    honest, calls = getattr(source, method), []

    def changed(self: Any, *asked: Any) -> Any:
        found = honest(self, *asked)
        calls.append(1)
        if len(calls) == 1:
            change()
        return found

    monkeypatch.setattr(source, method, changed)


ESTIMATORS = [
    Uplift(epsilon=1, delta=1e-6, bounds=BOUNDS, by=BY),
    DifferenceInMeans(epsilon=1, delta=1e-6, bounds=BOUNDS),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("kind", ["connection", "relation", "polars"])
def test_units_are_counted_in_the_rows_that_are_added_up(
    kind: str, estimator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = duckdb.connect()
    opened.from_arrow(UNITS).create("it")
    state = [pl.DataFrame(UNITS)]

    def change() -> None:
        opened.execute("UPDATE it SET id = 0, y = 1 WHERE id < 100")
        state[0] = state[0].with_columns(id=pl.lit(0, pl.Int64))

    tables = {
        "connection": opened,
        "relation": opened.sql("SELECT * FROM it"),
        "polars": state[0].lazy().map_batches(lambda _: state[0]),
    }
    table = tables[kind]
    with frozen_noise(), record_sums() as before:
        estimator.fit_table(UNITS, outcome="y", treatment="t", unit="id", max_rows=2)
    changing("most_rows", monkeypatch, PolarsSource if kind == "polars" else duck.DuckSource, change)
    options = {"relation": "it"} if kind == "connection" else {}
    if kind != "connection":
        with pytest.raises(InvalidInput, match="a value of column 'id' has more rows than the 2 declared"):
            estimator.fit_table(table, outcome="y", treatment="t", unit="id", max_rows=2, **options)
        return
    # One transaction sees one state.
    with frozen_noise(), record_sums() as after:
        estimator.fit_table(table, outcome="y", treatment="t", unit="id", max_rows=2, **options)
    # Of tables in memory the last questions, the score and the level, are about units and not about rows.
    rows, same = ([each for each in found if each[0] not in ("score", LEVEL, CROSS)] for found in (before, after))
    assert len(rows) > 2 or isinstance(estimator, Uplift)
    for one, other in zip(rows, same, strict=True):
        np.testing.assert_array_equal(one[2], other[2])
    # It has ended: the change is seen from now on.
    with pytest.raises(InvalidInput, match="a value of column 'id' has more rows"):
        estimator.fit_table(table, outcome="y", treatment="t", unit="id", max_rows=2, **options)


def test_a_memory_limit_of_duckdb_that_is_too_small_is_named_and_spends_nothing(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "some.duckdb") as made:
        made.execute("CREATE TABLE it AS SELECT random() AS y, (id % 2)::int AS t, id FROM range(400000) AS r(id)")
    little = {"memory_limit": "4MB", "temp_directory": "", "threads": 1}
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("trial", epsilon=3.0, delta=0.0)
    estimator = DifferenceInMeans(epsilon=1, bounds=Bounds(outcome=(0, 1)))
    with duckdb.connect(tmp_path / "some.duckdb", read_only=True, config=little) as opened:
        for more in ({"query": "SELECT * FROM it ORDER BY y"}, {"query": "it", "unit": "id", "max_rows": 1}):
            with pytest.raises(InvalidInput, match="more memory than DuckDB may use: raise its memory_limit"):
                estimator.fit_table(opened, outcome="y", treatment="t", ledger=ledger, dataset="trial", **more)
    assert {request.state for request in ledger.requests("trial")} == {"cancelled"}


def test_cells_that_change_between_passes_are_noticed() -> None:
    opened = duckdb.connect()
    opened.from_arrow(UNITS).create("it")
    with open_table(opened.sql("FROM it"), TableSpec(outcome="y", treatment="t", bounds=BOUNDS)) as records:
        records.group_sums(Partition.of(BY, BOUNDS), ())
        opened.execute("UPDATE it SET x1 = -1 WHERE id < 100")
        with pytest.raises(SourceFailed, match=r"changed while they were being read.*stays spent"):
            records.group_sums(Partition.of(BY, BOUNDS), ())


def test_a_connection_is_told_once_what_to_read() -> None:
    opened = duckdb.connect()
    opened.from_arrow(rows()).create("it")
    for table, options in (
        (opened, {"query": "FROM it", "relation": "it"}),
        ((opened, "FROM it"), {"query": "FROM it"}),
    ):
        with pytest.raises(InvalidInput, match="give one, and only once"):
            sums(table, **options)


def test_what_a_cursor_does_not_see_is_said_and_the_way_out_works() -> None:
    opened = duckdb.connect()
    opened.register("frame", rows())
    opened.execute("CREATE TEMP TABLE short_lived AS FROM frame")
    for name in ("frame", "short_lived"):
        with pytest.raises(InvalidInput, match=r"give connection\.sql\(\.\.\.\) itself"):
            sums(opened, relation=name)
        assert sums(opened.sql(f"FROM {name}")) == sums(rows())


def test_a_file_that_changes_under_polars_is_a_sentence(tmp_path: Path) -> None:
    pq.write_table(rows(4_000), tmp_path / "it.parquet")
    with open_table(
        pl.scan_parquet(tmp_path / "it.parquet"), TableSpec(outcome="y", treatment="t", bounds=BOUNDS)
    ) as records:
        records.group_sums(Partition.of(BY, BOUNDS), ())
        pq.write_table(rows(), tmp_path / "it.parquet")
        with pytest.raises(SourceFailed, match="stays spent"):
            records.group_sums(Partition.of(BY, BOUNDS), ())


@pytest.mark.parametrize("kind", [pa.uint8(), pa.uint32(), pa.uint64(), pa.int64(), pa.bool_()], ids=str)
def test_whole_numbers_of_every_type_are_counted(kind: Any, no_sweeps: None) -> None:
    table = rows()
    for j, name in enumerate(("t", "y")):
        table = table.set_column(j, name, table[name].cast(kind))
    assert sums(pl.from_arrow(table).lazy()) == sums(duckdb.from_arrow(table)) == sums(rows())


@pytest.mark.parametrize("name", ["t", "y"])
@pytest.mark.parametrize("fill", [None, 1.0])
def test_whole_numbers_beyond_all_bounds_are_refused(name: str, fill: float | None) -> None:
    bounds = replace(BOUNDS, outcome_fill=fill)
    table = rows().set_column("ty".index(name), name, pa.array([2**63, *[0, 1] * 99, 1], pa.uint64()))
    with pytest.raises(InvalidInput, match=r"beyond 2\*\*53|must hold 0 or 1"):
        sums(pl.from_arrow(table).lazy(), bounds)


FILTERED = {"where": {"x1": (-1, None)}}
CHOSEN = "the filter that chose the records"


@pytest.mark.filterwarnings("ignore::discreet.papers.common.claims.UnprovedClaim")
@pytest.mark.parametrize("lazy", [True, False])
def test_methods_that_look_at_all_records_say_that_a_filter_is_public(lazy: bool) -> None:
    frame: Any = pl.DataFrame(UNITS)
    table = frame.lazy() if lazy else frame
    halves = PrivATE(epsilon=1, delta=1e-6, bounds=BOUNDS, calibration="proved", split="private")
    ranged = ADUM(epsilon=1, bounds=BOUNDS, by=BY, calibration="published")
    made = [(halves, {"split_by": "id"}), (ranged, {})] + ([] if lazy else [(halves, {})])
    for estimator, options in made:
        for chosen in ({}, FILTERED):
            estimator.fit_table(table, outcome="y", treatment="t", **options, **chosen)  # type: ignore[attr-defined]
            assert estimator.guarantee_.public.count(CHOSEN) == len(chosen)  # type: ignore[attr-defined]
