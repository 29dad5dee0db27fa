"""Private learners of effects that split the sample: S-, T-, DR- and R-learner.

Niu, Nori, Quistorff, Caruana, Ngwe and Kannan, "Differentially Private Estimation of Heterogeneous Causal Effects".
Algorithm 1: the records are partitioned; private first-stage learners A_1, ..., A_k run on parts S_1,1, ..., S_1,k; the
outcomes of S_2 are transformed with what these released; a private second-stage learner B runs on them. Every record
is in one part, so that all models together satisfy the budget of each (Theorem 6): parallel composition.

Deviations.

* Public bounds are declared. Outcomes, predicted outcomes and transformed outcomes are clipped to them; the authors
  clip propensities only (to [0.05, 0.95] in their code, ``trim``; the text does not mention it).
* The partition is drawn without looking at the records. The authors' code stratifies it by treatment, which would let a
  replaced record change which part others are in.
* R-learner: the empirical risk is a weighted regression of (y - eta) / (t - e) with weights (t - e)^2, as in the
  authors' code; here the weights have a declared bound. With ``base="ebm"``, whose noise grows with the largest weight
  and whose bins depend on the total one, weights are folded into the outcome (t - e)(y - eta) / (e (1 - e)) instead.
* T-learner: not among the paper's. Each arm's model is learnt from a part of its own, with weights that are 1 for
  records of the arm and 0 for others: parts by arm would not be chosen independently of the records.
* Base learners with a proof (``base="additive"``, "linear", "logistic") are not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nan
from numbers import Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.columns import Float
from discreet.errors import InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.fitted import Progress
from discreet.guarantee import Guarantee, Neighbours
from discreet.papers.claims import warn_of_claim
from discreet.papers.effects import Contrast, EffectRelease
from discreet.papers.learners_ebm import MEASURED
from discreet.papers.learners_ebm import require as require_ebm
from discreet.papers.learners_stages import (
    BASES,
    Stages,
    check_ratios,
    dr_outcome,
    folded_outcome,
    partition,
    r_outcome,
)
from discreet.papers.rows import gather
from discreet.records import ArrayRecords, Chunk

# Section 5.1.1: (lambda_1,1, lambda_1,2, lambda_2).
RATIOS = {"propensity": 0.25, "outcome": 0.25, "effect": 0.5}
# Where the authors' code trims propensities.
TRIM = 0.05

_NO_INTERVAL = "The paper gives no interval: noise and shrinkage in the models bias the effects."
_CONSTANT = "Treatment and covariates add up in one model, so that the effect is the same for everyone (section 4.2)."


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
    settings |= {name: value for name, value in (("trim", getattr(self, "trim", None)), ("clip", _clip(self))) if value}
    constant = (_CONSTANT,) if self._contrast == "treatment" else ()
    claim = (f"Claimed, not proved: {MEASURED}",) if self.base == "ebm" else ()
    self.release_ = EffectRelease(
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


class SLearner(BaseEstimator):  # type: ignore[misc]
    """Effects from one model of the outcome, mu(1, x) - mu(0, x); all records learn it (k = 0).

    All base learners are additive, so that the effect is a constant: a private average effect (section 4.2).

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range and covariates.
    base : {"additive", "linear", "logistic", "ebm"}
        The base learner; `DRLearner` says more.

    Attributes
    ----------
    release_ : EffectRelease
        All that fitting leaves behind.

    Privacy
    -------
    As for `DRLearner`. Proof: docs/proofs/learners.md.
    """

    fit, effect, summary, plot, guarantee_ = fit, effect, summary, plot, property(guarantee_)
    neighbours: ClassVar[Neighbours] = "replace-one"
    _models: ClassVar[dict[str, float]] = {"outcome": 1.0}
    _contrast: ClassVar[Contrast] = "treatment"
    _title: ClassVar[str] = "Effects by a private S-learner"

    def __init__(self, *, epsilon: float, bounds: Bounds, delta: float | None = None, base: str = "additive") -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        stages.response(parts["outcome"])


class TLearner(BaseEstimator):  # type: ignore[misc]
    """Effects from one model of the outcome for each arm, mu_1(x) - mu_0(x), learnt from disjoint parts.

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range and covariates.
    base : {"additive", "linear", "logistic", "ebm"}
        The base learner; `DRLearner` says more.
    ratios : dict, optional
        Share of the records for the parts "treated" and "control"; half each by default.
    shuffle : bool, default True
        Whether the partition is random; otherwise records are taken in their order.
    random_state : int or None
        Seeds the partition, never the noise.

    Attributes
    ----------
    release_ : EffectRelease
        All that fitting leaves behind.

    Privacy
    -------
    As for `DRLearner`. Which arm a record belongs to is protected: it enters as a weight of 0 or 1. Proof:
    docs/proofs/learners.md.
    """

    fit, effect, summary, plot, guarantee_ = fit, effect, summary, plot, property(guarantee_)
    neighbours: ClassVar[Neighbours] = "replace-one"
    _models: ClassVar[dict[str, float]] = {"treated": 0.5, "control": 0.5}
    _contrast: ClassVar[Contrast] = "arms"
    _title: ClassVar[str] = "Effects by a private T-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: str = "additive",
        ratios: Mapping[str, float] | None = None,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base
        self.ratios = ratios
        self.shuffle = shuffle
        self.random_state = random_state

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        for name, arm in (("treated", 1.0), ("control", 0.0)):
            part = parts[name]
            weight, outcome = (part.t == arm) * 1.0, stages.outcome(part)
            stages.regression(name, part.x, outcome, self.bounds.outcome, weight=weight, weight_bound=1.0)


class DRLearner(BaseEstimator):  # type: ignore[misc]
    """Effects by regressing the doubly robust score on covariates (Algorithm 2 with base="ebm").

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed. Every part gets all of it, because no record is in two of them.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    base : {"additive", "linear", "logistic", "ebm"}
        The base learner: additive models by boosting through the gate; linear ones; linear ones with a logistic
        propensity; or interpret's DP-EBM, which is the paper's own, and claimed.
    ratios : dict, optional
        Share of the records for the parts "propensity", "outcome" and "effect"; a quarter, a quarter and a half by
        default, as in the paper.
    clip : float, optional
        Where transformed outcomes are clipped, in the outcome's unit, chosen without looking at the records; by default
        twice the width of the outcome's range. A wide one costs noise, a narrow one bias.
    trim : float, default 0.05
        Propensities are held between it and one less it, and inside the declared overlap.
    shuffle : bool, default True
        Whether the partition is random; otherwise records are taken in their order.
    random_state : int or None
        Seeds the partition, never the noise.

    Attributes
    ----------
    release_ : EffectRelease
        All that fitting leaves behind: propensity, outcome and effect models, which are public.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under replace-one. Public: the bounds, all parameters, the
    number of records and which record is in which part. Proof: docs/proofs/learners.md; with ``base="ebm"`` the
    guarantee is claimed, and fitting warns.
    """

    fit, effect, summary, plot, guarantee_ = fit, effect, summary, plot, property(guarantee_)
    neighbours: ClassVar[Neighbours] = "replace-one"
    _models: ClassVar[dict[str, float]] = RATIOS
    _contrast: ClassVar[Contrast] = "effect"
    _title: ClassVar[str] = "Effects by a private DR-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: str = "additive",
        ratios: Mapping[str, float] | None = None,
        clip: float | None = None,
        trim: float = TRIM,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base
        self.ratios = ratios
        self.clip = clip
        self.trim = trim
        self.shuffle = shuffle
        self.random_state = random_state

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        e, mu = stages.propensity(parts["propensity"]), stages.response(parts["outcome"])
        second, clip = parts["effect"], _clip(self)
        x = second.x
        psi = dr_outcome(stages.outcome(second), second.t, e(x), mu(1.0, x), mu(0.0, x))
        stages.regression("effect", x, psi, (-clip, clip))


class RLearner(BaseEstimator):  # type: ignore[misc]
    """Effects by regressing residuals of the outcome on residuals of the treatment.

    Parameters
    ----------
    epsilon, delta, bounds, base, ratios, clip, trim, shuffle, random_state
        As for `DRLearner`; the transformed outcome is (y - eta) / (t - e), with a weight of (t - e)^2 (both in one
        number with ``base="ebm"``).

    Attributes
    ----------
    release_ : EffectRelease
        All that fitting leaves behind: propensity, outcome and effect models, which are public.

    Privacy
    -------
    As for `DRLearner`. Proof: docs/proofs/learners.md.
    """

    fit, effect, summary, plot, guarantee_ = fit, effect, summary, plot, property(guarantee_)
    neighbours: ClassVar[Neighbours] = "replace-one"
    _models: ClassVar[dict[str, float]] = RATIOS
    _contrast: ClassVar[Contrast] = "effect"
    _title: ClassVar[str] = "Effects by a private R-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: str = "additive",
        ratios: Mapping[str, float] | None = None,
        clip: float | None = None,
        trim: float = TRIM,
        shuffle: bool = True,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base
        self.ratios = ratios
        self.clip = clip
        self.trim = trim
        self.shuffle = shuffle
        self.random_state = random_state

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        e, eta = stages.propensity(parts["propensity"]), stages.mean_outcome(parts["outcome"])
        second, clip = parts["effect"], _clip(self)
        residuals = stages.outcome(second), second.t, e(second.x), eta(second.x)
        if stages.folds:
            stages.regression("effect", second.x, folded_outcome(*residuals), (-clip, clip))
            return
        quotient, weight = r_outcome(*residuals)
        # Propensities are inside the overlap: no residual of the treatment exceeds this.
        most = max(stages.overlap[1], 1.0 - stages.overlap[0]) ** 2
        stages.regression("effect", second.x, quotient, (-clip, clip), weight=weight, weight_bound=most)


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


def _clip(self: Any) -> float:
    """Where transformed outcomes are clipped; 0 for learners that have none."""
    given = getattr(self, "clip", None)
    if "effect" not in self._models:
        return 0.0
    return float(2.0 * self.bounds.outcome_width if given is None else given)


def _number(value: object) -> float:
    # NaN for what is no number, so that comparisons refuse it.
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else nan


def _released(self: Any) -> EffectRelease:
    try:
        release: EffectRelease = self.release_
    except AttributeError:
        raise NotFitted(f"this {type(self).__name__} has no release yet; call fit first.") from None
    return release
