"""Algorithm 1 in pieces: the partition, its base learners, and the transformed outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels, Range
from discreet.data.records import MIN_ROWS, Chunk
from discreet.estimators._base import Progress
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import in_own_unit
from discreet.papers.meta_learners.additive import AdditiveLearner
from discreet.papers.meta_learners.base_learner import ARM, Task
from discreet.papers.meta_learners.ebm import EBMLearner
from discreet.papers.meta_learners.linear import LinearLearner, LogisticLearner
from discreet.papers.meta_learners.own import Base, base_of, learnt
from discreet.papers.meta_learners.release import OwnModel, ReleasedModel
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee, parallel
from discreet.privacy.public_draws import public_draws

Maker = Callable[[Task], Any]
# Regression and classifier of each base.
BASES: dict[str, tuple[Maker, Maker]] = {
    "additive": (AdditiveLearner, lambda task: AdditiveLearner(task, classify=True)),
    "linear": (LinearLearner, LinearLearner),
    "logistic": (LinearLearner, LogisticLearner),
    "ebm": (EBMLearner, lambda task: EBMLearner(task, classify=True)),
}
# (t - e)^2 has the mean e (1 - e) given x, which is at most this.
_USUAL_R_WEIGHT = 0.25
_TOLERANCE = 1e-9


def check_ratios(ratios: Mapping[str, float], names: tuple[str, ...]) -> None:
    """Refuse ratios that name other parts, are not positive or do not add up to one."""
    if set(ratios) != set(names):
        raise InvalidInput(f"ratios must name exactly the parts {', '.join(names)}: give each its share.")
    values: list[Any] = list(ratios.values())
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
            raise InvalidInput("ratios must be positive numbers of at most 1: give each part its share of the records.")
    if abs(sum(values) - 1.0) > _TOLERANCE:
        raise InvalidInput(f"ratios add up to {sum(values):.6g}: make them add up to 1.")


def sizes(n: int, ratios: Mapping[str, float]) -> dict[str, int]:
    """Number of records in each part, from public numbers; what rounding leaves over goes to the last one."""
    counts = {name: int(ratio * n + 0.5) for name, ratio in ratios.items()}
    *_, last = counts
    counts[last] = n - sum(count for name, count in counts.items() if name != last)
    if min(counts.values()) < MIN_ROWS:
        raise InvalidInput(
            f"the ratios leave fewer than {MIN_ROWS} records in a part: bring more, or divide them more evenly."
        )
    return counts


def overlap_of(bounds: Bounds, trim: float) -> tuple[float, float]:
    """Where propensities are held: the declared overlap, and no nearer to 0 and 1 than ``trim``."""
    return max(trim, bounds.propensity[0]), min(1.0 - trim, bounds.propensity[1])


def partition(rows: Chunk, ratios: Mapping[str, float], *, shuffle: bool, random_state: Any) -> dict[str, Chunk]:
    """Line 1: disjoint parts; which record goes where does not depend on what any record holds."""
    n = len(rows.t)
    places = np.arange(n)
    counts = sizes(n, ratios)
    if shuffle:
        places = public_draws(random_state).permutation(n)
    parts, start = {}, 0
    for name, count in counts.items():
        own = places[start : start + count]
        parts[name] = Chunk(y=rows.y[own], t=rows.t[own], x=rows.x[own], e=None)
        start += count
    return parts


class Plan(NamedTuple):
    """What stages are fitted with, all of it public."""

    base: Base | Mapping[str, Base]
    bounds: Bounds
    budget: Budget
    budgets: Mapping[str, Budget]
    trim: float
    known: float | None
    modules: int


class Weights(NamedTuple):
    """Weights of records, with what is public about them: `Task` says what each is."""

    values: Float
    weight_bound: float = 1.0
    product_bound: float | None = None
    usual_weight: float | None = None


class Stages:
    """Fits one base learner a part, and keeps what they released."""

    def __init__(self, plan: Plan, progress: Progress | None) -> None:
        self.bounds, self._plan = plan.bounds, plan
        self.overlap = overlap_of(plan.bounds, plan.trim)
        self.models: dict[str, ReleasedModel | OwnModel] = {}
        self._guarantees: list[Guarantee] = []
        self._public: list[str] = [] if plan.known is None else ["the probability of treatment"]
        self._progress, self._done = progress, 0

    def outcome(self, part: Chunk) -> Float:
        """Outcomes in their own unit."""
        return in_own_unit(part.y, self.bounds)

    def propensity(self, part: Chunk | None) -> Callable[[Float], Float]:
        """e(x), clipped to the overlap; without a part it is known by design."""
        if part is None:
            known = self._plan.known
            assert known is not None
            return lambda x: np.clip(np.full(len(x), known), *self.overlap)
        task = self._task("propensity", (0.0, 1.0))
        model = self._fit(task, part.x, part.t, classify=True)
        return lambda x: np.clip(model.predict(x), *self.overlap)

    def response(self, part: Chunk) -> Callable[[float, Float], Float]:
        """mu(t, x), clipped to the outcome's range."""
        columns = (ARM, *self.bounds.columns)
        x = np.column_stack([part.t, part.x])
        model = self.regression("outcome", x, self.outcome(part), self.bounds.outcome, columns=columns)
        return lambda t, x: np.clip(model.predict(np.column_stack([np.full(len(x), t), x])), *self.bounds.outcome)

    def arm(self, name: str, arm: float, part: Chunk) -> Callable[[Float], Float]:
        """mu_t(x) of one arm, clipped to the outcome's range: records of the other arm have a weight of zero."""
        weight, outcome = (part.t == arm) * 1.0, self.outcome(part)
        model = self.regression(name, part.x, outcome, self.bounds.outcome, weight=Weights(weight))
        return lambda x: np.clip(model.predict(x), *self.bounds.outcome)

    def mean_outcome(self, part: Chunk) -> Callable[[Float], Float]:
        """eta(x), clipped to the outcome's range."""
        model = self.regression("outcome", part.x, self.outcome(part), self.bounds.outcome)
        return lambda x: np.clip(model.predict(x), *self.bounds.outcome)

    def regression(
        self,
        name: str,
        x: Float,
        y: Float,
        target: tuple[float, float],
        *,
        columns: tuple[Range | Levels, ...] | None = None,
        weight: Weights | None = None,
    ) -> ReleasedModel | OwnModel:
        """L(y ~ x), with weights that have a declared bound."""
        return self._fit(self._task(name, target, columns, weight), x, y, None if weight is None else weight.values)

    def guarantee(self) -> Guarantee:
        """Theorem 6: all models together, on disjoint parts. Proof: docs/proofs/learners.md, theorem."""
        if not self._guarantees:
            raise InvalidInput("base: no module reads a record, so that nothing is private: just predict.")
        made = parallel(*self._guarantees)
        return replace(made, public=(*made.public, *self._public)) if self._public else made

    def _task(
        self,
        name: str,
        target: tuple[float, float],
        columns: tuple[Range | Levels, ...] | None = None,
        weight: Weights | None = None,
    ) -> Task:
        return Task(
            name=name,
            columns=self.bounds.columns if columns is None else columns,
            target=target,
            bounds=self.bounds,
            budget=self._plan.budgets.get(name, self._plan.budget),
            weight_bound=None if weight is None else weight.weight_bound,
            product_bound=None if weight is None else weight.product_bound,
            usual_weight=None if weight is None else weight.usual_weight,
        )

    def _fit(
        self, task: Task, x: Float, y: Float, weight: Float | None = None, *, classify: bool = False
    ) -> ReleasedModel | OwnModel:
        base = base_of(self._plan.base, task.name)
        if isinstance(base, str):
            learner = BASES[base][classify](task)
            learner.fit(x, y, sample_weight=weight)
            model: ReleasedModel | OwnModel = learner.model_
            guarantee: Guarantee | None = learner.guarantee_
        else:
            learner = base(task)
            model, guarantee = learnt(task, learner, x, y, weight)
        self.models[task.name] = model
        self._done += 1
        if guarantee is None:
            self._public.append(learner.about)
        else:
            self._guarantees.append(guarantee)
        if self._progress is not None:
            self._progress(task.name, self._done, self._plan.modules)
        return model


def dr_outcome(y: Float, t: Float, e: Float, mu1: Float, mu0: Float) -> Float:
    """The doubly robust score psi (section 3.1), from released nuisances."""
    return np.asarray(mu1 - mu0 + t * (y - mu1) / e - (1.0 - t) * (y - mu0) / (1.0 - e))


def r_outcome(y: Float, t: Float, e: Float, eta: Float) -> tuple[Float, Float]:
    """Residual quotient (y - eta) / (t - e) and its weight (t - e)^2: the R-learner's risk as a regression."""
    return np.asarray((y - eta) / (t - e)), np.asarray((t - e) ** 2)


def r_weights(bounds: Bounds, trim: float, weight: Float) -> Weights:
    """The R-learner's weights (t - e)^2 and what bounds them and (t - e)(y - eta). Proof: docs/proofs/learners.md."""
    low, high = overlap_of(bounds, trim)
    # Propensities are inside the overlap: no residual of the treatment exceeds this.
    most = max(high, 1.0 - low)
    return Weights(weight, most**2, most * bounds.outcome_width, _USUAL_R_WEIGHT)


def least_residual(overlap: tuple[float, float]) -> float:
    """The smallest |t - e| where propensities are inside the overlap."""
    low, high = overlap
    return min(low, 1.0 - high)


def folded_outcome(y: Float, t: Float, e: Float, eta: Float) -> Float:
    """(t - e)(y - eta) / (e (1 - e)), which has the effect for its mean given x and needs no weight."""
    return np.asarray((t - e) * (y - eta) / (e * (1.0 - e)))
