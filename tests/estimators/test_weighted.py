"""Averages over the treated, the untreated and the overlap."""

import numpy as np
import pytest

from discreet import ATC, ATE, ATO, ATT, Bounds, InvalidBudget, Release
from discreet.estimators.measurements.estimand import CONTROLS, EVERYONE, OVERLAP, TREATED
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-4, 8), covariates=[(-2, 2)], propensity=(0.05, 0.95))
KINDS = {ATE: EVERYONE, ATT: TREATED, ATC: CONTROLS, ATO: OVERLAP}


def study(seed=1, n=30_000):
    """Effects grow with what drives treatment: every average is another number."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, n)
    e = 1 / (1 + np.exp(-1.2 * x))
    t = (rng.random(n) < e).astype(float)
    effect = 1.0 + 0.8 * x
    return x[:, None], t, x + t * effect + rng.normal(0, 0.5, n), e, effect


def truth(kind, e, effect):
    h = KINDS[kind].weigh(e)
    return float(h @ effect / h.sum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("known", [False, True])
def test_each_average_is_the_one_that_it_says(kind, known):
    x, t, y, e, effect = study()
    given = {"propensity": np.clip(e, 0.05, 0.95)} if known else {}
    with seeded_noise(3):
        fitted = kind(epsilon=8.0, delta=1e-6, bounds=BOUNDS, **given).fit(y, t, X=x)
    low, high = fitted.interval()
    assert low < truth(kind, e, effect) < high
    others = [truth(other, e, effect) for other in (ATE, ATT, ATC)]
    assert high - low < 0.5 * np.ptp(others)
    assert fitted.estimate_ == fitted.release_.estimate
    assert fitted.release_.kind == kind.__name__.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_means_of_the_arms_are_those_of_the_people_meant(kind):
    x, t, y, e, effect = study()
    with seeded_noise(4):
        release = kind(epsilon=8.0, delta=1e-6, bounds=BOUNDS).fit(y, t, X=x).release_
    h = KINDS[kind].weigh(e)
    control = float(h @ x[:, 0] / h.sum())
    means = release.means(alpha=0.01)
    assert means["control"][1] < control < means["control"][2]
    assert means["treated"][1] < control + truth(kind, e, effect) < means["treated"][2]
    assert means["treated"][0] - means["control"][0] == pytest.approx(release.estimate)


@pytest.mark.parametrize("estimand", KINDS.values(), ids=lambda estimand: estimand.kind)
def test_weights_are_the_inverse_of_clip_units_in_the_rarer_arm(estimand):
    e = np.linspace(0.01, 0.99, 99)
    largest = np.maximum(*(np.abs(estimand.weight(np.full_like(e, t), e)) for t in (0.0, 1.0)))
    np.testing.assert_allclose(largest * estimand.clip_unit(e), 1.0)
    assert estimand.clip_unit(e).max() <= estimand.largest_unit
    np.testing.assert_allclose(estimand.clip_unit(e) * estimand.weigh(e), np.minimum(e, 1 - e))


@pytest.mark.parametrize("estimand", [TREATED, CONTROLS, OVERLAP], ids=lambda estimand: estimand.kind)
def test_sums_of_weights_are_right_to_the_second_order_of_errors_of_e(estimand):
    pi = np.linspace(0.05, 0.95, 19)
    off = 0.01
    e = pi + off
    mean = sum(chance * estimand.counted(np.full_like(e, t), e) for t, chance in ((1.0, pi), (0.0, 1 - pi)))
    assert np.abs(mean - estimand.weigh(pi)).max() <= off**2 + 1e-12
    assert mean.max() <= estimand.most_counted(0.05, 0.96)


@pytest.mark.parametrize("kind", [ATT, ATC, ATO])
def test_prognoses_that_matter_are_found_by_balanced_residuals(kind):
    # The mean of v r is what the prognosis of the arm that matters is off.
    e, off = np.linspace(0.1, 0.9, 17), {1.0: 0.7, 0.0: -0.4}
    v = {t: KINDS[kind].balancing(np.full_like(e, t), e, np.inf) for t in (0.0, 1.0)}
    found = e * v[1.0] * off[1.0] + (1 - e) * v[0.0] * off[0.0]
    wanted = {ATT: off[0.0], ATC: off[1.0], ATO: e * off[1.0] + (1 - e) * off[0.0]}[kind]
    np.testing.assert_allclose(found, np.broadcast_to(wanted, e.shape), atol=0.05)


def test_no_weight_of_the_overlap_costs_noise():
    x, t, y, _, _ = study(n=6_000)
    wide = Bounds(outcome=(-4, 8), covariates=[(-2, 2)], propensity=(0.001, 0.999))
    with seeded_noise(5):
        ato, ate = (kind(epsilon=2.0, delta=1e-6, bounds=wide).fit(y, t, X=x).release_ for kind in (ATO, ATE))
    assert ato.uncertainty.clipping <= ate.uncertainty.clipping
    assert ato.adjustment["trim"] == [0.001, 0.999]


@pytest.mark.parametrize("kind", [ATT, ATC, ATO])
def test_pure_budgets_are_refused(kind):
    with pytest.raises(InvalidBudget, match=f"{kind.__name__} needs delta"):
        kind(epsilon=1.0, bounds=BOUNDS).check()


@pytest.mark.parametrize("kind", [ATT, ATO])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_files_say_the_same(kind, neighbours, tmp_path):
    x, t, y, _, _ = study(n=800)
    with seeded_noise(6):
        release = kind(epsilon=1.0, delta=1e-6, bounds=BOUNDS, neighbours=neighbours).fit(y, t, X=x).release_
    release.save(tmp_path / "one.json")
    assert Release.load(tmp_path / "one.json") == release
    assert release.guarantee.proof == "att.md"
