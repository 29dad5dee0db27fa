"""Records of which only those count that a public rule chooses: by their covariates, or by what else they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import Chunk, CodeMap, Kernel, Records, RowProgress, Unit
from discreet.data.sampling import each_of
from discreet.data.views.presence import PRESENT


class Chooses(Protocol):
    """A public function of one record's encoded covariates, elementwise."""

    def treats(self, x: Float) -> npt.NDArray[np.bool_]:
        """Whether each row counts."""


class Part(Protocol):
    """A public function of single records that says which of them count."""

    def among(self, chunk: Chunk) -> npt.NDArray[np.bool_]:
        """Whether each record of a chunk counts."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The records whose outcome is there: see `discreet.data.views.presence`."""

    def among(self, chunk: Chunk) -> npt.NDArray[np.bool_]:
        """Whether each outcome is there."""
        return np.asarray(chunk.more[PRESENT] > 0.0)


@dataclass(frozen=True, slots=True)
class Region:
    """The records that count: a rule, and the places of its covariates among those that are declared."""

    rule: Chooses
    places: tuple[int, ...]

    def holds(self, x: Float) -> npt.NDArray[np.bool_]:
        """Whether each row of encoded covariates is in it."""
        return self.rule.treats(x[:, list(self.places)])

    def among(self, chunk: Chunk) -> npt.NDArray[np.bool_]:
        """Whether each record of a chunk is in it."""
        return self.holds(chunk.x)


@dataclass(frozen=True, slots=True, eq=False)
class _Within:
    """A kernel that sees the records of a region alone. Pure, and can be pickled if kernel and region can."""

    kernel: Kernel
    region: Part

    def __call__(self, chunk: Chunk) -> IntArray:
        held = self.region.among(chunk)
        if not held.any():
            # As many zeros as the kernel has numbers.
            return 0 * self.kernel(_rows(chunk, np.arange(1)))
        if held.all():
            return self.kernel(chunk)
        return self.kernel(_rows(chunk, held))


def _rows(chunk: Chunk, which: npt.NDArray[np.bool_] | IntArray) -> Chunk:
    """Some rows of a chunk; one covariate after the other stays in memory."""
    e, k, u = (None if part is None else part[which] for part in (chunk.e, chunk.k, chunk.u))
    more = {role: values[which] for role, values in chunk.more.items()}
    return Chunk(chunk.y[which], chunk.t[which], chunk.x.T[:, which].T, e, k, u, more=more)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class RecordsWithin:
    """The records of a region, which is public; how many there are is private.

    Proof: docs/proofs/policy.md, lemma 1.
    """

    source: Records
    region: Part

    @property
    def n(self) -> int:
        """The most rows that there can be."""
        return self.source.n

    @property
    def bounds(self) -> Bounds:
        """What was declared about them."""
        return self.source.bounds

    @property
    def unit(self) -> Unit:
        """Whose rows they are: a unit has as many as before, or none."""
        return each_of(self.source.unit)

    @property
    def public(self) -> tuple[str, ...]:
        """What is public about how they were chosen."""
        return self.source.public

    @property
    def ordered(self) -> bool:
        """Whether rows come in an order of their own."""
        return self.source.ordered

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)`` over the records of the region."""
        return self.source.sum(_Within(kernel, self.region), progress)

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """No engine knows the region: `sum` adds up."""
        return None

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> Records | None:
        """No column chooses one, and places say how many records are in the region."""
        return None

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """As they are: the region is a function of covariates."""
        return self

    def by_unit(self) -> Records | None:
        """The source's, of the same region."""
        together = self.source.by_unit()
        return None if together is None else replace(self, source=together)

    def close(self) -> None:
        """Let go of whatever the source needed."""
        self.source.close()
