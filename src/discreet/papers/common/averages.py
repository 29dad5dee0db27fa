"""What a released mean and second moment say about an average."""

from math import sqrt

import numpy as np

from discreet.privacy.query import Released
from discreet.releases.average import Uncertainty


def average(sums: Released, n: float, unit: float = 1.0) -> tuple[float, Uncertainty]:
    """Mean of n numbers and its uncertainty, times ``unit``, from a release of geometry `MeanSquare`."""
    mean, square = (float(value) / n for value in sums.value)
    noise, square_noise = (float(sd) / n for sd in np.asarray(sums.sd))
    # One standard deviation of its noise is added to the second moment: a variance below zero says nothing.
    variance = max(square + square_noise - mean**2, 0.0)
    return unit * mean, Uncertainty(sampling=unit * sqrt(variance / n), privacy=unit * noise)
