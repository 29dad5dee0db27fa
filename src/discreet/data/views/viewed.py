"""Records seen through a map of single records, such as a cap on outcomes or a difference of two columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Chunk, CodeMap, Kernel, Records, RowProgress, Unit


class View(Protocol):
    """What records are to whoever asks: a pure map of single records, which cloudpickle can send elsewhere.

    A row of what it returns depends on that row of the chunk alone, and is encoded as the bounds say that then hold:
    outcomes lie in [-1, 1], arms are 0.0 or 1.0. Covariates, or their codes, stay as they are.
    """

    @property
    def keeps_arms(self) -> bool:
        """Whether every record stays in its arm, so that whoever counts arms counts the same."""
        ...

    def bounds(self, declared: Bounds) -> Bounds:
        """What holds of the records as they are seen."""
        ...

    def __call__(self, chunk: Chunk) -> Chunk:
        """The records of a chunk as they are seen."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class _Through:
    """A kernel that sees records through a view. Pure, and can be pickled if kernel and view can."""

    kernel: Kernel
    view: View

    def __call__(self, chunk: Chunk) -> IntArray:
        return self.kernel(self.view(chunk))


@dataclass(frozen=True, slots=True, eq=False)
class ViewedRecords:
    """The same records seen through a view, to all that is asked of them.

    Whoever reads the rows clips, checks and encodes them as before, so that this holds of every source.
    Proof: docs/proofs/gate.md, lemma 16.
    """

    source: Records
    view: View

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.n

    @property
    def bounds(self) -> Bounds:
        """What holds of the records as they are seen."""
        return self.view.bounds(self.source.bounds)

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
        """Add up ``kernel(chunk)`` over chunks as they are seen."""
        return self.source.sum(_Through(kernel, self.view), progress)

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """Numbers of records, where the source counts them by the same arms; whatever else is asked takes a pass."""
        return None if formulas or not self.view.keeps_arms else self.source.group_sums(partition, formulas, progress)

    def sample(self, part: float, rows: float, progress: RowProgress | None = None) -> Records | None:
        """A sample of the source, seen alike."""
        some = self.source.sample(part, rows, progress)
        return None if some is None else ViewedRecords(some, self.view)

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """The source's, seen alike."""
        return replace(self, source=self.source.coded(codes, progress))

    def by_unit(self) -> Records | None:
        """The source's, seen alike."""
        together = self.source.by_unit()
        return None if together is None else ViewedRecords(together, self.view)

    def close(self) -> None:
        """Let go of whatever the source needed."""
        self.source.close()
