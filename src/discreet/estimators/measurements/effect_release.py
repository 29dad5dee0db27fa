"""What is published of an effect function: everything in it is computed from released numbers and public facts."""

from __future__ import annotations

from collections.abc import Mapping
from math import hypot, sqrt

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators.measurements.effect_function import EffectFunction
from discreet.postprocessing.coded_terms import CodedTerms
from discreet.privacy.gate import Gate
from discreet.releases.average import Release
from discreet.releases.function import EffectRelease
from discreet.releases.function_parts import MeasuredAverage

# Functions end so many standard deviations, over the stand-in for the covariates, about their average there.
_REACH = 3.0
# Standard deviation of what a function leaves out of the effect: in that of single outcomes that models leave
# unexplained, and in that of the function itself; beyond this n mu of the function's part of the budget, both fall with
# its root. On studies 3000 to 3399 of evidence/population, cut at 20,000 records, the narrowest of 81 such rules for
# this n mu (of four) by which nine studies in ten have pointwise intervals that hold at least 88 % of their effects at
# the level of 90 %.
_UNEXPLAINED, _VARYING, _ENOUGH = 0.2, 1.6, 12_500.0


def function_release(
    gate: Gate, function: EffectFunction, average: Release, shares: Mapping[str, float], notes: tuple[str, ...]
) -> EffectRelease:
    """The function, its level, and the average effect beside it.

    The level is a mean of two averages, the function's own over the stand-in and the score's, by their variances.
    """
    unit, setting, kept = gate.bounds.outcome_width / 2.0, function.setting, function.kept
    known, basis = function.models.propensity.known, function.setting.basis
    # Of features without their weights, as the release has them.
    weight = basis.weight[kept]
    features = setting.reference.features[:, kept] / weight
    shape, mean, first = unit * weight * function.fitted.mean, features.mean(axis=0), np.eye(len(kept))[0]
    covariance = np.cov(features.T, bias=True).reshape(len(kept), len(kept))
    sd = sqrt(max(float(shape @ covariance @ shape), 0.0))
    factor = unit * weight[:, None] * _root(function.fitted.covariance)
    error = average.uncertainty.se**2 + average.uncertainty.clipping**2
    variance = float(np.sum((mean @ factor) ** 2))
    part = variance / max(variance + error, 1e-300)
    coefficients = (average.estimate - part * float(mean @ shape)) * first + shape
    root = [
        factor - part * np.outer(first, mean @ factor),
        # What is gained by a mean of both is not relied on: the function's own average is the average of a model.
        (sqrt(error) * first)[:, None],
        (_left_out(average, sd, gate.n * gate.mu) * first)[:, None],
    ]
    level = float(mean @ coefficients)
    terms = CodedTerms.of(basis, kept)
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probability of treatment"] if known else []
    return EffectRelease(
        n=gate.n,
        guarantee=gate.guarantee(proof="cate.md", public=tuple(public)),
        bounds=gate.bounds,
        design="known propensity" if known else "observational",
        terms=terms,
        coefficients=coefficients,
        factor=_triangular(np.hstack(root)),
        average=mean,
        importance=_importance(terms, shape, covariance, gate.bounds.names),
        adjustment={
            "correction": function.correction,
            "terms": terms.m,
            "trim": [function.models.propensity.low, function.models.propensity.high],
            "shares": dict(shares),
        },
        notes=_notes(gate.bounds, terms, known, function.fitted.varies) + notes,
        reference={
            "unadjusted": average.reference["unadjusted"],
            "treated_share": function.location.treated,
            "sd_of_effect": sd,
            "chance_that_it_varies": function.fitted.varies,
        },
        measured=MeasuredAverage.of(average),
        limits=(level - _REACH * sd, level + _REACH * sd),
        diagnostics=average.diagnostics,
    )


def _left_out(average: Release, sd: float, information: float) -> float:
    """What a function with this standard deviation leaves out of the effect, as a standard deviation."""
    # A score varies twice as much as outcomes about their models, or more.
    unexplained = average.uncertainty.sampling * float(average.n) ** 0.5 / 2.0
    return hypot(_UNEXPLAINED * unexplained, _VARYING * sd) * sqrt(min(1.0, _ENOUGH / information))


def _root(covariance: Float) -> Float:
    """A factor of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _triangular(root: Float) -> Float:
    """F F' is the covariance for any rotation of F's columns: take the one that is triangular."""
    return np.asarray(np.linalg.qr(root.T, mode="r")).T


def _importance(terms: CodedTerms, shape: Float, covariance: Float, names: tuple[str, ...]) -> dict[str, float]:
    """Covariance of each covariate's part with the whole effect, over the whole's variance; products are divided."""
    parts = np.zeros(len(names))
    for k, share in enumerate(shape * (covariance @ shape)):
        for j in terms.covariates(k):
            parts[j] += share / len(terms.covariates(k))
    parts = np.maximum(parts, 0.0)
    total = float(parts.sum())
    return {name: float(part / total) if total > 0.0 else 0.0 for name, part in zip(names, parts, strict=True)}


def constant_release(average: Release) -> EffectRelease:
    """A function that is a constant, where there are no covariates."""
    # As wide as it is before it ends where the outcome's range does: about another estimate it would end elsewhere.
    low, high = average.uncertainty.interval(average.estimate)
    return EffectRelease(
        n=average.n,
        guarantee=average.guarantee,
        bounds=average.bounds,
        design=average.design,
        terms=CodedTerms((), (), ((),)),
        coefficients=np.array([average.estimate]),
        # The interval of the average, clipping included, at its 95 % level.
        factor=np.array([[(high - low) / (2.0 * float(ndtri(0.975)))]]),
        average=np.ones(1),
        importance={},
        adjustment=average.adjustment,
        notes=("No covariates were declared: the effect is a constant.", *average.notes),
        reference=average.reference | {"sd_of_effect": 0.0, "chance_that_it_varies": 0.0},
        measured=MeasuredAverage.of(average),
        diagnostics=average.diagnostics,
    )


def _notes(bounds: Bounds, terms: CodedTerms, known: bool, chance: float) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("The function relies on the stated probabilities of treatment.")
    else:
        notes.append(
            "The function assumes that treatment is as good as random among people with the same declared covariates."
        )
    if terms.m == 1:
        notes.append("This budget and number of records show no effect that varies: a constant is released.")
    else:
        notes.append(f"The function is an approximation by {terms}, shrunk towards a constant where evidence is faint.")
    if terms.m > 1 and chance < 0.5:
        notes.append(
            "The evidence is in favour of an effect that is the same for everyone. More records, a larger epsilon or "
            "fewer covariates would show more."
        )
    if bounds.p > 1 and terms.m > 1 and all(len(member) < 2 for member in terms.members):
        notes.append("Joint effects of two covariates are not part of the function.")
    return tuple(notes)
