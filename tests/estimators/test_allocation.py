"""The tables of budget shares: each adds up to one, and a release's rounds have the shares that its table says."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from discreet import ATC, ATE, ATO, ATT, CATE, Bounds, DifferenceInMeans, PrivateKMeans, Uplift
from discreet.estimators import _allocation
from discreet.estimators._allocation import KNOWN_DESIGN, MEANS, MEANS_OF_PURE, OBSERVATIONAL, SAMPLE, TRIM, Allocation
from discreet.estimators._effect_allocation import (
    ARMS_IN_ONE_SUM,
    AVERAGE,
    AVERAGE_PART,
    CLUSTERED,
    DECLARED,
    EFFECT_ROUNDS,
    effect_allocation,
    lloyd_shares,
)
from discreet.releases.wording import rounds
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-3, 4), covariates={"age": (0, 1), "dose": (0, 1)}, propensity=(0.1, 0.9))
LEVELS = Bounds(outcome=(-3, 4), covariates={"ward": ["a", "b", "c"], "sex": ["f", "m"]}, propensity=(0.1, 0.9))
MANY = Bounds(outcome=(-3, 4), covariates={f"x{k}": (0, 1) for k in range(12)}, propensity=(0.1, 0.9))
NONE = Bounds(outcome=(-3, 4), propensity=(0.1, 0.9))
ROLES = {"outcome": "y", "treatment": "t"}


def study(n):
    rng = np.random.default_rng(5)
    age, dose, t = rng.random(n), rng.random(n), rng.integers(0, 2, n)
    y = age + t * (0.5 + dose) + rng.normal(0, 0.3, n)
    frame = pd.DataFrame({"y": y, "t": t, "age": age, "dose": dose, "id": np.arange(n)})
    frame = frame.assign(**{f"x{k}": rng.random(n) for k in range(12)})
    return frame.assign(e=0.5, ward=np.array(list("abc"))[np.arange(n) % 3], sex=np.where(dose < 0.5, "f", "m"))


def fit(estimator, n=3_000, **options):
    with seeded_noise(1):
        return estimator.fit_table(study(n), **ROLES, **options).release_


def by_name(release):
    """Shares of the released rounds, those of one name together."""
    shares = {}
    for name, _, share in rounds(release.guarantee.events):
        shares[name] = shares.get(name, 0.0) + share
    return shares


def assert_agree(release, shares, unspent=0.0):
    found = by_name(release)
    assert set(found) == set(shares)
    # A large matrix has a little more noise than its share asks for, where the grid of its integers is coarse.
    matrix = [name for name in shares if name.endswith("second moments") and found[name] < shares[name] - 1e-9]
    asked, spent = (1.0 - sum(each[name] for name in matrix) for each in (shares, found))
    assert spent / asked < 1.002
    for name in set(shares) - set(matrix):
        # Rounds are shares of what was spent.
        assert found[name] == pytest.approx(shares[name] / (asked - unspent) * spent, abs=1e-9), name


def counted(allocation, count):
    return {"number of records": count} | {name: (1.0 - count) * share for name, share in allocation.shares.items()}


def beside_level(allocation, weighted=False):
    """The same beside the level of the outcome, and the sum of weights."""
    gate = SimpleNamespace(pure=allocation is MEANS_OF_PURE, joins_rows=False)
    return allocation.beside(_allocation.beside(gate, weighted=weighted, level=True))


AVERAGES = {
    "known design": ({"epsilon": 60.0, "propensity": 0.5}, KNOWN_DESIGN),
    "known design, little information": ({"epsilon": 0.5, "propensity": 0.5}, MEANS),
    "one cycle": ({"epsilon": 0.5}, OBSERVATIONAL),
    "two cycles": ({"epsilon": 2.0}, OBSERVATIONAL),
    "three cycles": ({"epsilon": 6.0}, OBSERVATIONAL),
    "four cycles": ({"epsilon": 60.0}, OBSERVATIONAL),
}


@pytest.mark.parametrize("mode", AVERAGES)
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_rounds_of_an_average_effect_have_the_shares_of_its_table(mode, neighbours):
    given, rule = AVERAGES[mode]
    release = fit(ATE(delta=1e-6, bounds=BOUNDS, neighbours=neighbours, **given))
    shares = release.adjustment["shares"]
    assert_agree(release, shares)
    if isinstance(rule, Allocation):
        rule = beside_level(rule)
        expected = rule.shares if neighbours == "replace-one" else counted(rule, _allocation.COUNT)
        assert shares == pytest.approx(expected, abs=1e-12)
    cycles = {"one cycle": 1, "two cycles": 2, "three cycles": 3, "four cycles": 4}.get(mode, 0)
    for kind in ("propensity refinement", "residual magnitude", "residual moments"):
        assert [name for name in shares if name.startswith(kind)] == [f"{kind} {k + 1}" for k in range(cycles)]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_with_many_covariates_a_round_says_which_of_them_matter(neighbours):
    release = fit(ATE(epsilon=4.0, delta=1e-6, bounds=MANY, neighbours=neighbours))
    assert "screening moments" in release.adjustment["shares"]
    assert_agree(release, release.adjustment["shares"])


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("p", [1, 2, 12])
def test_questions_that_only_locate_or_scale_have_one_share(known, p):
    shares = _allocation.average_allocation(3_000.0, 60, p, known=known).shares
    large = ("models", "outcome", "treatment", "propensity refinement", "residual moments", "score")
    asked = {"outcome mean and square", "outcome magnitude"}
    small = {name: share for name, share in shares.items() if name in asked or not name.startswith(large)}
    assert small.pop("residual tails") == pytest.approx(2.0 * _allocation.QUESTION)
    assert set(small) >= {"marginals", "second moments", "clipped excess", "centre of the outcome"}
    assert list(small.values()) == pytest.approx([_allocation.QUESTION] * len(small))


def test_without_covariates_nobody_has_the_share_of_marginals():
    release = fit(ATE(epsilon=2.0, delta=1e-6, bounds=NONE))
    shares, unspent = release.adjustment["shares"], 0.94 * 2.0 * _allocation.QUESTION
    assert sum(shares.values()) == pytest.approx(1.0 - unspent)
    assert_agree(release, shares, unspent)


def test_a_known_design_without_covariates_is_a_difference_of_means():
    release = fit(ATE(epsilon=2.0, delta=1e-6, bounds=NONE, propensity=0.5))
    assert release.adjustment["shares"] == pytest.approx(beside_level(MEANS).shares)
    assert_agree(release, beside_level(MEANS).shares)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", [ATE, CATE])
@pytest.mark.parametrize("epsilon", [4.0, 60.0])
def test_rounds_beside_a_sample_have_the_shares_of_the_table(kind, neighbours, epsilon, monkeypatch):
    monkeypatch.setattr(_allocation, "SAMPLE", replace(_allocation.SAMPLE, records=1.0, information=1.0))
    release = fit(kind(epsilon=epsilon, delta=1e-6, bounds=BOUNDS, neighbours=neighbours), sample_by="id")
    shares = release.adjustment["shares"]
    counts = _allocation.COUNT if neighbours == "add-remove" else 0.0
    # Both parts of an effect function's budget have a sample, each with its part of the share; the count comes first.
    counts += _allocation.SAMPLE.count * (1.0 if kind is ATE else 1.0 - counts)
    assert shares["number of records"] == pytest.approx(counts)
    assert_agree(release, shares)


@pytest.mark.parametrize("epsilon", [None, 1e-6])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_rounds_of_a_difference_in_means_have_the_shares_of_its_table(epsilon, neighbours):
    release = fit(DifferenceInMeans(epsilon=1.0, delta=epsilon, bounds=BOUNDS, neighbours=neighbours))
    table = beside_level(MEANS if epsilon else MEANS_OF_PURE)
    assert_agree(release, table.shares if neighbours == "replace-one" else counted(table, _allocation.COUNT))
    assert_agree(release, release.adjustment["shares"])


@pytest.mark.parametrize("propensity", [None, 0.5])
@pytest.mark.parametrize("kind", [ATT, ATC, ATO])
def test_averages_over_some_records_ask_for_the_sum_of_their_weights(kind, propensity):
    release = fit(kind(epsilon=2.0, delta=1e-6, bounds=BOUNDS, propensity=propensity))
    shares = release.adjustment["shares"]
    assert shares["sum of weights"] == pytest.approx(2.0 * _allocation.QUESTION)
    assert_agree(release, shares)
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("propensity", [None, 0.5, "e"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("bounds", [BOUNDS, LEVELS, MANY], ids=["ranges", "levels", "many"])
def test_rounds_of_an_effect_function_have_the_shares_of_its_table(bounds, neighbours, propensity):
    given = {"epsilon": 1.3, "delta": 1e-6, "bounds": bounds, "neighbours": neighbours, "propensity": propensity}
    release = fit(CATE(**given), n=1_500)
    shares, counts = release.adjustment["shares"], _allocation.COUNT if neighbours == "add-remove" else 0.0
    assert_agree(release, shares)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares.get("number of records", 0.0) == pytest.approx(counts)
    part = (1.0 - AVERAGE_PART) * (1.0 - counts)
    function = {name: part * share for name, share in effect_allocation(propensity).shares.items()}
    assert {name: shares[name] for name in function} == pytest.approx(function)
    average = {name.removeprefix(AVERAGE): share for name, share in shares.items() if name.startswith(AVERAGE)}
    assert sum(average.values()) == pytest.approx(AVERAGE_PART * (1.0 - counts))
    assert {"arms and ends of the outcome", "arm means", "residual tails", "clipped excess", "score"} <= set(average)
    assert len(shares) == len(average) + len(function) + (counts > 0.0)


@pytest.mark.parametrize("propensity", [None, 0.5, 1, np.full(3, 0.5), "e"])
def test_a_function_asks_about_probabilities_where_they_differ_between_records(propensity):
    allocation = effect_allocation(propensity)
    assert sum(allocation.shares.values()) == pytest.approx(1.0)
    differ = not isinstance(propensity, float | int | None)
    assert ("probabilities of treatment" in allocation) == differ
    assert sum(name.startswith("effect moments") for name in allocation.shares) == EFFECT_ROUNDS


@pytest.mark.parametrize("propensity", [None, 0.5])
def test_a_constant_function_has_the_rounds_of_an_average_effect(propensity):
    given = {"epsilon": 2.0, "delta": 1e-6, "bounds": NONE, "propensity": propensity}
    release, average = fit(CATE(**given), n=500), fit(ATE(**given), n=500)
    assert not release.varies
    shares = average.adjustment["shares"]
    beside = {name: shares.pop(name) for name in (_allocation.LEVEL, _allocation.CROSS)}
    left = 1.0 - sum(beside.values())
    # A function releases no means of its arms.
    assert release.adjustment["shares"] == pytest.approx({name: share / left for name, share in shares.items()})


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("propensity", [None, 0.5])
def test_rounds_of_segments_have_the_shares_of_their_table(delta, neighbours, propensity):
    given = {"epsilon": 0.05, "delta": delta, "neighbours": neighbours, "propensity": propensity}
    release = fit(Uplift(bounds=BOUNDS, by={"age": 8}, **given))
    one_sum = release.kind == "signed"
    assert one_sum == (propensity is not None)
    assert_agree(release, (DECLARED.divided("table", ARMS_IN_ONE_SUM) if one_sum else DECLARED).shares)


@pytest.mark.parametrize("delta", [None, 1e-6])
def test_rounds_of_clustered_segments_have_the_shares_of_their_table(delta):
    release = fit(Uplift(epsilon=4.0, delta=delta, bounds=BOUNDS, by=PrivateKMeans(clusters=3)))
    assert_agree(release, CLUSTERED.divided("partition", lloyd_shares(1.0, 2)).shares)


def test_a_table_that_does_not_add_up_to_one_is_refused():
    with pytest.raises(ValueError, match="not to one"):
        Allocation.of({"location": 0.5, "score": 0.4}, parts={}, provenance="none")
    with pytest.raises(ValueError, match="not to one"):
        Allocation.of({"location": 1.0}, parts={"location": {"treated": 0.5}}, provenance="none")


@pytest.mark.parametrize(
    "table",
    [MEANS, MEANS_OF_PURE, KNOWN_DESIGN, OBSERVATIONAL, SAMPLE, TRIM, effect_allocation(None), DECLARED, CLUSTERED],
)
def test_every_table_says_where_its_numbers_are_from(table):
    assert table.provenance.endswith(".")
