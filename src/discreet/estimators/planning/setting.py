"""A budget on ideal records: what rounds of an average effect would leave, for the plan of any estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Any, NamedTuple, TypeAlias

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators._allocation import COUNT
from discreet.estimators.planning.expected import Expected, Shape
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.fixed_point import SensitivitySet, noise_sd
from discreet.releases.average import Uncertainty


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is planned with.

    Parameters
    ----------
    n, bounds, shape
        Number of records, declared facts, and an ideal outcome.
    treated, design
        Share of treated, and known probabilities of treatment, if they are known.
    adjusts
        Whether covariates are used.
    mu, pure, neighbours
        The Gaussian parameter of the whole budget, or its epsilon where noise is Laplace's; and the relation.
    counted
        Whether the number of records is released first.
    part
        The part of the budget that is spent here.
    """

    n: int
    bounds: Bounds
    shape: Shape
    treated: float
    design: float | Float | None
    adjusts: bool
    mu: float
    pure: bool
    neighbours: Neighbours
    counted: bool
    # Unit: all of the budget.
    part: float = 1.0

    def within(self, part: float, **other: Any) -> Setting:
        """The same with a part of the budget, and whatever else is other there."""
        return replace(self, part=self.part * part, **other)

    def noise(self, geometry: SensitivitySet, share: float) -> float:
        """Noise of a mean."""
        kept = self.part * share * (1.0 - COUNT if self.counted else 1.0)
        return noise_sd(geometry, kept, self.mu, self.pure, self.neighbours, self.n) / self.n

    @property
    def information(self) -> float:
        """The number of records times the Gaussian parameter of the part."""
        return self.n * self.mu * sqrt(self.part)

    @property
    def expected(self) -> Expected:
        """An average effect on these records."""
        return Expected(
            n=self.n,
            information=self.information,
            bounds=self.bounds,
            shape=self.shape,
            treated=self.treated,
            design=self.design,
            adjusts=self.adjusts,
        )

    def average(self) -> Uncertainty:
        """The parts of the interval of an average effect."""
        return self.expected.uncertainty(self.noise, pure=self.pure)

    def without_privacy(self) -> float:
        """Standard error of an average effect without any noise."""
        return replace(self.expected, information=inf).without_noise()


class Found(NamedTuple):
    """What a plan found out.

    Parameters
    ----------
    parts
        The expected parts of the interval.
    without
        The standard error without privacy.
    assumptions
        What was assumed besides the outcome.
    width
        Of the interval, where it does not follow from its parts.
    largest
        The largest effect that there can be, where it is not the width of the outcome's range.
    guessed
        Whether it rests on a guess at the outcome's deviation.
    """

    parts: Uncertainty
    without: float
    assumptions: tuple[str, ...]
    width: float | None = None
    largest: float | None = None
    guessed: bool = True


Planner: TypeAlias = Callable[[Setting, float, Mapping[str, Any]], Found]
"""The plan of an estimator that has rounds of its own: from a setting, the level of intervals, and further options."""


def scaled(parts: Uncertainty, factor: float) -> Uncertainty:
    """The parts of an estimate that is multiplied by a factor."""
    return Uncertainty(**{name: factor * value for name, value in parts.to_dict().items()})
