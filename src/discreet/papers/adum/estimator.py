"""Effects by cell from noisy sums and counts (epsilon-ADUM).

Betlei, Gregoir, Rahier, Bissuel, Diemert and Amini, "Differentially Private Individual Treatment Effect Estimation from
Aggregated Data" (2021), Algorithm 1. Symbols are theirs: cells G of a partition pi with p components, arms t, counts
C_kt, sums S_kt, the outcome's bound D_y, effects u_k. `adum_bound` holds Corollary 1, `kmeans` the partition of their
experiment on real data.

Deviations. The noise is drawn on integers, in the gate. D_y is the outcome's largest absolute value, where the paper
says "range" (``calibration="published"``, which is private only where the range is at least as large). The paper's
scales, 2 / epsilon and 2 D_y / epsilon, are those of ``neighbours="add-remove"``; the default protects a record that is
replaced, too, and doubles them. Outcomes outside their bounds are clipped. The paper divides by noisy counts whatever
they are, and so does ``means="ratio"``; a count of exactly zero gives a mean of zero.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters
from discreet.data.expressions import ByCell, Y, number
from discreet.data.partition import By, Partition
from discreet.data.records import Chunk, Records
from discreet.estimators._base import Progress, TableFits
from discreet.estimators._parameters import Parameters
from discreet.estimators.clustering import PrivateKMeans, first_clusters, lloyd
from discreet.exceptions import InvalidInput
from discreet.papers.adum.release import SegmentRelease
from discreet.papers.common.arrays import gather, in_own_unit
from discreet.papers.common.claims import Calibration, by_calibration, claimed_guarantee, warn_of_claim
from discreet.papers.plots import WithoutAverage
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.noise import published_laplace
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells
from discreet.privacy.sensitivity.table import CellSums

OutcomeBound = Literal["largest", "range"]
Means = Literal["ratio", "clipped"]

# Half of the budget finds the partition, where there is none yet (section 3.2).
_PARTITION_SHARE = 0.5
_TITLE = "Effects by cell (ADUM)"
_MEASURED = (
    "Its noise is made for the length of the outcome's range, but a record adds its whole outcome to a sum: for "
    "outcomes in [10, 11] a claimed epsilon is 6 epsilon (docs/proofs/adum.md). calibration='proved' has a proof."
)
# An empty arm's noisy count is above so many scales of its noise in one of forty cases.
_FAINT = 3.0
_NO_INTERVAL = "The paper gives no interval: noise_sd is the privacy noise alone, to first order."


class ADUM(WithoutAverage, TableFits[SegmentRelease], Parameters):
    """Effects by cell of a partition, from noisy sums and counts.

    Parameters
    ----------
    epsilon : float
        The budget; there is no delta.
    bounds : Bounds
        Public facts: outcome range and covariates.
    by : mapping or PrivateKMeans
        From a covariate (name or position) to a number of equal cuts, a list of edges, "levels" or groups of levels;
        several are crossed. `PrivateKMeans` finds the partition with half of the budget.
    neighbours : {"replace-one", "add-remove"}
        Which data sets may not be distinguished; "add-remove" has the paper's noise, the default twice as much.
    outcome_bound : {"largest", "range"}
        Older words for the two calibrations.
    means : {"ratio", "clipped"}
        Sums over counts as published, or counting at least one record and kept inside the outcome's range.
    calibration : {"proved", "published"}, optional
        What D_y is: the largest absolute outcome, by default, or the length of the outcome's range, which only the
        paper claims.

    Attributes
    ----------
    release_ : SegmentRelease
        All that fitting leaves behind.

    Privacy
    -------
    Outcome, treatment and covariates of every record are protected. Proof: docs/proofs/adum.md. Public: the bounds, the
    declared partition, and under replace-one the number of records. Published calibration: claimed.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=4_000, seed=1, sigma=0.1)
    >>> cells = dc.papers.ADUM(epsilon=2.0, bounds=study.bounds, by={0: 4})
    >>> with dc.testing.seeded_noise(0):
    ...     _ = cells.fit(study.Y, study.T, X=study.X)
    >>> cells.effect([[-0.9], [0.9]]).round(1)
    array([-0.7,  0.7])
    """

    method_id: ClassVar[str] = "discreet/papers/adum"
    release_types: ClassVar = (SegmentRelease,)

    # Pure epsilon, and no propensity.
    delta: float | None = None
    propensity: Any = None

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        by: By | PrivateKMeans,
        neighbours: Neighbours = "replace-one",
        outcome_bound: OutcomeBound = "largest",
        means: Means = "ratio",
        calibration: Calibration | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.by = by
        self.neighbours = neighbours
        self.outcome_bound = outcome_bound
        self.means = means
        self.calibration = calibration

    def effect(self, X: Any) -> Float:
        """PREDICT of Algorithm 1: the effect of the cell that each record is in, as often as you like."""
        return self._released().effect(X)

    def table(self) -> list[dict[str, Any]]:
        """One row per cell: what it is, its noisy counts and means, its effect and that effect's noise."""
        return self._released().table()

    def plot(self, ax: Any = None) -> Any:
        """Draw the effect of every cell (needs matplotlib)."""
        return self._released().plot(ax)

    def _warn(self) -> None:
        if self._bound == "range":
            warn_of_claim("ADUM", _MEASURED)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        if records.unit is not None and self._bound == "range":
            raise InvalidInput("unit needs calibration='proved': the paper's own noise is claimed for single records.")
        gate = self._open_gate(records, progress)
        partition, share = self._partition(gate)
        if self._bound == "largest":
            counts, sums, scales = _train(gate, partition, self._outcome_bound(), share)
            guarantee = gate.guarantee(proof="adum.md", public=self._public(gate))
        else:
            counts, sums, scales = self._train_published(records, partition, share, progress)
            name = "counts and sums by cell, noise for the outcome's range"
            budget = Budget(epsilon=self.epsilon)
            public = (*self._public(gate), *records.public)
            guarantee = claimed_guarantee(name, budget, public=public, neighbours=self.neighbours)
        self.release_ = SegmentRelease(
            method=_TITLE,
            partition=partition,
            counts=counts,
            sums=sums,
            count_scale=scales[0],
            sum_scale=scales[1],
            means=self.means,
            guarantee=guarantee,
            bounds=self.bounds,
            settings={"cells": partition.count, "D_y": self._outcome_bound(), "outcome bound": self._bound},
            notes=(*self._notes(), *_faint(counts, scales[0])),
        )

    def _partition(self, gate: Gate) -> tuple[Partition | Clusters, float]:
        """The partition, and the share of the budget that is left for its counts and sums."""
        if isinstance(self.by, PrivateKMeans):
            return lloyd(gate, self.by, _PARTITION_SHARE), 1 - _PARTITION_SHARE
        return Partition.of(self.by, self.bounds), 1.0

    def _train_published(
        self, records: Records, partition: Partition | Clusters, share: float, progress: Progress | None
    ) -> tuple[Float, Float, tuple[float, float]]:
        """Algorithm 1 with floating-point noise, for the reading of D_y that has no proof."""
        rows = gather(records, progress if self.neighbours == "replace-one" else None)
        group, size = _groups(partition, rows).astype(np.int64), 2 * partition.count
        worse = 2.0 if self.neighbours == "replace-one" else 1.0
        scale = worse * 2 / (share * self.epsilon)
        scales = scale, scale * self._outcome_bound()
        counts = np.bincount(group, minlength=size) + published_laplace(size, scales[0])
        sums = np.bincount(group, in_own_unit(rows.y, self.bounds), size) + published_laplace(size, scales[1])
        return counts.reshape(-1, 2), sums.reshape(-1, 2), scales

    @property
    def _bound(self) -> str:
        return self.outcome_bound if self.calibration is None else by_calibration(self.calibration, *self._words())

    def _words(self) -> tuple[str, str, str, str]:
        return "outcome_bound", self.outcome_bound, "range", "largest"

    def _outcome_bound(self) -> float:
        if self._bound == "largest":
            return largest_outcome(self.bounds)
        return self.bounds.outcome_width

    def _public(self, gate: Gate) -> tuple[str, ...]:
        declared = () if isinstance(self.by, PrivateKMeans) else ("the partition",)
        known = () if gate.counts_rows else ("the number of records",)
        return ("the declared bounds", *declared, *known)

    def _notes(self) -> tuple[str, ...]:
        if self._bound == "largest":
            return (_NO_INTERVAL,)
        return (_NO_INTERVAL, f"Claimed, not proved: {_MEASURED[0].lower()}{_MEASURED[1:]}")

    def _check_budget(self, budget: Budget) -> None:
        """Refuse what can be refused without looking at a record."""
        by_calibration(self.calibration, *self._words())
        for name, value, known in (
            ("neighbours", self.neighbours, get_args(Neighbours)),
            ("outcome_bound", self._bound, get_args(OutcomeBound)),
            ("means", self.means, get_args(Means)),
        ):
            if value not in known:
                raise InvalidInput(f"{name} must be {' or '.join(map(repr, known))}: choose one.")
        if isinstance(self.by, PrivateKMeans):
            first_clusters(self.by, self.bounds)
        else:
            Partition.of(self.by, self.bounds)


def _faint(counts: Float, scale: float) -> tuple[str, ...]:
    """A sentence where cells may be empty, as far as their released counts show: nothing can be refused for it."""
    faint = int((counts.min(axis=1) < _FAINT * scale).sum())
    if not faint:
        return ()
    return (
        f"As far as noisy counts show, {faint:,} of {len(counts):,} cells may have an empty arm, so that their effects "
        "mean nothing: take fewer cells, or means='clipped'.",
    )


def largest_outcome(bounds: Bounds) -> float:
    """How far one record can move a sum of outcomes that it joins. Proof: docs/proofs/adum.md, lemma 2."""
    return max(map(abs, bounds.outcome))


def _train(
    gate: Gate, partition: Partition | Clusters, outcome_bound: float, share: float
) -> tuple[Float, Float, tuple[float, float]]:
    """TRAIN of Algorithm 1, lines 2 to 6: half of the share for counts, half for sums."""
    size, bounds = 2 * partition.count, gate.bounds

    # The outcome in its own unit again, and inside its bounds.
    outcome = (number(bounds.outcome_middle) + number(bounds.outcome_width / 2) * Y).clip(*bounds.outcome)
    counts, sums = gate.ask(
        Query("counts by cell and arm", share / 2, Cells((size,)), ByCell(partition, True)),
        Query(
            "sums of outcomes by cell and arm",
            share / 2,
            CellSums(outcome_bound, size),
            ByCell(partition, True, (outcome,)),
        ),
    )
    scales = float(counts.sd) / np.sqrt(2), float(sums.sd) / np.sqrt(2)
    return counts.value.reshape(-1, 2), sums.value.reshape(-1, 2), (float(scales[0]), float(scales[1]))


def _groups(partition: Partition | Clusters, rows: Chunk) -> Float:
    """Cell and arm as one number: E_kt of line 4 is group 2 k + t."""
    return partition.cells(rows.x) * 2.0 + rows.t
