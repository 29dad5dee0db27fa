"""The last round of an effect function: how much of it the records bear out, and its average over them.

Everything else that is known of the function is by a public sample that stands in for the covariates. Where that is far
from the records, as where many of them share a few values, so is the function; this round is about the records alone.
Diameters: docs/proofs/cate.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from discreet.data._arrays import Float
from discreet.data.records import Chunk
from discreet.estimators.measurements.effect_models import Models
from discreet.estimators.measurements.location import Location
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Ball

# The function is held to so many standard deviations, over the stand-in, about its average there.
_REACH = 3.0
# Prior of the slope, chance, mean and standard deviation: of functions that are right, and of others. Among eight such
# priors, which hardly differ, on studies 3000 to 3120 of evidence/population.
_PRIOR = ((0.7, 1.0, 0.15), (0.3, 0.5, 0.5))
# The function's variance on the records, beside that on the stand-in, is taken to be this at least.
_LEAST = 0.05
# Numbers that are asked for.
_NUMBERS = 5


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the records say of a function g that is counted from its average over the stand-in.

    ``slope`` times g is what they bear out, known with the standard deviation ``slope_sd``; ``mean`` is the average of
    g over them, and ``noise`` that number's; ``limit`` is where g was clipped, ``sd`` its standard deviation over
    the stand-in.
    """

    slope: float
    slope_sd: float
    mean: float
    noise: float
    limit: float
    sd: float


def calibrate(gate: Gate, share: float, models: Models, location: Location, average: float) -> Calibration:
    """Regress what the outcome's model leaves on (t - e) and (t - e) g; ``average`` is a public average effect."""
    setting, propensity = models.setting, models.propensity
    values = setting.reference.features @ models.effect
    centre, sd = float(values.mean()), max(float(values.std()), 1e-9)
    limit, reach = _REACH * sd, propensity.reach
    unit = gate.noise_sd(Ball(1.0, _NUMBERS), share) / gate.n
    tails = location.tails.clip(unit, (1.0 + location.centre, 1.0 - location.centre))
    clip = min(2.0, max(tails.low, tails.high) / 2.0)

    def rows(c: Chunk) -> Float:
        u = c.t - propensity(c)
        g = np.clip(setting.features.combine(c, models.effect) - centre, -limit, limit) / limit
        expected = np.clip(models.centre + setting.features.combine(c, models.outcome), -1.0, 1.0)
        product = u * np.clip(c.y - expected - u * average, -clip, clip) / clip
        return np.column_stack([product, product * g, g, u**2 * g, (u * g) ** 2])

    radius = sqrt(1.0 + 2.0 * reach**2 + 2.0 * reach**4)
    (sums,) = gate.ask(Query("calibration", share, Ball(radius, _NUMBERS), rows))
    level, product, mean, weighted, square = sums.value / gate.n
    noise, e = float(sums.sd) / gate.n, propensity.on_reference
    varies = float(np.mean(e * (1.0 - e)))
    # In units of the clip over the limit.
    least = _LEAST * varies * (sd / limit) ** 2
    within = max(float(square - weighted**2 / varies), least)
    found = float(product - level * weighted / varies) / within
    error = (1.0 + (weighted / varies) ** 2) * (noise / within) ** 2 + (noise / within * found) ** 2
    ratio = clip / limit
    error += (location.magnitude.scale / clip) ** 2 / (gate.n * within)
    slope, slope_sd = _believed(ratio * found, ratio**2 * float(error))
    return Calibration(
        slope=float(np.clip(slope, 0.0, 1.0)),
        slope_sd=slope_sd,
        mean=float(np.clip(mean, -1.0, 1.0)) * limit,
        noise=noise * limit,
        limit=limit,
        sd=sd,
    )


def _believed(slope: float, variance: float) -> tuple[float, float]:
    """Posterior mean and standard deviation of the slope, from an estimate with this variance."""
    chance, middle, sd = (np.array(each) for each in zip(*_PRIOR, strict=True))
    total = variance + sd**2
    evidence = np.log(chance / np.sqrt(total)) - (slope - middle) ** 2 / (2.0 * total)
    weight = np.exp(evidence - evidence.max())
    weight /= weight.sum()
    means, variances = (slope * sd**2 + middle * variance) / total, variance * sd**2 / total
    mean = float(weight @ means)
    return mean, float(np.sqrt(weight @ (variances + (means - mean) ** 2)))
