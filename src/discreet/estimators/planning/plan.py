"""What a budget buys, before anything is spent: noise, interval width, detectable effect, and the epsilon for a width.

Touches no data: noise scales depend on public numbers alone, and what they do not settle is assumed, and stated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import inf, sqrt
from typing import Any, TypedDict, Unpack, cast, get_args

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.notebooks.card import Summarised
from discreet.data.partition import Partition
from discreet.data.records import MIN_ROWS
from discreet.estimators._effect_allocation import AVERAGE_PART, DECLARED
from discreet.estimators._parameters import refuse_unknown
from discreet.estimators.planning.assumed import between, capped, design_of, positive, shape_of
from discreet.estimators.planning.expected import Shape, segment_uncertainty
from discreet.estimators.planning.setting import Found, Planner, Setting
from discreet.estimators.registry import REGISTRY, Entry, Planned, planned
from discreet.estimators.uplift import declared
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from discreet.postprocessing.segment_means import parts_for
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.table import Pairs
from discreet.releases.average import Uncertainty

_OF_OUTCOME = ("outcome_sd", "outcome_mean", "prevalence")
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

    estimator: Planned
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
    compliance: float
    correlation: float
    horizon: float
    measure: str
    times: Any
    events: float
    lost: float
    share: float


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
    estimator : str
        "ate", "difference-in-means", "cate" (its average effect), "uplift" (a segment of the usual size), "late",
        "difference-in-differences", "survival" or "policy-value"; "att" and the like as "ate".
    n, bounds : int, Bounds
        Number of records; public facts.
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
        Expected share of treated; for "late", of those who have the instrument.
    by : mapping
        Segments, for "uplift", as `Uplift` takes them.
    neighbours : {"replace-one", "add-remove"}
    cap : float, optional
        What larger outcomes count as ("ate", "difference-in-means"); mean and deviation are of the capped outcome.
    compliance, correlation, share, horizon, measure, times, events, lost : optional
        What single plans take: see docs/how-to/which-estimator.md.

    Privacy
    -------
    No records are involved. Guesses must be public: never compute them from the records.

    Examples
    --------
    >>> bounds = Bounds(outcome=[0, 1], covariates=[(18, 95)])
    >>> round(plan("ate", n=20_000, bounds=bounds, epsilon=1.0, delta=1e-6, propensity=0.5, prevalence=0.1).width, 3)
    0.017
    >>> solved = plan("difference-in-means", n=20_000, bounds=bounds, width=0.1, prevalence=0.1)
    >>> round(solved.epsilon, 2)
    0.09
    """
    refuse_unknown("plan", options, PlanOptions.__optional_keys__)
    draft = _draft(planned(estimator), n, bounds, delta, options)
    width = options.get("width")
    if (epsilon is None) == (width is None):
        raise InvalidBudget("plan needs either epsilon, or a width to find the epsilon for; give one of them.")
    return _solve(draft, positive(width, "width")) if epsilon is None else draft.at(epsilon)


def _draft(estimator: str, n: int, bounds: Bounds, delta: float | None, options: PlanOptions) -> _Draft:
    """What is planned, all but epsilon."""
    neighbours: Neighbours = options.get("neighbours", "replace-one")
    _check(estimator, n, bounds, neighbours)
    bounds = capped(estimator, bounds, options.get("cap"))
    # Unit: the level of intervals unless another is asked for.
    alpha, treated = options.get("alpha", 0.05), options.get("treated", 0.5)
    between(alpha, "alpha", "0.05 stands for a 95 % interval")
    between(treated, "treated", "it is the expected share of treated")
    design = design_of(options.get("propensity"))
    by = options.get("by")
    if (estimator == "uplift") != (by is not None):
        raise InvalidInput(
            "by declares the segments of 'uplift', as Uplift takes them: give it there and nowhere else."
        )
    if by is not None and not isinstance(by, Mapping):
        raise InvalidInput("by must map covariates to cuts, such as {'age': 4}: found segments cannot be planned.")
    shape, guessed = shape_of(bounds, options)
    return _Draft(
        entry=REGISTRY[estimator],
        options=_own(estimator, options),
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


def _own(estimator: str, options: PlanOptions) -> dict[str, Any]:
    """Options that this plan alone takes; those of others are refused."""
    own = {option.name for option in REGISTRY[estimator].planning}
    for name, entry in REGISTRY.items():
        for option in entry.planning:
            if option.name not in own and options.get(option.name) is not None:
                raise InvalidInput(f"{option.name} belongs to the plan of {name!r}: leave it out for {estimator!r}.")
    if "events" in own and any(options.get(name) is not None for name in _OF_OUTCOME):
        raise InvalidInput(f"the plan of {estimator!r} takes events= and lost=, and nothing else of the outcome.")
    return {name: value for name, value in options.items() if name in own and value is not None}


def _check(estimator: str, n: int, bounds: Bounds, neighbours: str) -> None:
    if estimator not in get_args(Planned):
        raise InvalidInput(f"plan knows {', '.join(get_args(Planned))}; name one of them.")
    if not isinstance(bounds, Bounds) or bounds.several_arms:
        raise MissingBounds("plan needs bounds=Bounds(outcome=(low, high), ...) of two arms, such as fit will get.")
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < MIN_ROWS:
        raise InvalidInput(f"n must be a whole number of at least {MIN_ROWS}; it is the number of records.")
    if neighbours not in get_args(Neighbours):
        raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")


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
    entry: Entry
    options: Mapping[str, Any]
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

    @property
    def estimator(self) -> Planned:
        """What it is called here."""
        return cast(Planned, self.entry.name)

    def at(self, epsilon: float) -> Plan:
        budget = Budget(epsilon=epsilon, delta=self.delta)
        if budget.pure and not self.entry.pure:
            name = self.entry.path.partition(":")[2]
            raise InvalidBudget(f"{name} needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")
        found = self._found(self._setting(budget))
        quantile, most = float(ndtri(1.0 - self.alpha / 2.0)), found.largest or self.bounds.outcome_width
        low, high = found.parts.interval(0.0, self.alpha)
        width, span = high - low if found.width is None else found.width, 2.0 * most
        return Plan(
            estimator=self.estimator,
            noise_sd=found.parts.privacy,
            # No effect exceeds the outcome's range; a region without an end does not know.
            width=min(width, span) if width < inf else inf,
            detectable_effect=min(width / 2.0 + float(ndtri(_POWER)) * found.parts.se, span),
            without_privacy=min(2.0 * quantile * found.without, span),
            epsilon=epsilon,
            delta=self.delta,
            n=int(self.n),
            alpha=self.alpha,
            assumptions=(*((self.guessed,) if found.guessed else ()), *found.assumptions),
            uncertainty=found.parts,
        )

    def _setting(self, budget: Budget) -> Setting:
        treated = self.treated
        if self.design is None:
            treated = float(np.clip(treated, *self.bounds.propensity))
        return Setting(
            n=self.n,
            bounds=self.bounds,
            shape=self.shape,
            treated=treated,
            design=self.design,
            adjusts=not self.entry.pure,
            mu=budget.epsilon if budget.delta is None else calibrate_mu(budget.epsilon, budget.delta),
            pure=budget.pure,
            neighbours=self.neighbours,
            counted=self.neighbours == "add-remove" and self.estimator != "uplift",
        )

    def _found(self, setting: Setting) -> Found:
        if self.entry.planner:
            module, _, name = self.entry.planner.partition(":")
            planner: Planner = getattr(import_module(module), name)
            return planner(setting, self.alpha, self.options)
        # Without covariates all of CATE's budget goes to the average.
        setting = setting.within(AVERAGE_PART if self.estimator == "cate" and self.bounds.p else 1.0)
        if self.estimator == "uplift":
            segments = self._segments(setting.noise(Pairs(1), DECLARED["table"]) * self.n)
            parts = segment_uncertainty(setting.expected, setting.noise, segments, pure=setting.pure)
            return Found(parts, parts.sampling, self._assumptions())
        return Found(setting.average(), setting.without_privacy(), self._assumptions())

    def _segments(self, pair_noise: float) -> int:
        return Partition.of(declared(self.by, self.bounds, parts_for(self.n, pair_noise)), self.bounds).count

    def _assumptions(self) -> tuple[str, ...]:
        second = f"{self.treated:.0%} are treated"
        last = "confounding is moderate: strong confounding makes the interval wider"
        if self.estimator == "uplift":
            last = "segments are equally large, and this is the interval of one of them"
        elif self.design is not None or self.estimator == "difference-in-means":
            last = "no heavy tails: they make the interval wider"
        return second, last
