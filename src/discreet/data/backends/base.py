"""Records of any engine: the engine runs sweeps, and this adds what all of them owe to privacy.

Nothing is released from a part of the rows: every pass has to see as many rows as the first one, with the same
checksum, and a unit may have no more rows than was declared.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.backends.scan import MANY_ROWS, Columns, Sweep, Tally, workers_for
from discreet.data.backends.text.format import TextFormat
from discreet.data.bounds import Bounds
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.data.records import CodeMap, Kernel, Records, RowProgress, Unit, check_arms
from discreet.data.sampling import KEPT_NUMBERS, Sample, SweptSample, counted, each_of, together
from discreet.data.views.coded import CodedRecords, fits
from discreet.exceptions import InvalidInput, SourceFailed

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a backend needs beside the table: a part of a connection, how many processes, how text is read."""

    relation: str | None = None
    query: str | None = None
    workers: int | None = None
    text: TextFormat = field(default_factory=TextFormat)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Those of the keyword arguments of ``fit_table`` that say how a table is read."""
        source = {name: given.get(name) for name in ("relation", "query", "workers")}
        return cls(**source, text=TextFormat.of(given))

    def check_no_text(self, what: str) -> None:
        """Refuse rules for text where values have types."""
        if self.text != TextFormat():
            raise InvalidInput(
                f"na, delimiter, decimal and encoding are for CSV and Excel files: {what} says itself what its values "
                "are, so leave them out."
            )

    def check_alone(self, why: str) -> None:
        """Refuse several processes for a table that they cannot divide among them."""
        if workers_for(self.workers, 0) > 1:
            raise InvalidInput(f"workers= is for Parquet files, which processes can divide: {why}, so leave it out.")


CHANGED = "The records changed while they were being read: keep the source fixed and start again."
NO_MEMORY = "There is too little memory for a batch of rows: give the process more of it, or use fewer covariates."
AT_ODDS = (
    "The engine leaves out records of its own sums that can be used: the table changed while it was being read, or the "
    "engine reads it in two ways; keep it fixed and start again, or give it as a frame."
)
_SPENT = "Nothing came of this pass; what earlier rounds spent stays spent."


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Counts and sums by cell and arm, as an engine found them.

    Parameters
    ----------
    counts
        Whole numbers of shape (cells, 2), in any integer type.
    sums
        The same for each formula.
    usable
        Whether every row could be used. Where not, or where rows are missing, a sweep says why.
    """

    counts: IntArray
    sums: tuple[IntArray, ...]
    usable: bool


def unusable() -> Groups:
    """What is found where some row cannot be used: a sweep then says why."""
    return Groups(np.zeros((1, 2), dtype=np.int64), (), usable=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a backend promises about its rows.

    Parameters
    ----------
    ordered
        Rows come in the order of the table itself, each time: only files have one.
    snapshot
        All passes see the same rows, or are refused; of others more is asked, so that rows which change are noticed.
    remote
        Rows are on other machines, which only sums may leave.
    """

    ordered: bool = False
    snapshot: bool = False
    remote: bool = False


class Source(Protocol):
    """What a backend has to offer. A source reads the same rows each time, in any order, and keeps no result."""

    capabilities: ClassVar[Capabilities]

    def run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass over all rows: the sweep's tallies of all batches, added up. Batches may be read anywhere.

        A table that cannot be read to its end raises `InvalidInput` (a sentence without data); never a part's tally.
        """
        ...

    def count(self, columns: Columns) -> int | None:
        """Number of rows that are used, if that is known without a pass over them; None otherwise."""
        ...

    def group(self, columns: Columns, partition: Partition | None, formulas: Sequence[Formula]) -> Groups | None:
        """Counts and sums by cell and arm where the engine adds up by itself; None where it cannot."""
        ...

    def most_rows(self, columns: Columns) -> int:
        """Most rows, of those that are used, that share one value of ``columns.unit.column``.

        0 if there are none. A value that is missing raises `InvalidInput` with `missing_unit`.
        """
        ...

    def close(self) -> None:
        """Let go of whatever the passes needed."""
        ...


@dataclass(slots=True, eq=False)
class TableRecords:
    """Records of a source (see `discreet.data.records.Records`).

    They are checked in the first pass, which is the first round's where the number of rows is known beforehand.
    """

    columns: Columns
    source: Source
    _n: int = field(default=0, init=False)
    _first: Tally | None = field(default=None, init=False, repr=False)
    _grouped: tuple[Partition | None, IntArray] | None = field(default=None, init=False, repr=False)
    _coded: tuple[CodeMap, CodedRecords] | None = field(default=None, init=False, repr=False)
    _sample: tuple[tuple[float, bool], Sample] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        known = None if self._hashed else self.source.count(self.columns)
        if known is None or known == 0:
            # Where nothing says how many rows there are, they are counted, and checked on the way.
            self._check(self._run(Sweep(self.columns)))
        else:
            self._n = known
        self._check_units()

    @classmethod
    def opened(cls, columns: Columns, source: Source) -> TableRecords:
        """Records of a source, which is closed if they cannot be used."""
        try:
            return cls(columns, source)
        except BaseException:
            source.close()
            raise

    @property
    def n(self) -> int:
        """Number of rows that are used."""
        return self._n

    @property
    def public(self) -> tuple[str, ...]:
        """What is public about how they were chosen."""
        return self.columns.public

    @property
    def bounds(self) -> Bounds:
        """What was declared about them."""
        return self.columns.bounds

    @property
    def unit(self) -> Unit | None:
        """Whose rows they are."""
        return self.columns.unit

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` is given the number of rows just finished."""
        sums = self.swept(Sweep(self.columns, kernel), progress).sums
        if sums is None:
            raise SourceFailed(f"{CHANGED} {_SPENT}")
        return sums

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> Records | None:
        """About so large a part of the records, chosen by a column, or by their places; None where neither can be.

        They are kept in memory, unless they are many (``rows``, which must be public or released), or only sums may
        leave the machines that have the rows.
        """
        by_place = by_place and self.columns.sample_by is None and self.ordered
        if self.columns.sample_by is None and not by_place:
            return None
        sweep = Sweep(self.columns, part=part, by_place=by_place)
        roles = tuple(each.role for each, _ in self.columns.further)
        unit = None if by_place else each_of(self.unit)
        if self.source.capabilities.remote or rows * (self.bounds.p + 6 + 2 * len(roles)) > KEPT_NUMBERS:

            def sums(kernel: Kernel, progress: RowProgress | None) -> IntArray | None:
                return self.swept(replace(sweep, kernel=kernel), progress).sums

            found = sums(counted, progress) if by_place else None
            n = self.n if found is None else int(found[0])
            return SweptSample(n=n, bounds=self.bounds, unit=unit, ordered=self.ordered, sums=sums, roles=roles)
        if self._sample is None or self._sample[0] != (part, by_place):
            kept = together(self.swept(sweep, progress).sample)
            n = sum(len(each.t) for each in kept) if by_place else self.n
            self._sample = (part, by_place), Sample(n=n, bounds=self.bounds, unit=unit, kept=kept, roles=roles)
        return self._sample[1]

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Records:
        """Codes in memory where they fit and rows may leave where they are; one pass, which is checked like any.

        Where more than two processes read a table, they go on doing so: that is faster.
        """
        divided = self.n > MANY_ROWS and (os.cpu_count() or 1) > 2
        if self.source.capabilities.remote or divided or not fits(self.n, self.bounds.p, len(self.columns.further)):
            return self
        if self._coded is None or self._coded[0] != codes:
            kept = self.swept(Sweep(self.columns, codes=codes), progress).sample
            records = CodedRecords(n=self.n, bounds=self.bounds, kept=kept, unit=self.unit, public=self.public)
            self._coded = codes, records
        return self._coded[1]

    def swept(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        """One pass over all rows, which has to see what the first one saw."""
        fresh = self._fresh
        try:
            tally = self._run(sweep, progress)
            self._check(tally)
            if fresh and not self.source.capabilities.snapshot:
                # These are the rows that the checksum holds to from now on: were they those whose units were counted?
                self._check_units()
        except InvalidInput as refusal:
            if fresh:
                raise
            raise SourceFailed(f"{refusal} {_SPENT}") from None
        return tally

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """Counts and sums by cell and arm, if the engine adds up by itself: see `Records`."""
        fresh = self._fresh
        if (
            self._hashed
            or self.columns.dates
            or self.columns.further
            or self.bounds.several_arms
            or not self.columns.has_arms
        ):
            # What an engine adds up is by two arms, and says nothing of further columns, which have to be checked too.
            return None
        try:
            groups = self.source.group(self.columns, partition, formulas)
            if groups is None:
                return None
            if not groups.usable or int(groups.counts.sum()) < self._n:
                # A sweep finds the same rows and says what is wrong with them. It never adds up instead: whether it did
                # would depend on single records, and the diameter holds for one way of adding up, not for either.
                self._check(self._run(Sweep(self.columns)))
                raise InvalidInput(AT_ODDS)
            self._check_groups(partition, groups)
            if not self.source.capabilities.snapshot:
                # No checksum says that these rows are the ones whose units were counted.
                self._check_units()
        except InvalidInput as refusal:
            if fresh:
                raise
            raise SourceFailed(f"{refusal} {_SPENT}") from None
        if progress is not None:
            progress(self.n)
        return np.stack([groups.counts, *groups.sums]).astype(np.int64)

    def by_unit(self) -> Records | None:
        """Rows stay where they are: no engine is asked to bring those of a unit together."""
        return None

    def close(self) -> None:
        """Let go of whatever the passes needed."""
        self.source.close()

    @property
    def ordered(self) -> bool:
        """Whether rows come in the order of the table itself, each time."""
        return self.source.capabilities.ordered

    @property
    def _hashed(self) -> bool:
        """Whether only a sweep finds out which rows are used."""
        return any(condition.half is not None for condition in self.columns.where)

    @property
    def _fresh(self) -> bool:
        """Whether no round can have spent anything yet."""
        return self._first is None and self._grouped is None

    def _run(self, sweep: Sweep, progress: RowProgress | None = None) -> Tally:
        try:
            return self.source.run(sweep, progress)
        except MemoryError:
            raise InvalidInput(NO_MEMORY) from None

    def _check(self, tally: Tally) -> None:
        if tally.refusal is not None:
            raise InvalidInput(tally.refusal)
        if self._first is None:
            self.columns.check_rows(tally.rows, tally.treated, tally.arms)
            if self._n not in (0, tally.rows) or self._arms not in (None, tally.treated):
                raise InvalidInput(CHANGED)
            self._n, self._first = tally.rows, tally
        elif (tally.rows, tally.treated, tally.checksum) != (self._n, self._first.treated, self._first.checksum):
            raise InvalidInput(CHANGED)

    def _check_units(self) -> None:
        if self.unit is not None and self.source.most_rows(self.columns) > self.unit.max_rows:
            raise too_many_rows(self.unit)

    def _check_groups(self, partition: Partition | None, groups: Groups) -> None:
        control, treated = (int(arm) for arm in groups.counts.sum(axis=0))
        check_arms(control + treated, treated)
        known = self._first.treated if self._first is not None else self._arms
        if control + treated != self._n or known not in (None, treated):
            raise InvalidInput(CHANGED)
        before = None if self._grouped is None or self._grouped[0] != partition else self._grouped[1]
        if before is not None and not np.array_equal(before, groups.counts):
            raise InvalidInput(CHANGED)
        self._grouped = partition, groups.counts

    @property
    def _arms(self) -> int | None:
        return None if self._grouped is None else int(self._grouped[1][:, 1].sum())


def missing_unit(column: str) -> InvalidInput:
    """The refusal of a unit column with missing values."""
    return InvalidInput(
        f"column {column!r} has missing values, but says whose row it is: fill or leave out those rows."
    )


def too_many_rows(unit: Unit) -> InvalidInput:
    """The refusal of a unit with more rows than declared."""
    return InvalidInput(
        f"max_rows: a value of column {unit.column!r} has more rows than the {unit.max_rows} declared: declare more, "
        "or keep fewer rows of each unit."
    )


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def types_of(relation: duckdb.DuckDBPyRelation) -> dict[str, str]:
    """Types of the columns by name, in lower case. DuckDB takes names that differ in case for one and the same."""
    if len({name.lower() for name in relation.columns}) < len(relation.columns):
        raise InvalidInput("table has two columns with the same name, apart from case: rename one in the query.")
    return dict(zip(relation.columns, (str(column.id) for column in relation.types), strict=True))
