"""The two-model rival of epsilon-ADUM (epsilon-TM): a private regression for each arm, and their difference.

Betlei et al. (2021), sections 3.1.2 and 3.2: polynomial regression by the functional mechanism [44] for continuous
outcomes, regularised logistic regression [37] for binary ones. `functional` and `logistic` hold the equations.

Deviations. Outcomes are mapped onto [-1, 1] by their public bounds, and the features of logistic regression (with a
constant one) are pulled into the unit ball. Output perturbation divides by the number of all records, which is public,
where the paper's reference divides by that of an arm, which is not; ``calibration="published"`` does the latter, and
is claimed.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.records import Chunk, Records
from discreet.estimators._base import Progress, TableFits
from discreet.estimators._parameters import Parameters
from discreet.exceptions import InvalidInput, MissingBounds
from discreet.papers.adum.functional_mechanism import (
    coefficient_bound,
    coefficient_count,
    coefficients,
    minimiser,
    monomial_count,
    monomials,
)
from discreet.papers.adum.two_model_release import TwoModelRelease, unit_features
from discreet.papers.common.arrays import MOST_FEATURES, OneVector, dimension, gather, in_own_unit
from discreet.papers.common.claims import Calibration, by_calibration, claimed_guarantee, warn_of_claim
from discreet.papers.plots import AlongCovariates
from discreet.papers.propensity.logistic import minimise, sensitivity
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee, Neighbours
from discreet.privacy.noise import published_gamma
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Statistic
from discreet.privacy.sensitivity.table import MOST_NUMBERS, CellSums

Model = Literal["polynomial", "logistic"]
Perturbation = Literal["output", "objective"]

# Logistic loss has a curvature of at most 1/4 where norms are at most 1.
_CURVATURE = 0.25
_TITLE = {
    "polynomial": "Effects by two private polynomial regressions (functional mechanism)",
    "logistic": "Effects by two private logistic regressions",
}
_MEASURED = (
    "The claim is for exact minimisers and for each arm alone: the sizes of the arms enter without noise, and a record "
    "that changes arms changes both models. calibration='proved' has a proof."
)
_NO_INTERVAL = "The paper gives no interval: noise and regularisation bias the estimates."


class TwoModel(AlongCovariates, TableFits[TwoModelRelease], Parameters):
    """Effects as the difference of two private regressions, one for each arm.

    Parameters
    ----------
    epsilon : float
        The budget; there is no delta.
    bounds : Bounds
        Public facts: outcome range and covariates. Logistic regression needs ``outcome=(0, 1)`` and outcomes 0 and 1.
    model : {"polynomial", "logistic"}
        For continuous or for binary outcomes.
    degree : int, default 1
        Largest power of each range, for "polynomial".
    lam : float, default 0.01
        The penalty lambda, for "logistic".
    perturbation : {"output", "objective"}
        Older words for the two calibrations.
    neighbours : {"replace-one", "add-remove"}
        Which data sets may not be distinguished; "logistic" offers the first.
    gradient_norm : float, default 1e-9
        Where the minimisation stops, for "logistic".
    calibration : {"proved", "published"}, optional
        For "logistic": noise on the weights, by default, or on the objective as in the paper's reference.

    Attributes
    ----------
    release_ : TwoModelRelease
        All that fitting leaves behind.

    Privacy
    -------
    Outcome, treatment and covariates of every record are protected. Proof: docs/proofs/adum.md. Public: the bounds and,
    under replace-one, the number of records. Published calibration: claimed.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> model = dc.papers.TwoModel(epsilon=4.0, bounds=study.bounds)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = model.fit(study.Y, study.T, X=study.X)
    >>> bool(model.effect([[0.9]])[0] > model.effect([[-0.9]])[0])
    True
    """

    method_id: ClassVar[str] = "discreet/papers/two-model"
    release_types: ClassVar = (TwoModelRelease,)

    # Pure epsilon, and no propensity.
    delta: float | None = None
    propensity: Any = None

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        model: Model = "polynomial",
        degree: int = 1,
        lam: float = 0.01,
        perturbation: Perturbation = "output",
        neighbours: Neighbours = "replace-one",
        gradient_norm: float = 1e-9,
        calibration: Calibration | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.model = model
        self.degree = degree
        self.lam = lam
        self.perturbation = perturbation
        self.neighbours = neighbours
        self.gradient_norm = gradient_norm
        self.calibration = calibration

    def effect(self, X: Any) -> Float:
        """The treated model's prediction minus the control model's, as often as you like."""
        return self._released().effect(X)

    @property
    def _noise(self) -> str:
        return self.perturbation if self.calibration is None else by_calibration(self.calibration, *self._words())

    def _words(self) -> tuple[str, str, str, str]:
        return "perturbation", self.perturbation, "objective", "output"

    def _warn(self) -> None:
        if self.model == "logistic" and self._noise == "objective":
            warn_of_claim("TwoModel", _MEASURED)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        if records.unit is not None and self.model == "logistic":
            raise InvalidInput("unit is not for logistic models, whose noise is made for single records: leave it out.")
        settings: dict[str, Any] = {"model": self.model}
        public = ("the declared bounds", *(("the number of records",) if self.neighbours == "replace-one" else ()))
        if self.model == "polynomial":
            gate = self._open_gate(records, progress)
            weights, scale = _polynomial(gate, self.degree)
            guarantee = gate.guarantee(proof="adum.md", public=public)
            settings |= {"degree": self.degree}
        else:
            rows = gather(records, progress)
            _check_binary(rows, self.bounds)
            settings |= {"lambda": self.lam, "perturbation": self._noise}
            if self._noise == "output":
                weights, scale, guarantee = self._output(rows, public)
            else:
                weights, scale = self._objective(rows)
                name = "weights of both arms, objective perturbation"
                public = (*public, "the sizes of the arms")
                guarantee = claimed_guarantee(name, Budget(epsilon=self.epsilon), public=public)
        self.release_ = TwoModelRelease(
            method=_TITLE[self.model],
            model=self.model,
            degree=self.degree if self.model == "polynomial" else 1,
            weights=weights,
            noise_scale=scale,
            guarantee=guarantee,
            bounds=self.bounds,
            settings=settings,
            notes=self._notes(),
        )

    def _output(self, rows: Chunk, public: tuple[str, ...]) -> tuple[Float, float, Guarantee]:
        """Noise on both minimisers at once, through the gate. Proof: docs/proofs/adum.md, lemma 5."""
        x, y = unit_features(rows.x, self.bounds), (rows.y > 0).astype(np.float64)
        # Records of the other arm have x = 0: they add a constant, and the mean is over all records.
        w = [minimise(x * (rows.t == arm)[:, None], y, self.lam, self.gradient_norm).w for arm in (0, 1)]
        move, radius = joint_sensitivity(len(y), self.lam, self.gradient_norm), (1 + self.gradient_norm) / self.lam
        geometry = Statistic(move=move, radius=radius, dimension=2 * x.shape[1], proof="adum.md")
        gate = Gate(OneVector(vector=np.concatenate(w), bounds=self.bounds), budget=Budget(epsilon=self.epsilon))
        (released,) = gate.ask(Query("weights of both arms", 1.0, geometry, lambda chunk: chunk.x))
        guarantee = gate.guarantee(proof="adum.md", public=public)
        return released.value.reshape(2, -1), float(released.sd) / math.sqrt(2), guarantee

    def _objective(self, rows: Chunk) -> tuple[Float, float]:
        """Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2, for each arm alone; the noise of the smaller arm."""
        x, y = unit_features(rows.x, self.bounds), (rows.y > 0).astype(np.float64)
        weights, scales = [], []
        for arm in (0, 1):
            mine = rows.t == arm
            n = int(mine.sum())
            epsilon, extra = objective_budget(self.epsilon, n, self.lam)
            b = published_gamma(x.shape[1], 2 / epsilon)
            weights.append(minimise(x[mine], y[mine], self.lam + extra, self.gradient_norm, tilt=b / n).w)
            scales.append(2 / (epsilon * n))
        return np.array(weights), max(scales)

    def _notes(self) -> tuple[str, ...]:
        if self.model == "polynomial" or self._noise == "output":
            return (_NO_INTERVAL,)
        return (_NO_INTERVAL, f"Claimed, not proved: {_MEASURED[0].lower()}{_MEASURED[1:]}")

    def _check_budget(self, budget: Budget) -> None:
        """Refuse what can be refused without looking at a record."""
        by_calibration(self.calibration, *self._words())
        for name, value, known in (
            ("model", self.model, get_args(Model)),
            ("perturbation", self._noise, get_args(Perturbation)),
            ("neighbours", self.neighbours, get_args(Neighbours)),
        ):
            if value not in known:
                raise InvalidInput(f"{name} must be {' or '.join(map(repr, known))}: choose one.")
        if not dimension(self.bounds):
            raise MissingBounds("TwoModel needs Bounds(covariates=...): its effects depend on covariates.")
        if self.model == "polynomial":
            _check_degree(self.degree, self.bounds)
            return
        if self.neighbours != "replace-one":
            raise InvalidInput("model='logistic' has no add-remove noise: use neighbours='replace-one'.")
        if self.bounds.outcome != (0.0, 1.0):
            raise InvalidInput("model='logistic' is for binary outcomes: declare Bounds(outcome=(0, 1), ...).")
        if dimension(self.bounds) >= MOST_FEATURES // 2:
            raise InvalidInput(f"the bounds make {MOST_FEATURES // 2} features or more: declare fewer covariates.")
        if not 0 < _number(self.lam) < math.inf:
            raise InvalidInput("lam must be a positive number: without a penalty separable data have no minimiser.")
        if not 0 < _number(self.gradient_norm) <= 0.1:
            raise InvalidInput("gradient_norm must lie between 0 and 0.1: it says where the minimisation stops.")


def joint_sensitivity(n: int, lam: float, gradient_norm: float) -> float:
    """How far replacing one of n records moves both arms' weights together. Proof: docs/proofs/adum.md, lemma 5."""
    return sensitivity(n, lam, 2 * gradient_norm)


def objective_budget(epsilon: float, n: int, lam: float) -> tuple[float, float]:
    """Epsilon' of Algorithm 2 in Chaudhuri et al. (2011), and what is added to the penalty."""
    left = epsilon - 2 * math.log1p(_CURVATURE / (n * lam))
    if left > 0:
        return left, 0.0
    return epsilon / 2, max(0.0, _CURVATURE / (n * math.expm1(epsilon / 4)) - lam)


def _polynomial(gate: Gate, degree: int) -> tuple[Float, float]:
    """The functional mechanism for both arms at once. Proof: docs/proofs/adum.md, lemma 4."""
    bounds = gate.bounds
    m = monomial_count(bounds, degree)

    def polynomial(chunk: Chunk) -> Float:
        return np.column_stack([chunk.t, coefficients(chunk.y, monomials(chunk.x, bounds, degree))])

    geometry = CellSums(coefficient_bound(m), 2, coefficient_count(m))
    (sums,) = gate.ask(Query("coefficients of both arms", 1.0, geometry, polynomial))
    weights = [minimiser(total, m, float(sums.sd)) for total in sums.value]
    return np.array(weights), float(sums.sd) / math.sqrt(2)


def _check_binary(rows: Chunk, bounds: Bounds) -> None:
    if not np.isin(in_own_unit(rows.y, bounds), (0.0, 1.0)).all():
        raise InvalidInput("Y must hold 0 or 1 in every record for model='logistic': use model='polynomial'.")


def _check_degree(degree: object, bounds: Bounds) -> None:
    if isinstance(degree, bool) or not isinstance(degree, int) or degree < 1:
        raise InvalidInput("degree must be a positive integer: 1 makes the regressions linear.")
    if coefficient_count(monomial_count(bounds, degree)) > MOST_NUMBERS:
        raise InvalidInput("degree makes too many coefficients: lower it, or declare fewer covariates.")


def _number(value: object) -> float:
    # NaN for what is no number, so that comparisons refuse it.
    return float(value) if not isinstance(value, bool) and isinstance(value, Real) else math.nan
