"""Means of both arms beside an average effect, and what follows from them: ratios, odds, numbers needed to treat.

All of it is post-processing of one release. A level q m_1 + (1 - q) m_0 is released beside the effect m_1 - m_0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import hypot, inf, nan, sqrt
from typing import Any, TypeAlias

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.releases.parts.uncertainty import Uncertainty

# A number with the ends of its interval.
Answer: TypeAlias = tuple[float, float, float]
# From a hypothetical ratio: a difference that would be zero, and its slopes in the means of treated and controls.
Hypothesis = Callable[[float], tuple[float, float, float]]
# Numerical: ratios are looked for from one over this to this, at so many places, and ends are found to this part.
_LARGEST, _PLACES, _NEAR = 1e6, 300, 1e-6


def check_alpha(alpha: object) -> None:
    """Refuse what is no level."""
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmMeans:
    """The released level of an outcome, from which and an effect the means of both arms follow.

    Parameters
    ----------
    level
        ``part`` times the mean of treated plus the rest times that of controls, in the outcome's unit.
    part
        Part of the treated in it.
    uncertainty
        Where its error comes from.
    covariance
        Least and largest covariance of its sampling error with the effect's.
    """

    level: float
    part: float
    uncertainty: Uncertainty
    covariance: tuple[float, float]

    def __post_init__(self) -> None:
        numbers = (self.level, self.part, *self.covariance, *self.uncertainty.to_dict().values())
        if any(isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) for x in numbers):
            raise InvalidInput("the level and its errors must be finite numbers; check how they were computed.")
        if not 0 <= self.part <= 1 or self.covariance[0] > self.covariance[1]:
            raise InvalidInput("part must lie between 0 and 1, and covariance must be a least and a largest number.")
        object.__setattr__(self, "level", float(self.level))
        object.__setattr__(self, "part", float(self.part))
        object.__setattr__(self, "covariance", tuple(float(end) for end in self.covariance))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        own = {"level": self.level, "part": self.part, "covariance": list(self.covariance)}
        return own | {"uncertainty": self.uncertainty.to_dict()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ArmMeans:
        """Inverse of ``to_dict``."""
        if plain.keys() != {"level", "part", "covariance", "uncertainty"}:
            raise InvalidInput("arms of a release must have a level, a part, a covariance and an uncertainty.")
        low, high = plain["covariance"]
        uncertainty = Uncertainty.from_dict(plain["uncertainty"])
        return cls(level=plain["level"], part=plain["part"], uncertainty=uncertainty, covariance=(low, high))

    def means(self, effect: float) -> tuple[float, float]:
        """Means of controls and treated, wherever noise has put them."""
        return self.level - self.part * effect, self.level + (1.0 - self.part) * effect

    def error(self, effect: Uncertainty, control: float, treated: float) -> Uncertainty:
        """Of ``control`` times the mean of controls plus ``treated`` times that of the treated.

        Noise of level and effect is independent. Of covariances that are possible, the one that makes it larger counts.
        """
        a, b = control + treated, (1.0 - self.part) * treated - self.part * control
        own, low, high = self.uncertainty, *self.covariance
        covariance = high if a * b > 0.0 else low
        square = (a * own.sampling) ** 2 + (b * effect.sampling) ** 2 + 2.0 * a * b * covariance
        return Uncertainty(
            sampling=sqrt(max(square, 0.0)),
            privacy=hypot(a * own.privacy, b * effect.privacy),
            nuisance=hypot(a * own.nuisance, b * effect.nuisance),
            clipping=abs(a) * own.clipping + abs(b) * effect.clipping,
        )


class Ratios:
    """What a release of an average effect says about the means of its arms, at no further cost."""

    __slots__ = ()

    estimate: float
    uncertainty: Uncertainty
    bounds: Bounds
    cap: float | None
    arms: ArmMeans | None

    def means(self, alpha: float = 0.05) -> dict[str, Answer]:
        """Mean outcome of the people meant, without and with treatment: ``{"control": (mean, low, high), ...}``.

        Their difference is the estimate, but for means that noise puts outside the outcome's range.
        """
        check_alpha(alpha)
        arms, (low, high) = self._arms(), self.outcomes
        found = {}
        slopes = {"control": (1.0, 0.0), "treated": (0.0, 1.0)}
        for (name, own), mean in zip(slopes.items(), arms.means(self.estimate), strict=True):
            ends = (mean, *arms.error(self.uncertainty, *own).interval(mean, alpha))
            found[name] = tuple(min(max(end, low), high) for end in ends)
        return found  # type: ignore[return-value]

    def relative_effect(self, alpha: float = 0.05) -> Answer:
        """Mean with treatment over mean without: (ratio, low, high).

        The interval holds all ratios that are compatible with both means (Fieller), so that it is unbounded, and its
        upper end ``inf``, where the mean of controls may be zero.
        """
        check_alpha(alpha)
        control, treated = self._clipped_means()
        if self.outcomes[0] < 0.0:
            raise InvalidInput(
                "relative_effect needs an outcome that cannot be negative: ratios of means of both signs say nothing; "
                "use means() and the estimate."
            )
        ratio = _over(treated, control)
        # Tested where noise has put them: errors that go together cancel, and would not once one mean is moved.
        control, treated = self._arms().means(self.estimate)
        centre = _over(treated, control)
        return self._inverted(ratio, centre, lambda ratio: (treated - ratio * control, 1.0, -ratio), alpha)

    def risk_ratio(self, alpha: float = 0.05) -> Answer:
        """Risk with treatment over risk without, of an outcome of two values: (ratio, low, high)."""
        self._check_binary("risk_ratio")
        return self.relative_effect(alpha)

    def odds_ratio(self, alpha: float = 0.05) -> Answer:
        """Odds with treatment over odds without, of an outcome of two values: (ratio, low, high)."""
        check_alpha(alpha)
        self._check_binary("odds_ratio")
        m0, m1 = self._clipped_means()
        odds = _over(m1 * (1.0 - m0), m0 * (1.0 - m1))
        m0, m1 = self._arms().means(self.estimate)

        def hypothesis(ratio: float) -> tuple[float, float, float]:
            difference = m1 * (1.0 - m0) - ratio * m0 * (1.0 - m1)
            return difference, 1.0 - m0 + ratio * m0, -m1 - ratio * (1.0 - m1)

        return self._inverted(odds, _over(m1 * (1.0 - m0), m0 * (1.0 - m1)), hypothesis, alpha)

    def nnt(self, alpha: float = 0.05) -> Answer:
        """Number of people to treat for one event more, below zero for one event less: (number, low, high).

        One over the risk difference. Where that may be zero, no number is too large: the ends are ``-inf`` and ``inf``.
        """
        check_alpha(alpha)
        self._check_binary("nnt")
        low, high = self.uncertainty.interval(self.estimate, alpha)
        if low <= 0.0 <= high:
            return _over(1.0, self.estimate), -inf, inf
        low, high = max(low, -1.0), min(high, 1.0)
        return 1.0 / self.estimate, 1.0 / high, 1.0 / low

    def e_value(self, alpha: float = 0.05) -> Answer:
        """How strongly something left out would have to go with treatment and outcome (VanderWeele and Ding, 2017).

        As risk ratios: to explain away the estimate; to move the interval to no effect (1 if it holds it already); and
        to explain away the other end of the interval.
        """
        value, low, high = self.risk_ratio(alpha)
        near, far = (low, high) if value >= 1.0 else (high, low)
        return _e_value(value), 1.0 if low <= 1.0 <= high else _e_value(near), _e_value(far)

    @property
    def outcomes(self) -> tuple[float, float]:
        """The range of the outcome, as it was capped."""
        low, high = self.bounds.outcome
        return low, high if self.cap is None else self.cap

    @property
    def _has_risks(self) -> bool:
        return self.bounds.binary or self.bounds.outcome == (0.0, 1.0)

    def arm_rows(self, alpha: float = 0.05) -> list[tuple[str, str]]:
        """Means of both arms, and the risk ratio where there is one, as rows of a table."""
        if self.arms is None:
            return []
        rows = [(f"mean, {name}", _words(*found)) for name, found in self.means(alpha).items()]
        return rows + ([("risk ratio", _words(*self.risk_ratio(alpha)))] if self._has_risks else [])

    def arm_words(self) -> str:
        """The same as a sentence for a paper, after a space."""
        rows = ", ".join(f"{name.replace('mean, ', 'mean of ')} {words}" for name, words in self.arm_rows())
        return f" With 95 % intervals: {rows}." if rows else ""

    def _arms(self) -> ArmMeans:
        if self.arms is None:
            raise InvalidInput(
                "this release has no means of its arms: neither differences in differences nor fits with weights or "
                "missing outcomes nor files of earlier versions have any, so use its estimate, or pay for another fit."
            )
        return self.arms

    def _clipped_means(self) -> tuple[float, float]:
        (low, high), (control, treated) = self.outcomes, self._arms().means(self.estimate)
        return min(max(control, low), high), min(max(treated, low), high)

    def _check_binary(self, name: str) -> None:
        if not self._has_risks:
            raise InvalidInput(
                f"{name} belongs to an outcome of two values, declared as outcome=[0, 1]: use relative_effect() here."
            )

    def _inverted(self, value: float, centre: float, hypothesis: Hypothesis, alpha: float) -> Answer:
        """All ratios that a test at level alpha does not reject, with what lies between them and the value.

        ``centre`` is the ratio that it rejects last: others that it does not reject may lie between two places.
        """

        def accepted(ratio: float) -> bool:
            difference, treated, control = hypothesis(ratio)
            return abs(difference) <= self._arms().error(self.uncertainty, control, treated).interval(0.0, alpha)[1]

        places = [_LARGEST ** (2.0 * k / _PLACES - 1.0) for k in range(_PLACES + 1)]
        places = sorted({*places, *(each for each in (value, centre) if 1.0 / _LARGEST < each < _LARGEST)})
        inside = [k for k, ratio in enumerate(places) if ratio == value or accepted(ratio)]
        if not inside:
            return value, 0.0, inf
        first, last = inside[0], inside[-1]
        low = _edge(accepted, places[first - 1], places[first]) if first else 0.0
        high = _edge(accepted, places[last + 1], places[last]) if last + 1 < len(places) else inf
        return value, low, high


def _edge(accepted: Callable[[float], bool], outside: float, inside: float) -> float:
    """Where acceptance ends, between two ratios."""
    while abs(outside - inside) > _NEAR * inside:
        middle = sqrt(outside * inside)
        outside, inside = (outside, middle) if accepted(middle) else (middle, inside)
    return inside


def _over(above: float, below: float) -> float:
    """A quotient; of nothing over nothing, no number."""
    if below:
        return above / below
    return math.copysign(inf, above) if above else nan


def _e_value(ratio: float) -> float:
    larger = ratio if ratio >= 1.0 else _over(1.0, ratio)
    return larger + sqrt(larger * (larger - 1.0)) if larger < inf else inf


def _words(value: float, low: float, high: float) -> str:
    return f"{value:.3g} ({low:.3g} to {high:.3g})"
