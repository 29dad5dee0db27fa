"""Sampling error and privacy noise together: confidence intervals for a released estimate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import hypot
from typing import Any

from scipy.optimize import brentq
from scipy.special import ndtr, ndtri


def folded_critical(bias: float, alpha: float) -> float:
    """Critical value of |Z + b| for the least favourable |b| <= ``bias``, Z standard normal.

    An interval ``estimate +- critical * se`` covers with probability ``1 - alpha`` whatever the bias is, as long as it
    stays below ``bias`` standard errors.
    """
    if bias <= 0.0:
        return -float(ndtri(alpha / 2.0))
    # The bracket starts at zero: the critical value without bias is the root itself beside a tiny bias, and rounding
    # would put it on either side.
    return float(
        brentq(
            lambda c: ndtr(c - bias) - ndtr(-c - bias) - (1.0 - alpha),
            0.0,
            bias - float(ndtri(alpha / 2.0)) + 1.0,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """Where the uncertainty of a released estimate comes from; all in the outcome's unit, all public.

    Parameters
    ----------
    sampling : float
        Standard error from the finite sample.
    privacy : float
        Standard deviation of the noise that was added to the estimate itself.
    nuisance : float
        Standard deviation of the second-order remainder: the noise in the adjustment models.
    clipping : float
        Largest bias that clipping of extreme scores is taken to have caused; the interval allows for it in full.
    """

    sampling: float
    privacy: float
    nuisance: float = 0.0
    clipping: float = 0.0

    @property
    def se(self) -> float:
        """Standard error: sampling, noise and remainder together."""
        return hypot(self.sampling, self.privacy, self.nuisance)

    def interval(self, estimate: float, alpha: float = 0.05) -> tuple[float, float]:
        """Interval around ``estimate`` that covers with probability ``1 - alpha``."""
        if self.se == 0.0:
            return estimate - self.clipping, estimate + self.clipping
        half = folded_critical(self.clipping / self.se, alpha) * self.se
        return estimate - half, estimate + half

    def share(self) -> dict[str, float]:
        """Share of each source in the variance (the squared clipping allowance counted with them)."""
        # Relative to the largest, so that no declared range is too wide to be squared.
        plain = self.to_dict()
        most = max(plain.values()) or 1.0
        parts = {name: (value / most) ** 2 for name, value in plain.items()}
        total = sum(parts.values()) or 1.0
        return {name: value / total for name, value in parts.items()}

    def to_dict(self) -> dict[str, float]:
        """The four numbers by name."""
        return {name: float(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Uncertainty:
        """Inverse of ``to_dict``."""
        return cls(**{name: float(plain[name]) for name in ("sampling", "privacy", "nuisance", "clipping")})
