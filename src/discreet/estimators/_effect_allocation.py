"""Who gets which share of the budget of an effect function or of segments.

As `discreet.estimators._allocation`, whose words these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from types import MappingProxyType
from typing import Any

from discreet.estimators._allocation import MOST_TERMS, QUESTION, Allocation

_BY_HAND_CATE = (
    "By hand, on studies 3000 to 3239 of evidence/population, cut at 20,000 records: the average's part among .5, .6 "
    "and .7. That there are three rounds, among some twenty variants, on these studies, where they hardly differ, and "
    "on smooth effects of two and of thirty covariates (docs/evidence/index.md). The last one's part, on 379 studies "
    "of evidence/population from 720,000 on: errors of functions were 1 % (+- .4) smaller than with shares of .19, .24 "
    "and .49, and intervals .7 % wider; even parts made these 1.5 % wider, at the same error."
)
_BY_HAND_UPLIFT = (
    "Chosen by hand; the share of counts among some twenty variants on ADUM's generator with other seeds "
    "(docs/evidence/uplift.md)."
)


# Choice: part of the budget that the average effect has, with the models of treatment and outcome, for rounds of its
# own. Chosen as the provenance above says.
AVERAGE_PART = 0.6
# Choice: rounds that correct the function, each of which asks how large residuals are, and then for moments of these.
# Chosen as the provenance above says.
EFFECT_ROUNDS = 3
# Choice: part of these moments' share that the last round has; those before it share the rest evenly. Chosen as the
# provenance above says.
_LAST = 0.5


# Choice: features of a function beside those of the models, whose moments all cost noise: a function asks only for
# those that its first moments make likely. Chosen of 1, 2 and 4, on studies 95,000 to 95,299 of evidence/population,
# where they hardly differ, and on the DP-CATE paper's data sets with seeds 600 to 602.
_WIDER = 2


def effect_terms(m: int) -> int:
    """Size of the function's basis, by that of the models."""
    return int(min(_WIDER * m, MOST_TERMS))


def effect_allocation(propensity: Any) -> Allocation:
    """Shares of a function's part of the budget; probabilities are asked about where a public column has them."""
    numbers = range(1, EFFECT_ROUNDS + 1)
    # What prepares has the share of any such question.
    rest = 1.0 - QUESTION * (1 + EFFECT_ROUNDS)
    shares = {"probabilities of treatment": QUESTION}
    for number in numbers:
        part = _LAST if number == EFFECT_ROUNDS else (1.0 - _LAST) / (EFFECT_ROUNDS - 1)
        shares |= {f"effect residual magnitude {number}": QUESTION, f"effect moments {number}": part * rest}
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


# Memory: a longer table says nothing about any of its segments, and takes long to smooth.
MOST_SEGMENTS = 512
# Choice: part of the table's share that counts have where arms share a sum: effects are small beside the outcome's
# range. Chosen among some twenty variants on ADUM's generator with other seeds (docs/evidence/uplift.md).
_TABLE_COUNTS = 0.12
# Unit: all of the table's share.
ARMS_APART: Mapping[str, float] = MappingProxyType({"pairs by segment and arm": 1.0})
ARMS_IN_ONE_SUM: Mapping[str, float] = MappingProxyType(
    {"counts by segment": _TABLE_COUNTS, "signed sums by segment": 1.0 - _TABLE_COUNTS}
)
# Choice: part of the budget that finding segments has. Chosen in the epsilon-ADUM paper (section 3.2).
_PARTITION = 0.5


def _of_segments(provenance: str, partition: float = 0.0) -> Allocation:
    """The outcome's moments have the share of any question that prepares others, and the table has the rest."""
    shares = {"partition": partition} if partition else {}
    shares |= {"mean outcome": QUESTION, "mean square of the outcome": QUESTION}
    rest = 1.0 - sum(shares.values())
    return Allocation.of({**shares, "table": rest}, parts={"table": ARMS_APART}, provenance=provenance)


DECLARED = _of_segments(_BY_HAND_UPLIFT)
CLUSTERED = _of_segments(_BY_HAND_UPLIFT + " Half for the partition, as in the epsilon-ADUM paper.", _PARTITION)


def lloyd_shares(share: float, p: int) -> dict[str, float]:
    """Shares of one round of clustering by p covariates: in the ratio of the diameters, so that all noise is alike."""
    return {"clusters: counts": share / (1 + p), "clusters: sums": share * p / (1 + p)}
