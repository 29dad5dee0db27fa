"""Nuisance functions that published two-stage methods share: any scikit-learn models, or models from the gate.

Either way they are functions of the covariates alone. Methods differ in what they need of them: `parts` gives the
propensity and the expected outcome in each arm; calling gives the propensity and the prognosis
f = (1 - pi) mu_1 + pi mu_0, in which alone the outcome regressions enter an AIPW score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.columns import Range
from discreet.data.records import Chunk
from discreet.estimators._allocation import LOCATION, MODELS, MODELS_OF_KNOWN_DESIGN, WINDOWS, Allocation, basis_terms
from discreet.estimators.measurements.coded_features import CodedFeatures
from discreet.estimators.measurements.covariates import (
    coding_questions,
    measure_codings,
    measure_correlation,
    measure_gram,
)
from discreet.estimators.measurements.location import locate, pilot_effect
from discreet.estimators.measurements.nuisances import Outcome, fit_nuisances, nuisance_questions
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.common.predictions import Predict, outcomes, probabilities
from discreet.papers.common.slopes import Local, Slope, constant, local_outcome, local_probability
from discreet.postprocessing.kernel_basis import CodedBasis
from discreet.privacy.gate import Gate

Surfaces: TypeAlias = Callable[[Float], tuple[Float, Float]]
"""From covariates as `Bounds` encodes them to propensity and prognosis, the latter in the outcome's unit."""

_BY_HAND = "Chosen by hand; no search is recorded."
PRIVATE_SHARES = Allocation.of(
    {
        "location": 0.08,
        "arm means": 0.04,
        "marginals": 0.06,
        "correlations": 0.02,
        "second moments": 0.14,
        "models": 0.66,
    },
    parts={"location": LOCATION, "marginals": WINDOWS, "models": MODELS},
    provenance=_BY_HAND,
)
PRIVATE_SHARES_BY_DESIGN = Allocation.of(
    {
        "location": 0.12,
        "arm means": 0.06,
        "marginals": 0.08,
        "correlations": 0.02,
        "second moments": 0.22,
        "models": 0.50,
    },
    parts={"location": LOCATION, "marginals": WINDOWS, "models": MODELS_OF_KNOWN_DESIGN},
    provenance=_BY_HAND,
)

_SAME = 1e-6


class Nuisances(Protocol):
    """Fitted nuisance functions."""

    def __call__(self, x: Float) -> tuple[Float, Float]:
        """Propensity and prognosis."""
        ...

    def parts(self, x: Float) -> tuple[Float, Float, Float]:
        """Propensity, and expected outcomes of control and treated, in the outcome's unit."""
        ...

    def average_effect(self, x: Float) -> float:
        """An average effect, in the outcome's unit, of which rows of x may be part."""
        ...


def check_models(regression: Any, classifier: Any) -> None:
    """Refuse models that cannot be what they are needed for, before a record is read."""
    for name, model in (("model_regression", regression), ("model_propensity", classifier)):
        if isinstance(model, type):
            raise InvalidInput(f"{name} is a class; give an instance of it, with its settings in brackets.")
    if not (hasattr(regression, "fit") and hasattr(regression, "predict")):
        raise InvalidInput("model_regression needs fit and predict; give a scikit-learn regressor.")
    if not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InvalidInput(
            "model_propensity needs fit and predict_proba; give a scikit-learn classifier that returns probabilities."
        )
    for name, model in (("model_regression", regression), ("model_propensity", classifier)):
        if not hasattr(model, "get_params"):
            raise InvalidInput(f"{name} cannot be copied, as it has no get_params; derive it from BaseEstimator.")


@dataclass(frozen=True, eq=False)
class Models:
    """Fitted scikit-learn models.

    ``classifier`` is a number where the propensity is known by design. Propensities are clipped to the declared
    overlap; predicted outcomes to their declared range if ``clipped``.
    """

    bounds: Bounds
    control: Any
    treated: Any
    classifier: Any
    clipped: bool

    def parts(self, x: Float) -> tuple[Float, Float, Float]:
        """Propensity, and expected outcomes of control and treated."""
        pi, mu0, mu1 = self.raw(x)
        if self.clipped:
            mu0, mu1, pi = _inside(mu0, self.bounds.outcome), _inside(mu1, self.bounds.outcome), _numbers(pi)
        if not isinstance(self.classifier, float):
            pi = np.clip(pi, *self.bounds.propensity)
        return pi, mu0, mu1

    def average_effect(self, x: Float) -> float:
        """The mean of predicted effects at rows of x, which must be public."""
        _, control, treated = self.parts(x)
        return float((treated - control).mean())

    def raw(self, x: Float) -> tuple[Float, Float, Float]:
        """The same as the models predict it."""
        features = design(x, self.bounds)
        control, treated, classifier = self._predict
        pi = np.full(len(x), classifier) if isinstance(classifier, float) else classifier(features)
        return pi, control(features), treated(features)

    def __call__(self, x: Float) -> tuple[Float, Float]:
        pi, mu0, mu1 = self.parts(x)
        return pi, (1.0 - pi) * mu1 + pi * mu0

    def local(self) -> Callable[[Float], tuple[Slope, ...]] | None:
        """Propensity and expected outcomes around one record, if the slopes of all models are known."""
        known = isinstance(self.classifier, float)
        propensity = constant(self.classifier) if known else local_probability(self.classifier)
        models = [propensity, local_outcome(self.control), local_outcome(self.treated)]
        range_ = self.bounds.outcome if self.clipped else None
        ends = [None if known else self.bounds.propensity, range_, range_]
        found = [model for model in models if model is not None]
        return on_ranges(found, ends, self.bounds) if len(found) == len(models) else None

    @cached_property
    def _predict(self) -> tuple[Predict, Predict, Predict | float]:
        known = isinstance(self.classifier, float)
        propensity = self.classifier if known else probabilities(self.classifier)
        return outcomes(self.control), outcomes(self.treated), propensity


def on_ranges(
    models: Sequence[Local], ends: Sequence[tuple[float, float] | None], bounds: Bounds
) -> Callable[[Float], tuple[Slope, ...]]:
    """Predictions of models around one record as functions of its ranges, clipped where ends are given."""
    widths = [1 if isinstance(spec, Range) else len(spec.levels) for spec in bounds.columns]
    firsts = np.cumsum([0, *widths[:-1]])
    places = firsts[[isinstance(spec, Range) for spec in bounds.columns]]

    def around(x: Float) -> tuple[Slope, ...]:
        features = design(x[None, :], bounds)[0]
        found = []
        for model, end in zip(models, ends, strict=True):
            value, by = model(features)
            # Features have half the width of encoded ranges.
            slope = 0.5 * by[places]
            if end is not None and not end[0] <= value <= end[1]:
                value, slope = float(np.clip(value, *end)), np.zeros(len(places))
            found.append(Slope(value, slope))
        return tuple(found)

    return around


@dataclass(frozen=True, slots=True, eq=False)
class PrivateModels:
    """Logistic propensity and linear outcomes that a gate released; predictions stay inside the outcome's range."""

    bounds: Bounds
    outcome: Outcome
    known: float | None

    def parts(self, x: Float) -> tuple[Float, Float, Float]:
        """Propensity, and expected outcomes of control and treated."""
        pi, prognosis, effect = self._predictions(x)
        arms = prognosis - (1.0 - pi) * effect, prognosis + pi * effect
        mu0, mu1 = (in_own_unit(np.clip(arm, -1.0, 1.0), self.bounds) for arm in arms)
        return pi, mu0, mu1

    def __call__(self, x: Float) -> tuple[Float, Float]:
        pi, prognosis, _ = self._predictions(x)
        return pi, in_own_unit(np.clip(prognosis, -1.0, 1.0), self.bounds)

    def average_effect(self, x: Float) -> float:
        """The average effect that was released with the models, whatever the rows are."""
        width = self.bounds.outcome_width
        return float(np.clip(self.outcome.effect * width / 2.0, -width, width))

    def _predictions(self, x: Float) -> tuple[Float, Float, float]:
        nobody = np.zeros(len(x))
        known = None if self.known is None else np.full(len(x), self.known)
        chunk = Chunk(y=nobody, t=nobody, x=x, e=known)
        answers = self.outcome.answers(chunk)
        return answers.e, answers.prognosis, self.outcome.effect


def train(
    rows: Chunk, bounds: Bounds, regression: Any, classifier: Any, *, known: float | None, clipped: bool, rng: Any
) -> Models:
    """One outcome regression for each arm, and a classifier of the treatment unless its probability is known."""
    features, y = design(rows.x, bounds), in_own_unit(rows.y, bounds)
    with without_training_warnings():
        arms = [rows.t == arm for arm in (0.0, 1.0)]
        control, treated = (_fit("model_regression", fresh(regression, rng), features[arm], y[arm]) for arm in arms)
        model = known
        if known is None:
            model = _fit("model_propensity", fresh(classifier, rng), features, rows.t.astype(int))
    return Models(bounds, control, treated, model, clipped)


def _fit(name: str, model: Any, features: Float, target: Any) -> Any:
    try:
        return model.fit(features, target)
    except Exception as error:
        # What the model says may quote records.
        raise InvalidInput(
            f"{name} could not be fitted ({type(error).__name__}); try it on made-up records, or give another."
        ) from None


def _inside(values: Float, ends: tuple[float, float]) -> Float:
    """Clipped; whatever is no number is taken for the middle, so that no record decides whether a fit goes on."""
    return np.clip(np.where(np.isnan(values), sum(ends) / 2.0, values), *ends)


def _numbers(probabilities: Float) -> Float:
    return np.where(np.isnan(probabilities), 0.5, probabilities)


def check_finite(*predicted: Float) -> None:
    """Refuse models that return what is no number; for public predictions, or where nothing is proved."""
    if not all(np.isfinite(values).all() for values in predicted):
        raise InvalidInput("a nuisance model predicts missing or infinite values; give models that return numbers.")


def private_models(gate: Gate, known: float | None) -> PrivateModels:
    """Logistic propensity and linear outcomes on a bounded basis, from noisy sums that spend the whole gate.

    The first rounds of `ATE`, whose rule for the size of the basis it is too; no covariate is screened.
    """
    share, p = PRIVATE_SHARES if known is None else PRIVATE_SHARES_BY_DESIGN, gate.bounds.p
    marginals = coding_questions(gate.bounds.columns, share["marginals"])
    where = locate(gate, share["location"], *marginals)
    pilot = pilot_effect(gate, share["arm means"], where).effect
    codings = measure_codings(gate, marginals, share["marginals"])
    correlation = measure_correlation(gate, share["correlations"], codings)
    terms = basis_terms(gate.n * gate.mu, gate.n, gate.bounds.columns)
    features = CodedFeatures(CodedBasis.build(codings, np.full(p, 1.0 / max(p, 1)), terms), gate.n)
    first = nuisance_questions(gate, share["models"], features, where, pilot, known is not None)
    setting = measure_gram(gate, share["second moments"], features, correlation, *first.queries)
    outcome = fit_nuisances(gate, first, setting, where, pilot, gate.bounds.propensity, known is not None)
    return PrivateModels(gate.bounds, outcome, known)


def check_row_wise(surfaces: Callable[[Float], tuple[Float, ...]], x: Float) -> None:
    """Refuse models whose prediction for one record depends on the others: docs/proofs/private_ci.md, premise (b).

    Predicts for a few rows, which must be public.
    """
    together = np.array(surfaces(x))
    check_finite(*(surfaces.raw(x) if isinstance(surfaces, Models) else together))
    alone = np.concatenate([np.array(surfaces(row[None, :])) for row in x], axis=1)
    if not np.allclose(together, alone, rtol=_SAME, atol=_SAME * (1.0 + np.abs(together).max())):
        raise InvalidInput(
            "a nuisance model predicts differently for one record alone and among others; give models whose predict "
            "treats rows one by one."
        )


def design(x: Float, bounds: Bounds) -> Float:
    """What models see: ranges on [0, 1], as in the papers' data, and an indicator for each level."""
    if all(isinstance(spec, Range) for spec in bounds.columns):
        return (x + 1.0) / 2.0
    columns = []
    for spec, column in zip(bounds.columns, x.T, strict=True):
        if isinstance(spec, Range):
            columns.append((column[:, None] + 1.0) / 2.0)
        else:
            columns.append((column[:, None] == np.arange(len(spec.levels))).astype(np.float64))
    return np.hstack(columns)


def fresh(model: Any, rng: Any) -> Any:
    """An unfitted copy, with a seed if the model takes one and has none."""
    from sklearn.base import clone

    copy = clone(model)
    if "random_state" in copy.get_params() and copy.get_params()["random_state"] is None:
        copy.set_params(random_state=int(rng.randint(2**31 - 1)))
    return copy


@contextmanager
def without_training_warnings() -> Iterator[None]:
    """Keep quiet about networks that stop after a fixed number of steps, as the papers' do, or lack a full batch."""
    from sklearn import config_context
    from sklearn.exceptions import ConvergenceWarning

    # Records are clipped numbers already: no need to search for others again in every batch of a network.
    with warnings.catch_warnings(), config_context(assume_finite=True):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Got `batch_size`", category=UserWarning)
        yield
