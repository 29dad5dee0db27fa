import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet import ATE, Bounds, DifferenceInMeans, Uplift, plan
from discreet.data import in_memory
from discreet.datasets import adum, draw
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from discreet.privacy import gate
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(0, 10), covariates={"age": (18, 95), "sex": ["f", "m"], "bp": (40, 220)})
BINARY = Bounds(outcome=["no", "yes"], covariates={"age": (18, 95)})
GIVEN = {"n": 5_000, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6}
CASES = [
    ("ate", 1e-6, None),
    ("ate", 1e-6, 0.5),
    ("difference-in-means", 1e-6, None),
    ("difference-in-means", None, 0.4),
]


def planned(case=CASES[0], **given):
    estimator, delta, propensity = case
    if not {"epsilon", "width"} & set(given):
        given["epsilon"] = 1.0
    return plan(estimator, **({"n": 5_000, "bounds": BOUNDS, "delta": delta, "propensity": propensity} | given))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_more_epsilon_and_more_records_never_widen_the_interval(case, neighbours):
    by_epsilon = [planned(case, epsilon=e, neighbours=neighbours) for e in (0.05, 0.2, 1, 5, 50)]
    by_records = [planned(case, n=n, neighbours=neighbours) for n in (200, 1_000, 20_000, 1_000_000)]
    for plans in (by_epsilon, by_records):
        for name in ("width", "noise_sd", "detectable_effect"):
            values = [getattr(one, name) for one in plans]
            assert values == sorted(values, reverse=True)
            assert len(set(values)) == len(values)
    assert all(one.width > one.without_privacy > 0 for one in by_epsilon + by_records)
    assert by_epsilon[-1].width < 2 * by_epsilon[-1].without_privacy


@settings(max_examples=15)
@given(st.sampled_from(CASES), st.floats(0.01, 100))
def test_the_epsilon_for_a_width_gives_that_width_and_little_less_does_not(case, epsilon):
    # A hair wider: while shares move from models to the score, the width is flat to a few millionths.
    target = 1.0001 * planned(case, epsilon=epsilon).width
    # No interval is wider than all effects that the range allows.
    assume(target < 2 * BOUNDS.outcome_width)
    solved = planned(case, width=target)
    assert solved.width <= target
    # Rules change in steps of n mu: where a round is added, a little more budget may widen the interval a little.
    steps = 0.05 if case == CASES[0] else 0.02
    assert solved.epsilon <= epsilon * (1.002 + steps)
    assert planned(case, epsilon=0.99 * solved.epsilon).width > target * (1.0 - steps)


def test_a_given_epsilon_is_what_the_plan_states():
    one = planned(epsilon=0.7, n=np.int64(900), alpha=0.1)
    assert (one.epsilon, one.delta, one.n, one.alpha, one.estimator) == (0.7, 1e-6, 900, 0.1, "ate")
    assert planned(alpha=0.1).width < planned(alpha=0.05).width
    assert one.detectable_effect > one.width / 2


def test_what_is_assumed_is_said_and_matters():
    assert planned(outcome_sd=0.5).width < planned(outcome_sd=2.0).width
    assert planned(treated=0.5).width < planned(treated=0.05).width
    assert any("0.321" in assumption for assumption in planned(outcome_sd=0.321).assumptions)
    assert any("12%" in assumption for assumption in planned(treated=0.12).assumptions)
    text = planned(epsilon=0.7).summary()
    for word in ("5,000 records", "epsilon = 0.7", "delta = 1e-06", "95% interval", "assumed:"):
        assert word in text


def test_a_known_design_needs_no_more_than_an_observational_one():
    assert planned(CASES[1]).width < planned(CASES[0]).width


def test_planning_touches_no_data_and_draws_no_noise(monkeypatch):
    def touched(*_, **__):
        pytest.fail("planning must not need records")

    for where, name in (
        (gate.Gate, "__init__"),
        (gate.Gate, "ask"),
        (in_memory.ArrayRecords, "of"),
        (gate, "discrete_gaussian"),
        (gate, "discrete_laplace"),
    ):
        monkeypatch.setattr(where, name, touched)
    first, again = planned(width=1.0), planned(width=1.0)
    assert first == again
    assert dataclasses.is_dataclass(first)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.width = 0.0


def test_the_plan_is_near_what_a_fit_then_has():
    study = draw("binary-outcome", 5_000, 2)
    prevalence = round(float(study.Y.mean()), 1)
    expected = plan("ate", n=5_000, bounds=study.bounds, epsilon=1.0, delta=1e-6, prevalence=prevalence)
    trial = plan("difference_in_means", n=5_000, bounds=study.bounds, epsilon=1.0, prevalence=prevalence)
    with seeded_noise(0):
        ate = ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds)
        widths = [np.diff(ate.fit(study.Y, study.T, X=study.X).ate_interval()) for _ in range(5)]
        means = [DifferenceInMeans(epsilon=1.0, bounds=study.bounds).fit(study.Y, study.T, X=study.X) for _ in range(9)]
    # A plan is for choosing a budget: it may be off by a factor of two or so, not by an order of magnitude.
    assert 0.5 < np.median(widths) / expected.width < 2.5
    # Nothing is adjusted for, so that little is left to guess; how far residuals reach depends on a noisy pilot.
    for fitted in means:
        low, high = fitted.ate_interval()
        assert 0.8 < (high - low) / trial.width < 1.25
    typical = np.median([fitted.release_.uncertainty.privacy for fitted in means])
    assert trial.uncertainty.privacy == pytest.approx(typical, rel=0.25)


@pytest.mark.parametrize(("delta", "propensity"), [(1e-6, 0.5), (1e-6, None), (None, 0.5)], ids=str)
def test_a_segment_is_planned_as_it_is_released(delta, propensity):
    study = adum(20_000, 3)
    given = {"epsilon": 1.0, "delta": delta, "bounds": study.bounds, "by": {0: 6}, "propensity": propensity}
    expected = plan("uplift", n=20_000, outcome_sd=1.0, outcome_mean=0.5, **given)
    with seeded_noise(1):
        rows = Uplift(**given).fit(study.Y, study.T, X=study.X).table()
    assert 0.7 < np.median([row["high"] - row["low"] for row in rows]) / expected.width < 1.4
    finer = plan("uplift", n=20_000, **given | {"by": {0: 12}})
    assert finer.width > plan("uplift", n=20_000, **given).width
    assert plan("uplift", n=20_000, **given | {"by": {0: "auto"}}).width > 0


def test_the_average_of_a_function_has_a_part_of_the_budget():
    function, average = plan("cate", **GIVEN), plan("ate", **GIVEN)
    assert average.width < function.width < 2 * average.width
    # Too few records for a function: all is spent on the average.
    few = GIVEN | {"n": 100}
    assert plan("cate", **few).width == plan("ate", **few).width


def test_guesses_say_where_outcomes_are():
    rare, even = (plan("ate", **GIVEN | {"bounds": BINARY, "prevalence": share}) for share in (0.02, 0.5))
    assert rare.width < even.width
    # Without a guess half have the event, and the plan says so; a standard deviation says the same as a prevalence.
    silent = plan("ate", **GIVEN | {"bounds": BINARY})
    assert silent.width == even.width
    assert any("half of the records have the event" in words for words in silent.assumptions)
    said = plan("ate", **GIVEN | {"bounds": BINARY, "outcome_sd": 0.14})
    assert said.width == pytest.approx(rare.width, rel=1e-3)
    assert plan("ate", **GIVEN | {"bounds": Bounds(outcome=(0, 1))}).assumptions[0] == silent.assumptions[0]
    # Crowded at one end, some outcomes may hide far away: noise has to cover the range.
    trial = GIVEN | {"outcome_sd": 1.0, "propensity": 0.5}
    middle, crowded = (plan("ate", **trial | {"outcome_mean": mean}) for mean in (5.0, 0.2))
    assert crowded.noise_sd > 1.5 * middle.noise_sd
    assert plan("ate", **trial | {"outcome_mean": 9.8}).width == pytest.approx(crowded.width, rel=0.05)
    assert 0 < plan("ate", **trial | {"outcome_mean": 2.0}).width < 20.0


def test_a_design_that_varies_is_planned_with_its_probabilities():
    one, some = (plan("ate", **GIVEN | {"propensity": given}) for given in (0.5, np.linspace(0.1, 0.9, 500)))
    assert one.width < some.width


@pytest.mark.parametrize(
    ("given", "message", "error"),
    [
        ({"estimator": "psm"}, "plan knows ate, difference-in-means, cate, uplift, late", InvalidInput),
        ({"estimator": "uplift"}, "by declares the segments of 'uplift'", InvalidInput),
        ({"estimator": "uplift", "by": 4}, "by must map covariates to cuts", InvalidInput),
        ({"by": {"age": 4}}, "by declares the segments of 'uplift'", InvalidInput),
        ({"estimator": "cate", "delta": None}, "CATE needs delta", InvalidBudget),
        ({"prevalence": 0.1}, "prevalence belongs to an outcome of two values", InvalidInput),
        ({"bounds": BINARY, "prevalence": 0.0}, "prevalence must lie between 0 and 1", InvalidInput),
        ({"bounds": BINARY, "prevalence": 1.0}, "prevalence must lie between 0 and 1", InvalidInput),
        ({"bounds": BINARY, "prevalence": math.nan}, "prevalence must lie between 0 and 1", InvalidInput),
        ({"bounds": BINARY, "prevalence": 0.1, "outcome_sd": 0.3}, "prevalence says what outcome_sd", InvalidInput),
        ({"bounds": BINARY, "prevalence": 0.1, "outcome_mean": 0.1}, "prevalence says what outcome_sd", InvalidInput),
        ({"bounds": BINARY, "outcome_mean": 0.1}, "outcome_mean of an outcome of two values", InvalidInput),
        ({"outcome_mean": 10.0}, "outcome_mean must lie inside", InvalidInput),
        ({"outcome_mean": "1"}, "outcome_mean must lie inside", InvalidInput),
        ({"outcome_sd": 5.1}, "outcome_sd exceeds half of the outcome's range", InvalidInput),
        ({"propensity": [0.5, 1.0]}, "propensity must lie between 0 and 1", InvalidInput),
        ({"propensity": []}, "propensity must lie between 0 and 1", InvalidInput),
        ({"bounds": None}, "plan needs bounds=Bounds", MissingBounds),
        ({"bounds": (0, 1)}, "plan needs bounds=Bounds", MissingBounds),
        ({"n": 9}, "n must be a whole number of at least 10", InvalidInput),
        ({"n": 100.0}, "n must be a whole number", InvalidInput),
        ({"n": True}, "n must be a whole number", InvalidInput),
        ({"alpha": 0.0}, "alpha must lie between 0 and 1", InvalidInput),
        ({"alpha": math.nan}, "alpha must lie between 0 and 1", InvalidInput),
        ({"treated": 1.0}, "treated must lie between 0 and 1", InvalidInput),
        ({"outcome_sd": 0.0}, "outcome_sd must be a positive number", InvalidInput),
        ({"outcome_sd": math.nan}, "outcome_sd must be a positive number", InvalidInput),
        ({"epsilon": None}, "plan needs either epsilon, or a width", InvalidBudget),
        ({"epsilon": 0.0}, "epsilon must be positive", InvalidBudget),
        ({"epsilon": "1"}, "epsilon must be a finite number", InvalidBudget),
        ({"delta": 2.0}, "delta must lie between 0 and 1", InvalidBudget),
        ({"delta": None}, "ATE needs delta", InvalidBudget),
        ({"epsilon": None, "width": 0.0}, "width must be a positive number", InvalidInput),
        ({"epsilon": None, "width": math.nan}, "width must be a positive number", InvalidInput),
        ({"epsilon": None, "width": 1e-6}, "no epsilon gives a width of 1e-06: 5,000 records allow", InvalidInput),
    ],
    ids=str,
)
def test_what_cannot_be_planned_is_refused(given, message, error):
    full = {"estimator": "ate", "n": 5_000, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6} | given
    with pytest.raises(error, match=message):
        plan(full.pop("estimator"), **full)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"propensity": 1.5}, "propensity must lie between 0 and 1"),
        ({"propensity": "half"}, "propensity must lie between 0 and 1"),
        ({"outcome_sd": "x"}, "outcome_sd must be a positive number"),
        ({"neighbours": "twins"}, "neighbours must be"),
        ({"width": 0.5}, "either epsilon, or a width"),
    ],
)
def test_arguments_that_make_no_plan_are_refused(wrong: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        plan("ate", **{"n": 1000, "bounds": Bounds(outcome=(0, 1)), "epsilon": 1.0, "delta": 1e-5} | wrong)


def test_averages_over_some_of_the_records_have_the_plan_of_the_average_over_all():
    given = {"n": 5_000, "bounds": Bounds(outcome=(0, 1), covariates=[(0, 1)]), "epsilon": 1.0, "delta": 1e-6}
    assert plan("att", **given) == plan("ATO", **given) == plan("ate", **given)
