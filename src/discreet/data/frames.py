"""What people bring (lists, NumPy, pandas, polars, PyArrow) taken apart into columns, without copying numbers."""

from collections.abc import Iterable, Mapping
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from discreet.data._arrays import Float, Values
from discreet.data.bounds import Bounds
from discreet.data.columns import Range, one_kind
from discreet.exceptions import InvalidInput


def vector(values: Any, name: str) -> Values:
    """A single column: a series, a frame of one column, or an array of shape (n,) or (n, 1)."""
    columns = [column for _, column in _taken_apart(values, name)]
    if len(columns) != 1:
        raise InvalidInput(f"{name} must be a single column with one entry per record: choose one column.")
    return columns[0]


def table(X: Any, bounds: Bounds) -> list[Values]:
    """One column per declared covariate, by name where both sides have names, by position otherwise."""
    if X is None:
        if bounds.p:
            raise InvalidInput(
                "X is missing, but the bounds declare covariates: give X, or declare bounds without them."
            )
        return []
    columns = _taken_apart(X, "X")
    names = [name for name, _ in columns if name is not None]
    if bounds.named and names:
        match_names(names, bounds.declared, "X")
        columns = [(name, dict(columns)[name]) for name in bounds.declared]
    declared = len(bounds.declared)
    if len(columns) != declared:
        raise InvalidInput(
            f"X has {len(columns)} columns, but the bounds declare {declared}: declare a range or levels for each."
        )
    return [columns[k][1] for k in bounds.sources]


def encoded(X: Any, bounds: Bounds) -> Float:
    """Covariates of records of which nothing else is known, encoded like those of a `Chunk`."""
    columns = table(X, bounds)
    names = [f"column {name!r} of X" for name in bounds.names]
    codes = [spec.encode(column, name) for spec, column, name in zip(bounds.columns, columns, names, strict=True)]
    return np.column_stack(codes) if codes else np.empty((0, 0))


def check_indexes(given: Mapping[str, Any]) -> None:
    """Refuse series and frames of pandas whose indexes differ: records would be matched by position."""
    indexes = {name: values.index for name, values in given.items() if _is_indexed(values)}
    names = list(indexes)
    for name in names[1:]:
        if len(indexes[name]) == len(indexes[names[0]]) and not indexes[names[0]].equals(indexes[name]):
            raise InvalidInput(
                f"{names[0]} and {name} have different indexes, and their records are not matched by position: align "
                "them, or drop the indexes with reset_index(drop=True) if their order is the same."
            )


def _is_indexed(values: Any) -> bool:
    return type(values).__module__.split(".")[0] in ("pandas", "modin", "cudf") and hasattr(values, "index")


def feature_rows(x: Float, bounds: Bounds) -> Float:
    """Features of encoded covariates: ranges as they are, an indicator for each level but the first."""
    columns: list[Float] = []
    for spec, code in zip(bounds.columns, x.T, strict=True):
        columns += [code] if isinstance(spec, Range) else [(code == k) * 1.0 for k in range(1, len(spec.levels))]
    return np.column_stack(columns) if columns else np.empty((len(x), 0))


def match_names(given: Iterable[object], declared: Iterable[str], what: str) -> None:
    """Refuse columns that the bounds do not declare, and declared ones that are not there."""
    given, declared = list(given), list(declared)
    missing = [name for name in declared if name not in given]
    if missing:
        raise InvalidInput(f"{what} lacks columns that the bounds declare: {_listed(missing)}.")
    extra = [name for name in given if name not in declared]
    if extra:
        raise InvalidInput(f"{what} has columns that the bounds do not declare: drop or declare {_listed(extra)}.")


def _taken_apart(values: Any, what: str) -> list[tuple[Any, Values]]:
    """Pairs of name and column; names are None where there are none."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return [(None, values)]
    if isinstance(values, pa.RecordBatch):
        values = pa.Table.from_batches([values])
    try:
        frame = nw.from_native(values, allow_series=True, pass_through=True)
    except DuplicateError:
        raise InvalidInput(f"{what} has two columns with the same name: rename one.") from None
    if isinstance(frame, nw.LazyFrame):
        raise InvalidInput(f"{what} is a lazy table: collect it first.")
    if isinstance(frame, nw.DataFrame):
        return [(series.name, _column(series, what)) for series in frame.iter_columns()]
    if isinstance(frame, nw.Series):
        return [(None, _column(frame, what))]
    array = _array(values, what)
    if array.ndim == 1:
        return [(None, array)]
    return [(None, array[:, j]) for j in range(array.shape[1])]


def _column(series: "nw.Series[Any]", what: str) -> Values:
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    try:
        return series.to_numpy() if series.dtype.is_numeric() and not series.null_count() else series.to_arrow()
    except Exception:
        # Each library has its own exceptions for values that do not fit one type, and most quote the value.
        raise one_kind(f"column {series.name!r} of X" if what == "X" else what) from None


def _array(values: Any, what: str) -> Any:
    if isinstance(values, np.ma.MaskedArray):
        raise InvalidInput(f"{what} is a masked array, whose mask would be lost: fill it with NaN first.")
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and not isinstance(values, np.ndarray):
            # A list of numbers and text: NumPy would turn the numbers into text.
            array = np.asarray(values, dtype=object)
    except (ValueError, TypeError):
        raise InvalidInput(f"{what} must have the same number of entries in every row: make it rectangular.") from None
    if array.ndim not in (1, 2):
        raise InvalidInput(f"{what} must be an array or a frame with one row per record: reshape or convert it.")
    return array


def _listed(names: list[Any]) -> str:
    return ", ".join(repr(name) for name in names)
