"""The pages on other averages and on plans: what they say of made-up lines, and the numbers that they compare with."""

import math

import numpy as np
import pandas as pd
import pytest

from discreet import Bounds
from discreet.datasets import Study
from evidence import plans, weighted


def test_bounds_of_poor_overlap_are_those_of_simulated_scores():
    study, facts = weighted.poor_overlap(0, 200_000)
    e, t, effect = study.propensity, study.T, study.effects
    assert (e.min(), e.max()) == (weighted.LEAST, 1.0 - weighted.LEAST)
    h, noise = e * (1.0 - e), np.random.default_rng(0).normal(size=study.n)
    scores = {
        "ATE": np.where(t > 0, 1.0 / e, -1.0 / (1.0 - e)) * noise + effect - 1.0,
        "ATO": (np.where(t > 0, 1.0 - e, -e) * noise + (t - e) ** 2 * (effect - 1.0)) / h.mean(),
    }
    for name, score in scores.items():
        # Of 200,000 scores with weights up to 200, the standard deviation is known to a few hundredths.
        assert score.std() / math.sqrt(study.n) == pytest.approx(facts[name][1], rel=0.05)
    assert facts["ATO"][1] < facts["ATE"][1] / 2


def test_the_ratio_without_privacy_is_near_the_truth_of_a_trial():
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 1, (20_000, 1)), (rng.random(20_000) < 0.5).astype(float)
    y = (rng.random(20_000) < 0.2 * np.where(t > 0, 1.5, 1.0)).astype(float)
    study = Study(name="made up", X=x, T=t, Y=y, bounds=Bounds(outcome=(0, 1), covariates=[(-1, 1)]))
    value, low, high = weighted.plain_ratio(study)
    assert low < 1.5 < high
    treated, control = y[t > 0], y[t == 0]
    assert value == pytest.approx(treated.mean() / control.mean(), rel=0.01)
    se = math.sqrt(sum((1 - arm.mean()) / arm.mean() / arm.size for arm in (treated, control)))
    assert math.log(high / low) == pytest.approx(2 * 1.96 * se, rel=0.02)


def test_the_page_on_other_averages_counts_what_was_run():
    poor = pd.DataFrame(
        [{"average": name, "n": 100, "covered": True, "ratio": ratio} for name, ratio in (("ATE", 4.0), ("ATO", 1.2))]
    )
    draws = pd.DataFrame([{"seed": 0, "ratio": 1.2, "low": 1.0, "high": 1.5}])
    text = weighted.page("python -m evidence.weighted", [], 240, poor, (draws, (1.25, 1.05, 1.45)))
    assert "0 of 240 random studies were run" in text
    assert "The private interval is 1.25 times as wide, and holds the other estimate in 1.00 of the draws" in text
    assert "| 1.2 | reached |" in text
    assert "not run" in text
    absent = weighted.page("python -m evidence.weighted", [], 240, pd.DataFrame(), "Not estimated: there is no file.")
    assert "Not estimated: there is no file." in absent


def test_the_page_on_plans_keeps_unbounded_intervals_apart():
    def line(planned: float, released: float) -> plans.Line:
        facts = {"study": 1, "n": 100, "p": 1, "epsilon": 1.0, "design": "trial"}
        return plans.Line(estimator="LATE", planned=planned, released=released, **facts)

    text = plans.page([line(1.0, 2.0), line(math.inf, math.inf), line(3.0, math.inf)], "python -m evidence.plans")
    assert "| `LATE` | all | 3 | 0.50 | 0.50 to 0.50 | 1.00 | 1, 0, 1 |" in text


@pytest.mark.parametrize("module", [plans, weighted])
def test_studies_for_choosing_are_not_reported(module, monkeypatch):
    monkeypatch.setattr("sys.argv", ["it", "--first", "5", "--studies", "0"])
    with pytest.raises(SystemExit):
        module.main()
