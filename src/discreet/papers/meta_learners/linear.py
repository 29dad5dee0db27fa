"""Linear and logistic base learners, proved: noisy moments through the gate, and the propensity paper's regression.

Proof: docs/proofs/learners.md, and docs/proofs/propensity.md for the logistic weights.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Levels
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import MOST_FEATURES, OneVector, into_unit_ball
from discreet.papers.meta_learners.base_learner import PROOF, PUBLIC, Task, checked
from discreet.papers.meta_learners.release import ReleasedModel, Term
from discreet.papers.propensity.logistic import gradient_rounding, minimise, sensitivity
from discreet.privacy.budget import Shares
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.fixed_point import SAFE
from discreet.privacy.sensitivity.sets import Ball, Gram, MeanSquare, Statistic

SHARES = Shares(target=0.05, gram=0.25, moments=0.70)
# Residuals are clipped at so many standard deviations of the target.
CLIP = 2.5
# The logistic penalty lambda (features have norms of at most 1), and where its minimisation stops.
PENALTY, GRADIENT_NORM = 0.01, 1e-9


class LinearLearner:
    """Linear regression from a noisy Gram matrix and noisy moments; of a target of 0 and 1 as well.

    Parameters
    ----------
    task : Task
        What is learnt from what, in public facts.

    Privacy
    -------
    Protects every record (covariates, target, weight) under replace-one. Proof: docs/proofs/learners.md.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> x = np.linspace(-1, 1, 1_000)[:, None]
    >>> bounds, budget = dc.Bounds(outcome=(-1, 1), covariates=[(-1, 1)]), dc.Budget(epsilon=4.0, delta=1e-6)
    >>> task = Task(name="outcome", columns=bounds.columns, target=(-1, 1), bounds=bounds, budget=budget)
    >>> with dc.testing.seeded_noise(0):
    ...     learner = LinearLearner(task).fit(x, x[:, 0])
    >>> learner.predict(np.array([[0.8]])).round(1)
    array([0.8])
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> LinearLearner:
        """Learn; only the released model and its guarantee are kept."""
        source = checked(self.task, X, y, sample_weight)
        gate = Gate(source, budget=self.task.budget)
        fitted = linear_rounds(gate, SHARES, self.task, heaviest(self.task, sample_weight), lambda c: c.x)
        self.model_ = _model(self.task, fitted.beta, self.task.middle + fitted.centre, "identity")
        self.guarantee_ = gate.guarantee(proof=PROOF, public=PUBLIC)
        return self

    def predict(self, X: Float) -> Float:
        """Predictions of the released model."""
        return self.model_.predict(X)


class Line(NamedTuple):
    """A linear model of the centred target: a constant, coefficients of `features`, and the size of a residual."""

    centre: float
    beta: Float
    residual_sd: float


def linear_rounds(gate: Gate, share: Shares, task: Task, heaviest: float, columns: Callable[[Chunk], Float]) -> Line:
    """Two rounds: location and Gram matrix, then moments of clipped residuals.

    Parameters
    ----------
    gate : Gate
        On records whose y is the centred target and whose e is the weight.
    share : Shares
        Shares named "target", "gram" and "moments".
    task : Task
        Public facts.
    heaviest : float
        The largest weight.
    columns : callable
        From a chunk to its encoded columns.
    """
    q, radius, bound = dimension(task), feature_norm(task), task.largest_product(heaviest)

    def rooted(chunk: Chunk) -> Float:
        return np.asarray(np.sqrt(weight_of(chunk))[:, None] * features(columns(chunk), task))

    target, gram = gate.ask(
        Query("target", share["target"], MeanSquare(bound), lambda c: weight_of(c) * c.y),
        Query("second moments", share["gram"], Gram(sqrt(heaviest) * radius, q), rooted),
    )
    mean, square = (float(value) / gate.n for value in target.value)
    # One standard deviation of the noise more: clipping too early hurts more than clipping too late.
    square += float(np.asarray(target.sd)[1]) / gate.n - mean**2
    residual_sd = sqrt(min(max(square, (1e-3 * bound) ** 2), bound**2))
    # The first feature is the constant, so that the matrix begins with the total weight.
    total = max(float(gram.value[0, 0]) / gate.n, 1e-3 * heaviest)
    centre = float(np.clip(mean / total, -task.half, task.half))
    clip = min(CLIP * residual_sd, 2.0 * bound)

    def products(chunk: Chunk) -> Float:
        residual = np.clip(weight_of(chunk) * (chunk.y - centre), -clip, clip)
        return np.asarray(residual[:, None] * features(columns(chunk), task))

    (moments,) = gate.ask(Query("moments", share["moments"], Ball(clip * radius, q), products))
    beta = solve(gram.value, float(gram.sd), moments.value, float(moments.sd), residual_sd / total)
    return Line(centre, beta, residual_sd)


class LogisticLearner:
    """Probability of 1 by L2-regularised logistic regression with noise on its weights (`papers.logistic`).

    Parameters
    ----------
    task : Task
        What is learnt from what, in public facts.

    Privacy
    -------
    Protects every record (covariates, target) under replace-one. Proof: docs/proofs/propensity.md, lemmas 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> x = np.linspace(-1, 1, 1_000)[:, None]
    >>> bounds, budget = dc.Bounds(outcome=(0, 1), covariates=[(-1, 1)]), dc.Budget(epsilon=4.0, delta=1e-6)
    >>> task = Task(name="arm", columns=bounds.columns, target=(0, 1), bounds=bounds, budget=budget)
    >>> with dc.testing.seeded_noise(0):
    ...     learner = LogisticLearner(task).fit(x, (x[:, 0] > 0) * 1.0)
    >>> bool(learner.predict(np.array([[0.8]]))[0] > 0.5)
    True
    """

    def __init__(self, task: Task) -> None:
        self.task = task

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> LogisticLearner:
        """Learn; only the released model and its guarantee are kept."""
        if sample_weight is not None:
            raise InvalidInput("sample_weight is for regressions: leave it out to learn a probability.")
        source = checked(self.task, X, y, None)
        q, radius = dimension(self.task), feature_norm(self.task)
        x = into_unit_ball(features(X, self.task), radius)
        # What float64 can certify for so many records: a public number.
        stop = max(GRADIENT_NORM, 2 * gradient_rounding(source.n, q, PENALTY))
        # The target was centred: it is -1/2 or 1/2.
        w = minimise(x, source.rows.y + 0.5, PENALTY, stop).w
        move = sensitivity(source.n, PENALTY, stop)
        geometry = Statistic(move=move, radius=(1 + stop) / PENALTY, dimension=q, proof="propensity.md")
        gate = Gate(OneVector(vector=w, bounds=self.task.bounds), budget=self.task.budget)
        (released,) = gate.ask(Query("logistic weights", 1.0, geometry, lambda c: c.x))
        self.model_ = _model(self.task, released.value * (SAFE / radius), 0.0, "logit")
        self.guarantee_ = gate.guarantee(proof="propensity.md", public=PUBLIC)
        return self

    def predict(self, X: Float) -> Float:
        """Predictions of the released model."""
        return self.model_.predict(X)


def dimension(task: Task) -> int:
    """How many features there are: a constant, one for a range, one for each level but the first."""
    count = 1 + sum(len(spec.levels) - 1 if isinstance(spec, Levels) else 1 for spec in task.columns)
    if count > MOST_FEATURES:
        raise InvalidInput(f"the bounds make more than {MOST_FEATURES} features: declare fewer covariates or levels.")
    return count


def feature_norm(task: Task) -> float:
    """Largest norm of a record's features. Proof: docs/proofs/learners.md, lemma 2."""
    return sqrt(1.0 + len(task.columns))


def features(x: Float, task: Task) -> Float:
    """A constant, ranges as they are encoded, and indicators of levels."""
    columns = [np.ones(len(x))]
    for spec, column in zip(task.columns, x.T, strict=True):
        if isinstance(spec, Levels):
            columns += [(column == k) * 1.0 for k in range(1, len(spec.levels))]
        else:
            columns.append(np.clip(column, -1.0, 1.0))
    return np.column_stack(columns)


def solve(gram: Float, gram_sd: float, moments: Float, sd: float, scale: float) -> Float:
    """Coefficients from released moments: the posterior mean in the matrix's own axes, for a prior of size ``scale``.

    Small eigenvalues are raised to what the noise in the matrix may have made of them.
    """
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, gram_sd * sqrt(len(moments)))
    rotated = vectors.T @ moments
    return np.asarray(vectors @ (values * rotated / (values**2 + sd**2 / scale**2 + values)))


def _model(task: Task, beta: Float, middle: float, link: Any) -> ReleasedModel:
    intercept, rest, terms = middle + float(beta[0]), list(beta[1:]), []
    for spec in task.columns:
        if isinstance(spec, Levels):
            own, rest = rest[: len(spec.levels) - 1], rest[len(spec.levels) - 1 :]
            cuts = tuple(k + 0.5 for k in range(len(spec.levels) - 1))
            terms.append(Term(cuts=cuts, scores=(0.0, *own)))
        else:
            terms.append(Term(slope=rest.pop(0)))
    return ReleasedModel(intercept=intercept, terms=tuple(terms), link=link)


def heaviest(task: Task, sample_weight: Float | None) -> float:
    """The largest weight that a record can have."""
    return 1.0 if sample_weight is None else (task.weight_bound or 1.0)


def weight_of(chunk: Chunk) -> Float:
    """Weights of records."""
    assert chunk.e is not None
    return chunk.e
