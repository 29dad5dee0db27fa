"""Where the uncertainty of a released average comes from, and intervals that allow for all of it."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from math import hypot
from numbers import Real
from typing import Any

from scipy.special import ndtr, ndtri

from discreet.exceptions import InvalidInput

# When a root counts as found: the last of Newton's steps at least squares what is left.
_CLOSE, _MOST_STEPS = 1e-9, 200


def folded_critical(bias: float, alpha: float) -> float:
    """Critical value of |Z + b| for the least favourable |b| <= ``bias``, Z standard normal.

    An interval ``estimate +- critical * se`` covers with probability ``1 - alpha`` whatever the bias is, as long as it
    stays below ``bias`` standard errors.
    """
    if bias <= 0.0:
        return -float(ndtri(alpha / 2.0))
    # Newton's steps, by halves where they leave the bracket: importing scipy.optimize would take longer than a plan.
    # The bracket starts at zero: the critical value without bias is the root itself beside a tiny bias, and rounding
    # would put it on either side.
    low, high = 0.0, bias - float(ndtri(alpha / 2.0)) + 1.0
    critical = high - 1.0
    for _ in range(_MOST_STEPS):
        above, below = critical - bias, -critical - bias
        excess = alpha - float(ndtr(-above) + ndtr(below))
        low, high = (critical, high) if excess < 0.0 else (low, critical)
        slope = (math.exp(-above * above / 2.0) + math.exp(-below * below / 2.0)) / math.sqrt(math.tau)
        before, critical = critical, critical - excess / slope if slope > 0.0 else low
        if not low <= critical <= high:
            critical = (low + high) / 2.0
        if abs(critical - before) <= _CLOSE * min(critical, 1.0):
            break
    return float(critical)


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
        Bias that clipping of extreme scores is taken to have caused; the interval allows for it in either direction.

    Examples
    --------
    >>> parts = Uncertainty(sampling=0.3, privacy=0.4)
    >>> parts.se
    0.5
    >>> [round(end, 2) for end in parts.interval(2.0, alpha=0.05)]
    [1.02, 2.98]
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

    def scaled(self, *, records: float = 1.0, mu: float = 1.0, covariates: float = 1.0) -> Uncertainty:
        """What to expect with so many times the records, the budget's Gaussian parameter mu and the covariates.

        Noise and clipping fall with n mu and sampling with the root of n; what adjustment leaves falls with the root of
        n mu over covariates, as it does in the middle of random studies that are fitted again (docs/evidence/trust.md).
        """
        times: dict[str, object] = {"records": records, "mu": mu, "covariates": covariates}
        for name, value in times.items():
            if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < math.inf:
                raise InvalidInput(f"{name} must be a positive number: 2 stands for twice as many.")
        information = records * mu
        return Uncertainty(
            sampling=self.sampling / math.sqrt(records),
            privacy=self.privacy / information,
            nuisance=self.nuisance * math.sqrt(covariates / information),
            clipping=self.clipping / information,
        )

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
