"""Every engine makes the same integers of a record as NumPy: of the tiniest, of the largest, and of exact halves."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Bounds
from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.expressions import E, Formula, Y, by_arm, ends, is_finite, number
from discreet.data.in_memory import ArrayRecords
from discreet.data.partition import Partition
from discreet.data.records import Chunk, Records
from discreet.exceptions import InvalidInput

N = 64
ENGINES = ["duckdb", "polars", "postgresql"]
TINY = [5e-324, 1e-323, 3e-320, 2.2e-308, 2.3e-308, 1e-300, 1e-170, 1.6e-162, 1.5e-162, 1e-160, 1e-150, 1e-16]
LARGE = [0.5, 0.999, 1.0, 3.0, 100.0, 1e16, 1e150, 1e154, 1e155, 1e160, 1e300, 1.7e308]
VALUES = np.array([0.0, -0.0, *TINY, *LARGE, *(-size for size in TINY), *(-size for size in LARGE)])
RANGES = [
    (-100.0, 100.0),
    (-1.0, 1.0),
    (0.0, 3.0),
    (-1e300, 1e300),
    (-8e307, 8e307),
    (-(2.0**1022), 2.0**1022),
    (-1e-160, 1e-160),
    (-1e-320, 1e-320),
    (-(2.0**-1073), 2.0**-1073),
    (-1e200, 1e200 + 1e190),
    (-1e-200, 3e-200),
]
EDGE = 2.0**40
PLAIN = [
    Y * number(EDGE),
    Y * Y * number(EDGE),
    Y * Y * Y * Y * number(EDGE),
    Y * number(1e-300) * number(1e300) * number(EDGE),
    Y * number(1e-200) * number(1e300),
    Y / number(1e300) * number(1e308),
    Y / number(7.0) * number(EDGE),
    number(0.3) * Y * number(EDGE),
    Y * by_arm(number(-0.2), number(1e-160)) * number(1e170),
    (Y * number(1e-150)) * (Y * number(1e-150)) * number(1e300),
    (number(1.0) + Y) / number(2.0) * number(EDGE),
    (Y - number(0.25)).clip(-0.5, 0.5) * number(EDGE),
]
WITH_E = [
    Y * E * number(EDGE),
    Y / E * number(EDGE),
    (Y * number(1e-160)) / (E * number(1e160)) * number(1e300),
    by_arm(number(0.1) / (number(1.0) - E), number(0.1) / E) * number(EDGE),
]


def opener(kind: str, postgres: str | None = None) -> Any:
    """Opens records of one engine: y, t, e, and a covariate that puts each row into a cell of its own."""

    @contextmanager
    def opened(columns: dict[str, Any], bounds: Bounds) -> Iterator[Records]:
        facts: Any = {"outcome": "y", "treatment": "t", "bounds": bounds, "propensity": "e"}
        if postgres is not None:
            options = Options(relation="v")
            with _table(postgres, columns, "float8"), open_table(postgres, TableSpec(**facts), options) as found:
                yield found
            return
        frame = pl.DataFrame(columns)
        table = frame.lazy() if kind == "polars" else duckdb.connect().from_arrow(frame.to_arrow())
        with open_table(table, TableSpec(**facts)) as found:
            yield found

    return opened


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    """One engine."""
    return opener(request.param, request.getfixturevalue("postgres") if request.param == "postgresql" else None)


@contextmanager
def _table(postgres: str, columns: dict[str, Any], kind: str) -> Iterator[None]:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP TABLE IF EXISTS v; CREATE TABLE v (y {kind}, t int4, e float8, x float8)")
        with connection.cursor() as cursor, cursor.copy("COPY v FROM STDIN") as rows:
            for row in zip(*(columns[name] for name in "ytex"), strict=True):
                rows.write_row([repr(value) if isinstance(value, float) else value for value in row])
        yield
        connection.execute("DROP TABLE v")


def columns_of(y: Any) -> dict[str, Any]:
    y = np.resize(np.asarray(y, dtype=np.float64), N).tolist()
    e = [0.1 + 0.8 * k / N for k in range(N)]
    return {"y": y, "t": [k % 2 for k in range(N)], "e": e, "x": [k + 0.5 for k in range(N)]}


def bounds_of(outcome: tuple[float, float]) -> Bounds:
    return Bounds(outcome=outcome, covariates={"x": (0, N)}, propensity=(0.1, 0.9))


def by_row(records: Records, formulas: list[Formula]) -> Any:
    """The integer that each formula gives each row, added up by the engine itself."""
    found = records.group_sums(Partition.of({"x": N}, records.bounds), formulas)
    assert found is not None, "the engine did not add up by itself"
    np.testing.assert_array_equal(found[0].sum(axis=1), 1)
    return found[1:].sum(axis=2)


def by_numpy(columns: dict[str, Any], bounds: Bounds, formulas: list[Formula]) -> Any:
    seen: list[Chunk] = []

    def keep(chunk: Chunk) -> Any:
        seen.append(chunk)
        return np.zeros(1, dtype=np.int64)

    x = pl.DataFrame({"x": columns["x"]})
    ArrayRecords.of(columns["y"], columns["t"], x, bounds=bounds, propensity=columns["e"]).sum(keep)
    (chunk,) = seen
    return np.stack([formula(chunk).astype(np.int64) for formula in formulas])


def whole(formulas: list[Formula]) -> list[Formula]:
    return [formula.rint().clip(-EDGE, EDGE) for formula in formulas]


@pytest.mark.parametrize("outcome", RANGES, ids=str)
def test_the_tiniest_and_the_largest_outcomes_are_the_same_integers_as_in_numpy(engine: Any, outcome: Any) -> None:
    columns, bounds, formulas = columns_of(VALUES), bounds_of(outcome), whole(PLAIN + WITH_E)
    with engine(columns, bounds) as records:
        np.testing.assert_array_equal(by_row(records, formulas), by_numpy(columns, bounds, formulas))


def test_spark_makes_the_same_integers_as_numpy(spark: Any) -> None:
    for outcome in ((-100.0, 100.0), (-1e300, 1e300), (-1e-160, 1e-160), (-(2.0**-1073), 2.0**-1073)):
        columns, bounds, formulas = columns_of(VALUES), bounds_of(outcome), whole(PLAIN + WITH_E)
        rows = spark.createDataFrame(list(zip(*(columns[name] for name in "ytex"), strict=True)), ["y", "t", "e", "x"])
        facts: Any = {"outcome": "y", "treatment": "t", "bounds": bounds, "propensity": "e"}
        with open_table(rows, TableSpec(**facts)) as records:
            np.testing.assert_array_equal(by_row(records, formulas), by_numpy(columns, bounds, formulas))


SIZES = st.floats(-1.7e308, 1.7e308) | st.floats(-1e-150, 1e-150) | st.floats(-2.0, 2.0) | st.sampled_from(VALUES)
FACTORS = st.floats(1e-290, 1e-10) | st.floats(0.1, 10.0) | st.floats(1e10, 1e290)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(SIZES, min_size=N, max_size=N), st.sampled_from(RANGES), FACTORS, FACTORS)
def test_any_outcome_and_any_factor_give_the_same_integers_as_in_numpy(
    engine: Any, y: list[float], outcome: Any, one: float, other: float
) -> None:
    columns, bounds = columns_of(y), bounds_of(outcome)
    made = [Y * number(one), Y / number(other), (Y * number(one)) * (Y / number(other)), (Y / number(one)) / E]
    formulas = [each for each in whole(made) if is_finite(each, bounds.propensity)]
    with engine(columns, bounds) as records:
        np.testing.assert_array_equal(by_row(records, formulas), by_numpy(columns, bounds, formulas))


def test_exact_halves_become_the_even_neighbour_on_either_side_of_zero(engine: Any) -> None:
    # Quarters of a step from -8 to 8: every second one is a tie of two whole numbers, or a whole number itself.
    steps = (np.arange(N) - N // 2) / 4
    columns, bounds = columns_of(steps), bounds_of((-8.0, 8.0))
    formulas = [(Y * number(scale)).rint() for scale in (8.0, 16.0, 4.0, -8.0)] + [(Y + number(1.5)).rint()]
    with engine(columns, bounds) as records:
        found = by_row(records, formulas)
    np.testing.assert_array_equal(found[0], np.rint(steps))
    np.testing.assert_array_equal(found, by_numpy(columns, bounds, formulas))


@pytest.mark.parametrize("e", [0.0, 1.0, -1.0, float("nan"), float("inf"), 5e-324, 1e300])
def test_a_probability_beyond_its_bounds_is_refused_in_its_own_words(engine: Any, e: float) -> None:
    columns, bounds = columns_of([0.5]), bounds_of((-1.0, 1.0))
    columns["e"][3] = e
    with engine(columns, bounds) as records, pytest.raises(InvalidInput, match="'e'"):
        records.group_sums(None, whole(WITH_E))


def test_ends_of_a_rounded_number_are_whole_so_that_no_clip_is_left_out_too_early() -> None:
    steps = (Y * number(8.4)).rint()
    assert ends(steps) == (-8.0, 8.0)
    assert steps.clip(-8, 8) is steps
    assert steps.clip(-7, 8).op == "clip"
    assert steps.clip(-4, 4).op == "clip"


def test_a_formula_that_may_overflow_is_known_before_any_record_is_read() -> None:
    large = number(1e200)
    assert is_finite(Y * large, None)
    assert not is_finite(Y * large * large, None)
    assert not is_finite((Y * large * large).clip(-1, 1), None)
    assert not is_finite(number(1.0) / Y, None)
    assert not is_finite(Y * E, None)
    assert is_finite(Y / E, (0.1, 0.9))


def test_formulas_that_may_overflow_are_added_up_row_by_row_in_postgresql(postgres: str) -> None:
    columns, bounds = columns_of(VALUES), bounds_of((-1.0, 1.0))
    facts: Any = {"outcome": "y", "treatment": "t", "bounds": bounds, "propensity": "e"}
    with (
        _table(postgres, columns, "float8"),
        open_table(postgres, TableSpec(**facts), Options(relation="v")) as records,
    ):
        assert records.group_sums(None, whole([Y * number(1e200) * number(1e200)])) is None


def test_decimals_that_float64_rounds_to_zero_are_zero_in_postgresql(postgres: str) -> None:
    texts = ["1e-400", "-1e-400", "2.4703e-324", "2.4704e-324", "-3e-324", "1e-170", "0", "0.25", "NaN"]
    texts = (texts * N)[:N]
    floats = [float(text) for text in texts]
    facts: Any = {"outcome": "y", "treatment": "t", "propensity": "e"}
    bounds = replace(bounds_of((-1e-320, 1e-320)), outcome_fill=0.0)
    columns, formulas = columns_of(floats), whole(PLAIN)
    with (
        _table(postgres, columns | {"y": texts}, "numeric"),
        open_table(postgres, TableSpec(**facts, bounds=bounds), Options(relation="v")) as records,
    ):
        np.testing.assert_array_equal(by_row(records, formulas), by_numpy(columns, bounds, formulas))
        rows = records.sum(lambda chunk: np.rint(chunk.y * EDGE).astype(np.int64).sum(keepdims=True))
        np.testing.assert_array_equal(rows, by_numpy(columns, bounds, [(Y * number(EDGE)).rint()]).sum(axis=1))


def test_registration_reads_by_both_ways_in_which_fits_read(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from discreet.data.backends.files import ParquetSource
    from discreet.serve.domain.sources import records_in

    path, bounds = tmp_path / "v.parquet", bounds_of((-1.0, 1.0))
    pl.DataFrame(columns_of(VALUES)).write_parquet(path)
    facts: Any = {"outcome": "y", "treatment": "t", "bounds": bounds, "propensity": "e"}
    assert records_in(str(path), TableSpec(**facts)) == N
    for way in ("group", "run"):

        def refuses(*_: Any) -> None:
            raise InvalidInput("not in this way")

        with monkeypatch.context() as patch:
            patch.setattr(ParquetSource, way, refuses)
            with pytest.raises(InvalidInput, match="not in this way"):
                records_in(str(path), TableSpec(**facts))
