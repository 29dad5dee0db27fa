"""DP-CATE for finitely many queries (Schröder et al.), as published: claimed, and known to fail.

Deviations from the text, which leaves these open or contradicts itself:

* Outcomes are regressed once for each arm. Covariates with a range are scaled to [0, 1], levels become indicators.
  Fitted propensities are clipped to the declared overlap.
* Theorem 1 prints the sensitivity without the expectation of lambda (11); its proof (49) and Lemma 2 divide by it, and
  so does this file (``normalised=False`` is (11)).
* The domain of the supremum is what the bounds declare. L-BFGS-B starts ten times for each arm; the text does not say
  how often. ``supremum="dense"`` and ``"closed-form"`` are not in the paper.
* Records are weighted by rho / mean(rho) in the second stage, which has the same minimiser.
* All records serve both stages, as the text's Lemma 1 should allow.
* The scale of the noise depends on the records, so that it is not published here.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, Literal, Protocol, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.estimators._base import Checked
from discreet.estimators._parameters import Parameters
from discreet.estimators._results import Fitted
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import gather, in_own_unit
from discreet.papers.common.claims import claimed_guarantee, warn_of_claim
from discreet.papers.common.influence import dense, noise_factor, searched
from discreet.papers.common.nuisances import (
    Models,
    Nuisances,
    check_models,
    design,
    fresh,
    train,
    without_training_warnings,
)
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.equations import (
    Extent,
    Residual,
    Weight,
    check_weight,
    extent,
    rho,
    weight_of,
    weighted_fit,
    weighted_pseudo_outcome,
)
from discreet.papers.dp_cate.presets import check_second_stage, first_stage, predictor, second_stage
from discreet.papers.dp_cate.release import AnswersRelease
from discreet.papers.plots import WithoutAverage
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import published_gaussian

Supremum = Literal["l-bfgs-b", "dense", "closed-form"]

# Numbers are those of docs/evidence/audit.md.
MEASURED = (
    "Its noise follows the influence function of a mean, not of the model that is queried. Measured by 'python -m "
    "evidence.audit' on the paper's Dataset 1 with 300 queries: for a forest as a black box, with fresh seeds, a "
    "claimed epsilon of 1 is at least 5.5, and with its seed known a claimed epsilon of 1 is at least 3.4e+02; for one "
    "query asked 300 times of linear regressions a claimed epsilon of 1 is at least 17. "
    "DPCATEFunction(calibration='proved') has a proof."
)
_PUBLIC = ("the declared bounds", "the number of records", "the queries")
_TITLE = "Conditional effects at finitely many queries (DP-CATE)"


class DPCATE(WithoutAverage, Checked, Fitted[AnswersRelease], Parameters):
    """Effects at given covariates by a doubly robust learner, with noise scaled to a gross-error sensitivity.

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap. They are the domain of the supremum and of queries.
    learner : {"R", "DR"} or Weight
        Lemma 2, Lemma 2b, or any other weight function lambda(pi) of Theorem 1.
    stage2 : {"forest", "nn", "linear"} or scikit-learn regressor
        Second stage: the paper's own (supplement H.3), or any other. It must take weights, unless learner is "DR".
    model_regression, model_propensity : scikit-learn regressor and classifier, optional
        First stage; by default the paper's networks.
    propensity : float, optional
        Probability of treatment where it is known by design (a randomised trial).
    supremum : {"l-bfgs-b", "dense", "closed-form"}
        How the gross-error sensitivity is found: by the paper's search; at many random points; or as a bound, for which
        predicted outcomes are clipped to their range and effects to its width.
    starts, points : int
        Random starting points of the search for each arm; points of the dense search.
    normalised : bool
        Whether influences are divided by the mean of lambda, as in Lemma 2.
    random_state : int, optional
        Seeds models and search, never noise.

    Attributes
    ----------
    release_ : AnswersRelease
        The only thing that fitting leaves behind.

    Privacy
    -------
    Claimed by the authors for replaced records, and known to fail; fitting warns.

    Examples
    --------
    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=200, seed=1)
    >>> models = {"stage2": "linear", "model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    >>> model = dc.papers.DPCATE(epsilon=1.0, delta=1e-5, bounds=study.bounds, random_state=0, **models)
    >>> with warnings.catch_warnings(action="ignore"):  # the guarantee is claimed
    ...     _ = model.fit(study.Y, study.T, X=study.X, queries=[[0.2, 0.5], [0.8, 0.5]])
    >>> model.release_.effect().shape, model.guarantee_.epsilon
    ((2,), 1.0)
    """

    method_id: ClassVar[str] = "discreet/papers/dp-cate"
    neighbours: Neighbours = "replace-one"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        learner: str | Weight = "R",
        stage2: Any = "forest",
        model_regression: Any = None,
        model_propensity: Any = None,
        propensity: float | None = None,
        supremum: Supremum = "l-bfgs-b",
        starts: int = 10,
        points: int = 20_000,
        normalised: bool = True,
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.learner = learner
        self.stage2 = stage2
        self.model_regression = model_regression
        self.model_propensity = model_propensity
        self.propensity = propensity
        self.supremum = supremum
        self.starts = starts
        self.points = points
        self.normalised = normalised
        self.random_state = random_state

    @on_ledger(AnswersRelease)
    def fit(self, Y: Any, T: Any, *, X: Any = None, queries: Any = None) -> DPCATE:
        """Estimate from arrays or frames, and answer the queries.

        Parameters
        ----------
        Y, T : array-like of shape (n,)
            Outcome and treatment.
        X : array-like or frame of shape (n, p)
            Covariates, matched to the bounds by name where both have names.
        queries : array-like or frame of shape (d, p)
            Where effects are wanted, inside the bounds. They are public.
        """
        self.check()
        asked = encode_queries(queries, self.bounds)
        warn_of_claim("DPCATE", MEASURED)
        rows = gather(ArrayRecords.of(Y, T, X, bounds=self.bounds, propensity=self.propensity))
        exact, gamma = self._exact(rows, self._first_stage(rows), asked)
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        r = gamma * noise_factor(len(rows.t), budget.epsilon, budget.delta or 0.0)
        effects = exact + published_gaussian(len(exact), r)  # (11), (12), (20)
        self.release_ = AnswersRelease(
            method=_TITLE,
            effects=tuple(effects),
            guarantee=claimed_guarantee(
                "DP-CATE, finite queries",
                budget,
                public=("the declared bounds", "the number of records", "the queries"),
            ),
            bounds=self.bounds,
            settings=self._settings(len(rows.t)),
            notes=(f"Claimed, not private: {MEASURED[0].lower()}{MEASURED[1:]}",),
        )
        return self

    def effect(self) -> Float:
        """The released effects, in the order of the queries."""
        return self._released().effect()

    def plot(self, ax: Any = None) -> Any:
        """Draw the answers in the order of the queries (needs matplotlib)."""
        return self._released().plot(ax)

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("DPCATE needs delta, e.g. delta=1e-5: its noise is Gaussian.")
        check_common(self)
        if self.supremum not in get_args(Supremum):
            raise InvalidInput("supremum must be 'l-bfgs-b', 'dense' or 'closed-form': choose one.")
        for name in ("starts", "points"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"{name} must be a positive integer; leave it out for the usual one.")
        weight = weight_of(self.learner)
        check_second_stage(second_stage(self.stage2), weighted=weight is not weight_of("DR"))

    def _first_stage(self, rows: Chunk) -> Models:
        clipped = self.supremum == "closed-form"
        models = first_stage(self.model_regression, self.model_propensity)
        return train(rows, self.bounds, *models, known=known_propensity(self), clipped=clipped, rng=rng_of(self))

    def _exact(self, rows: Chunk, nuisances: Nuisances, asked: Float) -> tuple[Float, float]:
        """Effects without noise, and the gross-error sensitivity. Not private."""
        effect, weight = self._predicted(rows, nuisances), weight_of(self.learner)
        mean = float(weight.value(nuisances.parts(rows.x)[0]).mean()) if self.normalised else 1.0
        return effect(asked), self._sensitivity(Residual(nuisances, weight, effect), mean, rng_of(self))

    def _predicted(self, rows: Chunk, nuisances: Nuisances) -> Callable[[Float], Float]:
        """The second stage g: from encoded covariates to effects. Not private."""
        weight, bounds = weight_of(self.learner), self.bounds
        parts = nuisances.parts(rows.x)
        heavy = rho(rows.t, parts[0], weight)
        counted = heavy > 0.0
        if not counted.any():
            raise InvalidInput("learner gives no record any weight: choose another lambda.")
        pseudo = weighted_pseudo_outcome(in_own_unit(rows.y, bounds), rows.t, parts, weight)
        targets = pseudo[counted] / heavy[counted]  # phi of (5)
        features = design(rows.x[counted], bounds)
        with without_training_warnings():
            model = weighted_fit(fresh(second_stage(self.stage2), rng_of(self)), features, targets, heavy[counted])
        predict, widest = predictor(model), bounds.outcome_width

        def effect(x: Float) -> Float:
            predicted = predict(design(x, bounds))
            return np.clip(predicted, -widest, widest) if self.supremum == "closed-form" else predicted

        return effect

    def _sensitivity(self, residual: Residual, mean: float, rng: Any) -> float:
        """gamma of (9) at the influence function (56), (29) or (30)."""
        if self.supremum == "closed-form":
            reach = extent(residual.weight, self.bounds, known_propensity(self))
            return closed_sensitivity(reach, self.bounds.outcome_width, self.normalised)
        if self.supremum == "dense":
            return dense(residual, self.bounds, points=self.points, rng=rng) / mean
        return searched(residual, self.bounds, starts=self.starts, rng=rng) / mean

    def _settings(self, n: int) -> dict[str, Any]:
        return {
            "records": n,
            "learner": weight_of(self.learner).name,
            "second stage": type(second_stage(self.stage2)).__name__,
            "supremum": self.supremum,
        }


def closed_sensitivity(reach: Extent, width: float, normalised: bool) -> float:
    """A bound on the influence of any record, with predicted outcomes in their range and |effects| of at most width."""
    return (reach.pseudo + reach.rho) * width / (reach.least_weight if normalised else 1.0)


class CommonParameters(Protocol):
    """Parameters that both variants of DP-CATE have."""

    @property
    def bounds(self) -> Bounds: ...

    @property
    def learner(self) -> str | Weight | None: ...

    @property
    def propensity(self) -> Any: ...

    @property
    def model_regression(self) -> Any: ...

    @property
    def model_propensity(self) -> Any: ...

    @property
    def random_state(self) -> Any: ...


def check_common(estimator: CommonParameters) -> None:
    """What both variants of DP-CATE refuse without looking at a record."""
    if not estimator.bounds.p:
        raise InvalidInput(f"{type(estimator).__name__} needs covariates in its bounds: an effect depends on them.")
    if estimator.propensity is not None and (
        isinstance(estimator.propensity, bool) or not isinstance(estimator.propensity, Real)
    ):
        raise InvalidInput(
            "propensity must be one number, as the domain holds unseen records; leave it out to estimate it."
        )
    check_models(*first_stage(estimator.model_regression, estimator.model_propensity))
    if estimator.learner is not None:
        check_weight(weight_of(estimator.learner), estimator.bounds, known_propensity(estimator))


def known_propensity(estimator: CommonParameters) -> float | None:
    """The probability of treatment, where it is known by design."""
    return None if estimator.propensity is None else float(estimator.propensity)


def rng_of(estimator: CommonParameters) -> Any:
    """The generator that seeds models and searches."""
    from sklearn.utils import check_random_state

    return check_random_state(estimator.random_state)
