"""Additive models by cyclic boosting on noisy bin sums: like DP-EBM, and every number through the gate.

In place of the many small steps of DP-EBM there are a linear start and a few cycles. In each cycle every column in turn
gets the noisy sums of clipped residuals in its bins, and its shape is updated by as much as they are evidence for
(`learners_smoothing`).
Proof: docs/proofs/learners.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit

from discreet.data._arrays import Float
from discreet.data.bounds import Levels
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import Part
from discreet.papers.meta_learners.base_learner import PROOF, PUBLIC, Task, checked
from discreet.papers.meta_learners.bin_smoothing import smooth
from discreet.papers.meta_learners.linear import linear_rounds, weight_of
from discreet.papers.meta_learners.release import ReleasedModel, Term
from discreet.privacy.budget import Shares
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball, Cells, Interval

# Bins of equal width for a range; a column of levels has one bin for each.
BINS = 32
# A linear start (target, gram, moments), then the bins' counts, and the cycles.
SHARES = Shares(target=0.04, gram=0.08, moments=0.50, counts=0.05, residuals=0.04, terms=0.29)
# What each cycle gets of the shares "terms" and "residuals".
CYCLES = (0.6, 0.4)
# Residuals are clipped at so many of their standard deviations, and their squares at so many more.
CLIP, SQUARES = 2.25, 4.0
# A released size of residuals is never taken to be less than this part of the one before it.
_LEAST = 1.0 / 3.0
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)


class AdditiveLearner:
    """Additive regression, or logistic regression, from noisy bin sums.

    Parameters
    ----------
    task : Task
        What is learnt from what, in public facts.
    classify : bool
        Whether the target is 0 or 1 and its probability is wanted.

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
    ...     learner = AdditiveLearner(task).fit(x, x[:, 0])
    >>> learner.predict(np.array([[0.8]])).round(1)
    array([0.8])
    """

    def __init__(self, task: Task, *, classify: bool = False) -> None:
        self.task = task
        self.classify = classify

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> AdditiveLearner:
        """Learn; only the released model and its guarantee are kept."""
        if self.classify and sample_weight is not None:
            raise InvalidInput("sample_weight is for regressions: leave it out to learn a probability.")
        source = checked(self.task, X, y, sample_weight)
        bins = [len(spec.levels) if isinstance(spec, Levels) else BINS for spec in self.task.columns]
        # Beside its bins each record has what the model predicts for it so far: to add up all columns anew in each of
        # as many rounds as there are columns would take a quadratic time.
        binned = np.column_stack([_places(X, bins, self.task), np.zeros(len(X))])
        gate = Gate(Part(source.rows._replace(x=binned), source.bounds), budget=self.task.budget)
        fit = _Fit(gate, binned, bins, self.task, None if sample_weight is None else self.task.weight_bound)
        self.model_ = fit.classify() if self.classify else fit.regress()
        self.guarantee_ = gate.guarantee(proof=PROOF, public=PUBLIC)
        return self

    def predict(self, X: Float) -> Float:
        """Predictions of the released model."""
        return self.model_.predict(X)


class _Fit:
    """The rounds of one fit, in order, and what they have released so far."""

    def __init__(self, gate: Gate, binned: Float, bins: list[int], task: Task, weight_bound: float | None) -> None:
        self.gate, self.binned, self.bins, self.task = gate, binned, bins, task
        self.weighted, self.weight_bound = weight_bound is not None, weight_bound or 1.0
        self.intercept, self.residual_sd = 0.0, 0.0
        self.scores = [np.zeros(m) for m in bins]
        self.middles = [
            np.arange(m, dtype=np.float64) if isinstance(spec, Levels) else (2.0 * np.arange(m) + 1.0) / m - 1.0
            for m, spec in zip(bins, task.columns, strict=True)
        ]

    def regress(self) -> ReleasedModel:
        self._start()
        weights = self._weights()
        # Weights need not add up to n: what follows is per unit of weight.
        unit = self.gate.n / float(weights[0].sum())
        for number, part in enumerate(CYCLES, 1):
            self._measure_residuals(number, part * SHARES["residuals"])
            clip = residual_clip(self.residual_sd, self.weight_bound, self.task.half)
            for j in range(len(self.bins)):
                sums, sd = self._sums(j, number, part * SHARES["terms"], clip, self._residual)
                size = unit * self.residual_sd
                self._add(j, smooth(sums, weights[j], sd, size * self.residual_sd, size, ordered=self._ordered(j)))
        return self._model(self.task.middle + self.intercept, "identity")

    def classify(self) -> ReleasedModel:
        self._start()
        # From a line through 0 and 1 to one on the scale of log odds: the first step of Newton's method.
        p = float(np.clip(0.5 + self.intercept, 0.05, 0.95))
        self.intercept = float(np.log(p / (1.0 - p)))
        self.scores = [scores / (p * (1.0 - p)) for scores in self.scores]
        self.binned[:, -1] /= p * (1.0 - p)
        weights = self._weights()
        moments = [_moments(w, f) for w, f in zip(weights, self.scores, strict=True)]
        for number, part in enumerate(CYCLES, 1):
            # There is no residual to measure: what it would cost goes to the sums.
            share = part * (SHARES["residuals"] + SHARES["terms"])
            for j in range(len(self.bins)):
                # The target was centred: it is -1/2 or 1/2.
                sums, sd = self._sums(j, number, share, 1.0, lambda c: c.y + 0.5 - expit(self(c)))
                curved = weights[j] * self._curvature(j, moments)
                self._add(j, smooth(sums, curved, sd, 1.0, 1.0, ordered=self._ordered(j)))
                moments[j] = _moments(weights[j], self.scores[j])
        return self._model(self.intercept, "logit")

    def _start(self) -> None:
        """A linear model, which settles what correlated columns do; cycles would take long to."""

        def columns(chunk: Chunk) -> Float:
            places = chunk.x.astype(np.int64)
            return np.column_stack([middles[places[:, j]] for j, middles in enumerate(self.middles)])

        line = linear_rounds(self.gate, SHARES, self.task, self.weight_bound, columns)
        self.intercept, self.residual_sd = line.centre + float(line.beta[0]), line.residual_sd
        rest = list(line.beta[1:])
        for j, spec in enumerate(self.task.columns):
            if isinstance(spec, Levels):
                own, rest = rest[: self.bins[j] - 1], rest[self.bins[j] - 1 :]
                self.scores[j] = np.array([0.0, *own])
            else:
                self.scores[j] = rest.pop(0) * self.middles[j]
            self.binned[:, -1] += self.scores[j][self.binned[:, j].astype(np.int64)]

    def _add(self, j: int, steps: Float) -> None:
        """Change the shape of one column, and with it what the model predicts."""
        self.scores[j] += steps
        self.binned[:, -1] += steps[self.binned[:, j].astype(np.int64)]

    def _residual(self, chunk: Chunk) -> Float:
        return weight_of(chunk) * (chunk.y - self(chunk))

    def __call__(self, chunk: Chunk) -> Float:
        """The model so far."""
        return np.asarray(self.intercept + chunk.x[:, -1])

    def _weights(self) -> list[Float]:
        """Number of records in each bin, or their weight: positive, with the same total for every column."""
        queries: list[Query] = []
        for j, m in enumerate(self.bins):
            name, share = f"bins of column {j}", SHARES["counts"] / len(self.bins)
            if self.weighted:
                queries.append(Query(name, share, Ball(self.weight_bound, m), self._rows(j, weight_of)))
            else:
                queries.append(Query(name, share, Cells((m,)), lambda c, j=j: c.x[:, j]))  # type: ignore[misc]
        counts = [released.value for released in self.gate.ask(*queries)]
        total = self.gate.n
        if self.weighted:
            total = max(float(np.mean([count.sum() for count in counts])), 1e-3 * self.weight_bound * total)
        # Noise can make counts negative, and all of them: a bin has at least a little.
        positive = [np.maximum(count, 1e-3 * total / count.size) for count in counts]
        return [count * (total / float(count.sum())) for count in positive]

    def _measure_residuals(self, cycle: int, share: float) -> None:
        """Size of a residual: at most what it was before this cycle."""
        before = self.residual_sd
        squares = Interval(0.0, (SQUARES * before) ** 2)
        (square,) = self.gate.ask(
            Query(f"residual square, cycle {cycle}", share, squares, lambda c: self._residual(c) ** 2)
        )
        found = (float(square.value) + float(square.sd)) / self.gate.n
        self.residual_sd = float(np.sqrt(np.clip(found, (_LEAST * before) ** 2, before**2)))

    def _sums(
        self, j: int, cycle: int, share: float, clip: float, residual: Callable[[Chunk], Float]
    ) -> tuple[Float, float]:
        """Sums of clipped residuals in the bins of one column."""

        def clipped(chunk: Chunk) -> Float:
            return np.clip(residual(chunk), -clip, clip)

        geometry = Ball(clip, self.bins[j])
        query = Query(f"column {j}, cycle {cycle}", share / len(self.bins), geometry, self._rows(j, clipped))
        (sums,) = self.gate.ask(query)
        return sums.value, float(sums.sd)

    def _rows(self, j: int, values: Callable[[Chunk], Float]) -> Callable[[Chunk], Any]:
        """One number per record, in the place of its bin."""

        def rows(chunk: Chunk) -> Float:
            placed = np.zeros((len(chunk.t), self.bins[j]))
            placed[np.arange(len(chunk.t)), chunk.x[:, j].astype(np.int64)] = values(chunk)
            return placed

        return rows

    def _curvature(self, j: int, moments: list[tuple[float, float]]) -> Float:
        """About the mean of p(1 - p) in each bin of a column, as if the other columns were independent of it."""
        means, variances = zip(*moments, strict=True)
        centre = self.intercept + sum(means) - means[j] + self.scores[j]
        p = expit(centre[:, None] + np.sqrt(max(sum(variances) - variances[j], 0.0)) * _NODES)
        return np.asarray((p * (1.0 - p)) @ (_WEIGHTS / _WEIGHTS.sum()))

    def _ordered(self, j: int) -> bool:
        return not isinstance(self.task.columns[j], Levels)

    def _model(self, intercept: float, link: Any) -> ReleasedModel:
        terms = []
        for spec, scores in zip(self.task.columns, self.scores, strict=True):
            if isinstance(spec, Levels):
                cuts = np.arange(len(scores) - 1) + 0.5
            else:
                cuts = np.linspace(-1.0, 1.0, len(scores) + 1)[1:-1]
            terms.append(Term(cuts=tuple(cuts), scores=tuple(scores)))
        return ReleasedModel(intercept=intercept, terms=tuple(terms), link=link)


def _moments(weights: Float, scores: Float) -> tuple[float, float]:
    """Mean and variance of a column's scores."""
    mean = float(weights @ scores / weights.sum())
    return mean, float(weights @ (scores - mean) ** 2 / weights.sum())


def residual_clip(residual_sd: float, weight_bound: float, half: float) -> float:
    """Where residuals are clipped, from released and public numbers; the gate enforces it whatever it is.

    Proof: docs/proofs/learners.md, lemma 1.
    """
    return min(CLIP * residual_sd, 2.0 * weight_bound * half)


def _places(X: Float, bins: list[int], task: Task) -> Float:
    """The bin of each value, inside the bins whatever the value is."""
    places = np.empty((len(X), len(bins)))
    for j, (spec, m) in enumerate(zip(task.columns, bins, strict=True)):
        column = X[:, j] if isinstance(spec, Levels) else np.floor((X[:, j] + 1.0) * (m / 2.0))
        places[:, j] = np.fmin(np.fmax(np.where(np.isnan(column), 0.0, column), 0.0), m - 1.0)
    return places
