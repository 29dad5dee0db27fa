"""The contract of backends, as a function that anyone who writes one can run."""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from discreet.data._arrays import Float, IntArray
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.expressions import ByCell, Y, number
from discreet.data.partition import Partition
from discreet.data.records import Chunk, Records
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import SensitivitySet
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.testing._noise import frozen_noise, record_sums

_BOUNDS = Bounds(
    outcome=(0, 2),
    outcome_fill=1,
    covariates={
        "x": Range(-1, 1, fill=0.25),
        "code": Levels((1, 2, 5), other=5, fill=2),
        "word": Levels(("a", "b"), other="b", fill="a"),
        "price": (0, 10),
    },
)
_PARTITION = Partition.of({"x": [-1, -0.5, 0, 0.5, 1], "word": "levels"}, _BOUNDS)
_STRICT = Bounds(outcome=(0, 2), covariates={"x": (-1, 1)})
# What no record may hold, and how it is refused.
_UNUSABLE = {
    "a missing number": ("x", None, "column 'x'.* has missing values"),
    "NaN": ("x", math.nan, "column 'x'.* has missing values"),
    "infinity": ("x", math.inf, "column 'x'.* has infinite values"),
    "minus infinity": ("x", -math.inf, "column 'x'.* has infinite values"),
    "a missing outcome": ("y", None, "has missing values"),
    "a third arm": ("t", 2, "must hold 0 or 1"),
    "no arm": ("t", None, "must hold 0 or 1"),
}
# Binary outcomes by their column: numbers that are counted, numbers that are compared, text.
_BINARY = {
    "died": Bounds(outcome=[0, 1], outcome_fill=0, covariates={"x": (-1, 1)}),
    "stage": Bounds(outcome=[2, 0.5], outcome_fill=2, covariates={"x": (-1, 1)}),
    "answer": Bounds(outcome=["no", "yes"], outcome_fill="yes", covariates={"x": (-1, 1)}),
}
_NO_LABEL = {"died": (2, None), "stage": (1.0,), "answer": ("Yes", None)}


def _outcomes(chunk: Chunk) -> Float:
    return chunk.y


def _covariates(chunk: Chunk) -> Float:
    return chunk.x


def _cells(chunk: Chunk) -> Float:
    return _PARTITION.cells(chunk.x).astype(np.float64)


def _cells_and_outcomes(chunk: Chunk) -> Float:
    return np.column_stack([_cells(chunk), chunk.y])


_ASKED: tuple[tuple[SensitivitySet, Callable[[Chunk], Any]], ...] = (
    (Interval(-0.5, 0.75), _outcomes),
    (MeanSquare(0.8), _outcomes),
    (Ball(1.5, 4), _covariates),
    (Gram(1.5, 4), _covariates),
    (Cells((_PARTITION.count,)), _cells),
    (CellSums(1.0, _PARTITION.count, 1), _cells_and_outcomes),
    # The same questions, and others, for backends that add up by cell themselves.
    (Interval(-0.5, 0.75), ByCell(None, False, (Y,), alone=True)),
    (Cells((2 * _PARTITION.count,)), ByCell(_PARTITION, True)),
    (CellSums(1.0, 2 * _PARTITION.count, 1), ByCell(_PARTITION, True, (Y,))),
    (Pairs(2 * _PARTITION.count), ByCell(_PARTITION, True, (Y, number(1.0)))),
)


def check_backend(write: Callable[[pa.Table], Any], rewrite: Callable[[pa.Table], None] | None = None) -> None:
    """Check that a backend keeps the contract of `discreet.data.backends.base.Source`, or say what it breaks.

    The same records give the same integers as in NumPy, to the bit, for every sensitivity set and both relations, with
    missing values, numbers on edges and decimals among them, and with binary outcomes of numbers and of text; what
    cannot be used is refused in the usual sentences;
    rows that change between passes are refused, or not seen; and a table can be read again after a failure.

    Parameters
    ----------
    write
        Takes an Arrow table and returns what users would give to ``fit_table``, or a pair of that and `Options`.
    rewrite
        Puts other rows in the place of those that were written last; None where a table cannot change.

    Examples
    --------
    >>> import polars as pl
    >>> from discreet.testing import check_backend
    >>> check_backend(lambda rows: pl.from_arrow(rows).lazy())
    """
    rows = _rows()
    expected, found = _sums_of(rows), _sums_of(write(rows))
    for (name, here), (_, there) in zip(expected, found, strict=True):
        assert np.array_equal(here, there), f"{name}: the backend's integers are not those of NumPy."
    _check_binary(write)
    plain = _plain_rows()
    for what, (column, value, pattern) in _UNUSABLE.items():
        kind = plain.schema.field(column).type
        values = pa.array([*plain[column].to_pylist()[:-1], value], kind, from_pandas=False)
        bad = plain.set_column(plain.schema.get_field_index(column), column, values)
        written = write(bad)
        for grouped in (False, True):
            _assert_refused(written, grouped, what, pattern)
    _check_end(write(plain))
    if rewrite is not None:
        _check_changes(write(plain), plain, rewrite)


def _rows() -> pa.Table:
    """Missing values, numbers on edges and beyond them, decimals."""
    x = [-0.5, math.nextafter(-0.5, 0), -1.0, 0.0, -0.0, 0.5, 1.0, 3.0, 5e-324, None, 0.1, math.nextafter(0.5, 0)]
    n = 5 * len(x)
    return pa.table(
        {
            "y": pa.array([(None, 0.0, 1.0, 2.0, 7.5, -3.0, 0.3)[k % 7] for k in range(n)], pa.float64()),
            "t": pa.array([k // 2 % 2 for k in range(n)], pa.int32()),
            "x": pa.array(x * 5, pa.float64()),
            "code": pa.array([(1, 2, 5, 6, None)[k % 5] for k in range(n)], pa.int32()),
            "word": pa.array([("a", "b", "c", None)[k % 4] for k in range(n)], pa.string()),
            "price": pa.array([Decimal(k * 37 % 1_300) / 100 for k in range(n)], pa.decimal128(9, 2)),
        }
    )


def _check_binary(write: Callable[[pa.Table], Any]) -> None:
    """Labels are 0 and 1, whatever they are, and whatever is no label is refused."""
    n = 40
    rows = pa.table(
        {
            "t": pa.array([k // 2 % 2 for k in range(n)], pa.int32()),
            "x": pa.array([k / 20 - 1 for k in range(n)], pa.float64()),
            "died": pa.array([(0, 1, 1, None)[k % 4] for k in range(n)], pa.int32()),
            "stage": pa.array([(0.5, 2.0, None)[k % 3] for k in range(n)], pa.float64()),
            "answer": pa.array([("no", "yes", "no", None, "yes")[k % 5] for k in range(n)], pa.string()),
        }
    )
    for column, bounds in _BINARY.items():
        for grouped in (False, True):
            sums = []
            for written in (rows, write(rows)):
                with _opened(written, bounds, column) as records:
                    sums.append(_ask(records, grouped))
            assert sums[0] == sums[1], f"binary {column!r}: the backend's integers are not those of NumPy."
        strict = replace(bounds, outcome_fill=None)
        full = [bounds.outcome_fill if each is None else each for each in rows[column].to_pylist()]
        for value in _NO_LABEL[column]:
            values = pa.array([*full[:-1], value], rows.schema.field(column).type, from_pandas=False)
            written = write(rows.set_column(rows.schema.get_field_index(column), column, values))
            for grouped in (False, True):
                _assert_refused(written, grouped, "what is no label", "one of the two labels", strict, column)


def _plain_rows() -> pa.Table:
    n = 40
    return pa.table(
        {
            "y": pa.array([k % 3 / 1.5 for k in range(n)], pa.float64()),
            "t": pa.array([k // 2 % 2 for k in range(n)], pa.int32()),
            "x": pa.array([k / 20 - 1 for k in range(n)], pa.float64()),
        }
    )


@contextmanager
def _opened(written: Any, bounds: Bounds, outcome: str = "y") -> Iterator[Records]:
    table, options = written if isinstance(written, tuple) and isinstance(written[1], Options) else (written, Options())
    with open_table(table, TableSpec(outcome=outcome, treatment="t", bounds=bounds), options) as records:
        yield records


def _sums_of(written: Any) -> list[tuple[str, IntArray]]:
    """The exact integers of every question, under both relations."""
    found: list[tuple[str, IntArray]] = []
    with _opened(written, _BOUNDS) as records, frozen_noise(), record_sums() as recorded:
        for relation in get_args(Neighbours):
            gate = Gate(records, budget=Budget(epsilon=1, delta=1e-6), neighbours=relation)
            gate.count(0.1)
            for way in ("rows", "by cell"):
                # One pass answers all questions of a kind.
                asked = [each for each in _ASKED if isinstance(each[1], ByCell) == (way == "by cell")]
                gate.ask(*(Query(f"{type(each).__name__}, {relation}, {way}", 0.05, each, of) for each, of in asked))
        found += [(name, sums) for name, _, sums, _ in recorded]
    return found


def _assert_refused(
    written: Any, grouped: bool, what: str, pattern: str, bounds: Bounds = _STRICT, outcome: str = "y"
) -> None:
    sentence = None
    try:
        with _opened(written, bounds, outcome) as records:
            _ask(records, grouped)
    except InvalidInput as refusal:
        sentence = str(refusal)
    assert sentence is not None, f"{what} is not refused{' by cell' if grouped else ''}."
    assert re.search(pattern, sentence), f"{what} is refused, but in another sentence: {sentence}"


def _ask(records: Records, grouped: bool = False) -> list[int]:
    parts = Partition.of({"x": 4}, _STRICT)
    asked = Query("outcome", 0.5, Interval(-1.0, 1.0), _outcomes)
    if grouped:
        asked = Query("outcomes", 0.5, CellSums(1.0, 2 * parts.count, 1), ByCell(parts, True, (Y,)))
    with frozen_noise(), record_sums() as recorded:
        Gate(records, budget=Budget(epsilon=1, delta=1e-6)).ask(asked)
    return [int(value) for value in recorded[-1][2]]


def _check_end(written: Any) -> None:
    sums: list[list[int]] = []
    for fails in (True, False):
        with suppress(KeyError), _opened(written, _STRICT) as records:
            sums.append(_ask(records))
            if fails:
                raise KeyError
    assert sums[0] == sums[1], "A table that was read, and closed by a failure, does not give the same again."


def _check_changes(written: Any, plain: pa.Table, rewrite: Callable[[pa.Table], None]) -> None:
    y = pa.array([2.0 - value for value in plain["y"].to_pylist()], pa.float64())
    other = plain.set_column(0, "y", y)
    with _opened(written, _STRICT) as records:
        first = _ask(records)
        rewrite(other)
        try:
            again = _ask(records)
        except DiscreetError:
            return
    assert again == first, "Rows that changed between passes are seen, and not refused."
