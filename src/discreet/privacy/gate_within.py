"""A gate on the records that a public rule chooses: to an estimator it is a gate on fewer records."""

from __future__ import annotations

from copy import copy

from discreet.data.views.within import Part, RecordsWithin
from discreet.privacy.gate import Gate


def gate_within(gate: Gate, region: Part, share: float, counted: float | None = None) -> Gate:
    """A gate on the records of a region, which spends from the same budget.

    The region is declared or follows from earlier releases. How many records it has is private, and is released with a
    ``share`` of the budget, unless it was ``counted`` by an earlier round. Proof: docs/proofs/policy.md, lemma 1.
    """
    inside = copy(gate)
    inside._records, inside._prepared = RecordsWithin(gate._records, region), {}
    inside.counts_rows, inside._count = True, None
    if counted is None:
        inside.count(share)
    else:
        inside._count = max(1.0, counted)
    return inside
