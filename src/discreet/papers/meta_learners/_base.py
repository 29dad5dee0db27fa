"""What the learners that split the sample share: how they are fitted, and what a fitted one answers.

Functions, not a parent class: a learner lists the ones it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from numbers import Real
from typing import Any

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.estimators._base import Progress
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import gather
from discreet.papers.common.claims import warn_of_claim
from discreet.papers.meta_learners.ebm import MEASURED
from discreet.papers.meta_learners.ebm import require as require_ebm
from discreet.papers.meta_learners.release import LearnerRelease
from discreet.papers.meta_learners.stages import BASES, Stages, check_ratios, overlap_of, partition
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Guarantee

# Where the authors' code trims propensities.
TRIM = 0.05

_NO_INTERVAL = "The paper gives no interval: noise and shrinkage in the models bias the effects."
_CONSTANT = "Treatment and covariates add up in one model, so that the effect is the same for everyone (section 4.2)."


@on_ledger(LearnerRelease)
def fit(self: Any, Y: Any, T: Any, *, X: Any, progress: Progress | None = None) -> Any:
    """Estimate from arrays or frames.

    Parameters
    ----------
    Y, T : array-like of shape (n,)
        Outcome and treatment (0 or 1, booleans, or the two labels that the bounds declare).
    X : array-like or frame of shape (n, p)
        Covariates, matched to the bounds by name where both have names.
    progress : callable, optional
        Told (model, models done, models in all) while it works.
    """
    budget = _checked(self)
    # An earlier release does not belong to the parameters of this fit.
    self.__dict__.pop("release_", None)
    if self.base == "ebm":
        warn_of_claim(type(self).__name__, MEASURED)
    rows = gather(ArrayRecords.of(Y, T, X, bounds=self.bounds))
    parts = partition(
        rows, _ratios(self), shuffle=getattr(self, "shuffle", False), random_state=getattr(self, "random_state", None)
    )
    stages = Stages(self.base, self.bounds, budget, getattr(self, "trim", TRIM), len(self._models), progress)
    self._learn(parts, stages)
    settings: dict[str, Any] = {"base learner": self.base}
    settings |= {f"records, {name}": len(part.t) for name, part in parts.items()}
    settings |= {
        name: value for name, value in (("trim", getattr(self, "trim", None)), ("clip", clip_of(self))) if value
    }
    constant = (_CONSTANT,) if self._contrast == "treatment" else ()
    claim = (f"Claimed, not proved: {MEASURED}",) if self.base == "ebm" else ()
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


def effect(self: Any, X: Any) -> Float:
    """Released effects at the covariates of any records, as often as you like."""
    return _released(self).effect(X)


def guarantee_(self: Any) -> Guarantee:
    """What the release promises, and to whom."""
    return _released(self).guarantee


def summary(self: Any) -> str:
    """The release as a readable table."""
    return _released(self).summary()


def plot(self: Any, feature: str | int, ax: Any = None) -> Any:
    """Draw what one covariate adds to the effect, as in Figure 1 (needs matplotlib)."""
    return _released(self).plot(feature, ax)


def _checked(self: Any) -> Budget:
    """Refuse what can be refused without looking at a record."""
    name = type(self).__name__
    if not isinstance(self.bounds, Bounds):
        raise MissingBounds(
            f"{name} needs bounds=Bounds(outcome=(low, high), ...). Declare them; do not compute them from the data."
        )
    budget = Budget(epsilon=self.epsilon, delta=self.delta)
    if budget.pure:
        raise InvalidBudget(f"{name} needs delta, e.g. delta=1e-5: its rounds add Gaussian noise.")
    if not self.bounds.p:
        raise MissingBounds(f"{name} needs Bounds(covariates=...): effects are a function of them.")
    if self.base not in BASES:
        raise InvalidInput(f"base must be one of {', '.join(BASES)}: choose a base learner.")
    check_ratios(_ratios(self), tuple(self._models))
    if not 0 < _number(getattr(self, "trim", TRIM)) < 0.5:
        raise InvalidInput("trim must lie between 0 and 0.5: propensities are held between it and one less it.")
    low, high = overlap_of(self.bounds, getattr(self, "trim", TRIM))
    if not low < high:
        raise InvalidInput("trim leaves nothing of the declared overlap, Bounds(propensity=...): lower trim.")
    if getattr(self, "clip", None) is not None and not 0 < _number(self.clip) < inf:
        raise InvalidInput("clip must be a positive number in the outcome's unit: choose it before looking.")
    if self.base == "ebm":
        require_ebm()
    return budget


def _ratios(self: Any) -> dict[str, float]:
    """Shares of the parts, in the order in which they are learnt."""
    given = getattr(self, "ratios", None)
    if given is None:
        return dict(self._models)
    if not isinstance(given, Mapping):
        raise InvalidInput(f"ratios must be a dictionary from {', '.join(self._models)} to shares of the records.")
    return {name: given[name] for name in (*self._models, *given) if name in given}


def clip_of(self: Any) -> float:
    """Where transformed outcomes are clipped; 0 for learners that have none."""
    given = getattr(self, "clip", None)
    if "effect" not in self._models:
        return 0.0
    return float(2.0 * self.bounds.outcome_width if given is None else given)


def _number(value: object) -> float:
    # NaN for what is no number, so that comparisons refuse it.
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else nan


def _released(self: Any) -> LearnerRelease:
    try:
        release: LearnerRelease = self.release_
    except AttributeError:
        raise NotFitted(f"this {type(self).__name__} has no release yet; call fit first.") from None
    return release
