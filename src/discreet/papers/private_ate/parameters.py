"""What PrivATE may be asked for: which options go together, and how the budget is divided (section 4)."""

from __future__ import annotations

from math import fsum, isclose
from numbers import Real
from typing import Any, Literal, Protocol, get_args

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.papers.private_ate.equations import Parts
from discreet.privacy.budget import Budget

Calibration = Literal["published", "proved"]
Split = Literal["public", "private"]
Supremum = Literal["l-bfgs-b", "closed-form"]


class Parameters(Protocol):
    """The parameters of `PrivATE`."""

    bounds: Bounds
    model_regression: Any
    model_propensity: Any
    propensity: float | None
    calibration: Calibration
    split: Split | None
    supremum: Supremum
    starts: int
    clip: float | None
    epsilon1: float | None
    epsilon2: float | None
    delta1: float | None
    delta2: float | None


def check_parameters(given: Parameters, budget: Budget) -> None:
    """Refuse parameters that contradict each other, before a record is read."""
    if budget.pure:
        raise InvalidBudget("PrivATE needs delta, e.g. delta=1e-5: its noise is Gaussian.")
    _one_of("calibration", given.calibration, get_args(Calibration))
    _one_of("split", given.split, (None, *get_args(Split)))
    _one_of("supremum", given.supremum, get_args(Supremum))
    if isinstance(given.starts, bool) or not isinstance(given.starts, int) or given.starts < 1:
        raise InvalidInput("starts must be a positive integer; the paper takes 10.")
    if not given.bounds.p:
        raise InvalidInput("PrivATE needs covariates in its bounds; without any, use discreet.DifferenceInMeans.")
    if given.propensity is not None and not _is_number(given.propensity):
        raise InvalidInput(
            "propensity must be one number, as the supremum is over unseen records; leave it out to estimate it."
        )
    if given.split == "private" and (given.model_regression is not None or given.model_propensity is not None):
        raise InvalidInput("split='private' has its own models; leave out model_regression and model_propensity.")
    if given.calibration == "proved":
        _check_proved(given)
    elif given.clip is not None:
        raise InvalidInput("clip belongs to calibration='proved'; the published noise follows the supremum.")
    budget_parts(given, budget)


def _check_proved(given: Parameters) -> None:
    if given.split is None:
        raise InvalidInput(
            "calibration='proved' needs split='public' or 'private': models that saw the records are not covered."
        )
    if any(part is not None for part in (given.epsilon1, given.epsilon2, given.delta1, given.delta2)):
        raise InvalidBudget(
            "epsilon1, epsilon2, delta1 and delta2 belong to the published calibration; the proved one releases "
            "mean and second moment together."
        )
    if given.clip is not None and not (_is_number(given.clip) and 0 < given.clip < float("inf")):
        raise InvalidInput("clip must be a positive number in the outcome's unit; choose it before seeing the records.")


def budget_parts(given: Parameters, budget: Budget) -> Parts:
    """What the estimate and its variance spend."""
    epsilon1, epsilon2 = _two_parts("epsilon", budget.epsilon, given.epsilon1, given.epsilon2)
    delta1, delta2 = _two_parts("delta", budget.delta or 0.0, given.delta1, given.delta2)
    return Parts(epsilon1, delta1, epsilon2, delta2)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _one_of(argument: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise InvalidInput(f"{argument} must be one of {', '.join(map(repr, allowed))}.")


def _two_parts(name: str, whole: float, first: float | None, second: float | None) -> tuple[float, float]:
    """The two parts of a budget: both, one and what it leaves, or half each."""
    for part in (first, second):
        # Written so that NaN is refused too.
        if part is not None and not (_is_number(part) and 0 < part < whole):
            raise InvalidBudget(f"{name}1 and {name}2 must be positive and smaller than {name}; lower them.")
    if first is None:
        first = whole / 2.0 if second is None else whole - second
    second = whole - first if second is None else second
    if not isclose(fsum((first, second)), whole, rel_tol=1e-9):
        raise InvalidBudget(f"{name}1 + {name}2 must be {name}; give one of them, and the other is what it leaves.")
    return first, second
