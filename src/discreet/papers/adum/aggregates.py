"""ADUM from sums and counts that somebody else computed: Algorithm 1 from line 5 on.

What the paper's setting hands over is a table of aggregates, not records. Nothing can clip a record then: that every
outcome lay inside its bounds, and that each record is in one cell, is the aggregator's word, and the guarantee claimed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.partition import By, Partition
from discreet.exceptions import InvalidInput
from discreet.papers.adum.estimator import largest_outcome
from discreet.papers.adum.release import SegmentRelease
from discreet.papers.common.claims import claimed_guarantee, warn_of_claim
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import published_laplace

_CLAIM = (
    "The aggregates came without records, so that nothing here could hold outcomes to their bounds or records to one "
    "cell: whoever computed them has to vouch for that. papers.ADUM on the records has a proof."
)
# Sums of floats miss their exact values by less than this share.
_ROUNDING = 1e-9


def from_aggregates(
    counts: Any, sums: Any, *, epsilon: float, bounds: Bounds, by: By, neighbours: Neighbours = "replace-one"
) -> SegmentRelease:
    """Effects by cell, with Algorithm 1's noise on aggregates that have none.

    Parameters
    ----------
    counts, sums : array-like of shape (cells, 2)
        Number of records, and sum of their outcomes, in each cell: control, treated. Cells are in the order of
        ``Partition.of(by, bounds)``, as `ADUM` lists them.
    epsilon, bounds, by, neighbours
        As for `ADUM`.

    Privacy
    -------
    Claimed: half of epsilon for counts, half for sums, with the largest absolute outcome as D_y. Public: the bounds and
    the partition, and under replace-one the number of records.

    Examples
    --------
    >>> import warnings
    >>> import discreet as dc
    >>> bounds = dc.Bounds(outcome=(0, 1), covariates={"age": (0, 100)})
    >>> with dc.testing.frozen_noise(), warnings.catch_warnings(action="ignore"):
    ...     counts, sums = [[100, 50], [80, 40]], [[10, 20], [8, 8]]
    ...     release = from_aggregates(counts, sums, epsilon=1, bounds=bounds, by={"age": 2})
    >>> release.effects.round(1)
    array([0.3, 0.1])
    """
    budget, partition = Budget(epsilon=epsilon), Partition.of(by, bounds)
    n, total = _checked(counts, sums, partition.count, bounds)
    if neighbours not in ("replace-one", "add-remove"):
        raise InvalidInput("neighbours must be 'replace-one' or 'add-remove': choose one.")
    warn_of_claim("from_aggregates", _CLAIM)
    scale = (2.0 if neighbours == "replace-one" else 1.0) * 2.0 / budget.epsilon
    scales = scale, scale * largest_outcome(bounds)
    size = 2 * partition.count
    public = (
        "the declared bounds",
        "the partition",
        *(("the number of records",) if neighbours == "replace-one" else ()),
    )
    return SegmentRelease(
        method="Effects by cell from given aggregates (ADUM)",
        partition=partition,
        counts=n + published_laplace(size, scales[0]).reshape(-1, 2),
        sums=total + published_laplace(size, scales[1]).reshape(-1, 2),
        count_scale=scales[0],
        sum_scale=scales[1],
        means="ratio",
        guarantee=claimed_guarantee("counts and sums by cell, given", budget, public=public, neighbours=neighbours),
        bounds=bounds,
        settings={"cells": partition.count, "D_y": largest_outcome(bounds), "outcome bound": "largest"},
        notes=(f"Claimed, not proved: {_CLAIM}",),
    )


def _checked(counts: Any, sums: Any, cells: int, bounds: Bounds) -> tuple[Float, Float]:
    """Counts and sums that some records could have."""
    n, total = (_table(name, given, cells) for name, given in (("counts", counts), ("sums", sums)))
    if (n < 0).any() or (n != np.round(n)).any():
        raise InvalidInput("counts must be whole numbers and not negative: give them as they were before any noise.")
    low, high = bounds.outcome
    slack = _ROUNDING * n * largest_outcome(bounds)
    if (total < low * n - slack).any() or (total > high * n + slack).any():
        raise InvalidInput("sums: some are none that outcomes inside their bounds could add up to: check the bounds.")
    return n, total


def _table(name: str, given: Any, cells: int) -> Float:
    try:
        made = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(f"{name} must be numbers, a row for each cell: convert them.") from None
    if made.shape != (cells, 2) or not np.isfinite(made).all():
        raise InvalidInput(f"{name} must have {cells} rows of two finite numbers, control and treated: align them.")
    return made
