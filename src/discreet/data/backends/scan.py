"""One pass over a table, wherever its rows are: Arrow batches in, one tally of integers out.

An engine hands batches to a `Sweep` (which cloudpickle can send to other processes) and adds up what comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, ClassVar, Protocol

import numpy as np

from discreet.data._arrays import Float, IntArray, mask_array
from discreet.data.bounds import Bounds, Levels, Spec
from discreet.data.declared.dates import DateRange
from discreet.data.filters import Where
from discreet.data.records import (
    CHUNK_ROWS,
    Chunk,
    CodeMap,
    Further,
    Kernel,
    Names,
    RowProgress,
    Unit,
    added,
    check_arms,
    chunks,
    hold,
    hold_further,
    seen_arms,
)
from discreet.data.sampling import places, sampled, whole
from discreet.data.views.coded import packed
from discreet.exceptions import InvalidInput

# A multiple of the chunk length, so that only the last chunk of a batch is short.
BATCH_ROWS = 16 * CHUNK_ROWS
# Odd numbers that make a checksum feel which column a value stands in.
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SEVEN = np.uint64(7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns of a table play which part, and what is declared about them.

    Parameters
    ----------
    bounds
        Public facts about the records.
    outcome, treatment, covariates
        Their columns; covariates in the order of the bounds.
    propensity
        Known probability of treatment, or its column.
    where
        Which rows are used.
    unit
        Whose rows they are, where one unit may have several.
    sample_by
        A column of whole numbers by which a sample may be chosen.
    further
        Columns that the estimator takes beside these.
    """

    has_arms: ClassVar[bool] = True  # whether engines may add up by arm
    bounds: Bounds
    outcome: str
    treatment: str
    covariates: tuple[str, ...]
    propensity: str | float | None = None
    where: Where = ()
    unit: Unit | None = None
    sample_by: str | None = None
    further: tuple[tuple[Further, str], ...] = ()

    @property
    def specs(self) -> dict[str, Spec]:
        """What is declared of each column, where something is."""
        bounds = self.bounds
        found = {self.outcome: bounds.outcome_column, self.treatment: bounds.arms}
        found |= dict(zip(self.covariates, bounds.declared.values(), strict=False))
        # A column with two parts to play, as an outcome that may be missing, holds what the first declares.
        return found | {name: each.spec for each, name in self.further if name not in found}

    @property
    def dates(self) -> frozenset[str]:
        """Columns that hold dates or times."""
        declared = {name for name, spec in self.specs.items() if isinstance(spec, DateRange)}
        return frozenset(declared | {condition.column for condition in self.where if condition.dates})

    @property
    def wanted(self) -> dict[str, bool]:
        """The columns to read, in order, and whether they must hold text rather than numbers."""
        wanted = {name: isinstance(spec, Levels) and spec.is_text for name, spec in self.specs.items()}
        if isinstance(self.propensity, str):
            wanted[self.propensity] = False
        if self.sample_by is not None and wanted.setdefault(self.sample_by, False):
            raise InvalidInput(f"sample_by must name a column of whole numbers, and {self.sample_by!r} holds text.")
        self.want_filters(wanted)
        return wanted

    def want_filters(self, wanted: dict[str, bool]) -> None:
        """Add the columns of the conditions, which must hold what these compare them with."""
        for condition in self.where:
            spec, halved = self.specs.get(condition.column), condition.half is not None
            fits = halved or spec is None or condition.dates == isinstance(spec, DateRange)
            if wanted.setdefault(condition.column, condition.is_text) != condition.is_text or not fits:
                raise InvalidInput(
                    f"where[{condition.column!r}] does not fit what the bounds declare of that column: write numbers "
                    "for numbers, text for text, and a pair of dates for dates."
                )

    @property
    def public(self) -> tuple[str, ...]:
        """What is public about how rows were chosen, one phrase each; that halves are used is said elsewhere."""
        return ("the filter that chose the records",) if any(each.half is None for each in self.where) else ()

    @property
    def names(self) -> Names:
        """What errors call the columns."""
        return Names(
            named(self.outcome),
            named(self.treatment),
            tuple(map(named, self.covariates)),
            named(self.propensity) if isinstance(self.propensity, str) else "propensity",
            "sample_by" if self.sample_by is None else named(self.sample_by),
            tuple(named(name) for _, name in self.further),
        )

    def used(self, batch: Any) -> Any:
        """Those rows of a batch that are used; its columns are ``wanted``, in that order."""
        return self._used(batch, None)[0]

    def _used(self, batch: Any, keys: Float | None) -> tuple[Any, Float | None]:
        where = {name: j for j, name in enumerate(self.wanted)}
        for condition in self.where:
            mask = condition.mask(batch.column(where[condition.column]))
            if not mask.all():
                # Conditions are met one after the other, so that each sees the rows that are left.
                batch = batch.filter(mask_array(mask))
                keys = None if keys is None else keys[mask]
        return batch, keys

    def check_rows(self, n: int, treated: int, seen: int) -> None:
        """Refuse what no estimate can be made of; ``seen`` are the arms, as `seen_arms` says."""
        check_arms(n, treated, self.bounds, seen)

    def chunks(self, batch: Any, keys: Float | None = None) -> Iterator[Chunk]:
        """Clip and encode those rows of a batch that are used; its columns are ``wanted``, in that order.

        ``keys`` are numbers by which a sample may be chosen where no column has them.
        """
        batch, keys = self._used(batch, keys)
        where = {name: j for j, name in enumerate(self.wanted)}
        if not batch.num_rows:
            return
        bounds, names = self.bounds, self.names
        y, t, *x = (batch.column(where[name]) for name in (self.outcome, self.treatment, *self.covariates))
        e: Any = self.propensity
        if isinstance(e, str):
            e = batch.column(where[e])
        elif e is not None:
            e = np.broadcast_to(np.float64(e), batch.num_rows)
        k: Any = keys if self.sample_by is None else batch.column(where[self.sample_by])
        held = hold(y, t, x, e, k, bounds=bounds, names=names)
        if self.further:
            more = [(each, batch.column(where[name])) for each, name in self.further]
            held = hold_further(held, more, names)
        yield from chunks(held, bounds, names)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """What one pass over some of the rows found.

    Parameters
    ----------
    rows, treated
        How many rows are used, and how many of them are treated (of several arms, the sum of their places).
    checksum
        Depends on every encoded value and not on the order of rows: modulo 2**64.
    sums
        The kernel's, if there was one and any row.
    refusal
        Why the rows cannot be used: a sentence without data. The other numbers then mean nothing.
    sample
        Rows of a sample, where they were to be kept.
    arms
        Where several arms are declared, a bit for each that some row is in.
    """

    rows: int = 0
    treated: int = 0
    checksum: int = 0
    sums: IntArray | None = None
    refusal: str | None = None
    sample: tuple[Chunk, ...] = field(default=(), repr=False)
    arms: int = 0

    def __add__(self, other: Tally) -> Tally:
        sums = self.sums if other.sums is None else added(self.sums, other.sums)
        return Tally(
            self.rows + other.rows,
            self.treated + other.treated,
            (self.checksum + other.checksum) % 2**64,
            sums,
            self.refusal or other.refusal,
            self.sample + other.sample,
            self.arms | other.arms,
        )


def total(tallies: Iterable[Tally]) -> Tally:
    """All tallies together."""
    return reduce(Tally.__add__, tallies, Tally())


@dataclass(frozen=True, slots=True, eq=False)
class Sweep:
    """What to do with every row: check it, count it, and add up what a kernel makes of it (if there is one).

    With a ``part`` the kernel sees that part of the rows, chosen by ``columns.sample_by``, or ``by_place``; without a
    kernel they are kept. With ``codes``, and no kernel, all rows are kept as these.
    """

    columns: Columns
    kernel: Kernel | None = None
    part: float | None = None
    codes: CodeMap | None = None
    by_place: bool = False

    def __call__(self, batches: Iterable[Any], progress: RowProgress | None = None, first: int = 0) -> Tally:
        """Tally of some batches, whose columns are ``columns.wanted`` in that order; ``first`` is their first place.

        Places count all rows of the table, also those that a filter leaves out.

        Rows that cannot be used do not raise, so that their refusal comes home from other processes as well.
        """
        rows = treated = checksum = arms = 0
        sums: IntArray | None = None
        kept: list[Chunk] = []

        def checked() -> Iterator[Chunk]:
            nonlocal rows, treated, checksum, first, arms
            for batch in batches:
                for chunk in self.columns.chunks(batch, places(first, batch.num_rows) if self.by_place else None):
                    yield chunk
                    rows += len(chunk.t)
                    treated += int(chunk.t.sum())
                    arms |= seen_arms(chunk, self.columns.bounds)
                    # Places are nothing that a record holds.
                    checksum = (checksum + _checksum(chunk._replace(k=None) if self.by_place else chunk)) % 2**64
                    if progress is not None:
                        progress(len(chunk.t))
                first += batch.num_rows

        try:
            chunks = checked() if self.part is None else sampled(checked(), self.part)
            for chunk in chunks if self.codes is None else packed(chunks, self.codes):
                if self.kernel is not None:
                    sums = added(sums, self.kernel(chunk if self.part is None else whole(chunk)))
                elif self.part is not None or self.codes is not None:
                    kept.append(chunk)
        except InvalidInput as refusal:
            return Tally(refusal=str(refusal))
        return Tally(rows, treated, checksum, sums, sample=tuple(kept), arms=arms)


def _checksum(chunk: Chunk) -> int:
    mixed = chunk.y.view(np.uint64) * _ODD
    term = np.empty_like(mixed)
    others = [each for each in (chunk.e, chunk.k) if each is not None]
    for column in (chunk.t, *chunk.x.T, *others, *chunk.more.values()):
        # Wraps around, on purpose; rows are mixed one by one, so that it matters what stands beside what.
        mixed += np.right_shift(np.ascontiguousarray(column).view(np.uint64), _SEVEN, out=term)
        mixed *= _ODD
    # Twice: after one step the signs of two rows, which are their first bits, would change sums that may cancel.
    mixed ^= mixed >> np.uint64(32)
    mixed *= _ODD
    mixed ^= mixed >> np.uint64(29)
    return int(mixed.sum(dtype=np.uint64))


def named(name: str) -> str:
    """What errors call a column."""
    return f"column {name!r}"


def in_order(covariates: Sequence[str] | None, bounds: Bounds) -> tuple[str, ...]:
    """The covariates' columns in the order of the bounds."""
    from discreet.data.frames import match_names

    if isinstance(covariates, str):
        raise InvalidInput("covariates takes a list of column names: put the name in a list.")
    if covariates is None and bounds.named:
        covariates = tuple(bounds.declared)
    if covariates is None and bounds.p:
        raise InvalidInput("covariates must list the columns, in order: the bounds give their covariates no names.")
    given = tuple(covariates or ())
    if bounds.named:
        match_names(given, bounds.declared, "covariates")
        given = tuple(bounds.declared)
    if len(given) != len(bounds.declared):
        raise InvalidInput(
            f"covariates names {len(given)} columns, but the bounds declare {len(bounds.declared)}: name each of them."
        )
    return tuple(given[k] for k in bounds.sources)


# Shorter tables are done before a second process has started.
MANY_ROWS = 5_000_000
_USUAL_WORKERS, _MOST_WORKERS = 8, 64
# What a process reads in its turns, of an even share of the rows.
_TURNS = (3 / 4, 1 / 4)


class Part(Protocol):
    """Rows that one process can read by itself; it has to be picklable."""

    @property
    def rows(self) -> int:
        """How many there are, whether they are used or not."""
        ...

    @property
    def first(self) -> int:
        """Place of the first of them in the table, where the next part begins after the last of them."""
        ...

    def batches(self, columns: Iterable[str]) -> Iterator[Any]:
        """Arrow batches of the wanted columns, in their order."""
        ...


def workers_for(asked: int | None, rows: int) -> int:
    """How many processes read a table: as many as asked for, or two and more from a few million rows on."""
    if asked is not None:
        if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= _MOST_WORKERS:
            raise InvalidInput(f"workers must be a whole number from 1 to {_MOST_WORKERS}: 1 reads in this process.")
        return asked
    return min(os.cpu_count() or 1, _USUAL_WORKERS) if rows > MANY_ROWS else 1


def run_parts(sweep: Sweep, parts: Sequence[Part], workers: int, progress: RowProgress | None) -> Tally:
    """One sweep over all parts."""
    if workers == 1 or len(parts) == 1:
        batches = (batch for part in parts for batch in part.batches(sweep.columns.wanted))
        return sweep(batches, progress, parts[0].first if parts else 0)
    import cloudpickle
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # What was learnt in earlier rounds can be tens of megabytes: it goes out with a few tasks, and not with many.
    sent, tasks = cloudpickle.dumps(sweep), shares(parts, workers)
    # Nothing is memory-mapped: a sweep comes as bytes, and no file with anything about records is left behind.
    pool = Parallel(
        n_jobs=min(workers, len(tasks)), backend="loky", return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    tallies = []
    try:
        for tally in pool(delayed(_run)(sent, task) for task in tasks):
            tallies.append(tally)
            if progress is not None and tally.rows:
                progress(tally.rows)
            if tally.refusal is not None:
                break
    except (TerminatedWorkerError, OSError):
        raise InvalidInput(
            "A process that read the table ended early: there may be too little memory; try workers=1."
        ) from None
    if len(tallies) < len(tasks) and not any(tally.refusal for tally in tallies):
        raise InvalidInput("Some parts of the table were not read: try workers=1.")
    return total(tallies)


def shares(parts: Sequence[Part], workers: int) -> list[list[Part]]:
    """Parts that are read in one go: most of the rows first, then the rest, for processes to end at about one time."""
    rows = sum(part.rows for part in parts)
    most = [turn * rows / workers for turn in _TURNS for _ in range(workers)]
    found: list[list[Part]] = []
    for part in parts:
        held = sum(each.rows for each in found[-1]) if found else 0
        if found and held + part.rows <= most[min(len(found), len(most)) - 1]:
            found[-1].append(part)
        else:
            found.append([part])
    return found


def _run(sent: bytes, parts: Sequence[Part]) -> Tally:
    import cloudpickle
    from threadpoolctl import threadpool_limits

    sweep: Sweep = cloudpickle.loads(sent)
    with threadpool_limits(1):
        return sweep((batch for part in parts for batch in part.batches(sweep.columns.wanted)), None, parts[0].first)
