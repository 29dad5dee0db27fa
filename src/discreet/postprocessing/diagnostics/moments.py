"""Released moments of the treatment, kept for diagnostics: nothing is asked of the records for their sake."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.feature_selection import FeatureSelection
from discreet.postprocessing.kernel_basis import CodedBasis, CodedTables


class TreatmentMoments(NamedTuple):
    """Noisy means of (t - share of treated) w φ, with the features φ of a basis and the weight w of each record."""

    basis: CodedBasis
    value: Float
    sd: float

    def of_covariate(self, j: int) -> IntArray:
        """The constant, and functions of this covariate alone."""
        members = self.basis.members
        return np.array([k for k, own in enumerate(members) if not own or (len(own) == 1 and own[0][0] == j)])

    def weights(self, codes: tuple[IntArray, ...]) -> Float:
        """Each point's weight, for its features to stay within the radius."""
        n = len(codes[0])
        square = CodedTables(self.basis, np.ones(self.basis.m), 2).from_codes(codes, n)
        return np.minimum(1.0, self.basis.radius**2 / square)


class Calibration(NamedTuple):
    """The last correction of a propensity: what was seen of (t - e) w ψ, and what was believed before.

    ``slope`` is the derivative of the moments by the model's coefficients, ``noise`` the covariance of their error,
    ``e`` the model on the reference's points and ``covariance`` that of its coefficients' error, both as before.
    """

    selection: FeatureSelection
    seen: Float
    slope: Float
    noise: Float
    e: Float
    covariance: Float
