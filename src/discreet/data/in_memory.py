"""Records in memory: arrays and frames as they were handed over, clipped and encoded a few thousand rows at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.bounds import Bounds
from discreet.data.frames import check_indexes, table, vector
from discreet.data.records import (
    CHUNK_ROWS,
    Chunk,
    CodeMap,
    Further,
    Held,
    Kernel,
    Names,
    Records,
    RecordsInMemory,
    RowProgress,
    Unit,
    add_up,
    admit,
    chunks,
    hold,
    hold_further,
)
from discreet.data.sampling import Sample, each_of, placed, sampled
from discreet.data.views.coded import CodedRecords, fits, packed
from discreet.exceptions import InvalidInput, MissingBounds, SourceFailed

# Encoded chunks of tables up to this many numbers (64 MB) are kept from pass to pass; larger ones are encoded anew.
KEPT_NUMBERS = 8_000_000


# It neither compares nor prints its columns: they are the records themselves.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArrayRecords(RecordsInMemory):
    """Records in memory: NumPy arrays, lists, pandas, polars and PyArrow.

    Numeric columns are referred to, not copied; columns of levels are held as small integers.
    """

    n: int
    bounds: Bounds
    held: Held = field(repr=False)
    called: Names = field(repr=False)
    kept: list[Chunk] = field(default_factory=list, repr=False)
    as_codes: list[tuple[CodeMap, CodedRecords]] = field(default_factory=list, repr=False)
    samples: dict[tuple[float, bool], Sample] = field(default_factory=dict, repr=False)
    unit: Unit | None = None
    public: tuple[str, ...] = ()
    units: IntArray | None = field(default=None, repr=False)
    """number of the unit that each row belongs to"""
    edges: tuple[int, ...] = field(default=(), repr=False)
    """where chunks begin that hold all rows of a unit; none if they need not"""

    @classmethod
    def of(
        cls,
        Y: Any,
        T: Any,
        X: Any = None,
        *,
        bounds: Bounds,
        propensity: Any = None,
        unit: Unit | None = None,
        public: tuple[str, ...] = (),
        sample_by: Any = None,
    ) -> ArrayRecords:
        """Check everything once, before any of it is used.

        Parameters
        ----------
        Y, T : array-like, series or frame of one column
            Outcome and treatment.
        X : array-like or frame, optional
            Covariates. A frame is matched by name if the bounds name the covariates, and by position otherwise.
        bounds : Bounds
            Public facts about the records.
        propensity : float or array-like, optional
            Probability of treatment where it is known by design.
        unit, public
            What is known of how the records were chosen: see `Records`.
        sample_by : array-like, optional
            A whole number for each record, by which a sample may be chosen.
        """
        if not isinstance(bounds, Bounds):
            raise MissingBounds("Records need bounds=Bounds(outcome=(low, high), ...): declare them.")
        check_indexes({"Y": Y, "T": T, "X": X, "propensity": propensity, "sample_by": sample_by})
        y, t, x = vector(Y, "Y"), vector(T, "T"), table(X, bounds)
        e = propensity
        if isinstance(e, Real):
            e = np.broadcast_to(np.float64(e), len(y))
        elif e is not None:
            e = vector(e, "propensity")
        k = None if sample_by is None else vector(sample_by, "sample_by")
        given = {"T": [t], "X": x, "propensity": [] if e is None else [e], "sample_by": [] if k is None else [k]}
        for name, columns in given.items():
            if any(len(column) != len(y) for column in columns):
                raise InvalidInput(f"{name} and Y must have one entry per record each: align their lengths.")
        names = _names(bounds)
        held = hold(y, t, x, e, k, bounds=bounds, names=names)
        records = cls(n=len(y), bounds=bounds, held=held, called=names, unit=unit, public=public)
        admit(records._chunks(), bounds)
        return records

    def beside(self, further: Mapping[Further, Any], names: Mapping[str, str]) -> ArrayRecords:
        """The same records with further columns, which ``names`` calls something by their roles."""
        columns = [(each, vector(values, names[each.role])) for each, values in further.items()]
        for each, values in columns:
            if len(values) != self.n:
                raise InvalidInput(
                    f"{names[each.role]} and Y must have one entry per record each: align their lengths."
                )
        called = self.called._replace(more=tuple(names[each.role] for each in further))
        records = replace(
            self, held=hold_further(self.held, columns, called), called=called, kept=[], as_codes=[], samples={}
        )
        admit(records._chunks(), self.bounds)
        return records

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` is given the number of rows just finished."""
        try:
            return add_up(self._chunks(), kernel, progress, n=self.n)
        except MemoryError:
            raise SourceFailed(
                "There is too little memory for a few thousand records: give the process more of it, or use fewer "
                "covariates. Nothing came of this pass; what earlier rounds spent stays spent."
            ) from None

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> Sample | None:
        """About so large a part of the records, in memory; None where nothing says which."""
        by_place = by_place and self.held.k is None
        if self.held.k is None and not by_place:
            return None
        if (part, by_place) not in self.samples:
            kept = tuple(sampled(placed(self._chunks()) if by_place else self._chunks(), part))
            n, unit = (sum(len(each.t) for each in kept), None) if by_place else (self.n, each_of(self.unit))
            roles = tuple(each.role for each, _ in self.held.more)
            self.samples.clear()
            self.samples[part, by_place] = Sample(n=n, bounds=self.bounds, unit=unit, kept=kept, roles=roles)
        return self.samples[part, by_place]

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """Codes where records are encoded anew in each pass, and codes fit into memory; rows of units stay together."""
        if self.kept or self.units is not None or not fits(self.n, self.bounds.p, len(self.held.more)):
            return self
        if not self.as_codes or self.as_codes[0][0] != codes:
            kept = tuple(packed(self._chunks(), codes))
            records = CodedRecords(n=self.n, bounds=self.bounds, kept=kept, unit=self.unit, public=self.public)
            self.as_codes[:] = [(codes, records)]
        return self.as_codes[0][1]

    def by_unit(self) -> ArrayRecords | None:
        """The same with all rows of a unit in one chunk; None where it is not known whose they are."""
        if self.units is None or self.unit is None or self.unit.max_rows > CHUNK_ROWS:
            return None
        order = np.argsort(self.units, kind="stable")
        units = self.units[order]
        return replace(self, held=_taken(self.held, order), kept=[], samples={}, units=units, edges=_edges(units))

    def _chunks(self) -> Iterable[Chunk]:
        if not self.kept:
            made: Iterable[Chunk] = chunks(self.held, self.bounds, self.called, self.edges)
            if self.edges and self.units is not None:
                parts = np.split(self.units, self.edges[1:-1])
                made = (chunk._replace(u=part) for chunk, part in zip(made, parts, strict=True))
            if self.n * (self.bounds.p + 3 + len(self.held.more)) > KEPT_NUMBERS:
                return made
            self.kept.extend(made)
        return self.kept


def _taken(held: Held, order: IntArray) -> Held:
    """The same columns with their rows in another order."""

    def taken(values: Any) -> Any:
        return values[order] if isinstance(values, np.ndarray) else values.take(order)

    e, k = (None if each is None else taken(each) for each in (held.e, held.k))
    more = tuple((each, taken(values)) for each, values in held.more)
    return Held(y=taken(held.y), t=taken(held.t), x=tuple(map(taken, held.x)), e=e, k=k, more=more)


def _edges(units: IntArray) -> tuple[int, ...]:
    """Where chunks begin, and the last one ends, if none is to divide a unit, whose rows lie together."""
    ends = np.append(np.flatnonzero(np.diff(units)) + 1, len(units))
    edges = [0]
    while edges[-1] < len(units):
        edges.append(int(ends[np.searchsorted(ends, edges[-1] + CHUNK_ROWS, side="right") - 1]))
    return tuple(edges)


def _names(bounds: Bounds) -> Names:
    return Names("Y", "T", tuple(f"column {name!r} of X" for name in bounds.names), "propensity")
