"""Records whose larger outcomes count as a cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Chunk, CodeMap, Kernel, Records, RowProgress, Unit


@dataclass(frozen=True, slots=True, eq=False)
class _Capped:
    """A kernel that sees outcomes capped. Pure, and can be pickled if the kernel can."""

    kernel: Kernel
    at: float
    """the cap on [-1, 1]"""

    def __call__(self, chunk: Chunk) -> IntArray:
        # From -1 up to the cap, mapped onto [-1, 1] anew.
        below = np.minimum((chunk.y + 1.0) / ((self.at + 1.0) / 2.0) - 1.0, 1.0)
        return self.kernel(chunk._replace(y=np.where(chunk.y >= self.at, 1.0, below)))


@dataclass(frozen=True, slots=True, eq=False)
class CappedRecords:
    """The same records where larger outcomes count as a cap: to all that is asked of them, the range ends there.

    Whoever reads the rows clips, checks and encodes them as before, so that this holds of every source.
    Proof: docs/proofs/gate.md, lemma 16.
    """

    source: Records
    bounds: Bounds
    at: float
    """the cap on [-1, 1], as the source encodes it"""

    @classmethod
    def of(cls, source: Records, cap: float) -> CappedRecords:
        """Records with a cap above the lower end of the outcome's range, and no higher than its upper end."""
        at = source.bounds.outcome_range.encode(np.array([cap], dtype=np.float64))
        return cls(source, source.bounds.capped(cap), float(at[0]))

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.n

    @property
    def unit(self) -> Unit | None:
        """Whose rows they are."""
        return self.source.unit

    @property
    def public(self) -> tuple[str, ...]:
        """What is public about how they were chosen."""
        return self.source.public

    @property
    def ordered(self) -> bool:
        """Whether rows come in an order of their own."""
        return self.source.ordered

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)`` over chunks whose outcomes are capped."""
        return self.source.sum(_Capped(kernel, self.at), progress)

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """Numbers of records, where the source counts them; sums of formulas, in which outcomes occur, take a pass."""
        return None if formulas else self.source.group_sums(partition, formulas, progress)

    def sample(self, part: float, rows: float, progress: RowProgress | None = None) -> Records | None:
        """A sample of the source, capped alike."""
        some = self.source.sample(part, rows, progress)
        return None if some is None else CappedRecords(some, self.bounds, self.at)

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """The source's, capped alike."""
        return replace(self, source=self.source.coded(codes, progress))

    def by_unit(self) -> Records | None:
        """The source's, capped alike."""
        together = self.source.by_unit()
        return None if together is None else CappedRecords(together, self.bounds, self.at)

    def close(self) -> None:
        """Let go of whatever the source needed."""
        self.source.close()
