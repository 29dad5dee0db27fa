"""What the learners that split the sample share: how they are fitted, and what a fitted one answers.

A learner inherits from `Learner` and from `Parameters`, in this order.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from math import inf, nan
from numbers import Real
from typing import Any, ClassVar, Self, Unpack

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.estimators._base import Progress
from discreet.estimators._parameters import refuse_unknown
from discreet.estimators._results import Fitted
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from discreet.ledger.charging import Payment
from discreet.papers.common.arrays import gather
from discreet.papers.common.claims import warn_of_claim
from discreet.papers.common.tables import FromTables
from discreet.papers.meta_learners.ebm import MEASURED
from discreet.papers.meta_learners.ebm import require as require_ebm
from discreet.papers.meta_learners.own import Base, base_of, check_bases, check_budgets
from discreet.papers.meta_learners.release import Contrast, LearnerRelease
from discreet.papers.meta_learners.stages import BASES, Plan, Stages, check_ratios, overlap_of, partition
from discreet.papers.plots import WithoutAverage
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours

# Where the authors' code trims propensities.
TRIM = 0.05

_NO_INTERVAL = "The paper gives no interval: noise and shrinkage in the models bias the effects."
_CONSTANT = "Treatment and covariates add up in one model, so that the effect is the same for everyone (section 4.2)."


class Learner(WithoutAverage, FromTables, Fitted[LearnerRelease]):
    """A learner that splits the sample: ``_learn`` names its stages."""

    release_types: ClassVar = (LearnerRelease,)

    epsilon: float
    delta: float | None
    bounds: Bounds
    base: Base | Mapping[str, Base]
    neighbours: Neighbours = "replace-one"
    # Parameters that not every learner has.
    ratios: Mapping[str, float] | None = None
    shuffle: bool = False
    random_state: Any = None
    trim: float = TRIM
    clip: float | None = None
    budgets: Mapping[str, Budget] | None = None
    propensity: float | None = None

    _models: ClassVar[dict[str, float]]
    _contrast: ClassVar[Contrast]
    _title: ClassVar[str]

    def fit(self, Y: Any, T: Any, *, X: Any, progress: Progress | None = None, **payment: Unpack[Payment]) -> Self:
        """Estimate from arrays or frames.

        Parameters
        ----------
        Y, T : array-like of shape (n,)
            Outcome and treatment (0 or 1, booleans, or the two labels that the bounds declare).
        X : array-like or frame of shape (n, p)
            Covariates, matched to the bounds by name where both have names.
        progress : callable, optional
            Called with (model, models done, models in all) while it works.
        ledger, dataset, analyst, stratum, reservation : optional
            How a ledger is charged: `discreet.ATE.fit` says what they mean.
        """
        refuse_unknown("fit", payment, Payment.__optional_keys__)
        run = partial(self._fit, Y, T, X, progress)
        return self._charged({"Y": Y, "T": T, "X": X}, run, payment) if payment else run()

    def effect(self, X: Any) -> Float:
        """Released effects at the covariates of any records, as often as you like."""
        return self._released().effect(X)

    def plot(self, feature: str | int, ax: Any = None) -> Any:
        """Draw what one covariate adds to the effect, as in Figure 1 (needs matplotlib)."""
        return self._released().plot(feature, ax)

    @abstractmethod
    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        """Learn the models of all stages, each from its part of the records."""

    def _fit(self, Y: Any, T: Any, X: Any, progress: Progress | None) -> Self:
        self._before()
        return self._fit_chunk(gather(ArrayRecords.of(Y, T, X, bounds=self.bounds)), progress)

    def _before(self) -> None:
        self._checked()
        # An earlier release does not belong to the parameters of this fit.
        self.__dict__.pop("release_", None)
        if self._uses_ebm():
            warn_of_claim(type(self).__name__, MEASURED)

    def _fit_chunk(self, rows: Chunk, progress: Progress | None) -> Self:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        parts = partition(rows, self._parts(), shuffle=self.shuffle, random_state=self.random_state)
        budgets, known = self.budgets or {}, self.propensity
        plan = Plan(self.base, self.bounds, budget, budgets, self.trim, known, len(self._modules()))
        stages = Stages(plan, progress)
        self._learn(parts, stages)
        settings: dict[str, Any] = {"base learner": self._base_words()}
        settings |= {f"budget, {name}": str(each) for name, each in budgets.items()}
        settings |= {f"records, {name}": len(part.t) for name, part in parts.items()}
        settings |= {"trim": self.trim, "clip": self._clip()} if "effect" in self._models else {}
        constant = (_CONSTANT,) if self._contrast == "treatment" else ()
        claim = (f"Claimed, not proved: {MEASURED}",) if self._uses_ebm() else ()
        self.release_ = LearnerRelease(
            method=self._title,
            contrast=self._contrast,
            models=stages.models,
            guarantee=stages.guarantee(),
            bounds=self.bounds,
            settings=settings,
            notes=(_NO_INTERVAL, *constant, *claim),
        )
        return self

    def _checked(self) -> Budget:
        """The budget; refuses what can be refused without reading a record."""
        name = type(self).__name__
        if not isinstance(self.bounds, Bounds):
            raise MissingBounds(
                f"{name} needs bounds=Bounds(outcome=(low, high), ...). "
                "Declare them; do not compute them from the data."
            )
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        if budget.pure:
            raise InvalidBudget(f"{name} needs delta, e.g. delta=1e-5: its rounds add Gaussian noise.")
        if not self.bounds.p:
            raise MissingBounds(f"{name} needs Bounds(covariates=...): effects are a function of them.")
        names = tuple(self._modules())
        check_bases(self.base, names, tuple(BASES))
        check_budgets(self.budgets, names, budget)
        if self.propensity is not None and not 0 < _number(self.propensity) < 1:
            raise InvalidInput("propensity must be one number between 0 and 1: leave it out to learn it.")
        check_ratios(self._parts(), names)
        if not 0 < _number(self.trim) < 0.5:
            raise InvalidInput("trim must lie between 0 and 0.5: propensities are held between it and one less it.")
        low, high = overlap_of(self.bounds, self.trim)
        if not low < high:
            raise InvalidInput("trim leaves nothing of the declared overlap, Bounds(propensity=...): lower trim.")
        if self.clip is not None and not 0 < _number(self.clip) < inf:
            raise InvalidInput("clip must be a positive number in the outcome's unit: choose it before looking.")
        if self._uses_ebm():
            require_ebm()
        return budget

    def _parts(self) -> dict[str, float]:
        """Shares of the records for each model, in the order in which they are learnt."""
        given: object = self.ratios
        if given is None:
            return self._modules()
        if not isinstance(given, Mapping):
            raise InvalidInput(f"ratios must be a dictionary from {', '.join(self._models)} to shares of the records.")
        return {name: given[name] for name in (*self._modules(), *given) if name in given}

    def _modules(self) -> dict[str, float]:
        """Modules with their usual shares; the others share what the propensity's leaves where it is known."""
        kept = {name: share for name, share in self._models.items() if self.propensity is None or name != "propensity"}
        return {name: share / sum(kept.values()) for name, share in kept.items()}

    def _uses_ebm(self) -> bool:
        return any(base_of(self.base, name) == "ebm" for name in self._modules())

    def _base_words(self) -> str:
        """Names of the base learners, for people."""
        used = [base_of(self.base, name) for name in self._modules()]
        words = [
            each if isinstance(each, str) else f"your own for {name}"
            for name, each in zip(self._modules(), used, strict=True)
        ]
        return words[0] if len(set(words)) == 1 else ", ".join(words)

    def _clip(self) -> float:
        """Where transformed outcomes are clipped."""
        return float(2.0 * self.bounds.outcome_width if self.clip is None else self.clip)


def _number(value: object) -> float:
    # NaN for what is no number, so that comparisons refuse it.
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else nan
