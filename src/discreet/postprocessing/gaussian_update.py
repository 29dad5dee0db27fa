"""Normal beliefs about coefficients, and what noisy linear moments tell of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Where coefficients are and how far off they may be."""

    mean: Float
    covariance: Float

    def update(self, seen: Float, slope: Float, noise: Float, gram: Float, most: float) -> Belief:
        """After a look that shows ``slope @ (truth - mean)`` with noise.

        Where it shows more than could be expected, more is doubted. No step moves the predictions, whose mean square
        ``gram`` gives, by more than ``most``.
        """
        expected = slope @ self.covariance @ slope.T
        surprise = float(seen @ np.linalg.solve(expected + noise, seen)) / len(seen)
        prior = max(1.0, surprise - np.sqrt(2.0 / len(seen))) * self.covariance
        gain = np.linalg.solve(slope @ prior @ slope.T + noise, slope @ prior).T
        step = gain @ seen
        length = float(np.sqrt(max(float(step @ gram @ step), 0.0)))
        left = prior - gain @ slope @ prior
        return Belief(self.mean + step * min(1.0, most / max(length, 1e-300)), (left + left.T) / 2.0)


# Keeps what can be seen by no record from being divided by.
_TINY = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Information:
    """A normal likelihood of coefficients: its precision, and precision times its peak.

    It is about the coefficients of these very records, so that rounds add up: each has noise of its own, while all see
    the same records. What sampling adds is added once, by `sampled`.
    """

    precision: Float
    target: Float

    @classmethod
    def seen(cls, value: Float, sd: float, slope: Float, doubt: float) -> Information:
        """From moments ``slope @ coefficients + noise``; ``doubt`` is a relative error of the model behind the slope.

        Without it, early rounds would be believed to the last digit where records are many.
        """
        noise = sd**2 + doubt**2 * float(np.mean(value**2))
        return cls(slope.T @ slope / noise, slope.T @ value / noise)

    def sampled(self, precision: Float) -> Information:
        """The same about the coefficients of the population, which those of the records miss with some precision."""
        left = np.linalg.solve(
            self.precision + precision + _TINY * np.trace(precision) * np.eye(len(precision)), precision
        )
        joint = self.precision @ left
        return Information((joint + joint.T) / 2.0, left.T @ self.target)

    def around(self, centre: Float) -> Information:
        """The same where coefficients were counted from a centre."""
        return Information(self.precision, self.target + self.precision @ centre)

    def __add__(self, other: Information) -> Information:
        return Information(self.precision + other.precision, self.target + other.target)

    def weakened(self, part: float) -> Information:
        """Believed in part only."""
        return Information(part * self.precision, part * self.target)
