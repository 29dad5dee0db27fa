"""Differences of the arms' covariates before and after adjustment, by moments that were released to fit models.

A covariate's mean, or the share of a level, is a function of codes. As far as released moments are of functions that
make it up, the difference of the arms follows from them, with noise that is known; of what they leave the fitted model
says something, and the standard deviation has the rest. Proof that this costs nothing: docs/proofs/ate.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.postprocessing.coding import Coding
from discreet.postprocessing.diagnostics.moments import Calibration, TreatmentMoments
from discreet.postprocessing.reference_population import Reference

# Choice: correlations that treatment is taken to have, beside a fitted model, with functions that moments cover, and
# with what they leave of them. Of .25, .5 and 1, the one with the smallest deviations; and of .05, .07, .1 and .15, the
# least with which studies have on average 95 % of their differences within two of these, on studies 700,000 to 700,179
# of evidence/population, cut at 20,000 records.
_SEEN, _UNSEEN = 0.25, 0.07
# Numerical: least size of a function.
_TINY = 1e-12


class Arms(NamedTuple):
    """How many records there are, those that were seen by the models, and the share of treated with its noise."""

    n: float
    seen: float
    treated: float
    noise: float

    @property
    def varies(self) -> float:
        """Variance of the treatment."""
        return self.treated * (1.0 - self.treated)


class Fitted(NamedTuple):
    """A model of treatment on the reference's points; where the design is known, its one probability if it has one."""

    e: Float
    known: bool
    calibration: Calibration | None


class Difference(NamedTuple):
    """Treated minus controls: of a range in standard deviations, of which ``scale`` is one; of a level in shares.

    ``level`` is its position; None for a range. ``after`` is with weights by the fitted model; None where none is.
    """

    covariate: int
    level: int | None
    scale: float
    before: float
    before_sd: float
    after: float | None
    after_sd: float | None


def differences(
    codings: Sequence[Coding],
    reference: Reference,
    moments: Sequence[TreatmentMoments],
    fitted: Fitted,
    arms: Arms,
) -> list[Difference]:
    """A difference for every range and level; of two levels, that of the second."""
    weights = [own.weights(reference.codes) for own in moments]
    after = None if fitted.calibration is None else _After(reference, fitted, fitted.calibration, arms)
    found = []
    for j, coding in enumerate(codings):
        tables, scale, hidden = _targets(coding)
        target = tables[reference.codes[j]]
        target = target - target.mean(axis=0)
        square = np.mean(target**2, axis=0)
        # A level may be less rare than it seems, by the noise in its share.
        rare = 1.0 if coding.ordered else 1.0 + coding.noise / np.maximum(square, _TINY)
        size, variance = _before(j, target, rare, reference, list(zip(moments, weights, strict=True)), fitted, arms)
        unseen = 0.0 if fitted.known else _UNSEEN**2
        # What codes do not see of a range, and what a sample does not see of all records.
        apart = (1.0 / arms.seen + unseen) * hidden / arms.varies
        apart = apart + max(1.0 / arms.seen - 1.0 / arms.n, 0.0) * square / arms.varies
        relative = hypot(_relative_noise(coding), abs(1.0 - 2.0 * arms.treated) * arms.noise / arms.varies)
        before = size / arms.varies
        before_sd = np.sqrt(variance / arms.varies**2 + apart + (relative * before) ** 2)
        weighted, weighted_sd = (None, None) if after is None else after(target, rare, apart)
        first = 1 if not coding.ordered and coding.count == 2 else 0
        found += [
            Difference(
                covariate=j,
                level=None if coding.ordered else k,
                scale=scale,
                before=float(before[k]),
                before_sd=float(before_sd[k]),
                after=None if weighted is None else float(weighted[k]),
                after_sd=None if weighted_sd is None else float(weighted_sd[k]),
            )
            for k in range(first, target.shape[1])
        ]
    return found


def _targets(coding: Coding) -> tuple[Float, float, float]:
    """Functions of codes whose means are compared, what one is in encoded units, and the variance that codes hide."""
    if not coding.ordered:
        return np.eye(coding.count), 1.0, 0.0
    assert coding.scale is not None
    sd = float(np.sqrt(coding.scale.variance))
    return coding.value[:, None] / sd, sd, coding.scale.within / coding.scale.variance


def _relative_noise(coding: Coding) -> float:
    return 0.0 if coding.scale is None else coding.scale.noise / (2.0 * coding.scale.variance)


def _before(
    j: int,
    target: Float,
    rare: Float | float,
    reference: Reference,
    moments: Sequence[tuple[TreatmentMoments, Float]],
    fitted: Fitted,
    arms: Arms,
) -> tuple[Float, Float]:
    """Covariance of treatment and target, and the variance of its error.

    By the combination of moments that is nearest to the target beside their noise, and by the model where this differs.
    """
    gap = np.zeros(len(target)) if fitted.known else fitted.e - arms.treated
    columns, left, noise = [np.empty((len(target), 0))], [np.empty(0)], [np.empty(0)]
    for (basis, value, sd), weight in moments:
        kept = TreatmentMoments(basis, value, sd).of_covariate(j)
        rows = basis.from_codes(reference.codes, len(target), kept=kept, scale=basis.weight[kept], factor=weight)
        columns.append(rows)
        left.append(value[kept] - gap @ rows / len(target))
        noise.append(np.full(len(kept), sd**2))
    features, variances = np.hstack(columns), np.concatenate(noise)
    trust = arms.varies * (1.0 / arms.seen + _SEEN**2)
    second = trust * features.T @ features / len(target) + np.diag(variances)
    parts = np.linalg.solve(second, trust * features.T @ target / len(target))
    missed = np.mean((target - features @ parts) ** 2, axis=0)
    unseen = 0.0 if fitted.known else _UNSEEN**2
    error = variances @ parts**2 + arms.varies * (1.0 / arms.seen + unseen) * rare * missed
    return gap @ target / len(target) + np.concatenate(left) @ parts, error


class _After:
    """Differences with weights by the fitted model, from the moments of its last correction."""

    def __init__(self, reference: Reference, fitted: Fitted, calibration: Calibration, arms: Arms) -> None:
        self.reference, self.e, self.seen, self.arms = reference, fitted.e, calibration, arms
        expected = calibration.slope @ calibration.covariance @ calibration.slope.T
        value, m = calibration.seen, len(calibration.seen)
        surprise = float(value @ np.linalg.solve(expected + calibration.noise, value)) / m
        # As the correction itself was: where it showed more than could be expected, less was known before.
        self.prior = max(1.0, surprise - np.sqrt(2.0 / m)) * calibration.covariance
        self.slope = calibration.slope
        self.precision = np.linalg.inv(self.slope @ self.prior @ self.slope.T + calibration.noise)
        psi, weight = calibration.selection(reference.features)
        self.rows = psi * weight[:, None]

    def __call__(self, target: Float, rare: Float | float, apart: Float | float) -> tuple[Float, Float]:
        """The differences and their standard deviations."""
        size, before = len(target), self.seen.e
        varies = before * (1.0 - before)
        weighted = target / (self.e * (1.0 - self.e))[:, None]
        slope = (weighted * varies[:, None]).T @ self.reference.features / size
        with_rows = slope @ self.prior @ self.slope.T
        with_rows += (weighted * varies[:, None]).T @ self.rows / size / self.arms.seen
        own = np.einsum("ij,jk,ik->i", slope, self.prior, slope)
        own += np.mean(weighted**2 * varies[:, None], axis=0) / self.arms.seen
        known = self.precision @ with_rows.T
        found = self.seen.seen @ known - (self.e - before) @ weighted / size
        return found, np.sqrt(rare * np.maximum(own - np.sum(with_rows.T * known, axis=0), 0.0) + apart)
