"""A gate on the records that a public rule chooses: to an estimator it is a gate on fewer records."""

from __future__ import annotations

from copy import copy

from discreet.data.views.within import RecordsWithin, Region
from discreet.privacy.gate import Gate


def gate_within(gate: Gate, region: Region, share: float) -> Gate:
    """A gate on the records of a region, which spends from the same budget.

    The region is declared or follows from earlier releases. How many records it has is private, and is released with a
    ``share`` of the budget. Proof: docs/proofs/policy.md, lemma 1.
    """
    inside = copy(gate)
    inside._records, inside._prepared = RecordsWithin(gate._records, region), {}
    inside.counts_rows, inside._count = True, None
    inside.count(share)
    return inside
