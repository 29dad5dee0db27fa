"""Who gets which share of the budget of an effect function or of segments.

As `discreet.estimators._allocation`, whose words these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

from discreet.estimators._allocation import MOST_TERMS, Allocation

_BY_HAND_CATE = (
    "By hand, on studies 3000 to 3239 of evidence/population, cut at 20,000 records: the average's part among .5, .6 "
    "and .7. The shares of the rounds, and that there are three, among some twenty variants, on these studies, where "
    "they hardly differ, and on smooth effects of two and of thirty covariates (docs/evidence/index.md)."
)
_BY_HAND_UPLIFT = (
    "Chosen by hand; the share of counts among some twenty variants on ADUM's generator with other seeds "
    "(docs/evidence/uplift.md)."
)


# Part of the budget that the average effect has, with the models of treatment and outcome, for rounds of its own.
AVERAGE_PART = 0.6
# Rounds that correct the function: each asks how large residuals are, and then for moments of these.
_MOMENTS = (0.19, 0.24, 0.49)
EFFECT_ROUNDS = len(_MOMENTS)
_MAGNITUDE, _PROBABILITIES = 0.02, 0.02


# Features of a function beside those of the models, whose moments all cost noise: a function asks only for those that
# its first moments make likely.
_WIDER = 2


def effect_terms(m: int) -> int:
    """Size of the function's basis, by that of the models."""
    return int(min(_WIDER * m, MOST_TERMS))


def effect_allocation(propensity: Any) -> Allocation:
    """Shares of a function's part of the budget; probabilities are asked about where a public column has them."""
    shares = {"probabilities of treatment": _PROBABILITIES}
    for number, share in enumerate(_MOMENTS, 1):
        shares |= {f"effect residual magnitude {number}": _MAGNITUDE, f"effect moments {number}": share}
    allocation = Allocation.of(shares, parts={}, provenance=_BY_HAND_CATE)
    if propensity is None or isinstance(propensity, Real):
        return allocation.joined("probabilities of treatment", into=f"effect moments {EFFECT_ROUNDS}")
    return allocation


effect_allocation(None)

# What comes before the names of the rounds that measure the average effect.
AVERAGE = "average: "


def shares_of_parts(
    counts: float, parts: Mapping[str, float], shares: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Shares of a budget that was divided into parts after the count, by the names of events.

    Numbers of records have one name, whoever asked for them.
    """
    found = {"number of records": counts} if counts else {}
    for prefix, part in parts.items():
        for name, share in shares[prefix].items():
            event = name if name == "number of records" else prefix + name
            found[event] = found.get(event, 0.0) + part * share
    return found


# A longer table says nothing about any of its segments, and takes long to smooth.
MOST_SEGMENTS = 512
# Part of the table's share that counts have where arms share a sum: effects are small beside the outcome's range.
_TABLE_COUNTS = 0.12
ARMS_APART: Mapping[str, float] = MappingProxyType({"pairs by segment and arm": 1.0})
ARMS_IN_ONE_SUM: Mapping[str, float] = MappingProxyType(
    {"counts by segment": _TABLE_COUNTS, "signed sums by segment": 1.0 - _TABLE_COUNTS}
)
DECLARED = Allocation.of(
    {"mean outcome": 0.02, "mean square of the outcome": 0.03, "table": 0.95},
    parts={"table": ARMS_APART},
    provenance=_BY_HAND_UPLIFT,
)
CLUSTERED = Allocation.of(
    {"partition": 0.5, "mean outcome": 0.02, "mean square of the outcome": 0.03, "table": 0.45},
    parts={"table": ARMS_APART},
    provenance=_BY_HAND_UPLIFT + " Half for the partition, as in the epsilon-ADUM paper (section 3.2).",
)


def lloyd_shares(share: float, p: int) -> dict[str, float]:
    """Shares of one round of clustering by p covariates: in the ratio of the diameters, so that all noise is alike."""
    return {"clusters: counts": share / (1 + p), "clusters: sums": share * p / (1 + p)}
