"""Base learners of the sample-splitting meta-algorithm: what they are given, and what they answer.

A base learner is private on its own. It sees covariates as `Bounds` encodes them (ranges on [-1, 1], levels as their
position) and leaves a released model and a guarantee behind, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Protocol

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.columns import finite
from discreet.data.records import MIN_ROWS, Chunk
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import Part
from discreet.papers.common.claims import claimed_guarantee
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee

PROOF = "learners.md"
PUBLIC = ("the declared bounds", "the number of records of each part", "which record is in which part")
ARM = Levels((0, 1))
# Numbers this large have lost their meaning, and squares of them could overflow.
_LARGEST = 1e100
_LEAST = 1e-100


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a base learner has to do, in public facts.

    Parameters
    ----------
    name
        What the model will be called.
    columns
        What each column of X is declared to hold.
    target
        Public range of the target; (0, 1) for a classifier.
    bounds
        What was declared about the records.
    budget
        What may be spent.
    weight_bound
        The largest sample weight; weights without it are refused.
    product_bound
        The largest size of weight times centred target, where that is less than what follows from both ranges.
    usual_weight
        About what weights are on average, guessed without looking; for learners whose steps they set.

    Examples
    --------
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=(0, 10), covariates=[(-1, 1)])
    >>> task = Task(name="outcome", columns=bounds.columns, target=(0, 10), bounds=bounds, budget=dc.Budget(epsilon=1))
    >>> task.middle, task.half
    (5.0, 5.0)
    """

    name: str
    columns: tuple[Range | Levels, ...]
    target: tuple[float, float]
    bounds: Bounds
    budget: Budget
    weight_bound: float | None = None
    product_bound: float | None = None
    usual_weight: float | None = None

    def __post_init__(self) -> None:
        low, high = (finite(end, "each end of target") for end in self.target)
        if not -_LARGEST <= low < high <= _LARGEST:
            raise InvalidInput("target must be (low, high) with low < high, declared and not computed from the data.")
        if self.weight_bound is not None and not 0 < finite(self.weight_bound, "weight_bound") <= _LARGEST:
            raise InvalidInput("weight_bound must be positive: declare the largest weight there can be.")
        for name in ("product_bound", "usual_weight"):
            value = getattr(self, name)
            if value is not None and (self.weight_bound is None or not 0 < finite(value, name) <= _LARGEST):
                raise InvalidInput(f"{name} must be positive, and goes with weight_bound: declare both, or neither.")

    def claim(self, what: str) -> Guarantee:
        """The guarantee of a learner that spends the whole budget of the task, on its author's word: claimed."""
        return claimed_guarantee(f"{what}, {self.name}", self.budget, public=PUBLIC)

    @property
    def middle(self) -> float:
        """Centre of the target's range."""
        return (self.target[0] + self.target[1]) / 2.0

    @property
    def half(self) -> float:
        """Half of the target's range."""
        return (self.target[1] - self.target[0]) / 2.0

    def largest_product(self, heaviest: float) -> float:
        """How large weight times centred target can be. Proof: docs/proofs/learners.md, lemma 3."""
        return min(heaviest * self.half, inf if self.product_bound is None else self.product_bound)


class BaseLearner(Protocol):
    """A regression or a classifier that is private on its own: the task of "propensity" wants probabilities.

    ``base=`` of a learner takes a function from a `Task` to one. A ``model_`` that is a `ReleasedModel` can be written
    to a file; any other object predicts, but is not written.

    Examples
    --------
    >>> from discreet.papers.meta_learners.linear import LinearLearner
    >>> {"fit", "predict"} <= set(dir(LinearLearner))
    True
    """

    guarantee_: Guarantee

    def fit(self, X: Float, y: Float, sample_weight: Float | None = None) -> Any:
        """Learn from covariates, a target and, where a bound on them was declared, weights."""
        ...

    def predict(self, X: Float) -> Float:
        """Predictions of the released model."""
        ...


def checked(task: Task, X: Float, y: Float, sample_weight: Float | None) -> Part:
    """The records as a source for the gate: the target clipped to its range and centred, weights clipped to theirs."""
    n = len(y)
    if n < MIN_ROWS:
        raise InvalidInput(f"{task.name} has fewer than {MIN_ROWS} records: bring more, or raise its ratio.")
    if X.shape != (n, len(task.columns)):
        raise InvalidInput("X must have one row per record and the declared columns: check its shape.")
    if sample_weight is None:
        weight = np.ones(n)
    elif task.weight_bound is None:
        raise InvalidInput(
            "sample_weight needs weight_bound, the largest weight there can be: declare it, or leave weights out."
        )
    elif len(sample_weight) != n:
        raise InvalidInput("sample_weight must have one entry per record: align its length.")
    else:
        weight = _inside(sample_weight, 0.0, task.weight_bound)
    target = _inside(y, *task.target) - task.middle
    if sample_weight is not None:
        # Where a weight is zero, so is the product, whatever the target is.
        most = task.largest_product(task.weight_bound or 1.0) / np.maximum(weight, _LEAST)
        target = np.clip(target, -most, most)
    return Part(Chunk(y=target, t=np.zeros(n), x=X, e=weight), task.bounds)


def _inside(values: Float, low: float, high: float) -> Float:
    # np.clip lets NaN through.
    return np.asarray(np.fmin(np.fmax(np.where(np.isnan(values), low, values), low), high))
