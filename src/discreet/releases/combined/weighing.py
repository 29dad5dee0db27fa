"""How estimates of several sites are weighed, and how far they differ: functions of released numbers alone.

Fixed effects weigh by inverse variances. Random effects add a variance between sites, which is that of Paule and
Mandel: the one at which the weighted squares of differences are what chance would make of them. The factor that Hartung
and Knapp put before the variance is one there, and is not let below one where there is no variance between sites; what
is left of their method is Student's t, with as many degrees of freedom as the weights leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.releases.average import Uncertainty

Model = Literal["fixed", "random"]
People = Literal["disjoint", "overlapping"]
# Choice: the fewest degrees of freedom, where there are three sites or more. Chosen between 1 and 2 by the cells of
# `evidence.sites` that know errors, with another seed: both cover, and 1 makes intervals up to three times as wide.
FEWEST = 2.0
# Choice: where one site has more than this part of the weight, one degree is all that there is. Of .8 and .9, on normal
# estimates of 3 to 10 sites of which one had an error 5 to 30 times smaller, seed 900,001: without it .82 were covered
# in the worst cell up to 10 times and .61 at 30, with it .94 and .82; .8 would be as good, and wider.
ALONE = 0.9
# Numerical: halvings of a bracket, after which no float lies inside.
_HALVINGS = 200


class Weighed(NamedTuple):
    """Weights that add up to one, the standard deviation between sites, and Cochran's Q."""

    weights: Float
    tau: float
    q: float


def weigh(estimates: Sequence[float], parts: Sequence[Uncertainty], model: Model) -> Weighed:
    """Weights of sites, by their errors and, with random effects, by the variance between sites.

    What clipping may have shifted counts in weights as if it were an error too, and not in the variance between sites:
    where biases differ they look like differences between sites, which makes an interval wider and never narrower.
    """
    # In units of the largest error, so that no declared range is too wide to be squared.
    unit = max(part.se for part in parts)
    values = (np.array(estimates) - estimates[0]) / unit
    variances = np.array([part.se / unit for part in parts]) ** 2
    biases = np.array([part.clipping / unit for part in parts]) ** 2
    between = between_sites(values, variances)
    weights = 1.0 / (variances + biases + (between if model == "random" else 0.0))
    return Weighed(weights / weights.sum(), unit * math.sqrt(between), weighted_squares(values, variances))


def degrees_of(weights: Sequence[float]) -> float:
    """Degrees of freedom of a mean over sites, by Satterthwaite's rule: as of so many equal sites, less one."""
    alike = 1.0 / math.fsum(weight**2 for weight in weights)
    # The others are then too imprecise to show how far effects differ, and their mean is that of the one.
    fewest = 1.0 if max(weights) > ALONE else FEWEST
    return max(alike - 1.0, min(fewest, len(weights) - 1.0))


def between_sites(values: Float, variances: Float) -> float:
    """Variance between sites: where the weighted squares of differences are as many as there are sites, less one."""

    def excess(between: float) -> float:
        return weighted_squares(values, variances + between) - (len(values) - 1)

    if excess(0.0) <= 0.0:
        return 0.0
    # The weighted squares about the weighted mean are at most those about the plain mean, divided by what is between.
    low, high = 0.0, float(np.sum((values - values.mean()) ** 2)) / (len(values) - 1)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return high


def weighted_squares(values: Float, variances: Float) -> float:
    """Squares of differences from the weighted mean, each divided by its variance: Cochran's Q."""
    weights = 1.0 / variances
    mean = float(weights @ values) / float(weights.sum())
    return float(weights @ (values - mean) ** 2)


def together(weights: Sequence[float], parts: Sequence[Uncertainty], people: People) -> Uncertainty:
    """Errors of the weighted mean, by source.

    Noise was drawn for each site by itself. Errors of sampling and adjustment are independent where no one is at two
    sites; where people overlap they are added up as if they were one and the same, which is the worst that they can do.
    Biases add up in any case.
    """

    def added(name: str) -> float:
        return math.fsum(weight * part.to_dict()[name] for weight, part in zip(weights, parts, strict=True))

    def squared(name: str) -> float:
        return math.hypot(*(weight * part.to_dict()[name] for weight, part in zip(weights, parts, strict=True)))

    alike = squared if people == "disjoint" else added
    return Uncertainty(
        sampling=alike("sampling"), privacy=squared("privacy"), nuisance=alike("nuisance"), clipping=added("clipping")
    )
