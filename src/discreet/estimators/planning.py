"""What a budget buys, before anything is spent: noise, interval width, detectable effect, and the epsilon for a width.

Touches no data: noise scales depend on public numbers alone, and what they do not settle is assumed, and stated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import hypot, inf, sqrt
from numbers import Real
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
from scipy.special import ndtri

from discreet.data.bounds import Bounds
from discreet.data.columns import Range
from discreet.data.records import MIN_ROWS
from discreet.estimators._allocation import COUNT, KNOWN_DESIGN, MEANS, OBSERVATIONAL, Allocation
from discreet.estimators._base import refuse_unknown
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from discreet.postprocessing.basis import Basis, Size, choose_size, size_for
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import SensitivitySet, noise_sd
from discreet.privacy.sensitivity.sets import Ball, MeanSquare

Estimator = Literal["ate", "difference-in-means"]
# Scores and residuals are clipped at about this many standard deviations.
_CLIP = 2.8
# Logistic coefficients (unit features) that a shrunken propensity may miss, a priori: 0.2 each at most.
_MISSED = 0.2
# Features that later rounds of the models go to.
_SELECTED = 8
_POWER = 0.8
# Where an epsilon for a width is searched, and the ratio of two that are next to each other.
_EPSILONS, _NEXT = (1e-3, 1e3), 1.0 + 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to expect of a release.

    Parameters
    ----------
    noise_sd : float
        Standard deviation of the privacy noise in the estimate.
    width : float
        Expected width of the interval at level ``1 - alpha``.
    detectable_effect : float
        Smallest effect that the interval excludes zero for in four of five studies.
    epsilon, delta, n, alpha
        The budget (given, or solved for), the number of records, the level.
    without_privacy : float
        Width that the same assumptions give without any noise.
    assumptions : tuple of str
        What was assumed where public facts do not settle it.

    Examples
    --------
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=(0, 40), covariates=[(18, 95)])
    >>> more = dc.plan("ate", n=20_000, bounds=bounds, epsilon=1.0, delta=1e-6)
    >>> more.width > more.without_privacy
    True
    """

    estimator: Estimator
    noise_sd: float
    width: float
    detectable_effect: float
    without_privacy: float
    epsilon: float
    delta: float | None
    n: int
    alpha: float
    assumptions: tuple[str, ...]

    def summary(self) -> str:
        """The plan in words."""
        lines = [
            f"{self.estimator}, {self.n:,} records, {Budget(epsilon=self.epsilon, delta=self.delta)}",
            f"  expected width of the {1 - self.alpha:.0%} interval   {self.width:.4g}",
            f"  the same without privacy              {self.without_privacy:.4g}",
            f"  noise in the estimate (sd)            {self.noise_sd:.4g}",
            f"  detectable effect ({_POWER:.0%} power)       {self.detectable_effect:.4g}",
            *(f"  assumed: {assumption}" for assumption in self.assumptions),
        ]
        return "\n".join(lines)


class PlanOptions(TypedDict, total=False):
    """Keyword arguments of `plan` besides records, bounds and budget; `plan` says what they mean."""

    alpha: float
    width: float | None
    propensity: float | None
    outcome_sd: float | None
    treated: float
    neighbours: Neighbours


def plan(
    estimator: Estimator,
    *,
    n: int,
    bounds: Bounds,
    epsilon: float | None = None,
    delta: float | None = None,
    **options: Unpack[PlanOptions],
) -> Plan:
    """Expected noise, interval width and detectable effect of a release; or the epsilon that a target width needs.

    Parameters
    ----------
    estimator : {"ate", "difference-in-means"}
    n : int
        Number of records.
    bounds : Bounds
        Public facts.
    epsilon, delta : float
        The budget. Leave ``epsilon`` out and give ``width`` to solve for it.
    alpha : float, default 0.05
        One minus the level of the interval.
    width : float, optional
        Target width of the interval.
    propensity : float, optional
        Known probability of treatment (a randomised trial).
    outcome_sd : float, optional
        Standard deviation of the outcome given the covariates; a sixth of its range unless you know better.
    treated : float, default 0.5
        Expected share of treated.
    neighbours : {"replace-one", "add-remove"}

    Privacy
    -------
    No records are involved.

    Examples
    --------
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=(0, 40), covariates=[(18, 95)])
    >>> round(dc.plan("ate", n=20_000, bounds=bounds, epsilon=1.0, delta=1e-6, propensity=0.5).width, 2)
    0.38
    >>> solved = dc.plan("difference-in-means", n=20_000, bounds=bounds, width=1.0)
    >>> round(solved.epsilon, 2)
    0.04
    """
    refuse_unknown("plan", options, PlanOptions.__optional_keys__)
    draft = _draft(estimator, n, bounds, delta, options)
    width = options.get("width")
    if (epsilon is None) == (width is None):
        raise InvalidBudget("plan needs either epsilon, or a width to find the epsilon for; give one of them.")
    return _solve(draft, _positive(width, "width")) if epsilon is None else draft.at(epsilon)


def _draft(estimator: Estimator, n: int, bounds: Bounds, delta: float | None, options: PlanOptions) -> _Draft:
    """What is planned, all but epsilon."""
    neighbours: Neighbours = options.get("neighbours", "replace-one")
    _check(estimator, n, bounds, neighbours)
    alpha, treated = options.get("alpha", 0.05), options.get("treated", 0.5)
    propensity, outcome_sd = options.get("propensity"), options.get("outcome_sd")
    _between(alpha, "alpha", "0.05 stands for a 95 % interval")
    _between(treated, "treated", "it is the expected share of treated")
    if propensity is not None:
        _between(propensity, "propensity", "it is the known probability of treatment")
    sd = bounds.outcome_width / 6.0 if outcome_sd is None else _positive(outcome_sd, "outcome_sd")
    share = treated if propensity is None else propensity
    return _Draft(estimator, int(n), bounds, delta, alpha, propensity is not None, share, sd, neighbours)


def _check(estimator: str, n: int, bounds: Bounds, neighbours: str) -> None:
    if estimator not in ("ate", "difference-in-means"):
        raise InvalidInput("plan knows 'ate' and 'difference-in-means'; name one of them.")
    if not isinstance(bounds, Bounds):
        raise MissingBounds("plan needs bounds=Bounds(outcome=(low, high), ...), the same that fit will get.")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < MIN_ROWS:
        raise InvalidInput(f"n must be a whole number of at least {MIN_ROWS}; it is the number of records.")
    if neighbours not in get_args(Neighbours):
        raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")


def _between(value: Any, name: str, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise InvalidInput(f"{name} must lie between 0 and 1; {meaning}.")


def _positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < inf:
        raise InvalidInput(f"{name} must be a positive number, in units of the outcome.")
    return float(value)


def _solve(draft: _Draft, width: float) -> Plan:
    """Smallest epsilon (to a thousandth) whose expected width is at most the target."""
    if draft.at(_EPSILONS[1]).width > width:
        least = draft.at(_EPSILONS[1]).without_privacy
        raise InvalidInput(f"no epsilon gives a width of {width:.4g}: {draft.n:,} records allow {least:.4g} at best.")
    # The width falls with epsilon, but jumps where models grow: the last epsilon before a jump is tried as well.
    low = _EPSILONS[0]
    while True:
        high = _last_before_growth(draft, low)
        if draft.at(high).width <= width:
            return draft.at(_bisect(low, high, 1.001, lambda epsilon: draft.at(epsilon).width <= width))
        low = high * _NEXT


def _last_before_growth(draft: _Draft, low: float) -> float:
    """The largest epsilon up to which models are those of this one."""
    models, high = draft.models(low), _EPSILONS[1]
    if draft.models(high) == models:
        return high
    return max(low, _bisect(low, high, _NEXT, lambda epsilon: draft.models(epsilon) != models) / _NEXT)


def _bisect(low: float, high: float, ratio: float, enough: Callable[[float], bool]) -> float:
    """The smallest epsilon that is enough, to a ratio; ``high`` is."""
    while high / low > ratio:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class _Draft:
    estimator: Estimator
    n: int
    bounds: Bounds
    delta: float | None
    alpha: float
    known: bool
    treated: float
    sd: float
    neighbours: Neighbours

    def models(self, epsilon: float) -> tuple[Size | None, int]:
        """How rich the adjustment may be, and how often the propensity is refined: both grow with epsilon."""
        if self.known or self.estimator != "ate" or self.delta is None:
            return None, 0
        information, columns = self.n * calibrate_mu(epsilon, self.delta), self.bounds.columns
        terms = [1 if isinstance(column, Range) else len(column.levels) - 1 for column in columns]
        products = (sum(terms) ** 2 - sum(k * k for k in terms)) // 2
        return size_for(information, len(columns), products), len(OBSERVATIONAL.rounds(information, len(columns)))

    def at(self, epsilon: float) -> Plan:
        budget = Budget(epsilon=epsilon, delta=self.delta)
        if self.estimator == "ate" and budget.pure:
            raise InvalidBudget("ATE needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
        total = epsilon if budget.delta is None else calibrate_mu(epsilon, budget.delta)

        def noise(geometry: SensitivitySet, share: float) -> float:
            kept = share if self.neighbours == "replace-one" else share * (1.0 - COUNT)
            return noise_sd(geometry, kept, total, budget.pure, self.neighbours, self.n) / self.n

        score_sd = self.sd / sqrt(self.treated * (1.0 - self.treated))
        sampling = score_sd / sqrt(self.n)
        if self.estimator == "difference-in-means":
            privacy, nuisance = noise(MeanSquare(_CLIP * score_sd), MEANS["score"]), 0.0
        elif self.known:
            privacy, nuisance = noise(MeanSquare(_CLIP * score_sd), KNOWN_DESIGN["score"]), 0.0
        else:
            information, columns = self.n * total, self.bounds.columns
            basis = Basis.flat(columns, choose_size(information, self.n, columns))
            allocation = OBSERVATIONAL.allocation(information, basis.m, self.bounds.p)
            privacy = noise(MeanSquare(_CLIP * score_sd), allocation["score"])
            nuisance, inflation = self._nuisance(noise, basis, allocation)
            sampling *= inflation
            privacy *= inflation
        se = hypot(sampling, privacy, nuisance)
        quantile = float(ndtri(1.0 - self.alpha / 2.0))
        return Plan(
            estimator=self.estimator,
            noise_sd=privacy,
            width=2.0 * quantile * se,
            detectable_effect=(quantile + float(ndtri(_POWER))) * se,
            without_privacy=2.0 * quantile * score_sd / sqrt(self.n),
            epsilon=epsilon,
            delta=self.delta,
            n=int(self.n),
            alpha=self.alpha,
            assumptions=self._assumptions(),
        )

    def _nuisance(
        self, noise: Callable[[SensitivitySet, float], float], basis: Basis, allocation: Allocation
    ) -> tuple[float, float]:
        """Remainder, and by what factor the noise in the prognosis widens the score."""
        # Later rounds go to the features that matter; all share the first one.
        selected = min(basis.m, _SELECTED)
        correction = (1.0 - OBSERVATIONAL.linear_effect) * allocation["correction"]
        prognosis = noise(Ball(_CLIP * self.sd * sqrt(selected), selected), correction)
        reach = basis.radius * max(self.treated, 1.0 - self.treated)
        treatment = noise(Ball(reach, basis.m), allocation["treatment moments"])
        missed = np.minimum(treatment / (self.treated * (1.0 - self.treated)) / basis.weight, _MISSED)
        remainder = prognosis * float(np.sqrt(np.mean(missed**2) * selected))
        return remainder, sqrt(1.0 + min(selected * (prognosis / self.sd) ** 2, 4.0))

    def _assumptions(self) -> tuple[str, ...]:
        first = f"outcomes vary by about {self.sd:.4g} (sd) among people with the same covariates and treatment"
        second = f"{self.treated:.0%} are treated, evenly over the covariates"
        return (first, second, "no heavy tails and good overlap: poor overlap makes the interval wider")
