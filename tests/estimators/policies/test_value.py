"""What a policy gains elsewhere: right on average, bounded below as often as stated, refused where it means nothing."""

import numpy as np
import pandas as pd
import pytest

from discreet import Bounds, InvalidBudget, InvalidInput, Ledger, MissingBounds, NotFitted, Policy, PolicyValue
from discreet.datasets import adum
from discreet.privacy import gate as gate_module
from discreet.testing import frozen_noise, seeded_noise

BOUNDS = Bounds(outcome=(-5, 5), covariates=[(-1, 1)], propensity=(0.4, 0.6))
POLICY = Policy.declare(bounds=BOUNDS, by={0: 4}, treated=[0, 0, 1, 1], cost=0.2)
TRIAL = adum(n=4_000, seed=3)
# E[1{x > 0} (sin x - cost)] for x uniform on (-1, 1).
TRUTH = 0.5 * (1 - np.cos(1)) - 0.5 * 0.2


def value(**given):
    return PolicyValue(**({"policy": POLICY, "epsilon": 1.0, "bounds": BOUNDS, "propensity": 0.5} | given))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("given_", [{}, {"delta": 1e-6}, {"delta": 1e-6, "propensity": None}], ids=str)
def test_the_gain_is_covered_and_bounded_below(given_, relation):
    found = []
    for k in range(8):
        trial = adum(n=3_000, seed=100 + k)
        with seeded_noise(k):
            found.append(value(neighbours=relation, **given_).fit(trial.Y, trial.T, X=trial.X))
    low, high = np.array([each.value_interval(0.01) for each in found]).T
    # Of eight intervals at 99 %, two that miss would be a chance of three in a thousand.
    assert np.sum((low > TRUTH) | (high < TRUTH)) <= 1
    assert np.sum([each.value_lower(0.01) > TRUTH for each in found]) <= 1
    assert np.mean([each.value_ for each in found]) == pytest.approx(TRUTH, abs=4 * 0.03 / np.sqrt(8))


def test_a_one_sided_bound_is_higher_than_the_end_of_an_interval():
    with seeded_noise(0):
        found = value().fit(TRIAL.Y, TRIAL.T, X=TRIAL.X)
    assert found.value_interval(0.05)[0] < found.value_lower(0.05) < found.value_lower(0.2) < found.value_
    assert found.release_.share == pytest.approx(0.5, abs=0.1)
    assert found.value_ == found.release_.share * (found.release_.effect_among - 0.2)


def test_without_noise_it_is_the_difference_of_means_among_the_treated():
    inside = TRIAL.X[:, 0] > 0
    y, t = TRIAL.Y[inside], TRIAL.T[inside]
    with frozen_noise():
        found = value(epsilon=100.0).fit(TRIAL.Y, TRIAL.T, X=TRIAL.X).release_
    assert found.share == pytest.approx(inside.mean())
    assert found.effect_among == pytest.approx(y[t == 1].mean() - y[t == 0].mean(), abs=0.02)


def test_treating_everybody_gains_the_average_effect_less_the_cost():
    everybody = Policy.declare(bounds=BOUNDS, by={0: 2}, treated=[True, True], cost=0.3)
    with frozen_noise():
        found = value(policy=everybody).fit(TRIAL.Y, TRIAL.T, X=TRIAL.X).release_
    assert found.share == 1.0
    assert found.estimate == pytest.approx(TRIAL.Y[TRIAL.T == 1].mean() - TRIAL.Y[TRIAL.T == 0].mean() - 0.3, abs=0.02)


@pytest.mark.parametrize("given_", [{}, {"delta": 1e-6}, {"delta": 1e-6, "propensity": None}], ids=str)
@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_region_of_hardly_anybody_has_an_interval_that_says_so(given_, relation):
    rare = Policy.declare(bounds=BOUNDS, by={0: [-1, 0.99999, 1]}, treated=[False, True], cost=0.2)
    for seed in range(3):
        with seeded_noise(seed):
            found = value(policy=rare, neighbours=relation, **given_).fit(TRIAL.Y, TRIAL.T, X=TRIAL.X)
        low, high = found.value_interval()
        assert -10.2 <= low <= 0 <= high <= 9.8
        # Whatever they gain, they are few.
        assert high - low < 3.0


def test_covariates_beside_those_of_the_policy_only_adjust():
    table = pd.DataFrame({"y": TRIAL.Y, "t": TRIAL.T, "x": TRIAL.X[:, 0], "more": TRIAL.X[::-1, 0]})
    own = Bounds(outcome=(-5, 5), covariates={"x": (-1, 1)})
    wide = Bounds(outcome=(-5, 5), covariates={"more": (-1, 1), "x": (-1, 1)}, propensity=(0.4, 0.6))
    policy = Policy.declare(bounds=own, by={"x": 2}, treated=[0, 1], cost=0.2)
    with frozen_noise():
        found = value(policy=policy, bounds=wide, delta=1e-6).fit_table(table, outcome="y", treatment="t")
    assert found.release_.share == pytest.approx((table["x"] > 0).mean())


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_a_table_gives_what_arrays_give(relation, tmp_path):
    table = pd.DataFrame({"y": TRIAL.Y, "t": TRIAL.T, "x": TRIAL.X[:, 0]})
    table.to_parquet(tmp_path / "trial.parquet", row_group_size=700)
    bounds = Bounds(outcome=(-5, 5), covariates={"x": (-1, 1)}, propensity=(0.4, 0.6))
    policy = Policy.declare(bounds=bounds, by={"x": 4}, treated=[0, 0, 1, 1], cost=0.2)
    found = []
    for source in (table, str(tmp_path / "trial.parquet")):
        with seeded_noise(2):
            made = value(policy=policy, bounds=bounds, neighbours=relation)
            found.append(made.fit_table(source, outcome="y", treatment="t").release_.to_dict())
    assert found[0] == found[1]


@pytest.mark.parametrize("engine", [str, pd.DataFrame])
def test_units_with_several_rows_count_as_one(engine, tmp_path):
    table = pd.DataFrame({"y": TRIAL.Y, "t": TRIAL.T, "x": TRIAL.X[:, 0], "id": np.arange(TRIAL.n) // 2})
    table.to_parquet(tmp_path / "trial.parquet")
    bounds = Bounds(outcome=(-5, 5), covariates={"x": (-1, 1)}, propensity=(0.4, 0.6))
    policy = Policy.declare(bounds=bounds, by={"x": 4}, treated=[0, 0, 1, 1], cost=0.2)
    source = table if engine is pd.DataFrame else str(tmp_path / "trial.parquet")
    with seeded_noise(1):
        found = value(policy=policy, bounds=bounds).fit_table(source, outcome="y", treatment="t", unit="id", max_rows=2)
    assert "units.md" in found.guarantee_.proof
    assert found.value_lower(0.01) < TRUTH < found.value_interval(0.01)[1]


def test_two_halves_that_a_ledger_knows_as_strata_cost_no_more_than_one(tmp_path):
    from discreet import Uplift

    first, second = adum(n=2_000, seed=1), adum(n=2_000, seed=2)
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("trial", epsilon=1.0, strata=["choose", "measure"])
    with seeded_noise(0):
        chosen = Uplift(epsilon=1.0, bounds=BOUNDS, by={0: 4}, propensity=0.5)
        chosen.fit(first.Y, first.T, X=first.X, ledger=ledger, dataset="trial", stratum="choose")
        paid = value(policy=chosen.policy(cost=0.1))
        paid.fit(second.Y, second.T, X=second.X, ledger=ledger, dataset="trial", stratum="measure")
        assert ledger.account("trial").spent.epsilon == 1.0
        # An identical request is answered from what was paid for.
        again = value(policy=chosen.policy(cost=0.1))
        again.fit(second.Y, second.T, X=second.X, ledger=ledger, dataset="trial", stratum="measure")
    assert again.release_.to_dict() == paid.release_.to_dict()
    ledger.close()


@pytest.fixture
def no_noise(monkeypatch):
    """Whoever draws noise has spent budget."""

    def drawn(*_):
        pytest.fail("noise was drawn for input that had to be refused")

    monkeypatch.setattr(gate_module, "discrete_gaussian", drawn)
    monkeypatch.setattr(gate_module, "discrete_laplace", drawn)


OTHER = Policy.declare(bounds=Bounds(outcome=(-5, 5), covariates={"age": (18, 90)}), by={"age": 2}, treated=[0, 1])
WIDER = Policy.declare(bounds=Bounds(outcome=(-5, 5), covariates=[(-2, 2)]), by={0: 2}, treated=[0, 1])
DEAR = Policy.declare(bounds=Bounds(outcome=(0, 50), covariates=[(-1, 1)]), by={0: 2}, treated=[0, 1], cost=20.0)
NOBODY = Policy.declare(bounds=BOUNDS, by={0: 2}, treated=[0, 0])


@pytest.mark.parametrize(
    ("given_", "error", "message"),
    [
        ({"policy": None}, InvalidInput, "policy must be a Policy"),
        ({"policy": {0: 2}}, InvalidInput, "policy must be a Policy"),
        ({"policy": OTHER}, InvalidInput, "policy looks at covariates that the bounds do not declare as it does: age"),
        ({"policy": WIDER}, InvalidInput, "policy looks at covariates .* x0"),
        ({"policy": DEAR}, InvalidInput, "policy has a cost beyond"),
        ({"policy": NOBODY}, InvalidInput, "policy treats nobody"),
        ({"propensity": None}, InvalidBudget, "needs delta"),
        ({"bounds": None}, MissingBounds, "needs bounds"),
        ({"epsilon": 0}, InvalidBudget, "epsilon"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_spent(given_, error, message, no_noise):
    made = value(**given_)
    with pytest.raises(error, match=message):
        made.fit(TRIAL.Y, TRIAL.T, X=TRIAL.X)
    with pytest.raises(NotFitted):
        made.value_lower()


def test_an_alpha_that_is_none_is_refused():
    with seeded_noise(0):
        found = value().fit(TRIAL.Y, TRIAL.T, X=TRIAL.X)
    for alpha in (0, 1, np.nan, True, "0.05"):
        with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
            found.value_lower(alpha)


def test_what_is_released_is_drawn_with_the_noise_that_it_states(monkeypatch):
    drawn = []
    sampler = gate_module.discrete_laplace  # type: ignore[attr-defined]

    def recorded(sums, scale):
        noisy = sampler(sums, scale)
        drawn.append((scale, (noisy - sums).astype(float)))
        return noisy

    monkeypatch.setattr(gate_module, "discrete_laplace", recorded)
    fits = [value().fit(TRIAL.Y[:600], TRIAL.T[:600], X=TRIAL.X[:600]) for _ in range(6)]
    events = [event for fit in fits for event in fit.guarantee_.events]
    ratios = []
    for event, (scale, noise) in zip(events, drawn, strict=True):
        assert scale == event.scale
        ratios.append(noise / event.scale / np.sqrt(2))
    values = np.concatenate(ratios)
    assert abs(np.mean(values**2) - 1.0) < 5.0 * np.sqrt(5.0 / len(values))


def test_the_noise_of_a_share_is_that_of_both_numbers_where_both_are_released():
    everybody = Policy.declare(bounds=BOUNDS, by={0: 2}, treated=[True, True])
    with frozen_noise():
        found = value(policy=everybody, neighbours="add-remove").fit(TRIAL.Y, TRIAL.T, X=TRIAL.X).release_
    # Laplace noise of all records and of those whom it treats, in records.
    noise = [np.sqrt(2) * each.scale / each.diameter for each in found.guarantee.events[:2]]
    assert found.share_noise == pytest.approx(np.hypot(*noise) / found.n)
