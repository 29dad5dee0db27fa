"""Models from a sample: the same rows on every engine, and estimates that are as good as from all records."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet import ATE, CATE, Bounds, DifferenceInMeans, Uplift
from discreet.data.backends import base as sources
from discreet.data.bounds import Range
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS
from discreet.data.sampling import chosen
from discreet.estimators import _allocation
from discreet.estimators.measurements.coded_features import CodedFeatures, CodesOf
from discreet.exceptions import InvalidInput, SourceFailed
from discreet.privacy.gate import Gate
from discreet.testing import record_sums, seeded_noise, watched
from tests.data.backends.test_same_release import TABLES, assert_same
from tests.privacy.test_coded_features import basis_of
from tests.privacy.test_coded_features import rows_of as records_of
from tests.seeded_fits import BOUNDS, study

NUMBERED = study().assign(id=np.random.default_rng(1).permutation(6_000) * 3 - 5_000)
ROLES = {"outcome": "y", "treatment": "t", "sample_by": "id"}


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few thousand rows are long enough for a sample."""
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))


def seeded(estimator: Any, table: Any, **options: Any) -> tuple[Any, list[Any]]:
    with seeded_noise(3), record_sums() as recorded:
        made = estimator.fit_table(table, **(ROLES | options))
    return made.release_, [sums for _, _, sums, _ in recorded]


def ate(**more: Any) -> ATE:
    return ATE(**({"epsilon": 2, "delta": 1e-6, "bounds": BOUNDS} | more))


def test_a_sample_has_as_many_records_as_asked_for_and_hangs_on_numbers_alone() -> None:
    keys = np.arange(200_000.0)
    some = chosen(keys, 0.1)
    # Five standard deviations.
    assert abs(some.sum() - 20_000) < 5 * np.sqrt(200_000 * 0.1 * 0.9)
    order = np.random.default_rng(0).permutation(len(keys))
    np.testing.assert_array_equal(chosen(keys[order], 0.1), some[order])
    assert chosen(keys, 0.2)[some].all()
    assert chosen(keys, 1.0).all()
    assert not chosen(keys, 0.0).any()
    # Neighbouring numbers are not chosen together.
    assert abs((some[1:] & some[:-1]).mean() - 0.01) < 5 * np.sqrt(0.01 / 200_000)


@pytest.mark.parametrize("kind", TABLES)
def test_every_engine_chooses_the_same_sample(kind: str, short: None, tmp_path: Path) -> None:
    expected = seeded(ate(), NUMBERED)
    assert "number of records" in expected[0].adjustment["shares"]
    assert_same(seeded(ate(), TABLES[kind](NUMBERED, tmp_path)), expected)


@pytest.mark.parametrize("kind", ["parts", "lazy"])
def test_a_sample_that_is_not_kept_gives_the_same_bits(
    kind: str, short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = seeded(ate(), NUMBERED)
    monkeypatch.setattr(sources, "KEPT_NUMBERS", 0)
    assert_same(seeded(ate(), TABLES[kind](NUMBERED, tmp_path)), expected)


def test_two_processes_choose_the_same_sample(short: None, tmp_path: Path) -> None:
    assert_same(seeded(ate(), TABLES["parts"](NUMBERED, tmp_path), workers=2), seeded(ate(), NUMBERED))


def test_spark_chooses_the_same_sample_and_only_sums_come_back(spark: Any, short: None, tmp_path: Path) -> None:
    file = TABLES["parquet"](NUMBERED, tmp_path)
    assert_same(seeded(ate(), spark.read.parquet(file).repartition(3)), seeded(ate(), NUMBERED))


@pytest.mark.parametrize("known", [None, 0.5])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_only_the_score_is_asked_of_all_records(short: None, neighbours: Any, known: Any) -> None:
    with seeded_noise(1), record_sums() as recorded:
        made = ate(neighbours=neighbours, propensity=known).fit_table(NUMBERED, **ROLES)
    # Under add-remove the numbers of all records and of the sample are released, else that of the sample.
    counts = [name for name, *_ in recorded if name == "number of records"]
    assert len(counts) == (2 if neighbours == "add-remove" else 1)
    assert made.guarantee_.status == "test"
    assert made.guarantee_.epsilon == 2
    assert sum(made.release_.adjustment["shares"].values()) == pytest.approx(1.0)
    assert made.release_.n == pytest.approx(6_000, abs=300)


def table(n: int, seed: int) -> tuple[pa.Table, Bounds, float]:
    """Confounded records with a curved effect, and its mean."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    t = (rng.random(n) < 1 / (1 + np.exp(-x[:, 0] - x[:, 1] * x[:, 2]))).astype(float)
    effect = 0.5 + 0.4 * x[:, 0]
    y = np.clip(x[:, 0] + x[:, 1] ** 2 + t * effect + 0.5 * rng.standard_normal(n), -3, 4)
    bounds = Bounds(outcome=(-3, 4), covariates={f"x{j}": (-1, 1) for j in range(3)}, propensity=(0.05, 0.95))
    columns = {f"x{j}": x[:, j] for j in range(3)} | {"y": y, "t": t, "id": np.arange(n)}
    return pa.table(columns), bounds, float(effect.mean())


def test_an_average_effect_is_as_good_with_models_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, information=3_000.0, records=10.0))
    records, bounds, truth = table(200_000, 4)
    made = {}
    for by in (None, "id"):
        with seeded_noise(8):
            made[by] = ATE(epsilon=2, delta=1e-6, bounds=bounds).fit_table(records, **(ROLES | {"sample_by": by}))
    widths = {by: np.ptp(each.ate_interval()) for by, each in made.items()}
    assert "number of records" in made["id"].release_.adjustment["shares"]
    assert all(abs(each.ate_ - truth) < 0.02 for each in made.values())
    assert widths["id"] < 1.3 * widths[None]


def test_an_effect_as_a_function_is_as_good_with_models_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, information=3_000.0, records=10.0))
    records, bounds, _ = table(200_000, 5)
    asked = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    with seeded_noise(8):
        made = CATE(epsilon=2, delta=1e-6, bounds=bounds).fit_table(records, **ROLES)
    assert "number of records" in made.release_.adjustment["shares"]
    assert np.sqrt(np.mean((made.effect(asked) - 0.5 - 0.4 * asked[:, 0]) ** 2)) < 0.04


def test_a_table_that_is_not_long_is_used_as_a_whole() -> None:
    with_numbers, without = seeded(ate(), NUMBERED), seeded(ate(), NUMBERED, sample_by=None)
    assert_same(with_numbers, without)


def test_an_empty_sample_adds_up_to_nothing(short: None) -> None:
    records = ArrayRecords.of(*_arrays(), bounds=BOUNDS, sample_by=NUMBERED["id"])
    none = records.sample(0.0, 0.0)
    assert none is not None
    np.testing.assert_array_equal(none.sum(lambda chunk: np.array([len(chunk.t), 7])), [0, 0])
    assert len(none.kept) == 0  # type: ignore[attr-defined]
    half = records.sample(0.5, 3_000.0)
    assert max(len(chunk.t) for chunk in half.kept) <= CHUNK_ROWS


def test_a_sample_is_taken_and_coded_once_and_has_the_same_sums_either_way() -> None:
    rng, basis = np.random.default_rng(4), basis_of(4, 1e-3, 20)
    n, p = 3 * CHUNK_ROWS, len(basis.codings)
    bounds = Bounds(outcome=(-1, 1), covariates=[(-1, 1)] * p)
    columns = rng.uniform(-1, 1, n), rng.integers(0, 2, n), np.resize(records_of(rng), (n, p))
    records = ArrayRecords.of(*columns, bounds=bounds)
    sample = records.sample(0.5, n / 2, by_place=True)
    assert sample is not None
    assert records.sample(0.5, n / 2, by_place=True) is sample
    assert records.sample(0.4, n / 2, by_place=True) is not sample
    kept = sample.coded(CodesOf(basis.codings))
    assert sample.coded(CodesOf(basis.codings)) is kept
    assert kept.kept[0].x.shape[1] == 0

    def kernel(chunk: Any) -> Any:
        features = CodedFeatures(basis, n)
        return np.rint(2.0**20 * (features(chunk) * (chunk.y + chunk.t)[:, None]).sum(axis=0)).astype(np.int64)

    np.testing.assert_array_equal(kept.sum(kernel), sample.sum(kernel))


def test_a_gate_without_numbers_has_no_sample() -> None:
    gate = Gate(ArrayRecords.of(*_arrays(), bounds=BOUNDS), budget=ate_budget())
    assert gate.sampled(0.5, 0.1) is None
    assert gate.spent == 0


def test_gates_on_a_sample_spend_the_same_budget() -> None:
    gate = Gate(ArrayRecords.of(*_arrays(), bounds=BOUNDS, sample_by=NUMBERED["id"]), budget=ate_budget())
    with seeded_noise(1):
        some = gate.sampled(0.5, 0.1)
    assert some is not None
    assert gate.spent == some.spent == pytest.approx(0.1)
    assert len(gate.events) == 1
    assert gate.n == 6_000
    assert abs(some.n - 3_000) < 400


@pytest.fixture
def placed(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few thousand rows are long enough for a sample by their places."""
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, by_place=5_000.0))


def test_places_choose_the_same_sample_in_every_table_that_has_an_order(placed: None, tmp_path: Path) -> None:
    NUMBERED.to_parquet(tmp_path / "it.parquet", row_group_size=1_700)
    # Text with all digits.
    NUMBERED.to_csv(tmp_path / "it.csv", index=False)
    expected = seeded(ate(), NUMBERED, sample_by=None)
    assert "number of records" not in expected[0].adjustment["shares"]
    assert any("chosen by their places in the table" in note for note in expected[0].notes)
    for file in ("it.parquet", "it.csv"):
        assert_same(seeded(ate(), str(tmp_path / file), sample_by=None), expected)


def test_places_are_the_same_whoever_reads_them(placed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = TABLES["parts"](NUMBERED, tmp_path)
    options = {"sample_by": None, "where": {"age": (20, 50)}}
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, by_place=1_000.0))
    expected = seeded(ate(), parts, workers=1, **options)
    assert any("chosen by their places" in note for note in expected[0].notes)
    assert_same(seeded(ate(), parts, workers=2, **options), expected)
    monkeypatch.setattr(sources, "KEPT_NUMBERS", 0)
    assert_same(seeded(ate(), parts, workers=1, **options), expected)


@pytest.mark.parametrize("more", [{"neighbours": "add-remove"}, {"unit": "id", "max_rows": 1}])
def test_places_choose_nobody_where_they_are_private(more: dict[str, Any], placed: None) -> None:
    options = {name: value for name, value in more.items() if name != "neighbours"}
    made = ate(**{name: value for name, value in more.items() if name == "neighbours"})
    found = seeded(made, NUMBERED, sample_by=None, **options)[0]
    assert not any("sample of about" in note for note in found.notes)


def test_tables_without_an_order_have_no_sample_by_place(placed: None, tmp_path: Path) -> None:
    found = seeded(ate(), TABLES["lazy"](NUMBERED, tmp_path), sample_by=None)[0]
    assert not any("sample of about" in note for note in found.notes)


def test_a_sample_by_place_has_a_public_number_of_records_and_costs_nothing() -> None:
    gate = Gate(ArrayRecords.of(*_arrays(), bounds=BOUNDS), budget=ate_budget())
    some = gate.sampled(0.5, 0.1, by_place=True)
    assert some is not None
    assert gate.spent == some.spent == 0.0
    assert some.n == chosen(np.arange(6_000.0), 0.5).sum()


def _arrays() -> tuple[Any, Any, Any]:
    return NUMBERED["y"], NUMBERED["t"], NUMBERED[["age", "ward", "dose"]]


def ate_budget() -> Any:
    from discreet.privacy.budget import Budget

    return Budget(epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("word", "must hold numbers, but its type is"),
        ("ward", "sample_by must be a column of its own"),
        ("t", "sample_by must be a column of its own"),
        ("e", "must hold a whole number for every record"),
        ("huge", "beyond 2\\*\\*53"),
        ("absent", "no column 'absent'"),
        (3, "sample_by must be the name of a column"),
        ("holes", "must hold a whole number for every record"),
    ],
)
def test_columns_that_cannot_choose_a_sample_are_refused(column: Any, reason: str, tmp_path: Path) -> None:
    holes = NUMBERED.assign(holes=np.where(NUMBERED.index == 17, np.nan, 1.0), huge=1e300, word="a")
    holes.to_parquet(tmp_path / "it.parquet")
    for source in (holes, str(tmp_path / "it.parquet")):
        with pytest.raises(InvalidInput, match=reason):
            ate().fit_table(source, **(ROLES | {"sample_by": column}))


WITHOUT = [DifferenceInMeans(epsilon=1, bounds=BOUNDS), Uplift(epsilon=1, bounds=BOUNDS, by={"age": 4})]


@pytest.mark.parametrize("estimator", WITHOUT)
def test_estimators_without_models_refuse_a_sample(estimator: Any) -> None:
    with pytest.raises(InvalidInput, match="sample_by belongs to ATE and CATE"):
        estimator.fit_table(NUMBERED, **ROLES)


def test_numbers_that_change_between_passes_are_noticed(short: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    monkeypatch.setattr(sources, "KEPT_NUMBERS", 0)
    connection = duckdb.connect()
    connection.from_arrow(pa.Table.from_pandas(NUMBERED)).create("records")
    relation = connection.table("records")
    passes: list[str] = []

    def meddle(name: str, done: int, rows: int) -> None:
        if done == rows and name not in passes:
            passes.append(name)
            if len(passes) == 3:
                connection.cursor().execute("UPDATE records SET id = id + 1")

    with seeded_noise(1), pytest.raises(SourceFailed, match="changed while they were being read"):
        ate().fit_table(relation, **ROLES, progress=meddle)


def test_a_range_is_mapped_in_one_sweep_to_what_single_values_are_mapped_to() -> None:
    rng = np.random.default_rng(2)
    for _ in range(300):
        low, high = np.sort(rng.normal(0, 10.0 ** rng.integers(-3, 4), 2))
        spec = Range(low, high)
        ends = [low, high, np.nextafter(low, high), np.nextafter(high, low), np.nextafter(low, -np.inf)]
        values = np.array([*ends, np.nextafter(high, np.inf), 1e308, -1e308, *rng.uniform(low, high, 5)])
        alone = np.concatenate([spec.encode(values[k : k + 1].copy()) for k in range(len(values))])
        np.testing.assert_array_equal(spec.encode(values.copy()), alone)
        inside = values[(values >= low) & (values <= high)]
        np.testing.assert_array_equal(spec.encode(inside.copy()), alone[(values >= low) & (values <= high)])


def test_a_frame_keeps_its_order_of_columns(short: None) -> None:
    assert_same(seeded(ate(), NUMBERED[NUMBERED.columns[::-1]]), seeded(ate(), pd.DataFrame(NUMBERED)))


@pytest.mark.parametrize("column", ["same", "zero", "few"])
def test_numbers_that_do_not_choose_evenly_choose_nothing(column: str, short: None) -> None:
    uneven = NUMBERED.assign(same=5, zero=0, few=np.arange(len(NUMBERED)) % 3)
    release, _ = seeded(ate(), uneven, sample_by=column)
    # The sample's size was released, and said that it is none.
    assert "number of records" in release.adjustment["shares"]
    assert sum(release.adjustment["shares"].values()) == pytest.approx(1.0)
    assert not any("fitted to a sample" in note for note in release.notes)
    assert any("fitted to a sample" in note for note in seeded(ate(), NUMBERED)[0].notes)


def test_how_a_sample_is_kept_hangs_on_released_numbers_alone(
    short: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[int, int] = {}
    tape: list[Any] = []
    monkeypatch.setattr(sources, "KEPT_NUMBERS", 0.058 * 6_000.5 * 9)
    for rows in (6_000, 5_999):
        path = tmp_path / f"{rows}.parquet"
        NUMBERED[:rows].to_parquet(path)
        calls: list[Any] = []
        replayed = iter(tape) if tape else None

        def answer(_: Any, asked: Any, replayed: Any = replayed) -> Any:
            if replayed is None:
                tape.extend(each.released for each in asked)
                return None
            return tuple(next(replayed) for _ in asked)

        with seeded_noise(3), watched(answer):
            ate(neighbours="add-remove").fit_table(str(path), **ROLES, progress=lambda *call, to=calls: to.append(call))
        told[rows] = len(calls)
    assert told[6_000] == told[5_999]


def test_a_table_with_a_column_called_u_may_have_units(tmp_path: Path) -> None:
    NUMBERED.assign(u=1.5).to_parquet(tmp_path / "it.parquet")
    with seeded_noise(1):
        made = ate().fit_table(str(tmp_path / "it.parquet"), outcome="y", treatment="t", unit="id", max_rows=1)
    assert made.guarantee_.unit == "one id with at most 1 row"
