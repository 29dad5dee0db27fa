"""What every average, the means of both arms and their ratios are on one random study."""

from __future__ import annotations

from typing import Any

from threadpoolctl import threadpool_limits

from discreet import ATC, ATE, ATO, ATT, Release
from discreet.testing import seeded_noise
from evidence.population import RandomStudy, random_study

Row = dict[str, Any]
ALPHA = 0.05
AVERAGES = {"ATE": ATE, "ATT": ATT, "ATC": ATC, "ATO": ATO}
RATIOS = ("control mean", "treated mean", "ratio of means", "odds ratio")


def measured(largest: int, number: int) -> Row:
    """Every average on a random study at the study's budget; means and ratios are from the release of `ATE`."""
    made = random_study(number, largest=largest)
    assert made.study.ate is not None
    row: Row = {}
    for name, kind in AVERAGES.items():
        given: Row = {"epsilon": made.facts.epsilon, "delta": made.facts.delta, "propensity": made.known}
        truth, efficiency = made.averages.get(name, (made.study.ate, made.efficiency))
        assert truth is not None
        try:
            with threadpool_limits(1), seeded_noise(number):
                estimator = kind(bounds=made.study.bounds, **given)
                release = estimator.fit(made.study.Y, made.study.T, X=made.study.X).release_
        except Exception as reason:  # a long run goes on, and the page counts what failed
            row[name] = {"refused": f"{type(reason).__name__}: {reason}"}
            continue
        low, high = release.interval(ALPHA)
        row[name] = _found(release.estimate, low, high, truth) | {"efficiency": efficiency}
        row |= _arms(release, made) if name == "ATE" else {}
    return row


def _arms(release: Release, made: RandomStudy) -> Row:
    """Means of both arms, and ratios where the outcome has them."""
    control, treated = made.means
    means = release.means(ALPHA)
    row = {"control mean": _found(*means["control"], control), "treated mean": _found(*means["treated"], treated)}
    if release.outcomes[0] >= 0.0 and control > 0.0:
        row["ratio of means"] = _found(*release.relative_effect(ALPHA), treated / control)
    if release.bounds.outcome == (0.0, 1.0) and 0.0 < control < 1.0 and treated < 1.0:
        odds = treated / (1.0 - treated) / (control / (1.0 - control))
        row["odds ratio"] = _found(*release.odds_ratio(ALPHA), odds)
    return row


def _found(estimate: float, low: float, high: float, truth: float) -> Row:
    return {"estimate": float(estimate), "low": float(low), "high": float(high), "truth": truth} | {
        "efficiency": float("nan")
    }
