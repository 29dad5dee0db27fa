"""What is published of an effect function: everything in it is computed from released numbers and public facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import hypot

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators._allocation import Allocation
from discreet.estimators.measurements.calibration import Calibration
from discreet.estimators.measurements.effect_models import Models
from discreet.estimators.measurements.heterogeneity import Correction
from discreet.estimators.measurements.location import Location
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.group_shrinkage import profile
from discreet.privacy.gate import Gate
from discreet.releases.average import Release
from discreet.releases.function import EffectRelease
from discreet.releases.function_parts import MeasuredAverage

# Points of the reference over which standard deviations are averaged.
_POINTS = 2_000
# Intervals are so many times as wide as the shrunk posterior would have them, at least and at most: it knows nothing of
# what first-order formulas miss, and what is believed against it is not without limit.
_TIMES = (2.0, 2.4)
# Standard deviation of what a function leaves out of the effect: in that of single outcomes that models leave
# unexplained, and in that of the function itself. On studies 3000 to 3239 of evidence/population, cut at 20,000
# records, the narrowest of 378 such rules by which nine studies in ten have pointwise intervals that hold at least
# 88 % of their effects at the level of 90 %.
_UNEXPLAINED, _VARYING = 0.13, 1.3


def function_release(
    gate: Gate, models: Models, location: Location, allocation: Allocation, correction: Correction
) -> EffectRelease:
    """The function that models give, before its average is measured."""
    unit, setting = gate.bounds.outcome_width / 2.0, models.setting
    basis, known = setting.basis, models.propensity.known
    constant = np.zeros(basis.m)
    constant[0] = models.pilot / basis.weight[0]
    coefficients = unit * (constant + models.effect)
    average = setting.reference.features.mean(axis=0)
    covariance = setting.second - np.outer(average, average)
    importance = _importance(basis, coefficients, covariance, gate.bounds.names)
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probability of treatment"] if known else []
    return EffectRelease(
        n=gate.n,
        guarantee=gate.guarantee(proof="cate.md", public=tuple(public)),
        bounds=gate.bounds,
        design="known propensity" if known else "observational",
        size=basis.size,
        marginals=basis.marginals,
        windows=basis.windows,
        coefficients=coefficients,
        factor=unit * _factor(models),
        average=average,
        importance=importance,
        adjustment={
            "correction": correction,
            "terms": basis.m,
            "trim": [models.propensity.low, models.propensity.high],
            "shares": allocation.shares,
        },
        notes=_notes(gate.bounds, basis.size, known, models.fitted.any_special),
        reference={
            "unadjusted": unit * models.pilot,
            "treated_share": location.treated,
            "sd_of_effect": float(np.sqrt(max(float(coefficients @ covariance @ coefficients), 0.0))),
            "mean_posterior_sd": unit * _mean_sd(models, models.fitted.covariance[basis.m :, basis.m :]),
            "chance_that_it_varies": models.fitted.any_special,
        },
    )


def anchored(
    function: EffectRelease, calibration: Calibration, average: Release, shares: Mapping[str, float]
) -> EffectRelease:
    """The function as far as the records bear it out, about the average effect, and that average beside it.

    Its level is a mean of two averages over the records, the function's and the score's, by their variances. A function
    of which little was borne out is wrong about its level too, by as much as it was about what varies.
    """
    unit, slope = function.bounds.outcome_width / 2.0, calibration.slope
    measured, first = MeasuredAverage.of(average), np.zeros(function.basis.m)
    first[0] = 1.0 / function.basis.weight[0]
    own = float(function.average @ function.coefficients)
    shape = function.coefficients - own * first
    level = (slope * calibration.noise) ** 2 + ((1.0 - slope) * calibration.sd) ** 2
    variance = float(np.sum((function.average @ function.factor) ** 2)) + unit**2 * level
    error = measured.uncertainty.se**2 + measured.uncertainty.clipping**2
    part = variance / max(variance + error, 1e-300)
    moved = own + part * (measured.estimate - own - slope * unit * calibration.mean)
    root = [
        function.factor - part * np.outer(first, function.average @ function.factor),
        calibration.slope_sd * shape[:, None],
        np.sqrt(part**2 * error + (1.0 - part) ** 2 * unit**2 * level) * first[:, None],
        _left_out(average, slope * function.reference["sd_of_effect"]) * first[:, None],
    ]
    return replace(
        function,
        coefficients=moved * first + slope * shape,
        factor=_triangular(np.hstack(root)),
        importance={name: share * (slope > 0.0) for name, share in function.importance.items()},
        adjustment=function.adjustment | {"shares": dict(shares)},
        reference=function.reference
        | {"sd_of_effect": slope * function.reference["sd_of_effect"], "part_borne_out": slope},
        measured=measured,
        limits=(moved - slope * unit * calibration.limit, moved + slope * unit * calibration.limit),
    )


def _left_out(average: Release, sd: float) -> float:
    """What a function with this standard deviation leaves out of the effect, as a standard deviation."""
    # A score varies twice as much as outcomes about their models, or more.
    unexplained = average.uncertainty.sampling * float(average.n) ** 0.5 / 2.0
    return hypot(_UNEXPLAINED * unexplained, _VARYING * sd)


def _triangular(root: Float) -> Float:
    """F F' is the covariance for any rotation of F's columns: take the one that is triangular."""
    return np.asarray(np.linalg.qr(root.T, mode="r")).T


def _factor(models: Models) -> Float:
    """A triangular factor of the covariance of the effect's coefficients, for intervals about the estimate."""
    m, cap = models.setting.basis.m, (3.0 * models.scale) ** 2
    covariance = profile(*models.information, models.groups, models.fitted, scale=models.scale**2, cap=cap)[m:, m:]
    times = _mean_sd(models, covariance) / max(_mean_sd(models, models.fitted.covariance[m:, m:]), 1e-300)
    values, vectors = np.linalg.eigh(covariance)
    root = float(np.clip(times, *_TIMES)) / max(times, 1e-300) * vectors * np.sqrt(np.maximum(values, 0.0))
    return _triangular(root)


def _mean_sd(models: Models, covariance: Float) -> float:
    """Mean standard deviation of the effect over the reference, for a covariance of its coefficients."""
    features = models.setting.reference.features[:_POINTS]
    return float(np.mean(np.sqrt(np.maximum(np.sum((features @ covariance) * features, axis=1), 0.0))))


def _importance(basis: Basis, coefficients: Float, covariance: Float, names: tuple[str, ...]) -> dict[str, float]:
    """Covariance of each covariate's part with the whole effect, over the whole's variance; products are halved."""
    shares = coefficients * (covariance @ coefficients)
    parts = np.zeros(len(names))
    owner = {k: j for j in range(len(names)) for k in basis.covariate_features(j)}
    for k, j in owner.items():
        parts[j] += shares[k]
    for k, (a, b) in enumerate(basis.products, basis.m - len(basis.products)):
        parts[owner[a]] += shares[k] / 2.0
        parts[owner[b]] += shares[k] / 2.0
    parts = np.maximum(parts, 0.0)
    total = float(parts.sum())
    return {name: float(part / total) if total > 0.0 else 0.0 for name, part in zip(names, parts, strict=True)}


def constant_release(average: Release) -> EffectRelease:
    """A function that is a constant, from a release of the average effect."""
    bounds, size = average.bounds, Size(degree=1, pairs=False, curved=False)
    basis = Basis.flat(bounds.columns, size)
    first = np.zeros(basis.m)
    first[0] = 1.0 / basis.weight[0]
    # As wide as it is before it ends where the outcome's range does: about another estimate it would end elsewhere.
    low, high = average.uncertainty.interval(average.estimate)
    reason = (
        "This budget and number of records cannot support an effect that varies: a constant is released. More records, "
        "a larger epsilon or fewer covariates would help."
        if bounds.p
        else "No covariates were declared: the effect is a constant."
    )
    return EffectRelease(
        n=average.n,
        guarantee=average.guarantee,
        bounds=bounds,
        design=average.design,
        size=size,
        marginals=basis.marginals,
        coefficients=average.estimate * first,
        # The interval of the average, clipping included, at its 95 % level, and what a constant leaves out.
        factor=hypot((high - low) / (2.0 * float(ndtri(0.975))), _left_out(average, 0.0) if bounds.p else 0.0)
        * np.outer(first, np.eye(basis.m)[0]),
        average=basis.weight * np.eye(basis.m)[0],
        importance=dict.fromkeys(bounds.names, 0.0),
        adjustment=average.adjustment,
        notes=(reason, *average.notes),
        reference=average.reference | {"sd_of_effect": 0.0, "chance_that_it_varies": 0.0},
        measured=MeasuredAverage.of(average),
    )


def _notes(bounds: Bounds, size: Size, known: bool, chance: float) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("The function relies on the stated probabilities of treatment.")
    else:
        notes.append(
            "The function assumes that treatment is as good as random among people with the same declared covariates."
        )
    notes.append(f"The function is an approximation by {size}, shrunk towards a constant where evidence is faint.")
    if chance < 0.5:
        notes.append("The evidence is in favour of an effect that is the same for everyone.")
    if bounds.p > 1 and not size.pairs:
        notes.append("Joint effects of two covariates are not part of the function.")
    return tuple(notes)
