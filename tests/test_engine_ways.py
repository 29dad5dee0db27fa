"""Which way an engine adds up must not hang on single records, and it reads a table in one way only."""

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

from discreet import Bounds, Uplift
from discreet.bounds import Levels
from discreet.engines import duck, open_table
from discreet.errors import InvalidInput, SourceFailed
from discreet.partition import Partition
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
        patch.setattr("discreet.engines.sources.Sweep", lambda *_: pytest.fail("a sweep took over"))
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
    with open_table(duckdb.from_arrow(rows()), outcome="y", treatment="t", bounds=BOUNDS) as records:
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
        opened, outcome="y", treatment="t", bounds=bounds, where={"g": "a"}, options=duck.Options(relation="it")
    ) as found:
        assert found.n == 50
