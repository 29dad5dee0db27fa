"""How far the arms overlap: fitted probabilities of treatment over the released reference population."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data._arrays import Float

# Unit: bars of a histogram from 0 to 1, the parts of the population below its quantiles, and decimals in files.
BARS = 40
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_DIGITS = 6


def overlap(e: Float, low: float, high: float, logit_sd: float) -> dict[str, Any]:
    """Histograms of all people and of either arm, quantiles, and how many of an arm's people its weights leave.

    ``low`` and ``high`` are where probabilities are trimmed, ``logit_sd`` is the usual error of a fitted logit.
    """
    bars = np.minimum((e * BARS).astype(np.int64), BARS - 1)
    arms = {"all": np.ones(len(e)), "control": 1.0 - e, "treated": e}
    return {
        "shares": {
            name: np.bincount(bars, weight / weight.sum(), BARS).round(_DIGITS).tolist()
            for name, weight in arms.items()
        },
        "quantiles": [[part, round(float(np.quantile(e, part)), _DIGITS)] for part in QUANTILES],
        # Of weights 1/e over the treated, the squared sum over the sum of squares, beside the number of treated.
        "effective": {
            "control": round(1.0 / float(np.mean(1.0 / (1.0 - e))) / float(np.mean(1.0 - e)), _DIGITS),
            "treated": round(1.0 / float(np.mean(1.0 / e)) / float(np.mean(e)), _DIGITS),
        },
        "trim": [low, high],
        "trimmed": [round(float(np.mean(e <= low)), _DIGITS), round(float(np.mean(e >= high)), _DIGITS)],
        "logit_sd": round(logit_sd, _DIGITS),
    }
