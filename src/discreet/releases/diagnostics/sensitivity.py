"""How far a confounder that nobody measured could move an effect, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

from discreet.exceptions import InvalidInput

# Theory: VanderWeele and Ding (2017): a standardised difference d counts as the risk ratio exp(.91 d).
_RATIO_OF_DIFFERENCE = 0.91
# Numerical: logarithm of the largest risk ratio that is told from others: its square is still a number.
_MOST_LOG = 300.0


class Average(NamedTuple):
    """An average effect as released: estimate, intervals by level, and the standard deviation of the score."""

    estimate: float
    interval: Callable[[float], tuple[float, float]]
    score_sd: float


class OutcomeFacts(NamedTuple):
    """Mean and standard deviation of the outcome, the share of treated, and whether the outcome is binary."""

    mean: float
    sd: float
    treated: float
    binary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """What an omitted confounder of a given strength could do, and how strong one would have to be.

    Parameters
    ----------
    treatment, outcome
        What was asked for: the parts of the remaining variance of treatment and outcome that it explains.
    alpha
        Level of the interval.
    estimate, interval
        The effect as released.
    bias
        The most that such a confounder moves the estimate, in either direction.
    robust_interval
        The interval with this bias on either side.
    robustness_value
        A confounder that explains this part of both could bring the estimate to zero; a weaker one could not.
    robustness_value_of_interval
        The same for the interval: zero if it includes zero already.
    e_value, e_value_of_interval
        Risk ratios that a confounder needs with treatment and with outcome to explain the effect away, and to bring the
        interval to zero; None in files that do not have the outcome's variance.

    Examples
    --------
    >>> effect = Average(estimate=1.0, interval=lambda alpha: (0.5, 1.5), score_sd=5.0)
    >>> found = sensitivity_of(effect, None, treatment=0.1, outcome=0.1, alpha=0.05)
    >>> round(found.bias, 3), round(found.robustness_value, 3)
    (0.527, 0.181)
    """

    treatment: float
    outcome: float
    alpha: float
    estimate: float
    interval: tuple[float, float]
    bias: float
    robust_interval: tuple[float, float]
    robustness_value: float
    robustness_value_of_interval: float
    e_value: float | None = None
    e_value_of_interval: float | None = None

    def __str__(self) -> str:
        low, high = self.robust_interval
        level = f"{100 * (1 - self.alpha):g} %"
        words = [
            f"A confounder that was left out, and explains {100 * self.treatment:.3g} % of what remains of the "
            f"treatment and {100 * self.outcome:.3g} % of what remains of the outcome, moves the estimate by at most "
            f"{self.bias:.3g}: with it, the {level} interval is {low:.3g} to {high:.3g}.",
            f"One that explains {100 * self.robustness_value:.3g} % of both could bring the estimate to zero; a weaker "
            "one could not.",
        ]
        if self.robustness_value_of_interval > 0.0:
            part = 100 * self.robustness_value_of_interval
            words.append(f"With {part:.3g} % of both, the interval would reach zero.")
        else:
            words.append("The interval includes zero without any.")
        if self.e_value is not None:
            end = f"; to bring the interval to zero, {self.e_value_of_interval:.3g} times"
            words.append(
                "As a risk ratio (E-value): to explain the effect away it would have to be "
                f"{self.e_value:.3g} times as frequent in one arm as in the other, and multiply the risk of the "
                f"outcome by as much{end if self.robustness_value_of_interval > 0.0 else ''}."
            )
        return " ".join(words)


def sensitivity_of(
    average: Average, facts: OutcomeFacts | None, *, treatment: float, outcome: float, alpha: float
) -> Sensitivity:
    """Bounds on the bias by Chernozhukov, Cinelli, Newey, Sharma and Syrgkanis (2022), and E-values.

    The bias is at most S sqrt(outcome treatment / (1 - treatment)), S² being the residual variance of the outcome times
    the mean square of the weights. The variance of the doubly robust score, which is released, is no smaller.
    """
    treatment, outcome = _part(treatment, "treatment"), _part(outcome, "outcome")
    estimate, interval = average.estimate, average.interval(alpha)
    bias = average.score_sd * math.sqrt(outcome * treatment / (1.0 - treatment))
    near = max(interval[0], -interval[1], 0.0)
    return Sensitivity(
        treatment=treatment,
        outcome=outcome,
        alpha=alpha,
        estimate=estimate,
        interval=interval,
        bias=bias,
        robust_interval=(interval[0] - bias, interval[1] + bias),
        robustness_value=_robustness(abs(estimate), average.score_sd),
        robustness_value_of_interval=_robustness(near, average.score_sd),
        e_value=None if facts is None else _e_value(estimate, facts),
        e_value_of_interval=None if facts is None else _e_value(math.copysign(near, estimate), facts),
    )


def _part(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) < 1.0:
        raise InvalidInput(f"{name} must be a part of its variance, from 0 up to but not 1: 0.1 stands for a tenth.")
    return float(value)


def _robustness(effect: float, score_sd: float) -> float:
    """The part r of both for which the bias is the effect: r²/(1 - r) = (effect / S)²."""
    if effect == 0.0:
        return 0.0
    if score_sd == 0.0:
        return 1.0
    square = (effect / score_sd) ** 2
    # As 2 / (1 + sqrt(1 + 4 / square)): nothing is lost where the square is large.
    return 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / square)) if square > 0.0 else 0.0


def _e_value(effect: float, facts: OutcomeFacts) -> float:
    ratio = _risk_ratio(abs(effect), effect, facts)
    return ratio + math.sqrt(ratio * (ratio - 1.0))


def _risk_ratio(size: float, effect: float, facts: OutcomeFacts) -> float:
    """The effect as a risk ratio of at least one: of events where the outcome is binary, else by its size."""
    if size == 0.0:
        return 1.0
    treated, control = facts.mean + (1.0 - facts.treated) * effect, facts.mean - facts.treated * effect
    if facts.binary and min(treated, control) > 0.0:
        return max(treated / control, control / treated)
    return math.exp(min(_RATIO_OF_DIFFERENCE * size / max(facts.sd, 1e-300), _MOST_LOG))
