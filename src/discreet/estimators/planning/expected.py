"""What the rounds of an average effect would find on ideal records: the parts of an interval before anything is spent.

Everything is computed from public numbers and guesses. Clips are chosen by the code that chooses them in a fit, from
the histogram that a normal outcome, or one of two values, would have without noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from scipy.special import expit, logit, ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators._allocation import (
    LOCATION,
    MEANS,
    MEANS_OF_PURE,
    TRIM,
    Allocation,
    average_allocation,
    basis_terms,
    beside,
    information_per_covariate,
    models_pay,
)
from discreet.estimators._effect_allocation import ARMS_IN_ONE_SUM, DECLARED
from discreet.estimators.measurements.location import Location, has_atoms
from discreet.estimators.measurements.score import design_strata, prognosis_range
from discreet.postprocessing.segment_means import OutcomeMoments, Table, arm_means, kind_for, signed_effects
from discreet.postprocessing.tails import SIDES, Clip, Strata, Tails, signed_bins
from discreet.privacy.sensitivity.fixed_point import SensitivitySet
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval, MeanSquare
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.releases.average import Uncertainty

# Noise of a mean by the set that a record's numbers lie in and the share of the budget.
Noise = Callable[[SensitivitySet, float], float]
# Numerical: points that stand for a normal distribution.
_RANKS = (np.arange(400) + 0.5) / 400
_NORMAL = np.asarray(ndtri(_RANKS))
# Numerical: the same, where each of them costs a histogram.
_FEW = np.asarray(ndtri((np.arange(40) + 0.5) / 40))
# Numerical: noise of the second number of `MeanSquare(1.0)` in that of the first, on a grid of so many bits.
_SQUARE = float(np.divide(*MeanSquare(1.0).grid(20, "replace-one").units[::-1]))  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class Shape:
    """An ideal outcome around its centre, in units of half its range: values, and the share of records at each."""

    centre: float
    values: Float
    mass: Float

    @classmethod
    def normal(cls, sd: float) -> Shape:
        """A normal outcome in the middle of its range."""
        return cls(0.0, np.clip(sd * _NORMAL, -1.0, 1.0), np.full(len(_NORMAL), 1.0 / len(_NORMAL)))

    @classmethod
    def events(cls, prevalence: float) -> Shape:
        """An outcome of two values."""
        centre = 2.0 * prevalence - 1.0
        return cls(centre, np.array([-1.0, 1.0]) - centre, np.array([1.0 - prevalence, prevalence]))

    @classmethod
    def crowded(cls, mean: float, sd: float) -> Shape:
        """An outcome of a known mean: crowded at an end of its range where the mean lies near it for its deviation.

        Distances from the nearer end are log-normal, which is nearly normal far from it. A mean that is nearer than one
        standard deviation leaves room for a part of the records at the end itself, with exponential distances of the
        others.
        """
        sign = 1.0 if mean <= 0.0 else -1.0
        far = 1.0 - abs(mean)
        if far >= sd:
            log_sd = sqrt(np.log1p((sd / far) ** 2))
            distance = far * np.exp(log_sd * _NORMAL - log_sd**2 / 2.0)
        else:
            scale, some = (sd**2 + far**2) / (2.0 * far), 2.0 * far**2 / (sd**2 + far**2)
            distance = scale * np.log(some / np.minimum(1.0 - _RANKS, some))
        at = sign * (np.minimum(distance, 2.0) - 1.0)
        centre = float(at.mean())
        return cls(centre, at - centre, np.full(len(at), 1.0 / len(at)))

    @property
    def sd(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(self.mass @ self.values**2))

    @property
    def ends(self) -> Float:
        """Shares at the lower end of the range, inside and at the upper end, in either arm of a half."""
        at = self.centre + self.values
        low, high = float(self.mass[at <= -1.0].sum()), float(self.mass[at >= 1.0].sum())
        return np.tile([low, 1.0 - low - high, high], (2, 1)) / 2.0

    def histogram(self, ceiling: float) -> Float:
        """Share of the records in each bin on either side of the centre."""
        counts = np.bincount(signed_bins(self.values, ceiling), weights=self.mass, minlength=SIDES)
        return np.asarray(counts, dtype=np.float64)

    def located(self, noise: Noise, share: float, treated: float) -> Location:
        """What the first rounds would say of it."""
        ends_noise = noise(Cells((6,)), LOCATION["arms and ends of the outcome"] * share)
        first = noise(MeanSquare(1.0), LOCATION["outcome mean and square"] * share)
        # Numerical: as in a fit, no deviation of zero.
        wide = sqrt(min(max(self.sd**2, 2.0 * first, 1e-6), 1.0))
        # Choice: the part of the range, in deviations, that is averaged again. Chosen in measurements/location.py.
        again = 3.0 * wide * noise(Interval(-1.0, 1.0), LOCATION["centre of the outcome"] * share)
        fractions = self.histogram(2.0)
        bins = noise(Cells((SIDES,)), LOCATION["outcome magnitude"] * share)
        atomic = has_atoms(self.ends, ends_noise)
        tails = Tails.fit(fractions, bins, 2.0, Strata.between(0.5, 0.5), atomic=atomic, randomised=True)
        return Location(
            treated=treated,
            # Theory: half of the difference of two sums of three cells each.
            treated_noise=1.5**0.5 * ends_noise,
            centre=self.centre,
            noise=again,
            deviation=wide,
            magnitude=tails.magnitudes[0],
            ends=self.ends,
            ends_noise=ends_noise,
            tails=tails,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """The last rounds on ideal records: residuals of a shape, at probabilities of treatment that are equally common."""

    shape: Shape
    e: Float
    overlap: Strata
    reach: tuple[float, float]

    def clip(self, noise: Noise, allocation: Allocation, *, atomic: bool, randomised: bool) -> Clip:
        """The clip that a fit would choose."""
        smaller, ceiling = np.minimum(self.e, 1.0 - self.e), max(self.reach)
        counts = np.bincount(self.overlap.numbers(smaller), minlength=self.overlap.count) / len(self.e)
        bins = self.shape.histogram(ceiling)
        sd = noise(Cells((SIDES * self.overlap.count,)), allocation["residual tails"])
        fractions = np.outer(counts, bins).ravel()
        tails = Tails.fit(fractions, sd, ceiling, self.overlap, atomic=atomic, randomised=randomised)
        unit = noise(MeanSquare(1.0), allocation["score"])
        ladder = tails.ladder(unit, self.reach)
        tried = len(ladder) - 1
        excess_sd = noise(Ball(ceiling / 2.0 * sqrt(tried), tried), allocation["clipped excess"])
        excess = np.array([self._excess(clip, smaller) for clip in ladder[:-1]])
        return tails.settle(ladder, excess, excess_sd, unit)

    def _excess(self, clip: Clip, smaller: Float) -> float:
        values, m = self.shape.values, smaller[:, None]
        over = np.maximum(values - clip.high * m, -values - clip.low * m)
        return float(np.mean(np.maximum(over, 0.0) @ self.shape.mass))

    def variance(self, clip: Clip) -> float:
        """Variance of the clipped score."""
        smaller = np.minimum(self.e, 1.0 - self.e)[:, None]
        squares = np.clip(self.shape.values, -clip.low * smaller, clip.high * smaller) ** 2 @ self.shape.mass
        return float(np.mean(squares / (self.e * (1.0 - self.e))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A release that is planned.

    Parameters
    ----------
    n, information
        Number of records, and that times the Gaussian parameter of the budget.
    bounds, shape
        Declared facts, and an ideal outcome.
    treated
        Share of treated.
    design
        Known probabilities of treatment; None where they are not known.
    adjusts
        Whether covariates are used.
    """

    n: int
    information: float
    bounds: Bounds
    shape: Shape
    treated: float
    design: float | Float | None
    adjusts: bool

    def uncertainty(self, noise: Noise, *, pure: bool) -> Uncertainty:
        """The parts of the interval, in the outcome's unit; ``pure`` where noise is Laplace's."""
        p, known, models = self.bounds.p, self.design is not None, self._models
        terms = basis_terms(self.information, self.n, self.bounds.columns) if models else 1
        allocation = MEANS_OF_PURE if pure else MEANS
        if models:
            allocation = average_allocation(self.information, terms, p, known=known)
        # Those of a function have no level beside them, which makes no difference to a plan.
        allocation = allocation.beside(beside(weighted=False, level=True, pure=pure))
        location = self.shape.located(noise, allocation["location"], self.treated)
        overlap, e = self._overlap()
        low, high = prognosis_range(location)
        # Residuals count from a pilot, and reach further by what noise makes of it on average.
        pilot = self._pilot_noise(noise, allocation["arm means"], location)
        further = sqrt(2.0 / np.pi) * min(pilot, 2.0)
        score = Score(self.shape, e, overlap, (1.0 + high + further, 1.0 - low + further))
        clip = score.clip(noise, allocation, atomic=location.atomic, randomised=known or not models)
        bottom, top = (float(end) for end in overlap.ends(np.array(clip.low), np.array(clip.high)))
        half, unit = (top - bottom) / 2.0, noise(MeanSquare(1.0), allocation["score"])
        # Models are not counted on to explain anything: how much they do varies far more than a plan could say.
        variance = score.variance(clip) + _SQUARE * unit * half**2
        sampling = sqrt(variance / self.n)
        remainder = clip.lost * hypot(pilot, sampling)
        if models and not known:
            remainder = hypot(remainder, location.magnitude.scale * _adjustment(self.information, p))
        elif not known:
            off = location.noise / min(self.treated, 1.0 - self.treated)
            remainder = hypot(remainder, location.treated_noise * off / (self.treated * (1.0 - self.treated)))
        scale = self.bounds.outcome_width / 2.0
        return Uncertainty(
            sampling=scale * sampling,
            privacy=scale * unit * half,
            nuisance=scale * remainder,
            clipping=scale * float(clip.hidden),
        )

    @property
    def _models(self) -> bool:
        """Whether the outcome is modelled."""
        return self.adjusts and (self.design is None or models_pay(self.information, self.bounds.p, self.design))

    def without_noise(self) -> float:
        """Standard error of the same score without a clip, in the outcome's unit."""
        _, e = self._overlap()
        variance = self.shape.sd**2 * float(np.mean(1.0 / (e * (1.0 - e))))
        return self.bounds.outcome_width / 2.0 * sqrt(variance / self.n)

    @property
    def probabilities(self) -> Float:
        """Probabilities of treatment that are equally common."""
        return self._overlap()[1]

    def _overlap(self) -> tuple[Strata, Float]:
        """Strata, and probabilities of treatment that are equally common."""
        if self.design is not None:
            strata = design_strata(self.design, self.bounds)
            return strata, np.clip(np.atleast_1d(np.asarray(self.design, dtype=float)), strata.low, strata.high)
        if not self._models:
            return design_strata(self.treated, self.bounds), np.array([self.treated])
        low, high = TRIM.interval(self.bounds, self.treated, self.information)
        wide = _LOGIT_SD * float(np.diff(logit(self.bounds.propensity))[0]) if self.bounds.p else 0.0
        return Strata.between(low, high), np.clip(expit(logit(self.treated) + wide * _FEW), low, high)

    def _pilot_noise(self, noise: Noise, share: float, location: Location) -> float:
        unit = noise(Ball(1.0, 2), share)
        clip = location.tails.clip(unit, (1.0 + location.centre, 1.0 - location.centre))
        return unit * max(clip.low, clip.high) / 2.0 * hypot(1.0 / self.treated, 1.0 / (1.0 - self.treated))


# Choice: standard deviation of the propensity's logit, in the width of the declared overlap on that scale. Chosen on
# studies 4,000 to 4,199 of evidence.population, where it brought planned widths nearest to released ones.
_LOGIT_SD = 0.18
# Choice: what adjustment leaves open, in scales of the outcome times the root of n mu (with six covariates). Chosen of
# 4.5, 5.5, 6.5 and 8 on the observational studies among 45,000 to 45,299 of evidence.population.
_ADJUSTMENT = 6.5


def _adjustment(information: float, p: int) -> float:
    """Standard deviation of what adjustment leaves open, in scales of the outcome."""
    return _ADJUSTMENT / sqrt(information_per_covariate(information, p)) if p else 0.0


def segment_uncertainty(expected: Expected, noise: Noise, segments: int, *, pure: bool) -> Uncertainty:
    """The parts of the interval of one of so many segments, all equally large, in the outcome's unit."""
    shape, n = expected.shape, expected.n
    known = expected.design if isinstance(expected.design, float) else None
    pair = n * noise(Pairs(1), DECLARED["table"])
    square = noise(Interval(0.0, 1.0), DECLARED["mean square of the outcome"])
    moments = OutcomeMoments(float(n), shape.centre, shape.centre**2 + shape.sd**2, square)
    counts_share, sums_share = (DECLARED["table"] * part for part in ARMS_IN_ONE_SUM.values())
    one_sum = n * noise(CellSums(1.0, segments), sums_share)
    if known is not None and kind_for(moments, segments, pair, one_sum, known) == "signed":
        counts = np.full((segments, 1), n / segments)
        table = Table(counts, 0.0 * counts, n * noise(Cells((segments,)), counts_share), one_sum)
        own = signed_effects(table, moments, known, pure).own
        scale = min(known, 1.0 - known)
    else:
        counts = np.tile([1.0 - expected.treated, expected.treated], (segments, 1)) * n / segments
        table = Table(counts, shape.centre * counts, 2**0.5 * pair, 2**0.5 * pair)
        own, scale = arm_means(table, moments, expected.bounds, False, pure).own, 1.0
    privacy = float(table.variance[0].sum()) / scale**2
    unit = expected.bounds.outcome_width / 2.0
    sampling = max(float(own.variance[0]) - privacy, 0.0)
    return Uncertainty(sampling=unit * sqrt(sampling), privacy=unit * sqrt(privacy))
