"""What a budget buys, before anything is spent: noise, interval width, detectable effect, and the epsilon for a width.

Touches no data: noise scales depend on public numbers alone, and what they do not settle is assumed, and stated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from numbers import Real
from typing import Any, Literal, TypedDict, Unpack, get_args

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.notebooks.card import Summarised
from discreet.data.partition import Partition
from discreet.data.records import MIN_ROWS
from discreet.estimators._allocation import COUNT
from discreet.estimators._effect_allocation import AVERAGE_PART, DECLARED
from discreet.estimators._parameters import refuse_unknown
from discreet.estimators.measurements.cap import check_cap
from discreet.estimators.planning.expected import Expected, Shape, segment_uncertainty
from discreet.estimators.registry import planned
from discreet.estimators.uplift import declared
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from discreet.postprocessing.segment_means import parts_for
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import SensitivitySet, noise_sd
from discreet.privacy.sensitivity.table import Pairs
from discreet.releases.average import Uncertainty

Estimator = Literal["ate", "difference-in-means", "cate", "uplift"]
_NEED_DELTA = {"ate": "ATE", "cate": "CATE"}
# Choice: standard deviation of an outcome that nothing is known of, in its range. Chosen on studies 4,000 to 4,199 of
# evidence.population.
_GUESS = 0.1
# Theory: no distribution with one mode has a larger standard deviation, in its range (Jacobson 1969): the outcome is
# mostly at both ends.
_ENDS = 1.0 / 3.0
# Numerical: known probabilities of treatment are planned with at so many places.
_PLACES = 60
# Unit: the power that a detectable effect is stated for.
_POWER = 0.8
# Numerical: where an epsilon for a width is searched, the ratio of two that are tried next to each other, and the one
# that the answer is good to.
_EPSILONS, _NEXT, _NEAR = (1e-3, 1e3), 1.2, 1.001


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Plan(Summarised):
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
    uncertainty : Uncertainty
        The expected parts of the interval.

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
    uncertainty: Uncertainty

    def summary(self) -> str:
        """The plan in words."""
        lines = [
            f"{self.estimator}, {self.n:,} records, {Budget(epsilon=self.epsilon, delta=self.delta)}",
            f"  expected width of the {1 - self.alpha:.0%} interval   {self.width:.4g}",
            f"  the same without privacy              {self.without_privacy:.4g}",
            f"  noise in the estimate (sd)            {self.noise_sd:.4g}",
            f"  detectable effect ({_POWER:.0%} power)       {self.detectable_effect:.4g}",
        ]
        return "\n".join([*lines, *(f"  assumed: {assumption}" for assumption in self.assumptions)])


class PlanOptions(TypedDict, total=False):
    """Keyword arguments of `plan` besides records, bounds and budget; `plan` says what they mean."""

    alpha: float
    width: float | None
    propensity: Any
    outcome_sd: float | None
    outcome_mean: float | None
    prevalence: float | None
    treated: float
    by: Any
    neighbours: Neighbours
    cap: float | None


def plan(
    estimator: str,
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
    estimator : {"ate", "difference-in-means", "cate", "uplift"}
        Of "cate" the average effect is planned, of "uplift" a segment of the usual size; "att" and the like as "ate".
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
    propensity : float or array, optional
        Known probability of treatment (a randomised trial); an array where it varies.
    outcome_sd, outcome_mean : float, optional
        Of the outcome, as an earlier report would state them. By default a tenth of the range, and its middle.
    prevalence : float, optional
        Share of events, of an outcome of two values; in place of the other two.
    treated : float, default 0.5
        Expected share of treated.
    by : mapping
        Segments, for "uplift", as `Uplift` takes them.
    neighbours : {"replace-one", "add-remove"}
    cap : float, optional
        What larger outcomes count as ("ate", "difference-in-means"); mean and deviation are of the capped outcome.

    Privacy
    -------
    No records are involved. Guesses must be public: never compute them from the records.

    Examples
    --------
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=[0, 1], covariates=[(18, 95)])
    >>> round(dc.plan("ate", n=20_000, bounds=bounds, epsilon=1.0, delta=1e-6, propensity=0.5, prevalence=0.1).width, 3)
    0.017
    >>> solved = dc.plan("difference-in-means", n=20_000, bounds=bounds, width=0.1, prevalence=0.1)
    >>> round(solved.epsilon, 2)
    0.09
    """
    refuse_unknown("plan", options, PlanOptions.__optional_keys__)
    draft = _draft(planned(estimator), n, bounds, delta, options)
    width = options.get("width")
    if (epsilon is None) == (width is None):
        raise InvalidBudget("plan needs either epsilon, or a width to find the epsilon for; give one of them.")
    return _solve(draft, _positive(width, "width")) if epsilon is None else draft.at(epsilon)


def _draft(estimator: str, n: int, bounds: Bounds, delta: float | None, options: PlanOptions) -> _Draft:
    """What is planned, all but epsilon."""
    neighbours: Neighbours = options.get("neighbours", "replace-one")
    _check(estimator, n, bounds, neighbours)
    bounds = _capped(estimator, bounds, options.get("cap"))
    # Unit: the level of intervals unless another is asked for.
    alpha, treated = options.get("alpha", 0.05), options.get("treated", 0.5)
    _between(alpha, "alpha", "0.05 stands for a 95 % interval")
    _between(treated, "treated", "it is the expected share of treated")
    design = _design(options.get("propensity"))
    by = options.get("by")
    if (estimator == "uplift") != (by is not None):
        raise InvalidInput(
            "by declares the segments of 'uplift', as Uplift takes them: give it there and nowhere else."
        )
    if by is not None and not isinstance(by, Mapping):
        raise InvalidInput("by must map covariates to cuts, such as {'age': 4}: found segments cannot be planned.")
    shape, guessed = _shape(bounds, options)
    return _Draft(
        estimator=estimator,  # type: ignore[arg-type]
        n=int(n),
        bounds=bounds,
        delta=delta,
        alpha=alpha,
        design=design,
        treated=treated if design is None else float(np.mean(design)),
        shape=shape,
        guessed=guessed,
        by=by,
        neighbours=neighbours,
    )


def _check(estimator: str, n: int, bounds: Bounds, neighbours: str) -> None:
    if estimator not in get_args(Estimator):
        raise InvalidInput("plan knows 'ate', 'difference-in-means', 'cate' and 'uplift'; name one of them.")
    if not isinstance(bounds, Bounds) or bounds.several_arms:
        raise MissingBounds("plan needs bounds=Bounds(outcome=(low, high), ...) of two arms, such as fit will get.")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < MIN_ROWS:
        raise InvalidInput(f"n must be a whole number of at least {MIN_ROWS}; it is the number of records.")
    if neighbours not in get_args(Neighbours):
        raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")


def _capped(estimator: str, bounds: Bounds, cap: Any) -> Bounds:
    """The bounds that noise is made for."""
    if cap is None:
        return bounds
    if estimator in ("cate", "uplift") or isinstance(cap, str):
        raise InvalidInput(
            "cap must be a number, for 'ate' or 'difference-in-means': one that the records choose cannot be planned."
        )
    check_cap(cap, bounds)
    return bounds.capped(float(cap))


def _design(propensity: Any) -> float | Float | None:
    """Known probabilities of treatment: none, one, or some that are equally common."""
    if propensity is None:
        return None
    if isinstance(propensity, Real | str) or np.ndim(propensity) != 1 or len(propensity) == 0:
        _between(propensity, "propensity", "it is the known probability of treatment")
        return float(propensity)
    found = np.asarray(propensity, dtype=float)
    if not ((found > 0.0) & (found < 1.0)).all():
        raise InvalidInput("propensity must lie between 0 and 1; it is the known probability of treatment.")
    return np.asarray(np.quantile(found, (np.arange(_PLACES) + 0.5) / _PLACES))


def _shape(bounds: Bounds, options: PlanOptions) -> tuple[Shape, str]:
    """An ideal outcome, and what is said of it."""
    sd, prevalence = options.get("outcome_sd"), options.get("prevalence")
    mean: Any = options.get("outcome_mean")
    low, high = bounds.outcome_range.low, bounds.outcome_range.high
    two = bounds.binary or (low, high) == (0.0, 1.0)
    if prevalence is not None:
        _between(prevalence, "prevalence", "it is the share of events")
        if sd is not None or mean is not None:
            raise InvalidInput("prevalence says what outcome_sd and outcome_mean would say: give one or the others.")
        if not two:
            raise InvalidInput(
                "prevalence belongs to an outcome of two values: declare outcome=[0, 1], or give outcome_sd."
            )
        return Shape.events(float(prevalence)), f"{prevalence:.3g} of the records have the event"
    if mean is not None and not (isinstance(mean, Real) and low < float(mean) < high):
        raise InvalidInput("outcome_mean must lie inside the outcome's range; it is the mean of the outcome.")
    if sd is None and mean is None and two:
        return Shape.events(0.5), "half of the records have the event; give prevalence= if you know better"
    if bounds.binary and mean is not None:
        raise InvalidInput("outcome_mean of an outcome of two values is its prevalence: give prevalence=.")
    known = _GUESS * (high - low) if sd is None else _positive(sd, "outcome_sd")
    part = known / (high - low)
    if part > 0.5:
        raise InvalidInput("outcome_sd exceeds half of the outcome's range, which no outcome can: correct one of them.")
    words = f"outcomes vary by about {known:.4g} (sd)"
    words += "" if sd is not None else "; give outcome_sd= if you know better"
    if mean is not None:
        return Shape.crowded(2.0 * (float(mean) - low) / (high - low) - 1.0, 2.0 * part), words
    if bounds.binary or part > _ENDS:
        # Theory: the share of events whose variance that is.
        return Shape.events((1.0 - sqrt(1.0 - 4.0 * part**2)) / 2.0), words
    return Shape.normal(2.0 * part), words


def _between(value: Any, name: str, meaning: str) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < 1.0:
        raise InvalidInput(f"{name} must lie between 0 and 1; {meaning}.")


def _positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < inf:
        raise InvalidInput(f"{name} must be a positive number, in units of the outcome.")
    return float(value)


def _solve(draft: _Draft, width: float) -> Plan:
    """Smallest epsilon (to a thousandth) whose expected width is at most the target."""
    best = draft.at(_EPSILONS[1])
    if best.width > width:
        least = best.without_privacy
        raise InvalidInput(f"no epsilon gives a width of {width:.4g}: {draft.n:,} records allow {least:.4g} at best.")
    # The width falls with epsilon but for small steps, where rounds are added: the first that is enough is looked for.
    low, high = 0.0, _EPSILONS[0]
    while draft.at(min(high, _EPSILONS[1])).width > width:
        low, high = high, high * _NEXT
    high = min(high, _EPSILONS[1])
    return draft.at(_bisect(low, high, _NEAR, lambda epsilon: draft.at(epsilon).width <= width) if low else high)


def _bisect(low: float, high: float, ratio: float, enough: Callable[[float], bool]) -> float:
    """The smallest epsilon that is enough, to a ratio; ``high`` is."""
    while high / low > ratio:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    estimator: Estimator
    n: int
    bounds: Bounds
    delta: float | None
    alpha: float
    design: float | Float | None
    treated: float
    shape: Shape
    guessed: str
    by: Any
    neighbours: Neighbours

    def at(self, epsilon: float) -> Plan:
        budget = Budget(epsilon=epsilon, delta=self.delta)
        if self.estimator in _NEED_DELTA and budget.pure:
            raise InvalidBudget(
                f"{_NEED_DELTA[self.estimator]} needs delta, e.g. delta=1e-6: its rounds add Gaussian noise."
            )
        total = epsilon if budget.delta is None else calibrate_mu(epsilon, budget.delta)
        # Without covariates all of CATE's budget goes to the average.
        part = AVERAGE_PART if self.estimator == "cate" and self.bounds.p else 1.0

        def noise(geometry: SensitivitySet, share: float) -> float:
            counted = self.neighbours == "add-remove" and self.estimator != "uplift"
            kept = part * share * (1.0 - COUNT) if counted else part * share
            return noise_sd(geometry, kept, total, budget.pure, self.neighbours, self.n) / self.n

        expected = self._expected(self.n * total * sqrt(part))
        if self.estimator == "uplift":
            segments = self._segments(noise(Pairs(1), DECLARED["table"]) * self.n)
            parts = segment_uncertainty(expected, noise, segments, pure=budget.pure)
            without = parts.sampling
        else:
            parts = expected.uncertainty(noise, pure=budget.pure)
            without = replace(expected, information=inf).without_noise()
        quantile, span = float(ndtri(1.0 - self.alpha / 2.0)), 2.0 * self.bounds.outcome_width
        low, high = parts.interval(0.0, self.alpha)
        return Plan(
            estimator=self.estimator,
            noise_sd=parts.privacy,
            # No effect exceeds the outcome's range.
            width=min(high - low, span),
            detectable_effect=min(high + float(ndtri(_POWER)) * parts.se, span),
            without_privacy=min(2.0 * quantile * without, span),
            epsilon=epsilon,
            delta=self.delta,
            n=int(self.n),
            alpha=self.alpha,
            assumptions=self._assumptions(),
            uncertainty=parts,
        )

    def _expected(self, information: float) -> Expected:
        treated = self.treated
        if self.design is None:
            treated = float(np.clip(treated, *self.bounds.propensity))
        return Expected(
            n=self.n,
            information=information,
            bounds=self.bounds,
            shape=self.shape,
            treated=treated,
            design=self.design,
            adjusts=self.estimator in _NEED_DELTA,
        )

    def _segments(self, pair_noise: float) -> int:
        return Partition.of(declared(self.by, self.bounds, parts_for(self.n, pair_noise)), self.bounds).count

    def _assumptions(self) -> tuple[str, ...]:
        second = f"{self.treated:.0%} are treated"
        last = "confounding is moderate: strong confounding makes the interval wider"
        if self.estimator == "uplift":
            last = "segments are equally large, and this is the interval of one of them"
        elif self.design is not None or self.estimator == "difference-in-means":
            last = "no heavy tails: they make the interval wider"
        return (self.guessed, second, last)
