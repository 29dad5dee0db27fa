"""The noise that a proved method of the papers really draws is the noise that its guarantee counts."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from discreet import Bounds
from discreet.datasets import adum, draw
from discreet.papers import (
    ADUM,
    DPCATEFunction,
    DRLearner,
    PrivateKMeans,
    PropensityIPTW,
    RLearner,
    SLearner,
    TLearner,
    TwoModel,
)
from discreet.papers.private_ate import baselines
from discreet.privacy import gate as gate_module
from discreet.privacy.budget import GaussianEvent, ParallelEvent

STUDY = draw("correlated", 600, 5)
BINARY = Bounds(outcome=(0, 1), covariates=STUDY.bounds.columns, propensity=STUDY.bounds.propensity)
BUDGET = {"epsilon": 1, "delta": 1e-5, "bounds": STUDY.bounds}
PURE = {"epsilon": 1, "bounds": STUDY.bounds}
KERNEL = {"calibration": "proved", "scaling": "unit", "loss": "l1", "lam": 0.01, "basis": 20, "random_state": 0}
PLAIN = {"model_regression": LinearRegression(), "propensity": 0.5}
# Enough fits each for some hundred draws.
METHODS = {
    "S, additive": (lambda: SLearner(**BUDGET), 1),
    "T, linear": (lambda: TLearner(**BUDGET, base="linear"), 6),
    "DR, additive": (lambda: DRLearner(**BUDGET), 1),
    "DR, linear": (lambda: DRLearner(**BUDGET, base="linear"), 6),
    "DR, logistic": (lambda: DRLearner(**BUDGET, base="logistic"), 6),
    "R, additive": (lambda: RLearner(**BUDGET), 1),
    "ADUM, replace-one": (lambda: ADUM(**PURE, by={0: 40}), 5),
    "ADUM, add-remove": (lambda: ADUM(**PURE, by={0: 40}, neighbours="add-remove"), 5),
    "ADUM, k-means": (lambda: ADUM(**PURE, by=PrivateKMeans(clusters=8)), 10),
    "TwoModel, polynomial": (lambda: TwoModel(**PURE, degree=3), 10),
    "TwoModel, logistic": (lambda: TwoModel(epsilon=1, bounds=BINARY, model="logistic"), 50),
    "DPCATEFunction, private": (lambda: DPCATEFunction(**BUDGET, **KERNEL, split="private"), 4),
    "DPCATEFunction, public": (lambda: DPCATEFunction(**BUDGET, **KERNEL, **PLAIN, split="public"), 12),
    "PropensityIPTW": (lambda: PropensityIPTW(**BUDGET, protect="everyone", xi=0.1), 50),
    "SubsampledDifference": (lambda: baselines.SubsampledDifference(**BUDGET), 150),
}


def flat(events):
    """Events in the order in which their noise was drawn."""
    for event in events:
        if isinstance(event, ParallelEvent):
            for part in event.parts:
                yield from flat(part)
        else:
            yield event


@pytest.mark.parametrize("name", METHODS)
def test_every_round_draws_the_noise_that_its_event_states(name, monkeypatch):
    """Real noise in units of the event's scale has the variance of the event's law: 1, or 2 for Laplace noise."""
    make, fits = METHODS[name]
    drawn = []
    sampler = gate_module._drawn

    def recorded(exact, grid, scale, pure):
        noisy = sampler(exact, grid, scale, pure)
        # Of a symmetric matrix, what is off the diagonal has the scale over sqrt(2).
        unit = np.where(np.arange(exact.size) < grid.full, scale, scale / np.sqrt(2))
        drawn.append((scale, (noisy - exact) / unit))
        return noisy

    monkeypatch.setattr(gate_module, "_drawn", recorded)
    outcome = (STUDY.bounds.outcome_middle < STUDY.Y) * 1.0 if "logistic" in name and "TwoModel" in name else STUDY.Y
    events = []
    for _ in range(fits):
        found = make().fit(outcome, STUDY.T, X=STUDY.X)  # type: ignore[attr-defined]
        assert found.guarantee_.status == "proved"
        events += flat(found.guarantee_.events)
    assert len(drawn) == len(events)
    gaussian = isinstance(events[0], GaussianEvent)
    for event, (scale, _) in zip(events, drawn, strict=True):
        assert scale == (event.sigma if gaussian else event.scale)
    values = np.concatenate([noise for _, noise in drawn])
    # Mean and standard error of a square: 1 and sqrt(2), or 2 and sqrt(20) for Laplace noise.
    mean, spread = (1.0, np.sqrt(2.0)) if gaussian else (2.0, np.sqrt(20.0))
    tolerance = 6.0 * spread / np.sqrt(values.size)
    assert tolerance < 0.6 * mean, "too few draws to tell noise of half the size"
    assert abs(np.mean(values**2) - mean) < tolerance


def test_released_counts_and_sums_of_adum_are_as_far_off_as_it_says():
    """End to end: what is published less what is true, in units of the stated scales."""
    study, p = adum(2_000, 3), 250
    release = ADUM(epsilon=1, bounds=study.bounds, by={0: p}).fit(study.Y, study.T, X=study.X).release_
    cell = 2 * release.partition.cells(study.X) + study.T.astype(np.int64)
    counts, sums = (np.bincount(cell, weights, 2 * p).reshape(p, 2) for weights in (None, study.Y))
    for noise in ((release.counts - counts) / release.count_scale, (release.sums - sums) / release.sum_scale):
        assert abs(np.mean(noise**2) - 2.0) < 6.0 * np.sqrt(20.0 / noise.size)
