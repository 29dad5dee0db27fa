"""Private propensity scores and the effects that they weigh.

Lee, Gresele, Park and Muandet, "Private Causal Inference using Propensity Scores": logistic regression (3) on m
records, Gaussian noise on its weights (Definition 2), inverse probability weighting (5) of n further records.
`discreet.papers.propensity.logistic` and `discreet.papers.propensity.iptw` hold the equations.

Deviations. The paper assumes covariates of norm at most 1; here they are encoded by their public bounds, pulled into a
ball of public radius and divided by it (the authors divide by the largest norm in the data: ``norm_bound="data"``).
Outcomes outside their bounds are clipped. Objective perturbation is what the authors' notebooks do, not their text.
The notebooks spend half of epsilon on a second noise, added to the effect, whose scale depends on the data; the text
has none, and neither has this file. ``calibration="proved"`` is not in the paper.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators._base import Progress
from discreet.estimators._parameters import Parameters
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import (
    LEAST_RADIUS,
    MOST_FEATURES,
    OneVector,
    Rows,
    dimension,
    features,
    in_own_unit,
    into_unit_ball,
    norms,
    split,
)
from discreet.papers.common.claims import Calibration, by_calibration, claimed_guarantee, warn_of_claim
from discreet.papers.common.tables import FromTables
from discreet.papers.plots import WithoutAverage
from discreet.papers.propensity.iptw import iptw, iptw_bound, iptw_scores
from discreet.papers.propensity.logistic import (
    least_penalty,
    minimise,
    objective_sd,
    output_sd,
    propensity,
    sensitivity,
)
from discreet.papers.propensity.release import PointRelease
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee, Neighbours, parallel
from discreet.privacy.noise import published_gaussian
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval, Statistic

Protect = Literal["everyone", "propensity"]
Perturbation = Literal["output", "objective"]

_TITLE = "Average treatment effect by private propensity scores (IPTW)"
# Numbers are those of docs/evidence/propensity/attack.md.
MEASURED = (
    "It covers only the m records that trained the propensity score: the n others are used without noise. The claim "
    "is for covariates inside a public ball. Measured by 'discreet reproduce propensity attack': division by the "
    "largest norm in the data turns a claimed epsilon of 0.5 into at least 3, and records drawn with replacement by a "
    "known draw turn a claimed epsilon of 0.99 into at least 3. calibration='proved' has a proof."
)
_DATA_NORM = "the largest norm of the covariates among all records"
_DATA_NORM_NOTE = (
    "Covariates were divided by the largest norm among the records, which is published without noise: the claim is "
    "false for it."
)
_NO_INTERVAL = "The paper gives no interval: the penalty and the noise in the weights bias the estimate."


class PropensityIPTW(WithoutAverage, FromTables, Parameters):
    """Average treatment effect by inverse weights from a private propensity score.

    Parameters
    ----------
    epsilon, delta : float
        The budget; a delta is needed.
    bounds : Bounds
        Public facts: outcome range and covariates.
    protect : {"everyone", "propensity"}
        Older words for the two calibrations.
    perturbation : {"output", "objective"}
        Noise on the minimiser (the paper's Definition 2) or on the objective (the authors' notebooks).
    lam : float, default 0.1
        The penalty lambda; the paper's value.
    xi : float, optional
        Trims probabilities of the treatment received from below; between 0 and 0.5.
    m : int or float, default 0.5
        How many records train the propensity score, as a number or a share; the other n estimate the effect.
    norm_bound : float or "data", optional
        Radius of the ball that encoded covariates are pulled into; by default the smallest that holds all that the
        bounds allow; at least 1e-100. "data" takes the largest norm that occurs, as the authors do, and makes the
        claim false.
    gradient_norm : float, default 1e-9
        Where the minimisation stops.
    shuffle : bool, default True
        Whether the split is random; otherwise the first m records are the training records.
    random_state : int or None
        Seeds the split, never the noise.
    calibration : {"proved", "published"}, optional
        "published" is the paper: only the m training records are protected. "proved", the default, adds noise to the
        weighted sum over the n others as well, which needs ``xi``.

    Attributes
    ----------
    release_ : PointRelease
        All that fitting leaves behind.

    Privacy
    -------
    Proved calibration: every record is protected under replace-one. Proof: docs/proofs/propensity.md. Public: the
    bounds, all parameters, m and n. Published calibration: claimed, for one of the m training records; the effect is
    computed from the n other records without any noise for them.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import propensity_scores
    >>> study = propensity_scores(tau=2.0, seed=1, n=2_000, d=2)
    >>> model = dc.papers.PropensityIPTW(epsilon=4.0, delta=1e-5, bounds=study.bounds, xi=0.1, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = model.fit(study.Y, study.T, X=study.X)
    >>> round(model.ate_, 0)
    2.0
    """

    _why_no_interval = "its paper gives no interval: noise on the weights makes the estimate's law a sum of log-normals"
    method_id: ClassVar[str] = "discreet/papers/propensity-iptw"
    release_types: ClassVar = (PointRelease,)
    neighbours: ClassVar[Neighbours] = "replace-one"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        protect: Protect = "everyone",
        perturbation: Perturbation = "output",
        lam: float = 0.1,
        xi: float | None = None,
        m: int | float = 0.5,
        norm_bound: float | Literal["data"] | None = None,
        gradient_norm: float = 1e-9,
        shuffle: bool = True,
        random_state: Any = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.protect = protect
        self.perturbation = perturbation
        self.lam = lam
        self.xi = xi
        self.m = m
        self.norm_bound = norm_bound
        self.gradient_norm = gradient_norm
        self.shuffle = shuffle
        self.random_state = random_state
        self.calibration = calibration

    @on_ledger(PointRelease)
    def fit(self, Y: Any, T: Any, *, X: Any) -> PropensityIPTW:
        """Estimate from arrays or frames.

        Parameters
        ----------
        Y, T : array-like of shape (n,)
            Outcome and treatment.
        X : array-like or frame of shape (n, p)
            Covariates, matched to the bounds by name where both have names.
        """
        self._before()
        return self._fit_rows(Rows.of(Y, T, X, self.bounds))

    def _before(self) -> None:
        self._checked()
        self.__dict__.pop("release_", None)
        if self._protect == "propensity":
            warn_of_claim("PropensityIPTW", MEASURED)

    def _fit_chunk(self, rows: Chunk, progress: Progress | None = None) -> PropensityIPTW:
        return self._fit_rows(Rows.of_chunk(rows, self.bounds))

    def _fit_rows(self, rows: Rows) -> PropensityIPTW:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        radius = self._radius(rows)
        training, others = split(rows.in_ball(radius), self.m, self.shuffle, self.random_state)
        if self._protect == "everyone":
            w, weights_guarantee = self._proved_weights(training, budget)
            tau, noise_sd, guarantee = self._proved_effect(others, w, budget)
            guarantee = parallel(weights_guarantee, guarantee)
        else:
            w, noise_sd = self._published_weights(training, budget), 0.0
            tau = self._published_effect(others, w)
            guarantee = self._claim(budget, training.n, others.n)
        settings = {"m": training.n, "n": others.n, "lambda": self.lam, "xi": self.xi, "norm bound": radius}
        self.release_ = PointRelease(
            method=_TITLE,
            estimate=tau,
            noise_sd=noise_sd,
            weights=tuple(w),
            guarantee=guarantee,
            bounds=self.bounds,
            settings=settings | {"protect": self._protect, "perturbation": self.perturbation},
            notes=self._notes(),
        )
        return self

    @property
    def ate_(self) -> float:
        """The released estimate of the average effect."""
        return self._released().estimate

    @property
    def guarantee_(self) -> Guarantee:
        """What the release promises, and to whom."""
        return self._released().guarantee

    def propensity_score(self, X: Any) -> Float:
        """Definition 2: private propensity scores of any records, as often as you like."""
        release = self._released()
        x = into_unit_ball(features(X, release.bounds), release.settings["norm bound"])
        return propensity(np.array(release.weights), x)

    def plot(self, ax: Any = None) -> Any:
        """Draw the estimate and the noise that was added to it (needs matplotlib)."""
        return self._released().plot(ax)

    def summary(self) -> str:
        """The release as a readable table."""
        return self._released().summary()

    def _proved_weights(self, training: Rows, budget: Budget) -> tuple[Float, Guarantee]:
        """Definition 2 through the gate, with noise for weights that are known up to ``gradient_norm``."""
        w = minimise(training.x, training.t, self.lam, self.gradient_norm).w
        move = sensitivity(training.n, self.lam, self.gradient_norm)
        # At the minimiser lambda w is a mean of vectors of norm 1 at most (docs/proofs/propensity.md, lemma 1).
        radius = (1 + self.gradient_norm) / self.lam
        geometry = Statistic(move=move, radius=radius, dimension=len(w), proof="propensity.md")
        gate = Gate(OneVector(vector=w, bounds=self.bounds), budget=budget)
        (released,) = gate.ask(Query("propensity weights", 1.0, geometry, lambda chunk: chunk.x))
        return released.value, gate.guarantee(proof="propensity.md", public=_PUBLIC)

    def _proved_effect(self, others: Rows, w: Float, budget: Budget) -> tuple[float, float, Guarantee]:
        """The trimmed version of (5) through the gate, with released weights."""
        assert self.xi is not None
        bounds, xi = self.bounds, self.xi
        bound = iptw_bound(max(map(abs, bounds.outcome)), xi)

        def scores(chunk: Chunk) -> Float:
            # Beyond these weights are trimmed anyway, and exponentials overflow.
            index = np.clip(chunk.x @ w, -700, 700)
            return iptw_scores(in_own_unit(chunk.y, bounds), chunk.t, index, xi)

        gate = Gate(others, budget=budget)
        (total,) = gate.ask(Query("weighted outcomes", 1.0, Interval(-bound, bound), scores))
        guarantee = gate.guarantee(proof="propensity.md", public=_PUBLIC)
        return float(total.value) / others.n, float(total.sd) / others.n, guarantee

    def _published_weights(self, training: Rows, budget: Budget) -> Float:
        epsilon, delta, (m, d) = budget.epsilon, budget.delta or 0.0, training.x.shape
        if self.perturbation == "output":
            w = minimise(training.x, training.t, self.lam, self.gradient_norm).w
            return w + published_gaussian(d, output_sd(epsilon, delta, m, self.lam))
        if self.lam < least_penalty(epsilon, m):
            raise InvalidInput("lam is too small for objective perturbation at this epsilon and m: raise any of them.")
        b = published_gaussian(d, objective_sd(epsilon, delta))
        return minimise(training.x, training.t, self.lam, self.gradient_norm, tilt=b / m).w

    def _published_effect(self, others: Rows, w: Float) -> float:
        if others.t.min() == others.t.max():
            raise InvalidInput("the n records that estimate the effect hold one arm only: choose another m or split.")
        with np.errstate(over="ignore", invalid="ignore"):
            return iptw(others.outcome, others.t, others.x @ w, self.xi)

    def _claim(self, budget: Budget, m: int, n: int) -> Guarantee:
        others = f"the {n} records that estimated the effect: outcome, treatment and covariates enter without noise"
        return claimed_guarantee(
            f"propensity weights, {self.perturbation} perturbation",
            budget,
            unit=f"one of the {m} records that trained the propensity score",
            public=(others, *_PUBLIC, *([_DATA_NORM] if self.norm_bound == "data" else [])),
        )

    def _notes(self) -> tuple[str, ...]:
        if self._protect == "everyone":
            return (_NO_INTERVAL,)
        by_data = [_DATA_NORM_NOTE] if self.norm_bound == "data" else []
        return (_NO_INTERVAL, f"Claimed, not proved: {MEASURED[0].lower()}{MEASURED[1:]}", *by_data)

    def _radius(self, rows: Rows) -> float:
        if self.norm_bound == "data":
            return max(float(norms(rows.x).max()), LEAST_RADIUS)
        return math.sqrt(rows.x.shape[1]) if self.norm_bound is None else float(self.norm_bound)

    @property
    def _protect(self) -> str:
        return self.protect if self.calibration is None else by_calibration(self.calibration, *self._words())

    def _words(self) -> tuple[str, str, str, str]:
        return "protect", self.protect, "propensity", "everyone"

    def _checked(self) -> Budget:
        """Refuse what can be refused without looking at a record."""
        if not isinstance(self.bounds, Bounds):
            raise MissingBounds(
                "PropensityIPTW needs bounds=Bounds(outcome=(low, high), ...). "
                "Declare them; do not compute them from the data."
            )
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        if budget.pure:
            raise InvalidBudget("PropensityIPTW needs delta, e.g. delta=1e-6: it adds Gaussian noise.")
        if not dimension(self.bounds):
            raise MissingBounds(
                "PropensityIPTW needs Bounds(covariates=...): a propensity score depends on covariates."
            )
        if dimension(self.bounds) > MOST_FEATURES:
            raise InvalidInput(
                f"the bounds make more than {MOST_FEATURES} features, for which the proof allows no rounding: declare "
                "fewer covariates or levels."
            )
        by_calibration(self.calibration, *self._words())
        if self._protect not in ("everyone", "propensity") or self.perturbation not in ("output", "objective"):
            raise InvalidInput(
                "protect must be 'everyone' or 'propensity', and perturbation 'output' or 'objective': choose one each."
            )
        if not 0 < _number(self.lam) < math.inf:
            raise InvalidInput("lam must be a positive number: without a penalty separable data have no minimiser.")
        if not 0 < _number(self.gradient_norm) <= 0.1:
            raise InvalidInput("gradient_norm must lie between 0 and 0.1: it says where the minimisation stops.")
        if self.xi is not None and not 0 < _number(self.xi) < 0.5:
            raise InvalidInput("xi must lie between 0 and 0.5: it trims probabilities from below; 0.1 is common.")
        if self.norm_bound not in (None, "data") and not LEAST_RADIUS <= _number(self.norm_bound) < math.inf:
            raise InvalidInput(
                f"norm_bound must be a positive number of at least {LEAST_RADIUS:g}, None or 'data': declare the "
                "radius of a ball."
            )
        if self._protect == "everyone":
            self._check_proved()
        elif self.perturbation == "output" and budget.epsilon >= 1:
            raise InvalidBudget("Definition 2 needs epsilon below 1: lower it, or use calibration='proved'.")
        return budget

    def _check_proved(self) -> None:
        if self.xi is None:
            raise InvalidInput(
                "calibration='proved' needs xi, e.g. xi=0.1: without trimming a record counts unboundedly."
            )
        if self.perturbation != "output" or self.norm_bound == "data":
            raise InvalidInput(
                "calibration='proved' is for perturbation='output' and a declared norm_bound only: choose these, "
                "or calibration='published'."
            )

    def _released(self) -> PointRelease:
        try:
            release: PointRelease = self.release_
        except AttributeError:
            raise NotFitted("this PropensityIPTW has no release yet; call fit first.") from None
        return release


_PUBLIC = ("the declared bounds", "the numbers m and n of records", "which record is in which part")


def _number(value: object) -> float:
    # NaN for what is no number, so that comparisons refuse it.
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan
