"""Average treatment effects with a proved (epsilon, delta) and a confidence interval."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators import _base as fitted
from discreet.estimators._base import (
    Progress,
    after_count,
    average_release,
    clip_note,
    count_first,
    open_gate,
    open_model_gate,
    sample_note,
    trimmed,
    uncertainty_of,
)
from discreet.estimators.measurements.covariates import Features, build_basis, marginal_questions, measure_gram
from discreet.estimators.measurements.location import locate, pilot_effect
from discreet.estimators.measurements.nuisances import (
    Remainder,
    correct_outcome,
    fit_nuisances,
    measure_linear_effect,
    nuisance_questions,
    refine_effect,
    refine_propensity,
)
from discreet.estimators.measurements.score import (
    aipw_score_bound,
    clips_nothing,
    measure_score,
    score_factor,
    score_rows,
    small_sample_error,
    unclipped_score,
)
from discreet.exceptions import InvalidBudget
from discreet.postprocessing.basis import Basis, Size, choose_size
from discreet.privacy.budget import Budget, Shares
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.releases.average import Uncertainty

KNOWN_DESIGN = Shares(location=0.05, pilot=0.02, marginals=0.03, gram=0.08, models=0.15, looks=0.05, score=0.62)
# Where n mu passes these (for six covariates), the propensity is calibrated on the records: parts of its share.
_CALIBRATE = ((1500.0, (0.3, 0.7)), (8000.0, (0.15, 0.25, 0.6)))
# Part of the correction's share that lets the effect lean on covariates, where there is a calibration.
_LEANING = 0.2


class ATE(BaseEstimator):  # type: ignore[misc]
    """Average treatment effect, doubly robust, from observational records or a known design.

    Three kinds of rounds through the gate: where the outcome and the covariates are; public models of treatment and
    outcome from noisy moments; the mean and variance of the clipped AIPW score. No sample is split.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design (a randomised trial).
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public:
    the bounds, the number of records under replace-one, a known propensity. Proof: docs/proofs/ate.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import draw
    >>> study = draw("private-ci-1", n=4_000, seed=1)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     ate = dc.ATE(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    >>> round(ate.ate_, 1)
    1.0
    >>> low, high = ate.ate_interval(alpha=0.05)
    >>> low < 1.0 < high
    True
    """

    method_id: ClassVar[str] = "discreet/ate"

    fit, fit_table, ate_interval = fitted.fit, fitted.fit_table, fitted.ate_interval
    summary, plot = fitted.summary, fitted.plot
    ate_, guarantee_ = property(fitted.ate_), property(fitted.guarantee_)
    samples = True

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget(
                "ATE needs delta, e.g. delta=1e-6: its rounds add Gaussian noise. "
                "For pure epsilon in a randomised trial, use DifferenceInMeans."
            )

    def _fit(self, records: Records, progress: Progress | None) -> ATE:
        gate = open_gate(self, records, progress)
        count_first(gate)
        return self._fit_through(gate)

    def _fit_through(self, gate: Gate) -> ATE:
        """All rounds after the count; they fit into what it leaves of the budget."""
        known = self.propensity is not None
        size = choose_size(gate.n * gate.mu, gate.n, gate.bounds.columns)
        terms = Basis.flat(gate.bounds.columns, size).m
        # Models are fitted through this one: on all records, or on a sample of very many.
        look = open_model_gate(gate, terms)
        strength = look.n * gate.mu
        refinements = refinements_for(strength, gate.bounds.p)
        shares = KNOWN_DESIGN if known else observational(strength, terms, bool(refinements), look is not gate)
        share = after_count(gate, shares)
        marginals = marginal_questions(gate.bounds.columns, share["marginals"])
        where = locate(look, share["location"], *marginals)
        pilot = pilot_effect(look, share["pilot"], where)
        features = Features(build_basis(look, marginals, size), look.n)
        first = nuisance_questions(look, share["models"], features, where, pilot, known)
        setting = measure_gram(look, share["gram"], features, *first.queries)
        low, high = gate.bounds.propensity if known else trimmed(gate.bounds, where.treated, strength)
        outcome = fit_nuisances(look, first, setting, where, pilot, (low, high), known)
        remainder, off, looks = Remainder(0.0, 0.0), 0.0, share["looks"]
        if not known:
            for number, part in enumerate(refinements, 1):
                outcome = refine_propensity(look, f"calibration {number}", part * share["calibration"], outcome)
            outcome, off = refine_effect(look, share["effect"], where.magnitude.scale, outcome)
            correction = share["correction"]
            if refinements and gate.bounds.p:
                outcome = measure_linear_effect(look, _LEANING * correction, where.magnitude.scale, outcome)
                correction *= 1.0 - _LEANING
            outcome, remainder = correct_outcome(look, correction, 0.4 * share["looks"], outcome)
            looks = 0.6 * share["looks"]
        model = outcome.propensity
        ceiling = aipw_score_bound(2.2, min(low, 1.0 - high))
        factors = None if known else model.factors(score_factor)
        rows = score_rows(outcome)
        if look is not gate and clips_nothing(gate, share["score"] + looks, ceiling, where):
            # Not even the largest possible score needs noise that matters: one pass over all records will do.
            score = unclipped_score(gate, share["score"] + looks, rows, outcome.effect, ceiling, where)
        else:
            score = measure_score(gate, share["score"], looks, rows, outcome.effect, ceiling, factors)
        score = replace(score, mean=score.mean - remainder.mean)
        adjustment = {
            "covariates": list(gate.bounds.names),
            "basis": str(size) if gate.bounds.p else "none",
            "terms": terms,
            "trim": [low, high],
        }
        small = small_sample_error(look, where)
        uncertainty = uncertainty_of(gate, score, hypot(remainder.sd, score.lost * off, small))
        notes = _notes(size, gate.bounds.p, known, (low, high), uncertainty, small > 0.5 * remainder.sd)
        notes += sample_note(gate, look)
        self.release_ = average_release("ate", gate, score, uncertainty, where, pilot, known, share, adjustment, notes)
        return self


def observational(strength: float, terms: int, calibrated: bool, sampled: bool = False) -> Shares:
    """Shares without a known design: a public rule in n mu and the number of features.

    The more features for the strength there is, the more of the budget goes to the models and the less to the score.
    Beside models from a sample the score, of all records, has noise to spare.
    """
    fixed = {"location": 0.04, "pilot": 0.015, "marginals": 0.03, "gram": 0.04, "effect": 0.025, "looks": 0.05}
    rest = 1.0 - sum(fixed.values())
    easy, hard = 0.03, 0.5
    place = np.clip(np.log(terms**1.5 / strength / easy) / np.log(hard / easy), 0.0, 1.0)
    score = rest * (0.3 if sampled else float(0.6 + (0.25 - 0.6) * place))
    models, calibration, correction = (0.45, 0.2, 0.35) if calibrated else (0.65, 0.0, 0.35)
    parts = {"models": models, "calibration": calibration, "correction": correction}
    return Shares(**fixed, **{name: (rest - score) * part for name, part in parts.items() if part}, score=score)


def refinements_for(strength: float, p: int) -> tuple[float, ...]:
    """Parts of the calibration's share that its rounds get; none where n mu is small (a public rule)."""
    scaled = strength / sqrt(max(p, 2) / 6.0)
    return max((parts for level, parts in _CALIBRATE if scaled >= level), key=len, default=())


def _notes(
    size: Size, p: int, known: bool, trim: tuple[float, float], uncertainty: Uncertainty, scarce: bool
) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("The interval relies on the stated probabilities of treatment; covariates only narrow it.")
    else:
        notes.append(
            "The interval assumes that treatment is as good as random among people with the same declared covariates, "
            f"and that the adjustment ({size if p else 'none: no covariates were declared'}) captures what they do."
        )
        if p > 1 and not size.pairs:
            reason = "this budget and number of records support" if size.degree == 1 else "so many covariates allow"
            notes.append(f"Joint effects of two covariates are not adjusted for: {reason} a plain adjustment only.")
        notes.append(f"Fitted probabilities of treatment are held between {trim[0]:.3g} and {trim[1]:.3g}.")
        if uncertainty.share()["nuisance"] > 0.5 and scarce:
            notes.append(
                "The smaller arm has too few records for this budget, and the interval is wide because of it: "
                "more records or a larger epsilon would narrow it most."
            )
        elif uncertainty.share()["nuisance"] > 0.5:
            notes.append(
                "Most of the width is noise in the adjustment: more records, a larger epsilon or fewer covariates "
                "would narrow it most."
            )
    return (*notes, *clip_note(uncertainty))
