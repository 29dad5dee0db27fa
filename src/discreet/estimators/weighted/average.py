"""What estimators of an average share: the rounds of models and score, for everyone or for some of the records."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import hypot, sqrt
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._allocation import (
    LEFT_OUT,
    TRIM,
    Allocation,
    average_allocation,
    basis_terms,
    beside,
    models_pay,
)
from discreet.estimators._base import (
    ROWS_ALIKE,
    ROWS_JOINED,
    Progress,
    TableFits,
    coded_gates,
    count_first,
    open_model_gate,
)
from discreet.estimators._parameters import Parameters
from discreet.estimators._releasing import average_release, clip_note, sample_note, uncertainty_of, with_arms
from discreet.estimators.arms.measure import AverageModels
from discreet.estimators.difference_in_means import means_allocation, measure_means
from discreet.estimators.measurements.cap import Cap, check_cap, measure_capped
from discreet.estimators.measurements.coded_features import CodedFeatures
from discreet.estimators.measurements.covariates import (
    coding_questions,
    measure_codings,
    measure_correlation,
    measure_curves,
    measure_gram,
)
from discreet.estimators.measurements.diagnostics import diagnostics_of
from discreet.estimators.measurements.effect_moment import refine_effect
from discreet.estimators.measurements.estimand import Estimand, RecordWeights
from discreet.estimators.measurements.level import Measured, level_remainder, level_rounds, measure_score
from discreet.estimators.measurements.location import Location, locate, pilot_effect, public_notes
from discreet.estimators.measurements.nuisances import (
    Outcome,
    correct_outcome,
    fit_nuisances,
    nuisance_questions,
    refine_propensity,
)
from discreet.estimators.measurements.score import (
    ScoreRounds,
    clips_nothing,
    design_strata,
    noise_dominates,
    prognosis_range,
)
from discreet.exceptions import InvalidBudget
from discreet.postprocessing.kernel_basis import CodedBasis
from discreet.postprocessing.tails import Strata
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.query import Query
from discreet.releases.average import Release, Uncertainty

# What an observational study assumes; estimators that assume something else say so in its place.
AS_GOOD_AS_RANDOM = "treatment is as good as random among people with the same declared covariates"


class _Start(NamedTuple):
    """What the first rounds leave behind: the gate of the models, shares, and where the outcome is."""

    model_gate: Gate
    allocation: Allocation
    terms: int
    marginals: tuple[Query, ...]
    location: Location


class AverageEffect(TableFits[Release], Parameters):
    """What estimators of an average over all records, or over some of them, share: `estimand` says over whom."""

    estimand: ClassVar[Estimand]
    release_types: ClassVar[tuple[type[Any], ...]] = (Release,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)
    samples: ClassVar[bool] = True
    # Subclasses whose constructors are older than the parameter do not set it.
    cap: Cap = None
    # How much single records count for, where not all count alike.
    _weights: RecordWeights | None = None

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
        cap: Cap = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours
        self.cap = cap

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget(
                f"{type(self).__name__} needs delta, e.g. delta=1e-6: its rounds add Gaussian noise. "
                "For pure epsilon in a randomised trial, use DifferenceInMeans."
            )
        if self.cap is not None:
            check_cap(self.cap, self.bounds)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        measure = partial(self._measure, level=True)
        self.release_ = measure(gate) if self.cap is None else measure_capped(gate, self.cap, measure)

    def _measure(self, gate: Gate, *, level: bool = False) -> Release:
        """All rounds after the count, with those of the arms' means; they fit into what it leaves of the budget."""
        if self.propensity is not None and not models_pay(gate.n * gate.mu, gate.bounds.p, self.propensity):
            return measure_means(gate, self.propensity, self.estimand.kind, self.estimand, level=level)
        plain = means_allocation(gate, self.estimand, level=level)
        start = self._start(gate, level=level)
        if isinstance(self.propensity, Real) and start.model_gate is gate:
            share, design = start.allocation["score"], float(self.propensity)
            if noise_dominates(gate, share, start.location, design):
                # The first rounds have the same shares with models and without.
                kind, located = self.estimand.kind, (plain, start.location)
                return measure_means(gate, design, kind, self.estimand, level=level, located=located)
        return self._measure_with_models(gate, level=level, start=start)[0]

    def _start(self, gate: Gate, *, level: bool) -> _Start:
        """The first rounds: where the outcome is, and who gets which share of the budget."""
        known, bounds = self.propensity is not None, gate.bounds
        terms = basis_terms(gate.n * gate.mu, gate.n, bounds.columns)
        # Models are fitted through this one: on all records, or on a sample of very many.
        model_gate = open_model_gate(gate, terms)
        information = model_gate.n * gate.mu
        allocation = average_allocation(information, terms, bounds.p, known=known, sampled=model_gate is not gate)
        allocation = allocation.beside(
            beside(weighted=self.estimand.weighted, level=level, joined=gate.joins_rows)
        ).after_counts(gate)
        marginals = coding_questions(bounds.columns, allocation["marginals"]) if bounds.p else ()
        location = locate(model_gate, allocation["location"], *marginals)
        return _Start(model_gate, allocation, terms, marginals, location)

    def _fit_models(self, gate: Gate, *, level: bool = False, start: _Start | None = None) -> AverageModels:
        """The rounds before the score: public models of treatment and outcome, and what is known of their errors."""
        known, bounds = self.propensity is not None, gate.bounds
        model_gate, allocation, terms, marginals, location = start or self._start(gate, level=level)
        information = model_gate.n * gate.mu
        first = pilot_effect(model_gate, allocation["arm means"], location)
        pilot = first.effect
        codings = measure_codings(model_gate, marginals, allocation["marginals"]) if bounds.p else ()
        gate, model_gate = coded_gates(gate, model_gate, codings)
        correlation, importance, curves, screening = np.eye(bounds.p), np.ones(bounds.p), None, None
        if bounds.p > 1:
            correlation = measure_correlation(model_gate, allocation["correlations"], codings)
            share = allocation["screening moments"]
            importance, curves, screening = measure_curves(model_gate, share, codings, location)
        features = CodedFeatures(CodedBasis.build(codings, importance, terms, curves), model_gate.n)
        asked = nuisance_questions(model_gate, allocation["models"], features, location, pilot, known)
        setting = measure_gram(model_gate, allocation["second moments"], features, correlation, *asked.queries)
        trim = self._design(bounds) if known else TRIM.interval(bounds, location.treated, information)
        trim = trim if known else self.estimand.held(trim, bounds.propensity)
        outcome = fit_nuisances(model_gate, asked, setting, location, pilot, trim, known)
        outcome = replace(outcome, estimand=self.estimand, weights=self._weights)
        remainder, off = 0.0, first.noise
        if not known:
            outcome, remainder, off = self._refine(model_gate, allocation, location.scale, outcome)
        basis = str(features.basis) if bounds.p else "none"
        return AverageModels(
            gate, model_gate, allocation, location, first, outcome, remainder, off, trim, basis, terms, screening
        )

    def _measure_with_models(
        self, gate: Gate, *, level: bool = False, start: _Start | None = None
    ) -> tuple[Release, Location, Outcome]:
        """All rounds by models of treatment and outcome in any case; and these, which are public."""
        known, bounds, models = (
            self.propensity is not None,
            gate.bounds,
            self._fit_models(gate, level=level, start=start),
        )
        gate, model_gate, allocation, location, first, outcome, remainder, off, trim, basis, terms, screening = models
        pilot = first.effect
        (score, means), allocation = _measure_score(gate, model_gate, allocation, location, outcome, self.propensity)
        off = hypot(off, sqrt(score.variance / gate.n))
        # What the models leave out is taken to be a part of what they took away.
        moved = 0.0 if known else max(abs(score.mean - pilot) - first.noise, 0.0)
        uncertainty = uncertainty_of(gate, score, hypot(remainder, score.lost * off, LEFT_OUT * moved))
        left = 0.0 if known or self.estimand.one_arm else level_remainder(outcome, location)
        notes = _notes(basis, bounds, known, trim, uncertainty, gate.budget)
        release = average_release(
            self.estimand.kind,
            gate,
            score,
            uncertainty,
            known=known,
            adjustment={
                "covariates": list(bounds.names),
                "basis": basis,
                "terms": terms,
                "trim": list(trim),
                "shares": allocation.shares,
            },
            notes=notes + public_notes(gate.budget, gate.n, location, self.propensity) + sample_note(gate, model_gate),
            reference={"unadjusted": bounds.outcome_width / 2.0 * pilot, "treated_share": location.treated},
        )
        design = float(self.propensity) if isinstance(self.propensity, Real) else None
        arms = diagnostics_of(bounds, (gate.n, model_gate.n), location, outcome, screening, design)
        return replace(with_arms(release, gate, means, left), diagnostics=arms), location, outcome

    def _design(self, bounds: Bounds) -> tuple[float, float]:
        """Lowest and highest probability of treatment where it is known."""
        return (float(self.propensity),) * 2 if isinstance(self.propensity, Real) else bounds.propensity

    def _refine(
        self, gate: Gate, allocation: Allocation, scale: float, outcome: Outcome
    ) -> tuple[Outcome, float, float]:
        """Correct both models on the records themselves; returns what they leave, and the noise of the effect."""
        off, remainder = 0.0, 0.0
        cycles = allocation.events("propensity")
        for number, name in enumerate(cycles, 1):
            outcome = refine_propensity(gate, name, allocation[name], outcome)
            if number == len(cycles):
                outcome, off = refine_effect(gate, allocation["effect moment"], scale, outcome)
            shares = allocation[f"residual moments {number}"], allocation[f"residual magnitude {number}"]
            outcome, remainder = correct_outcome(gate, number, *shares, outcome, last=number == len(cycles))
        return outcome, remainder, off


def _measure_score(
    gate: Gate, model_gate: Gate, allocation: Allocation, location: Location, outcome: Outcome, design: Any
) -> tuple[Measured, Allocation]:
    """The score of all records, and the shares that this mode of measuring it has."""
    model, estimand = outcome.propensity, outcome.estimand
    overlap = Strata.between(model.low, model.high, estimand.clip_unit, estimand.largest_unit)
    if model.known:
        overlap = design_strata(design, gate.bounds, estimand)
    if outcome.weights is not None:
        overlap = overlap.divided(outcome.weights.least, outcome.weights.most)
    rounds = ScoreRounds(
        look_up=outcome.answers,
        effect=outcome.effect,
        overlap=overlap,
        prognosis=prognosis_range(location),
        estimand=estimand,
        treated=location.treated,
        weights=outcome.weights,
    )
    whole = allocation.joined("residual tails", into="score").joined("clipped excess", into="score")
    h = float(estimand.weigh(np.array([location.treated]))[0])
    clip, bias = rounds.no_clip, 1.0
    if model_gate is not gate and clips_nothing(gate, whole["score"], max(rounds.reach) / overlap.least, location, h):
        # Not even the largest possible score needs noise that matters: one pass over all records will do.
        allocation = whole
    else:
        tails = rounds.measure_tails(
            gate, allocation["residual tails"], atomic=location.atomic, randomised=outcome.propensity.known
        )
        clip = rounds.choose_clip(gate, allocation["clipped excess"], tails, allocation["score"])
        bias = tails.bias_of_excess
    level = level_rounds(allocation, rounds, location, clip, bias)
    return measure_score(gate, allocation, rounds, clip, level), allocation


def _advice(uncertainty: Uncertainty, budget: Budget, bounds: Bounds) -> str:
    """What would help, and by how much."""
    mu = calibrate_mu(2.0 * budget.epsilon, budget.delta) / calibrate_mu(budget.epsilon, budget.delta)

    def width(**more: float) -> float:
        low, high = uncertainty.scaled(**more).interval(0.0)
        # No effect can exceed the outcome's range, and no interval does.
        return min(high - low, 2.0 * bounds.outcome_width)

    fewer = f", with half of the covariates, should they be enough, {width(covariates=0.5) / width():.2g}"
    return (
        f"With twice the records it is expected to be {width(records=2.0) / width():.2g} times as wide, with twice the "
        f"epsilon {width(mu=mu) / width():.2g}{fewer if bounds.p > 1 else ''}."
    )


def _notes(
    size: str, bounds: Bounds, known: bool, trim: tuple[float, float], uncertainty: Uncertainty, budget: Budget
) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("The interval relies on the stated probabilities of treatment; covariates only narrow it.")
    else:
        notes.append(
            f"The interval assumes that {AS_GOOD_AS_RANDOM}, and that the adjustment "
            f"({size if bounds.p else 'none: no covariates were declared'}) captures what they do."
        )
        notes.append(f"Fitted probabilities of treatment are held between {trim[0]:.3g} and {trim[1]:.3g}.")
        if uncertainty.share()["nuisance"] > 0.5:
            notes.append(
                f"Most of the width is what the adjustment may have got wrong. {_advice(uncertainty, budget, bounds)}"
            )
    return (*notes, *clip_note(uncertainty))
