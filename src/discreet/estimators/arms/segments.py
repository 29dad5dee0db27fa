"""The table of segments and several arms: one pair of numbers for each. Diameter: docs/proofs/uplift.md, lemma 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.data._arrays import Float
from discreet.data.clusters import Clusters
from discreet.data.partition import Partition
from discreet.data.records import Chunk
from discreet.postprocessing.segment_means import Table
from discreet.privacy.gate import Gate
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.table import Pairs

PAIRS = "pairs by segment and arm"


@dataclass(frozen=True, slots=True)
class ArmCells:
    """A record's cell (its segment's number times the number of arms, and its arm), its outcome, and a weight of 1."""

    partition: Partition | Clusters
    arms: int

    def __call__(self, chunk: Chunk) -> Float:
        """One row per record."""
        cell = self.arms * self.partition.cells(chunk.x).astype(np.float64) + chunk.t
        return np.column_stack([cell, chunk.y, np.ones(len(cell))])


def arms_query(partition: Partition | Clusters, arms: int, share: float) -> Query:
    """The question for all pairs."""
    return Query(PAIRS, share, Pairs(arms * partition.count), ArmCells(partition, arms))


def measure_table(gate: Gate, query: Query, segments: int, arms: int) -> Table:
    """Counts and sums by segment and arm."""
    (pairs,) = gate.ask(query)
    plus, minus = pairs.value.reshape(segments, arms, 2).transpose(2, 0, 1)
    noise = float(pairs.sd) * 2**0.5
    return Table(plus + minus, plus - minus, noise, noise)
