"""The estimators as people meet them: whatever they bring in, one release comes out, and nothing else stays behind."""

import dataclasses
import pickle
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from discreet import ATE, Bounds, DifferenceInMeans, Levels, Release
from discreet.datasets import draw
from discreet.datasets.marketing import CRITEO_RANGES, criteo_shaped
from discreet.estimators.weighted.average import _notes
from discreet.privacy.budget import Budget
from discreet.releases.average import Uncertainty
from discreet.testing import frozen_noise, seeded_noise

N = 397
NAMES = ["age", "bp", "sex", "ward"]
BOUNDS = Bounds(
    outcome=(-5, 9),
    covariates={"age": (18, 95), "bp": (80, 200), "sex": ["f", "m"], "ward": Levels((1, 2, 3, 4), other=4)},
    propensity=(0.05, 0.95),
)


def hospital():
    rng = np.random.default_rng(42)
    age, bp = rng.normal(60, 15, N), rng.normal(130, 20, N)
    sex, ward = rng.choice(["f", "m"], N), rng.integers(1, 6, N)
    e = 1 / (1 + np.exp(-(age - 60) / 20))
    t = (rng.random(N) < e).astype(np.int64)
    y = 2 + 0.03 * (age - 60) + t + rng.normal(0, 1, N)
    frame = pd.DataFrame({"age": age, "bp": bp, "sex": sex, "ward": ward, "y": y, "t": t})
    return frame.assign(e=np.clip(e, 0.05, 0.95))


FRAME = hospital()
Y, T, X, E = FRAME["y"].to_numpy(), FRAME["t"].to_numpy(), FRAME[NAMES], FRAME["e"].to_numpy()


def ate(**given):
    return ATE(**({"epsilon": 2.0, "delta": 1e-6, "bounds": BOUNDS} | given))


def means(**given):
    return DifferenceInMeans(**({"epsilon": 2.0, "bounds": Bounds(outcome=(-5, 9))} | given))


def fitted(estimator, *, seed=3, y=Y, t=T, x=X):
    with seeded_noise(seed):
        return estimator.fit(y, t, X=x)


def fitted_means(estimator, **given):
    return fitted(estimator, x=None, **given)


def assert_sound(estimator):
    low, high = estimator.ate_interval()
    assert np.isfinite([low, high]).all()
    assert low <= estimator.ate_ <= high
    assert low < high
    assert min(estimator.release_.uncertainty.sampling, estimator.release_.uncertainty.privacy) > 0
    assert len(estimator.guarantee_.events) >= 4


# --- what people bring ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("propensity", [None, 0.5, E], ids=["estimated", "constant", "array"])
def test_every_design_and_relation_gives_one_sound_release(relation, propensity):
    estimator = ate(propensity=propensity, neighbours=relation)
    if relation == "add-remove" and isinstance(propensity, np.ndarray):
        with pytest.raises(ValueError, match="propensity must be a number or a column's name"):
            fitted(estimator)
        return
    assert_sound(fitted(estimator))
    release = estimator.release_
    assert release.kind == "ate"
    assert release.design == ("observational" if propensity is None else "known propensity")
    assert release.guarantee.neighbours == relation
    assert (release.n == N) == (relation == "replace-one")
    assert ("the number of records" in release.guarantee.public) == (relation == "replace-one")
    assert ("the probability of treatment" in release.guarantee.public) == (propensity is not None)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("propensity", [None, 0.5])
def test_difference_in_means_works_with_and_without_delta(relation, delta, propensity):
    estimator = fitted_means(means(delta=delta, propensity=propensity, neighbours=relation))
    assert_sound(estimator)
    assert estimator.release_.kind == "difference-in-means"
    assert estimator.guarantee_.delta == (delta or 0.0)
    kind = "LaplaceEvent" if delta is None else "GaussianEvent"
    assert {type(event).__name__ for event in estimator.guarantee_.events} == {kind}


def test_difference_in_means_ignores_covariates():
    with_them = fitted(DifferenceInMeans(epsilon=2.0, bounds=BOUNDS))
    assert with_them.ate_ == fitted_means(means()).ate_


def test_a_binary_outcome_works_as_numbers_and_as_booleans():
    bounds = Bounds(outcome=(0, 1), covariates=BOUNDS.covariates)
    numbers = fitted(ate(bounds=bounds), y=(Y > 2).astype(float))
    assert_sound(numbers)
    assert fitted(ate(bounds=bounds), y=Y > 2, t=T.astype(bool)).ate_ == numbers.ate_


@pytest.mark.parametrize("p", [1, 3, 30, 100])
def test_any_number_of_covariates_works(p):
    rng = np.random.default_rng(p)
    x = rng.uniform(-1, 1, (N, p))
    assert_sound(fitted(ate(bounds=Bounds(outcome=(-5, 9), covariates=[(-1, 1)] * p)), x=x))


@pytest.mark.parametrize(("p", "joint"), [(0, False), (1, False), (3, True)])
def test_notes_say_what_was_adjusted_for_and_joint_effects_where_there_are_any(p, joint):
    x = np.random.default_rng(p).uniform(-1, 1, (N, p)) if p else None
    release = fitted(ate(epsilon=20, bounds=Bounds(outcome=(-5, 9), covariates=[(-1, 1)] * p)), x=x).release_
    basis = release.adjustment["basis"]
    assert ("products of two" in basis) == joint
    assert any((f"({basis})" if p else "no covariates were declared") in note for note in release.notes)


@pytest.mark.parametrize(("nuisance", "times"), [(0.1, (0.71, 0.73, 0.71)), (40, (1, 1, 1)), (10, (0.99, 1, 0.99))])
def test_the_advice_says_what_would_narrow_an_interval_that_ends_with_the_range(nuisance, times):
    budget, uncertainty = Budget(epsilon=1.0, delta=1e-6), Uncertainty(sampling=0.0, privacy=0.0, nuisance=nuisance)
    records, epsilon, covariates = times
    assert _notes("it", BOUNDS, False, (0.1, 0.9), uncertainty, budget)[-1] == (
        "Most of the width is what the adjustment may have got wrong. With twice the records it is expected to be "
        f"{records:g} times as wide, with twice the epsilon {epsilon:g}, with half of the covariates, should they be "
        f"enough, {covariates:g}."
    )
    without = replace(uncertainty, sampling=nuisance)
    assert not any("Most of" in each for each in _notes("it", BOUNDS, False, (0.1, 0.9), without, budget))
    one = Bounds(outcome=(-5, 9), covariates=[(0, 1)])
    assert "covariates, should" not in _notes("it", one, False, (0.1, 0.9), uncertainty, budget)[-1]


@pytest.mark.parametrize("propensity", [None, 0.5])
def test_no_covariates_are_fine(propensity):
    assert_sound(fitted(ate(bounds=Bounds(outcome=(-5, 9)), propensity=propensity), x=None))


@pytest.mark.parametrize("constant", [18.0, 60.0, 95.0, 1e6])
def test_a_covariate_that_is_constant_in_the_data_is_accepted(constant):
    # Refusing it would tell something about the records.
    assert_sound(fitted(ate(), x=X.assign(age=constant, sex="f")))


def test_pandas_polars_arrow_and_numpy_give_the_same_estimate():
    bounds = Bounds(outcome=(-5, 9), covariates={"age": (18, 95), "bp": (80, 200)})
    few = FRAME[["age", "bp"]]
    shapes = {
        "numpy": (Y, T, few.to_numpy()),
        "rows": (Y.reshape(-1, 1), T.astype(float), np.asfortranarray(few.to_numpy())),
        "lists": (Y.tolist(), T.tolist(), few.to_numpy().tolist()),
        "pandas": (FRAME["y"], FRAME["t"], few),
        "columns the other way round": (FRAME[["y"]], FRAME["t"].astype(bool), few[["bp", "age"]]),
        "polars": (pl.Series(Y), pl.Series(T), pl.from_pandas(few)),
        "arrow": (pa.array(Y), pa.array(T), pa.Table.from_pandas(few)),
    }
    estimates = {name: fitted(ate(bounds=bounds), y=y, t=t, x=x).ate_ for name, (y, t, x) in shapes.items()}
    assert set(estimates.values()) == {estimates["numpy"]}, estimates


@pytest.mark.parametrize("kind", ["csv", "parquet", "glob", "pandas", "polars", "arrow"])
def test_fit_table_equals_fit_on_arrays_exactly(kind, tmp_path):
    tables = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": pa.Table.from_pandas(FRAME)}
    if kind == "csv":
        FRAME.to_csv(tmp_path / "records.csv", index=False)
        tables[kind] = tmp_path / "records.csv"
    elif kind == "parquet":
        FRAME.to_parquet(tmp_path / "records.parquet")
        tables[kind] = str(tmp_path / "records.parquet")
    elif kind == "glob":
        FRAME[:100].to_parquet(tmp_path / "part-0.parquet")
        FRAME[100:].to_parquet(tmp_path / "part-1.parquet")
        tables[kind] = str(tmp_path / "part-*.parquet")
    for propensity in (None, 0.4):
        with seeded_noise(3):
            from_table = ate(propensity=propensity).fit_table(tables[kind], outcome="y", treatment="t")
        assert from_table.release_ == fitted(ate(propensity=propensity)).release_


def test_a_known_propensity_may_be_a_column_of_a_file(tmp_path):
    FRAME.to_parquet(tmp_path / "records.parquet")
    with seeded_noise(3):
        from_file = ate(propensity="e").fit_table(tmp_path / "records.parquet", outcome="y", treatment="t")
    assert from_file.release_ == fitted(ate(propensity=E)).release_


def test_a_table_without_covariates_is_fine(tmp_path):
    FRAME.to_csv(tmp_path / "records.csv", index=False)
    with seeded_noise(3):
        from_file = means().fit_table(tmp_path / "records.csv", outcome="y", treatment="t")
        from_frame = clone(from_file)
    with seeded_noise(3):
        from_frame.fit_table(FRAME, outcome="y", treatment="t")
    assert from_file.release_ == from_frame.release_ == fitted_means(means()).release_


def test_covariates_may_be_named_for_bounds_by_position():
    bounds = Bounds(outcome=(-5, 9), covariates=[(18, 95), (80, 200)])
    with seeded_noise(3):
        by_name = ate(bounds=bounds).fit_table(FRAME, outcome="y", treatment="t", covariates=["age", "bp"])
    assert by_name.ate_ == fitted(ate(bounds=bounds), x=FRAME[["age", "bp"]].to_numpy()).ate_


def test_progress_counts_every_row_of_every_pass():
    told = []
    with seeded_noise(3):
        ate().fit(Y, T, X=X, progress=lambda name, done, rows: told.append((name, done, rows)))
    assert {(done, rows) for _, done, rows in told} == {(N, N)}
    assert len({name for name, _, _ in told}) == len(told) > 4


@pytest.mark.parametrize("rows", [4_096, 4_097])
def test_progress_does_not_tell_the_number_of_records_where_it_is_private(rows):
    rng, told = np.random.default_rng(0), []
    y, t = rng.uniform(0, 1, rows), rng.integers(0, 2, rows)
    with seeded_noise(3):
        ATE(epsilon=1, delta=1e-6, bounds=Bounds(outcome=(0, 1)), neighbours="add-remove").fit(
            y, t, progress=lambda *step: told.append(step)
        )
    assert [step[1:] for step in told] == [(0, 1)] * len(told)
    # One chunk of records or two: each pass is told once.
    assert [step[0] for step in told] == [f"pass {number}" for number in range(1, len(told) + 1)]


# --- noise ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [ate, means])
def test_the_seed_decides_under_seeded_noise(make):
    x = X if make is ate else None
    first, again, other = (fitted(make(), x=x, seed=seed) for seed in (1, 1, 2))
    assert first.release_ == again.release_
    assert first.ate_ != other.ate_
    # Rounds look at as many features as earlier releases suggest; what each may spend is settled beforehand.
    spent = [
        [(e.name, (e.scale if e.kind == "laplace" else e.sigma) / e.diameter) for e in fit.guarantee_.events]
        for fit in (first, other)
    ]
    assert [name for name, _ in spent[0]] == [name for name, _ in spent[1]]
    assert [ratio for _, ratio in spent[0]] == pytest.approx([ratio for _, ratio in spent[1]])


def test_real_noise_gives_a_proved_release_that_differs_from_run_to_run():
    study = draw("binary-outcome", 500, 1)
    one, two = (ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X) for _ in range(2))
    assert_sound(one)
    assert one.guarantee_.status == two.guarantee_.status == "proved"
    assert one.ate_ != two.ate_


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_real_laplace_and_gaussian_noise_work_for_the_difference_in_means(delta):
    estimator = means(delta=delta).fit(Y, T)
    assert_sound(estimator)
    assert estimator.guarantee_.status == "proved"


def test_a_huge_epsilon_gives_what_no_noise_would_give():
    study = draw("binary-outcome", 10_000, 3)
    given = {"epsilon": 1e6, "bounds": study.bounds}
    known = np.clip(study.propensity, *study.bounds.propensity)
    # Which features a round looks at is a choice among equals, which the least noise may change.
    for make, close in (
        (lambda: ATE(delta=1e-6, **given), 1e-2),
        (lambda: ATE(delta=1e-6, propensity=known, **given), 1e-2),
        (lambda: DifferenceInMeans(delta=1e-6, **given), 1e-4),
        (lambda: DifferenceInMeans(**given), 1e-4),
    ):
        with frozen_noise():
            exact = make().fit(study.Y, study.T, X=study.X)
        noisy = fitted(make(), y=study.Y, t=study.T, x=study.X)
        assert noisy.ate_ != exact.ate_
        assert noisy.ate_ == pytest.approx(exact.ate_, abs=close * exact.release_.uncertainty.se)


def test_without_noise_the_difference_in_means_is_the_plain_one():
    with frozen_noise():
        estimate = means(epsilon=1e4, delta=1e-6).fit(Y, T).ate_
    y = np.clip(Y, -5, 9)
    plain = y[T == 1].mean() - y[T == 0].mean()
    # What is left is clipping of rare scores.
    assert estimate == pytest.approx(plain, abs=0.1 * np.std(y) / np.sqrt(N))


@pytest.mark.parametrize("seed", [1, 2])
def test_the_interval_covers_and_is_useful_at_a_comfortable_budget(seed):
    study = draw("correlated", 20_000, seed)
    estimator = ATE(epsilon=5.0, delta=1e-6, bounds=study.bounds)
    low, high = fitted(estimator, y=study.Y, t=study.T, x=study.X, seed=seed).ate_interval(alpha=0.001)
    assert low <= study.ate <= high
    assert high - low < study.bounds.outcome_width / 2
    # Adjusting is what it is for: the unadjusted difference is far outside.
    assert not low <= estimator.release_.reference["unadjusted"] <= high


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e4])
def test_the_smallest_tables_and_budgets_give_a_release_and_no_crash(relation, epsilon):
    # An exception after noise was drawn would lose the budget, and might tell something by itself.
    rng = np.random.default_rng(8)
    for seed in range(8):
        n = 10 + 5 * (seed % 2)
        y, t, x = rng.random(n) * (seed % 3 > 0), np.arange(n) % (n if seed % 4 == 0 else 3) == 0, rng.random((n, 2))
        given = {"epsilon": epsilon, "neighbours": relation}
        bare, full = Bounds(outcome=(0, 1)), Bounds(outcome=(0, 1), covariates=[(0, 1)] * 2)
        for estimator, covariates in (
            (ATE(delta=1e-6, bounds=full, **given), x),
            (ATE(delta=1e-6, bounds=bare, **given), None),
            (ATE(delta=1e-6, bounds=full, propensity=0.3, **given), x),
            (DifferenceInMeans(delta=1e-6, bounds=bare, **given), None),
            (DifferenceInMeans(bounds=bare, **given), None),
        ):
            assert_sound(fitted(estimator, y=y, t=t, x=covariates, seed=seed))


# --- what a release says --------------------------------------------------------------------------------------------


def test_the_guarantee_states_what_was_asked_for():
    root = Path(__file__).parents[2]
    for estimator in (fitted(ate(epsilon=0.7, delta=1e-7)), fitted_means(means(epsilon=0.7))):
        guarantee = estimator.guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (0.7, estimator.delta or 0.0)
        assert guarantee.status == "test"
        assert guarantee.neighbours == "replace-one"
        assert (root / "docs" / "proofs" / guarantee.proof).is_file()
        # The events themselves, accounted for anew, never exceed it.
        assert guarantee.delta_at(0.7) <= guarantee.delta


def test_the_interval_narrows_as_alpha_grows():
    estimator = fitted(ate())
    widths = [high - low for low, high in map(estimator.ate_interval, (0.001, 0.01, 0.05, 0.2, 0.5, 0.9))]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == len(widths)


def test_summary_and_repr_read_well():
    estimator = ate()
    assert repr(estimator).startswith("ATE(")
    text = fitted(estimator).summary()
    assert repr(estimator).startswith("ATE(")
    for word in ("Average treatment effect", "95 % interval", "epsilon = 2", "delta = 1e-06", "not private"):
        assert word in text


def test_a_release_survives_its_file(tmp_path):
    release = fitted(ate()).release_
    release.save(tmp_path / "ate.json")
    assert Release.load(tmp_path / "ate.json") == release


def test_clone_gives_an_unfitted_twin():
    estimator = fitted(ate(neighbours="add-remove"))
    twin = clone(estimator)
    assert twin.get_params() == estimator.get_params()
    assert not hasattr(twin, "release_")
    assert fitted(twin).release_ == estimator.release_


def test_refitting_replaces_the_release():
    estimator = fitted(ate(), seed=1)
    first = estimator.release_
    assert fitted(estimator, seed=2).release_ != first


# --- what stays behind ----------------------------------------------------------------------------------------------


def reachable(start):
    """Everything that can be reached from an object: attributes, slots, fields, closures, containers."""
    seen, waiting = {}, [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, types.ModuleType | type | str | bytes | int | float | bool):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, dict):
            waiting += [*thing.keys(), *thing.values()]
        elif isinstance(thing, list | tuple | set | frozenset):
            waiting += list(thing)
        elif isinstance(thing, types.FunctionType):
            waiting += [cell.cell_contents for cell in thing.__closure__ or ()] + [thing.__defaults__, thing.__dict__]
        elif isinstance(thing, types.MethodType):
            waiting += [thing.__self__, thing.__func__]
        elif isinstance(thing, np.ndarray) and thing.base is not None:
            waiting.append(thing.base)
        waiting.append(getattr(thing, "__dict__", None))
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        if dataclasses.is_dataclass(thing):
            slots += [part.name for part in dataclasses.fields(thing)]
        waiting += [getattr(thing, name, None) for name in slots]
    return list(seen.values())


def holds_records(estimator, inputs):
    """What of the records is still reachable from a fitted estimator."""
    return [
        thing
        for thing in reachable(estimator)
        if any(thing is given for given in inputs)
        or isinstance(thing, pd.DataFrame | pd.Series | pl.DataFrame | pa.Table)
        or (isinstance(thing, np.ndarray) and thing.size >= N)
        or (isinstance(thing, list | tuple | dict) and len(thing) >= N)
    ]


FITS = {
    "observational": lambda: (ate(), X),
    "known": lambda: (ate(propensity=0.5), X),
    "add-remove": lambda: (ate(neighbours="add-remove"), X),
    "means": lambda: (means(), None),
    "means with delta": lambda: (means(delta=1e-6, propensity=0.5), None),
}


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_estimator_holds_its_parameters_and_its_release_only(name):
    estimator, x = FITS[name]()
    fitted(estimator, x=x)
    assert set(vars(estimator)) - set(estimator.get_params()) == {"release_"}
    assert any(thing is estimator.release_.guarantee.events[-1] for thing in reachable(estimator))
    assert holds_records(estimator, [Y, T, X]) == []


def test_the_search_for_records_would_find_them():
    # A negative control: in a closure, in a container and behind a view.
    local = Y
    for keep in (lambda: local, {"deep": [(Y[3:],)]}, [X], T.tolist()):
        estimator = fitted(ate())
        estimator.kept = keep
        assert holds_records(estimator, [Y, T, X])


@pytest.mark.parametrize("name", FITS)
def test_a_pickle_carries_the_release_and_no_record(name):
    estimator, x = FITS[name]()
    frame = FRAME[NAMES] if x is not None else None
    fitted(estimator, x=frame)
    packed = pickle.dumps(estimator)
    copy = pickle.loads(packed)
    assert copy.release_ == estimator.release_
    assert copy.ate_interval() == estimator.ate_interval()
    columns = [Y, T, T.astype(float), FRAME["age"].to_numpy(), FRAME["bp"].to_numpy(), FRAME["ward"].to_numpy()]
    for column in columns:
        assert column.tobytes() not in packed
    # Nor any single measured value, in either byte order.
    for value in np.concatenate([Y, FRAME["age"], FRAME["bp"]]):
        assert value.tobytes() not in packed
        assert value.tobytes()[::-1] not in packed


def test_input_arrays_are_left_as_they_were():
    y, t, x = Y.copy(), T.copy(), FRAME[["age", "bp"]].to_numpy().copy()
    fitted(ate(bounds=Bounds(outcome=(0, 1), covariates=[(50, 60), (100, 120)])), y=y, t=t, x=x)
    np.testing.assert_array_equal(y, Y)
    np.testing.assert_array_equal(t, T)
    np.testing.assert_array_equal(x, FRAME[["age", "bp"]].to_numpy())


def test_a_frame_may_name_the_column_of_a_known_propensity() -> None:
    study = draw("correlated", 400, 3)
    frame = pd.DataFrame(study.X, columns=[f"c{j}" for j in range(6)]).assign(y=study.Y, t=study.T, e=0.5)
    with seeded_noise(1):
        named = ATE(epsilon=1, delta=1e-5, bounds=study.bounds, propensity="e").fit_table(
            frame, outcome="y", treatment="t", covariates=[f"c{j}" for j in range(6)]
        )
    # Of one number for all records more is public than of a column: its range.
    known = np.full(400, 0.5)
    with seeded_noise(1):
        plain = ATE(epsilon=1, delta=1e-5, bounds=study.bounds, propensity=known).fit(study.Y, study.T, X=study.X)
    assert named.ate_ == plain.ate_


def test_an_unbalanced_trial_with_covariates_at_a_few_values_has_no_vast_remainder():
    # 85 % treated, and covariates that the Gaussian reference misses: the share of treated must not count as a slope.
    for seed in (0, 1):
        study = criteo_shaped(60_000, seed)
        bounds = Bounds(outcome=(0, 1), covariates=dict(list(CRITEO_RANGES.items())[:6]), propensity=(0.7, 0.95))
        made = fitted(ATE(epsilon=1.0, delta=1e-6, bounds=bounds), seed=seed, y=study.Y, t=study.T, x=study.X[:, :6])
        low, high = made.ate_interval()
        assert low < study.ate < high
        assert high - low < 0.04


def test_a_known_design_goes_without_models_where_noise_is_most_of_the_error():
    rng = np.random.default_rng(11)
    n = 20_000
    x, t = rng.uniform(0, 1, (n, 2)), (rng.random(n) < 0.3).astype(float)
    spent = np.where(rng.random(n) < 0.003, rng.exponential(40.0, n), 0.0)
    plain = x[:, 0] + 0.1 * rng.normal(size=n)
    bounds = {"covariates": [(0, 1)] * 2, "propensity": (0.05, 0.95)}
    for y, ends, uses in ((spent, (0.0, 500.0), False), (plain, (-1.0, 2.0), True)):
        given = {"epsilon": 1.0, "delta": 1e-6, "bounds": Bounds(outcome=ends, **bounds), "propensity": 0.3}
        adjusted, means = fitted(ATE(**given), y=y, t=t, x=x), fitted(DifferenceInMeans(**given), y=y, t=t, x=x)
        assert bool(adjusted.release_.adjustment["covariates"]) == uses
        if not uses:
            # The same rounds in the same order, and so the same numbers.
            assert adjusted.ate_interval() == means.ate_interval()
            assert adjusted.release_.rounds() == means.release_.rounds()


def test_an_effect_of_another_sign_where_nearly_all_are_treated_is_inside_the_interval() -> None:
    n, bounds = 20_000, Bounds(outcome=(-6, 6), covariates=[[0, 1], (-1, 1)], propensity=(0.03, 0.97))
    for seed in range(6):
        rng = np.random.default_rng(seed)
        b, x = (rng.random(n) < 0.3).astype(float), rng.uniform(-1, 1, n)
        t = (rng.random(n) < np.where(b > 0, 0.9, 0.3)).astype(float)
        y = np.clip(0.5 * b + x + t * np.where(b > 0, -1.5, 1.0) + rng.normal(size=n), -6, 6)
        with seeded_noise(seed):
            fitted = ATE(epsilon=1.0, delta=1e-6, bounds=bounds).fit(y, t, X=np.column_stack([b, x]))
        low, high = fitted.ate_interval(alpha=0.05)
        assert low <= 0.7 - 0.3 * 1.5 <= high
