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
* R-learner: the empirical risk is learnt as written, as a weighted regression of (y - eta) / (t - e) with weights
  (t - e)^2, as in the authors' code; here the weights and their products with the outcomes, which are (t - e)(y - eta),
  have declared bounds. With ``base="ebm"`` steps are a quarter of interpret's: the release that the authors ran divided
  steps by records and not by their weights. ``risk="folded"`` regresses (t - e)(y - eta) / (e (1 - e)) instead, without
  weights: another risk with the same target, better where records are many and overlap is good.
* T-learner: not among the paper's. Each arm's model is learnt from a part of its own, with weights that are 1 for
  records of the arm and 0 for others: parts by arm would not be chosen independently of the records.
* Base learners with a proof (``base="additive"``, "linear", "logistic") are not in the paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeAlias

from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators._parameters import Parameters
from discreet.exceptions import InvalidInput
from discreet.papers.meta_learners._base import TRIM, Learner
from discreet.papers.meta_learners.own import Base, base_of
from discreet.papers.meta_learners.release import Contrast
from discreet.papers.meta_learners.stages import (
    Stages,
    dr_outcome,
    folded_outcome,
    least_residual,
    overlap_of,
    r_outcome,
    r_weights,
)
from discreet.privacy.budget import Budget

# Section 5.1.1: (lambda_1,1, lambda_1,2, lambda_2).
RATIOS = {"propensity": 0.25, "outcome": 0.25, "effect": 0.5}
Risk: TypeAlias = Literal["weighted", "folded"]
RISKS = ("weighted", "folded")


class SLearner(Learner, Parameters):
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
    release_ : LearnerRelease
        All that fitting leaves behind.

    Privacy
    -------
    As for `DRLearner`. Proof: docs/proofs/learners.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.SLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> low, high = study.bounds.outcome
    >>> bool(low < learner.effect([[0.0]])[0] < high)
    True
    """

    method_id: ClassVar[str] = "discreet/papers/s-learner"
    _models: ClassVar[dict[str, float]] = {"outcome": 1.0}
    _contrast: ClassVar[Contrast] = "treatment"
    _title: ClassVar[str] = "Effects by a private S-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: Base | Mapping[str, Base] = "additive",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        stages.response(parts["outcome"])


class TLearner(Learner, Parameters):
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
    release_ : LearnerRelease
        All that fitting leaves behind.

    Privacy
    -------
    As for `DRLearner`. Which arm a record belongs to is protected: it enters as a weight of 0 or 1. Proof:
    docs/proofs/learners.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.TLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> bool(learner.effect([[0.9]])[0] > learner.effect([[-0.9]])[0])
    True
    """

    method_id: ClassVar[str] = "discreet/papers/t-learner"
    _models: ClassVar[dict[str, float]] = {"treated": 0.5, "control": 0.5}
    _contrast: ClassVar[Contrast] = "arms"
    _title: ClassVar[str] = "Effects by a private T-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: Base | Mapping[str, Base] = "additive",
        ratios: Mapping[str, float] | None = None,
        shuffle: bool = True,
        random_state: Any = None,
        budgets: Mapping[str, Budget] | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.base = base
        self.ratios = ratios
        self.shuffle = shuffle
        self.random_state = random_state
        self.budgets = budgets

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        for name, arm in (("treated", 1.0), ("control", 0.0)):
            stages.arm(name, arm, parts[name])


class DRLearner(Learner, Parameters):
    """Effects by regressing the doubly robust score on covariates (Algorithm 2 with base="ebm").

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed. Every part gets all of it, because no record is in two of them.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    base : {"additive", "linear", "logistic", "ebm"}
        The base learner: additive models by boosting through the gate; linear ones; linear ones with a logistic
        propensity; or interpret's DP-EBM, which is the paper's own, and claimed. A function from a `Task` to a
        `BaseLearner` of your own (or `PublicLearner`), or a dictionary from modules to bases.
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
    budgets : dict, optional
        From modules to a `Budget` each, none above the whole: the whole is the largest of them (Theorem 6).
    propensity : float, optional
        Probability of treatment where it is known by design: its part of the records goes to the others.

    Attributes
    ----------
    release_ : LearnerRelease
        All that fitting leaves behind: propensity, outcome and effect models, which are public.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under replace-one. Public: the bounds, all parameters, the
    number of records and which record is in which part. Proof: docs/proofs/learners.md; with ``base="ebm"`` the
    guarantee is claimed, and fitting warns.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.DRLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> bool(learner.effect([[0.9]])[0] > learner.effect([[-0.9]])[0])
    True
    """

    method_id: ClassVar[str] = "discreet/papers/dr-learner"
    _models: ClassVar[dict[str, float]] = RATIOS
    _contrast: ClassVar[Contrast] = "effect"
    _title: ClassVar[str] = "Effects by a private DR-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: Base | Mapping[str, Base] = "additive",
        ratios: Mapping[str, float] | None = None,
        clip: float | None = None,
        trim: float = TRIM,
        shuffle: bool = True,
        random_state: Any = None,
        budgets: Mapping[str, Budget] | None = None,
        propensity: float | None = None,
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
        self.budgets = budgets
        self.propensity = propensity

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        e, mu = stages.propensity(parts.get("propensity")), stages.response(parts["outcome"])
        second, clip = parts["effect"], self._clip()
        x = second.x
        psi = dr_outcome(stages.outcome(second), second.t, e(x), mu(1.0, x), mu(0.0, x))
        stages.regression("effect", x, psi, (-clip, clip))


class RLearner(Learner, Parameters):
    """Effects by regressing residuals of the outcome on residuals of the treatment.

    Parameters
    ----------
    epsilon, delta, bounds, base, ratios, trim, shuffle, random_state, budgets, propensity
        As for `DRLearner`; the transformed outcome is (y - eta) / (t - e), with a weight of (t - e)^2.
    clip : float, optional
        Where transformed outcomes are clipped. By default, with weights, only where none can be; with ``base="ebm"``,
        whose noise grows with their range, and with ``risk="folded"``, as for `DRLearner`.
    risk : {"weighted", "folded"}, default "weighted"
        The sum of [(y - eta) - (t - e) tau]^2 as the paper writes it, through weights; or the squared distance to
        (t - e)(y - eta) / (e (1 - e)), which has the effect for its mean and needs no weights.

    Attributes
    ----------
    release_ : LearnerRelease
        All that fitting leaves behind: propensity, outcome and effect models, which are public.

    Privacy
    -------
    As for `DRLearner`. Proof: docs/proofs/learners.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> learner = dc.papers.RLearner(epsilon=4.0, delta=1e-6, bounds=study.bounds, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = learner.fit(study.Y, study.T, X=study.X)
    >>> bool(learner.effect([[0.9]])[0] > learner.effect([[-0.9]])[0])
    True
    """

    method_id: ClassVar[str] = "discreet/papers/r-learner/2"
    _models: ClassVar[dict[str, float]] = RATIOS
    _contrast: ClassVar[Contrast] = "effect"
    _title: ClassVar[str] = "Effects by a private R-learner"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        base: Base | Mapping[str, Base] = "additive",
        ratios: Mapping[str, float] | None = None,
        clip: float | None = None,
        trim: float = TRIM,
        shuffle: bool = True,
        random_state: Any = None,
        budgets: Mapping[str, Budget] | None = None,
        propensity: float | None = None,
        risk: Risk = "weighted",
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
        self.budgets = budgets
        self.propensity = propensity
        self.risk = risk

    def _checked(self) -> Budget:
        if self.risk not in RISKS:
            raise InvalidInput(f"risk must be one of {', '.join(RISKS)}: choose how residuals are regressed.")
        return super()._checked()

    def _clip(self) -> float:
        if self.clip is not None or self.risk == "folded" or base_of(self.base, "effect") == "ebm":
            return super()._clip()
        return self.bounds.outcome_width / least_residual(overlap_of(self.bounds, self.trim))

    def _learn(self, parts: Mapping[str, Chunk], stages: Stages) -> None:
        e, eta = stages.propensity(parts.get("propensity")), stages.mean_outcome(parts["outcome"])
        second, clip = parts["effect"], self._clip()
        residuals = stages.outcome(second), second.t, e(second.x), eta(second.x)
        if self.risk == "folded":
            stages.regression("effect", second.x, folded_outcome(*residuals), (-clip, clip))
            return
        quotient, weight = r_outcome(*residuals)
        stages.regression("effect", second.x, quotient, (-clip, clip), weight=r_weights(self.bounds, self.trim, weight))
