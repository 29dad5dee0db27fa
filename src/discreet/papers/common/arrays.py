"""Records as bounded arrays in memory, for methods that have to see a whole data set at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds, Range
from discreet.data.frames import encoded, feature_rows
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import CHUNK_ROWS, MIN_ROWS, Chunk, Kernel, Records, RecordsInMemory, RowProgress, add_up
from discreet.estimators._base import Progress
from discreet.exceptions import InvalidInput
from discreet.privacy.noise import charge_first
from discreet.privacy.sensitivity.fixed_point import SAFE

# The proof that no norm exceeds 1 needs these (docs/proofs/propensity.md).
LEAST_RADIUS = 1e-100
MOST_FEATURES = 4096


# No class below compares or prints its columns: they are the records themselves.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part(RecordsInMemory):
    """Some of the records, chosen by their places, as a source of their own."""

    unit: ClassVar[None] = None
    public: ClassVar[tuple[str, ...]] = ()
    rows: Chunk
    bounds: Bounds

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.rows.t)

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` gets the number of rows just finished."""
        places = (slice(start, start + CHUNK_ROWS) for start in range(0, self.n, CHUNK_ROWS))
        return add_up((take(self.rows, place) for place in places), kernel, progress, n=self.n)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Rows(RecordsInMemory):
    """Records in memory, clipped and encoded; a source for the gate.

    Parameters
    ----------
    y : array of shape (n,)
        Outcome, mapped onto [-1, 1].
    t : array of shape (n,)
        Treatment, 0 or 1.
    x : array of shape (n, d)
        Features: ranges mapped onto [-1, 1], an indicator for each level but the first.
    bounds : Bounds
        What was declared about the records.
    """

    unit: ClassVar[None] = None
    public: ClassVar[tuple[str, ...]] = ()
    y: Float
    t: Float
    x: Float
    bounds: Bounds

    @classmethod
    def of(cls, Y: Any, T: Any, X: Any, bounds: Bounds) -> Rows:
        """Check, clip and encode arrays or frames."""
        return cls.of_chunk(gather(ArrayRecords.of(Y, T, X, bounds=bounds)), bounds)

    @classmethod
    def of_chunk(cls, rows: Chunk, bounds: Bounds) -> Rows:
        """Records that are encoded already, with the features of their covariates."""
        return cls(y=rows.y, t=rows.t, x=feature_rows(rows.x, bounds), bounds=bounds)

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.t)

    @property
    def outcome(self) -> Float:
        """The outcome in its own unit."""
        return in_own_unit(self.y, self.bounds)

    def part(self, places: IntArray) -> Rows:
        """The records at these places."""
        return replace(self, y=self.y[places], t=self.t[places], x=self.x[places])

    def in_ball(self, radius: float) -> Rows:
        """The same records with features pulled into a ball of this radius, which becomes the unit ball."""
        return replace(self, x=into_unit_ball(self.x, radius))

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` gets the number of rows just finished."""
        return Part(Chunk(y=self.y, t=self.t, x=self.x, e=None), self.bounds).sum(kernel, progress)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class OneVector(RecordsInMemory):
    """The only record of a derived data set: a vector that was computed from all records (geometry `Statistic`)."""

    unit: ClassVar[None] = None
    public: ClassVar[tuple[str, ...]] = ()
    vector: Float
    bounds: Bounds

    @property
    def n(self) -> int:
        """Number of records of the derived data set."""
        return 1

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """``kernel`` of the vector."""
        chunk = Chunk(y=np.zeros(1), t=np.zeros(1), x=self.vector[None, :], e=None)
        return add_up([chunk], kernel, progress, n=1)


def take(rows: Chunk, places: slice) -> Chunk:
    """Some of the rows."""
    return Chunk(y=rows.y[places], t=rows.t[places], x=rows.x[places], e=None if rows.e is None else rows.e[places])


def gather(records: Records, progress: Progress | None = None) -> Chunk:
    """All records in memory: what a published method reads beyond sums."""
    parts: list[Chunk] = []

    def keep(chunk: Chunk) -> IntArray:
        parts.append(chunk)
        return np.zeros(1, dtype=np.int64)

    def report(_: int) -> None:
        if progress is not None:
            progress("reading", sum(len(part.t) for part in parts), records.n)

    records.sum(keep, report)
    if sum(len(part.t) for part in parts) != records.n:
        # The kernel ran elsewhere, and what it has kept is there.
        raise InvalidInput(
            "this method needs all records in memory, but other processes read them: give a frame, or workers=1."
        )
    # From here on what happens, failures included, may depend on the records in ways that no gate bounds.
    charge_first()
    known = [part.e for part in parts if part.e is not None]
    return Chunk(
        y=np.concatenate([part.y for part in parts]),
        t=np.concatenate([part.t for part in parts]),
        x=np.concatenate([part.x for part in parts]),
        e=np.concatenate(known) if known else None,
    )


def features(X: Any, bounds: Bounds) -> Float:
    """Features of records of which only the covariates are known, encoded like those of `Rows`."""
    return feature_rows(encoded(X, bounds), bounds)


def dimension(bounds: Bounds) -> int:
    """How many features the covariates make."""
    return sum(1 if isinstance(spec, Range) else len(spec.levels) - 1 for spec in bounds.columns)


def into_unit_ball(x: Float, radius: float) -> Float:
    """Pull rows into the ball of this radius, and divide by it: no norm exceeds 1, rounding included."""
    return np.asarray(x * (SAFE / np.maximum(norms(x), radius))[:, None])


def norms(x: Float) -> Float:
    """Euclidean norms of rows. Squares of tiny numbers vanish, so that rows are divided by their largest one first."""
    largest = np.abs(x).max(axis=1, initial=0.0)
    relative = x / np.where(largest > 0.0, largest, 1.0)[:, None]
    return np.asarray(largest * np.sqrt(np.einsum("ij,ij->i", relative, relative)))


def in_own_unit(y: Float, bounds: Bounds) -> Float:
    """An outcome that was mapped onto [-1, 1], in its own unit again and inside its bounds."""
    return np.clip(bounds.outcome_middle + bounds.outcome_width / 2 * y, *bounds.outcome)


def split(rows: Rows, m: int | float, shuffle: bool, random_state: Any) -> tuple[Rows, Rows]:
    """Two disjoint parts of m and n records; which record goes where does not depend on what it holds."""
    if isinstance(m, bool) or not m > 0:
        raise InvalidInput("m must be a number of records, or a share of them between 0 and 1.")
    first = round(m * rows.n) if m < 1 else int(m)
    if first != m and m >= 1:
        raise InvalidInput("m must be a whole number of records, or a share of them between 0 and 1.")
    if not MIN_ROWS <= first <= rows.n - MIN_ROWS:
        raise InvalidInput(f"m must leave at least {MIN_ROWS} records on either side: choose another m.")
    from sklearn.model_selection import train_test_split

    places = np.arange(rows.n)
    training, rest = train_test_split(
        places, train_size=first, shuffle=shuffle, random_state=random_state if shuffle else None
    )
    return rows.part(training), rows.part(rest)
