"""Scores whose mean is the effect: pure functions of one record and of public models."""

from __future__ import annotations

import numpy as np

from discreet.data._arrays import Float


def aipw_score(y: Float, t: Float, propensity: Float, prognosis: Float) -> Float:
    """Augmented inverse-propensity score, (t - e)(y - f) / (e (1 - e)).

    With f = (1 - e) mu_1 + e mu_0 this is the usual doubly robust score; its mean is the average effect if either e
    or f is right, and otherwise misses by E[(pi - e)(f* - f) / (e (1 - e))]: docs/proofs/ate.md.
    """
    return (t - propensity) / (propensity * (1.0 - propensity)) * (y - prognosis)


def aipw_score_bound(outcome_width: float, min_propensity: float) -> float:
    """Largest |score| of one record when outcome and prognosis are clipped. Proof: docs/proofs/ate.md."""
    return outcome_width / min_propensity


def balancing_weight(t: Float, propensity: Float, most: float) -> Float:
    """Weight that turns a record's residual into one of f* = (1 - e) mu_1 + e mu_0.

    The rarer arm's weight is held to ``most``, and both are then divided by their expectation, so that what both arms
    have in common passes in full; that expectation is not taken below 0.3, where it would only amplify noise.
    """
    odds = propensity / (1.0 - propensity)
    treated, control = np.minimum(1.0 / odds, most), np.minimum(odds, most)
    expected = propensity * treated + (1.0 - propensity) * control
    return np.where(t > 0.0, treated, control) / np.maximum(expected, 0.3)
