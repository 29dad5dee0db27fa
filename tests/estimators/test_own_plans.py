"""Plans of estimators with rounds of their own: near what is released, monotone, and refused where they cannot be."""

import math
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.data import in_memory
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy import gate
from discreet.testing import seeded_noise

BOUNDS = dc.Bounds(outcome=(0, 10), covariates={"age": (0, 1), "bp": (0, 1)}, propensity=(0.1, 0.9))
GIVEN: dict[str, Any] = {"n": 5_000, "bounds": BOUNDS, "epsilon": 1.0, "delta": 1e-6}
OWN = {
    "late": {"compliance": 0.6},
    "difference-in-differences": {"correlation": 0.6},
    "survival": {"horizon": 5.0},
    "policy-value": {"share": 0.4},
}


def width(name: str, **given: Any) -> float:
    return dc.plan(name, **GIVEN | OWN[name] | given).width


@pytest.mark.parametrize("name", OWN)
def test_more_of_anything_never_widens_and_nothing_is_touched(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for where, what in ((gate.Gate, "__init__"), (in_memory.ArrayRecords, "of"), (gate, "discrete_gaussian")):
        monkeypatch.setattr(where, what, lambda *_, **__: pytest.fail("a plan needs no records"))
    by_epsilon = [width(name, epsilon=epsilon) for epsilon in (0.3, 1.0, 5.0, 50.0)]
    by_records = [width(name, n=n) for n in (2_000, 20_000, 1_000_000)]
    for widths in (by_epsilon, by_records):
        assert widths == sorted(widths, reverse=True)
        assert len(set(widths)) == len(widths)
    # A known design needs no models.
    assert width(name, propensity=0.5) < width(name)
    assert width(name, neighbours="add-remove") > 0
    found = dc.plan(name, **GIVEN | OWN[name])
    assert found.estimator == name
    assert found.without_privacy < found.width
    assert f"{name}, 5,000 records" in found.summary()


@pytest.mark.parametrize("name", OWN)
def test_the_epsilon_for_a_width_gives_that_width(name: str) -> None:
    target = width(name, epsilon=0.7)
    solved = dc.plan(name, **{k: v for k, v in GIVEN.items() if k != "epsilon"}, **OWN[name], width=1.001 * target)
    assert solved.width <= 1.001 * target
    assert solved.epsilon == pytest.approx(0.7, rel=0.1)


def test_what_a_plan_is_told_matters() -> None:
    assert width("late", compliance=0.9) < width("late", compliance=0.4)
    assert width("late", compliance=0.01) == math.inf
    assert "inf" in dc.plan("late", **GIVEN, compliance=0.01).summary()
    assert width("difference-in-differences", correlation=0.9) < width("difference-in-differences", correlation=0.0)
    assert width("survival", measure="risk") < 2.0 < 5.0 * width("survival")
    assert width("survival", lost=0.6) > width("survival", lost=0.05)
    assert width("survival", times=[1.0, 2.0]) > 0
    # A gain counts per person of all.
    assert width("policy-value", share=0.1, propensity=0.5) < width("policy-value", share=0.9, propensity=0.5)
    assert dc.plan("policy-value", n=5_000, bounds=BOUNDS, epsilon=1.0, propensity=0.5).delta is None
    for name, told in (("late", "60%"), ("policy-value", "40%"), ("difference-in-differences", "0.6")):
        assert any(told in words for words in dc.plan(name, **GIVEN, **OWN[name]).assumptions)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("late", {"compliance": 0.0}, "compliance must lie between 0 and 1"),
        ("late", {"delta": None}, "LATE needs delta"),
        ("late", {"share": 0.5}, "share belongs to the plan of 'policy-value'"),
        ("ate", {"compliance": 0.5}, "compliance belongs to the plan of 'late'"),
        ("difference-in-differences", {"correlation": 1.0}, "correlation must lie between -1 and 1"),
        ("difference-in-differences", {"delta": None}, "DifferenceInDifferences needs delta"),
        ("survival", {"horizon": None}, "needs horizon="),
        ("survival", {"horizon": 11.0}, "horizon must be a time above zero"),
        ("survival", {"events": 1.0}, "events must lie between 0 and 1"),
        ("survival", {"lost": math.nan}, "lost must lie between 0 and 1"),
        ("survival", {"measure": "median"}, 'measure must be "rmst" or "risk"'),
        ("survival", {"outcome_sd": 1.0}, "takes events= and lost="),
        ("policy-value", {"share": 1.5}, "share must lie between 0 and 1"),
        ("policy-value", {"share": 0.001}, "fewer than 10 records whom the policy treats"),
        ("policy-value", {"delta": None}, "PolicyValue needs delta"),
        ("policy-value", {"cap": 2.0}, "cap must be a number, for 'ate'"),
    ],
)
def test_what_cannot_be_planned_is_refused(name: str, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises((InvalidInput, InvalidBudget), match=sentence):
        dc.plan(name, **GIVEN | OWN.get(name, {}) | given)


def test_plans_are_near_what_fits_then_have() -> None:
    rng = np.random.default_rng(1)
    n = 8_000
    x = rng.random((n, 2))
    z = (rng.random(n) < 0.3 + 0.4 * x[:, 0]).astype(float)
    keen = rng.random(n)
    takes = ((keen > 0.9) | ((keen > 0.3) & (z > 0.5))).astype(float)
    level = 4.0 + x[:, 0] + rng.normal(0.0, 0.7, n)
    after = level + 0.5 * takes + rng.normal(0.0, 0.7, n)
    paid = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}
    old = dc.Policy.declare(bounds=BOUNDS, by={"age": 2}, treated=[0, 1])
    fits: dict[str, Any] = {
        "late": lambda: dc.LATE(**paid).fit(after, takes, Z=z, X=x),
        "difference-in-differences": lambda: dc.DifferenceInDifferences(**paid).fit(
            after, z, before=level + rng.normal(0.0, 0.7, n), X=x
        ),
        "policy-value": lambda: dc.PolicyValue(policy=old, **paid).fit(after, z, X=x),
    }
    told = {"outcome_sd": float(after.std()), "outcome_mean": float(after.mean()), "treated": float(z.mean())}
    for name, fit in fits.items():
        with seeded_noise(3):
            low, high = fit().release_.interval()
        # A factor of three, not an order of magnitude: how much adjustment leaves open is the guess of averages.
        assert 1 / 3 < dc.plan(name, n=n, **paid, **OWN[name], **told).width / (high - low) < 3.0, name
