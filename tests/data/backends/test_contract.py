"""Every backend keeps the contract that `discreet.testing.check_backend` states."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from discreet.data import backends
from discreet.data.backends import BackendEntry
from discreet.data.backends.base import Options
from discreet.data.backends.scan import Sweep, Tally
from discreet.data.backends.text.csv import CsvSource
from discreet.exceptions import InvalidInput
from discreet.testing import check_backend

Write = Callable[[pa.Table], Any]


def parquet(folder: Path) -> Write:
    """Rows as a file, which can be written again."""

    def write(rows: pa.Table) -> str:
        pq.write_table(rows, folder / "rows.parquet", row_group_size=7)
        return str(folder / "rows.parquet")

    return write


def csv(folder: Path) -> Write:
    """Rows as text."""

    def write(rows: pa.Table) -> str:
        pyarrow.csv.write_csv(rows, folder / "rows.csv")
        return str(folder / "rows.csv")

    return write


def connection(folder: Path) -> Write:
    """Rows in a table of a database."""

    def write(rows: pa.Table) -> Any:
        opened = duckdb.connect()
        opened.from_arrow(rows).create("them")
        return opened, "FROM them"

    return write


# By the name of their backend in the registry, and how they are given to it.
WRITERS: dict[tuple[str, str], Callable[[Path], Write]] = {
    ("files", "CSV"): csv,
    ("files", "Parquet"): parquet,
    ("memory", "pandas"): lambda _: lambda rows: rows.to_pandas(),
    ("polars", "frame"): lambda _: pl.from_arrow,
    ("polars", "lazy"): lambda _: lambda rows: pl.DataFrame(pl.from_arrow(rows)).lazy(),
    ("arrow", "table"): lambda _: lambda rows: rows,
    ("arrow", "dataset"): lambda folder: lambda rows: ds.dataset(parquet(folder)(rows)),
    ("duckdb", "relation"): lambda _: lambda rows: duckdb.connect().from_arrow(rows),
    ("duckdb", "connection"): connection,
}
SERVERS = {"postgres", "spark"}


@pytest.mark.parametrize(("name", "kind"), WRITERS)
def test_a_backend_keeps_the_contract(name: str, kind: str, tmp_path: Path) -> None:
    write = WRITERS[name, kind](tmp_path)
    check_backend(write, write if name == "files" else None)


def test_postgres_keeps_the_contract(postgres: str) -> None:
    import psycopg

    types = {"int32": "int4", "double": "float8", "string": "text", "decimal128(9, 2)": "numeric(9, 2)"}

    def write(rows: pa.Table) -> Any:
        columns = ", ".join(f'"{field.name}" {types[str(field.type)]}' for field in rows.schema)
        with psycopg.connect(postgres, autocommit=True) as opened:
            opened.execute(f"DROP TABLE IF EXISTS contract; CREATE TABLE contract ({columns})")
            with opened.cursor() as cursor, cursor.copy("COPY contract FROM STDIN") as copy:
                for row in rows.to_pylist():
                    copy.write_row(list(row.values()))
        return postgres, Options(relation="contract")

    def rewrite(rows: pa.Table) -> None:
        with psycopg.connect(postgres, autocommit=True) as opened:
            opened.execute("UPDATE contract SET y = 2.0 - y")

    check_backend(write, rewrite)


def test_every_backend_is_tried() -> None:
    assert {entry.name for entry in backends.backends()} == {name for name, _ in WRITERS} | SERVERS


class _Point:
    """An entry point of another package."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def load(self) -> Any:
        return self.found


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch) -> Any:
    def add(found: Any) -> None:
        monkeypatch.setattr(backends, "entry_points", lambda group: [_Point(found)] if "backends" in group else [])
        backends.backends.cache_clear()

    yield add
    backends.backends.cache_clear()


def test_a_package_adds_a_backend_by_an_entry_point(added: Any) -> None:
    mine = BackendEntry(name="mine", module="discreet.data.backends.files", prefixes=("mine://",))
    added(mine)
    assert backends.backend_of("mine://somewhere") is mine
    assert backends.backend_of("somewhere.csv").name == "files"


def test_an_entry_point_that_names_no_backend_is_refused(added: Any) -> None:
    added("a text")
    with pytest.raises(InvalidInput, match="must name a BackendEntry"):
        backends.backend_of("somewhere.csv")


def test_a_backend_that_loses_a_bit_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = CsvSource.run

    def wrong(self: CsvSource, sweep: Sweep, progress: Any = None) -> Tally:
        tally = right(self, sweep, progress)
        if tally.sums is not None:
            tally.sums[0] += 1
        return tally

    monkeypatch.setattr(CsvSource, "run", wrong)
    with pytest.raises(AssertionError, match="not those of NumPy"):
        check_backend(csv(tmp_path))


def test_a_backend_that_lets_nan_pass_is_found() -> None:
    def filled(rows: pa.Table) -> Any:
        return pl.DataFrame(pl.from_arrow(rows)).with_columns(pl.col("x").fill_nan(0.25)).lazy()

    with pytest.raises(AssertionError, match="NaN is not refused"):
        check_backend(filled)
