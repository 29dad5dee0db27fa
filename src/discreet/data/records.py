"""Records: a source of rows that can be summed over, and nothing else.

Whatever the source, rows pass the same two steps: `hold` settles what kind of values each column has, and `chunks`
clips and encodes a few thousand rows at a time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from discreet.data._arrays import Codes, Float, IntArray, Values
from discreet.data.binary import unlabelled
from discreet.data.bounds import Bounds, Levels
from discreet.data.columns import Range, arrow, numbers, plain, too_large
from discreet.data.expressions import Formula
from discreet.data.partition import Partition
from discreet.exceptions import InvalidInput

__all__ = ["CHUNK_ROWS", "MIN_ROWS", "Chunk", "Float", "IntArray", "Kernel", "Records", "Unit"]

# Exact integer sums in float64 rely on this limit: docs/proofs/ and gate.py count its bits.
CHUNK_ROWS = 4_096
# Fewer records than this cannot support an estimate at any budget.
MIN_ROWS = 10
# Whole numbers up to here have a float64 each.
_EXACT = 2.0**53
# A unit with more rows than this would drown everything in noise.
_MOST_ROWS = 1_000_000
_NOTHING: Mapping[str, Float] = {}


class Further(NamedTuple):
    """A column that some estimators take beside outcome, treatment and covariates, such as an instrument."""

    role: str
    """what it is to the estimator, and its name in `Chunk.more`"""
    spec: Range | Levels
    """what it is declared to hold"""


class Chunk(NamedTuple):
    """A few thousand records (at most ``CHUNK_ROWS``), already clipped and encoded."""

    y: Float
    """(m,) outcome, mapped onto [-1, 1]"""
    t: Float
    """(m,) 0.0 for control, 1.0 for treated; where more arms are declared, the arm's place among them"""
    x: Float
    """(m, p) covariates: ranges mapped onto [-1, 1], levels as their position 0, 1, ..."""
    e: Float | None
    """(m,) known probability of treatment, inside its bounds; None if it has to be estimated"""
    k: Float | None = None
    """(m,) whole numbers by which a sample may be chosen; None if there are none"""
    u: IntArray | None = None
    """(m,) number of the unit that each row belongs to, where all rows of a unit are in one chunk: see `Records`"""
    c: npt.NDArray[np.unsignedinteger[Any]] | None = None
    """(p, m) codes of covariates where these alone were kept, and ``x`` has no columns: see `Records.coded`"""
    more: Mapping[str, Float] = _NOTHING
    """(m,) each: further columns by their roles, ranges mapped onto [-1, 1], levels as their position"""


Kernel: TypeAlias = Callable[[Chunk], IntArray]
RowProgress: TypeAlias = Callable[[int], None]
CodeMap: TypeAlias = Callable[[Float], npt.NDArray[np.unsignedinteger[Any]]]
"""Codes of covariates from their encoded values: (m, p) numbers to (p, m) small whole numbers, record by record."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Whose records they are, where one person may have several: up to ``max_rows`` rows share a column's value."""

    column: str
    max_rows: int

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise InvalidInput("unit must be the name of a column that says whose record it is: name it.")
        rows: object = self.max_rows
        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= _MOST_ROWS:
            raise InvalidInput(
                f"max_rows must be a whole number from 1 to {_MOST_ROWS:,}, the most rows that one unit has: declare "
                "it, do not count it."
            )

    def __str__(self) -> str:
        return f"one {self.column} with at most {self.max_rows} row{'s' if self.max_rows > 1 else ''}"


class Records(Protocol):
    """What an estimator may know about records: how many there are, their public bounds, and sums over them."""

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    @property
    def bounds(self) -> Bounds:
        """What was declared about them."""
        ...

    @property
    def unit(self) -> Unit | None:
        """Whose rows they are, where it is not one record each."""
        ...

    @property
    def public(self) -> tuple[str, ...]:
        """What is public about how the records were chosen, one phrase each."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether rows come in an order of their own, the same each time."""
        ...

    def sum(self, kernel: Kernel, progress: RowProgress | None = None) -> IntArray:
        """Add up ``kernel(chunk)``, an int64 array; ``progress`` is given the number of rows just finished.

        A kernel is a pure function that cloudpickle can send elsewhere; the order of chunks is the source's own.
        """
        ...

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """Counts and sums by cell and arm, where the source itself can add up; None where it cannot, and `sum` must.

        Shape (1 + formulas, cells, 2): numbers of records first, then the sum of each formula, whose values are whole
        numbers. Cells without records are zero; there are as many as the partition declares.
        """
        ...

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> "Records | None":
        """About so large a part of the records; None where no column says which, and ``by_place`` no order does.

        ``rows`` is about how many there will be: a public or released number, as how they are kept depends on it.
        """
        ...

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> "Records":
        """The same with codes in place of covariates, in memory, where reading them again takes longer and they fit.

        A public function of single records says what the codes are. Otherwise records stay as they are.
        """
        ...

    def by_unit(self) -> "Records | None":
        """The same in chunks that hold all rows of a unit and say whose they are; None where none can be made."""
        ...

    def close(self) -> None:
        """Let go of whatever the passes needed."""
        ...


class RecordsInMemory:
    """What records in memory share: an order, no engine that adds up by cell, no sample, and nothing to close."""

    __slots__ = ()

    @property
    def ordered(self) -> bool:
        """Rows come in the order in which they were handed over."""
        return True

    def group_sums(
        self, partition: Partition | None, formulas: Sequence[Formula], progress: RowProgress | None = None
    ) -> IntArray | None:
        """There is no engine to ask: `sum` adds up."""
        return None

    def sample(
        self, part: float, rows: float, progress: RowProgress | None = None, *, by_place: bool = False
    ) -> Records | None:
        """No column chooses one."""
        return None

    def coded(self, codes: CodeMap, progress: RowProgress | None = None) -> Any:
        """They are at hand as they are."""
        return self

    def by_unit(self) -> Records | None:
        """Nothing says whose rows they are."""
        return None

    def close(self) -> None:
        """There is nothing to let go of."""


# It neither compares nor prints its columns: they are the records themselves.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Held:
    """Columns whose kind is settled: numbers as they were handed over, treatment and levels as small integers.

    So is a binary outcome: 1 for the event, 0 otherwise.
    """

    y: Values
    t: Codes
    x: tuple[Values, ...]
    e: Values | None
    k: Values | None = None
    more: tuple[tuple[Further, Values], ...] = ()


class Names(NamedTuple):
    """What errors call the columns."""

    y: str
    t: str
    x: tuple[str, ...]
    e: str
    k: str = "sample_by"
    more: tuple[str, ...] = ()


def hold(
    y: Values, t: Values, x: Sequence[Values], e: Values, k: Values | None = None, *, bounds: Bounds, names: Names
) -> Held:
    """Settle the kind of each column, once for all passes; `hold_further` does so for what else there is."""
    return Held(
        y=_settled(y, names.y) if bounds.outcome_levels is None else _events(y, bounds.outcome_levels, names.y),
        t=_arms(t, bounds.arms, names.t),
        x=tuple(
            spec.codes(column, name) if isinstance(spec, Levels) else _settled(column, name)
            for spec, column, name in zip(bounds.columns, x, names.x, strict=True)
        ),
        e=None if e is None else _settled(e, names.e),
        k=None if k is None else _settled(k, names.k),
    )


def hold_further(held: Held, further: Iterable[tuple[Further, Values]], names: Names) -> Held:
    """The same columns with further ones beside them."""
    more = tuple(
        (each, each.spec.codes(values, name) if isinstance(each.spec, Levels) else _settled(values, name))
        for (each, values), name in zip(further, names.more, strict=True)
    )
    return replace(held, more=more)


def chunks(held: Held, bounds: Bounds, names: Names, edges: Sequence[int] = ()) -> Iterator[Chunk]:
    """Clip and encode ``CHUNK_ROWS`` rows at a time; values that have no place in the bounds are refused.

    ``edges`` say where chunks begin, and the last one ends, if they are to hold fewer.
    """
    outcome, columns = bounds.outcome_range, list(zip(bounds.columns, held.x, names.x, strict=True))
    for start, stop in pairwise(edges or [*range(0, len(held.t), CHUNK_ROWS), len(held.t)]):
        rows = slice(start, stop)
        t = held.t[rows].astype(np.float64)
        # One covariate after the other lies in memory, so that each is encoded in one sweep.
        x = np.empty((len(columns), len(t)))
        for (spec, column, name), out in zip(columns, x, strict=True):
            if isinstance(spec, Levels):
                out[:] = column[rows]
            else:
                spec.encode(column[rows], name, out)
        e, k = _known(held.e, rows, bounds, names.e), _keys(held.k, rows, names.k)
        more = {
            each.role: each.spec.encode(column[rows], name)
            if isinstance(each.spec, Range)
            else column[rows].astype(np.float64)
            for (each, column), name in zip(held.more, names.more, strict=True)
        }
        yield Chunk(y=outcome.encode(held.y[rows], names.y), t=t, x=x.T, e=e, k=k, more=more)


def admit(source: Iterable[Chunk], bounds: Bounds) -> int:
    """Read everything once, so that whatever is unusable is refused before any budget is spent; count the records."""
    n = treated = seen = 0
    for chunk in source:
        n += len(chunk.t)
        treated += int(chunk.t.sum())
        seen |= seen_arms(chunk, bounds)
    check_arms(n, treated, bounds, seen)
    return n


def seen_arms(chunk: Chunk, bounds: Bounds) -> int:
    """Where more than two arms are declared, a bit for each that some record is in."""
    if not bounds.several_arms:
        return 0
    return sum(1 << arm for arm in set(chunk.t.astype(np.int64).tolist()))


def add_up(source: Iterable[Chunk], kernel: Kernel, progress: RowProgress | None, *, n: int) -> IntArray:
    """The sum of ``kernel`` over all chunks, in int64, where the order of addition cannot matter."""
    total: IntArray | None = None
    seen = 0
    for chunk in source:
        total = added(total, kernel(chunk))
        seen += len(chunk.t)
        if progress is not None:
            progress(len(chunk.t))
    # Bounds on sums were worked out from n, so a source that has changed since must not get through.
    if total is None or seen != n:
        raise InvalidInput("The records changed while they were being read: keep the source fixed and start again.")
    return total


def added(total: IntArray | None, part: object) -> IntArray:
    """The total with one more part, which a kernel returned."""
    if not isinstance(part, np.ndarray) or part.dtype != np.int64 or part.size == 0:
        raise TypeError("A kernel must return a non-empty int64 array.")
    if total is None:
        return part.copy()
    if part.shape != total.shape:
        raise TypeError("A kernel must return arrays of one shape.")
    total += part
    return total


def check_arms(n: int, treated: int, bounds: Bounds | None = None, seen: int = 0) -> None:
    """Refuse what no estimate can be made of; ``seen`` as `seen_arms` says, where bounds declare several arms."""
    if n < MIN_ROWS:
        raise InvalidInput(f"There are fewer than {MIN_ROWS} records, too few for any estimate: bring more.")
    if bounds is not None and bounds.several_arms:
        if seen + 1 < 1 << len(bounds.arms.levels):
            raise InvalidInput(
                "An arm of Bounds(treatment=[...]) is empty: a comparison needs records in every declared arm, so "
                "declare those that there are."
            )
    elif treated in (0, n):
        raise InvalidInput("One arm is empty: an effect needs treated and control records.")


def _known(e: Values | None, rows: slice, bounds: Bounds, name: str) -> Float | None:
    if e is None:
        return None
    low, high = bounds.propensity
    known = numbers(e[rows], name)
    if not np.all((low <= known) & (known <= high)):
        raise InvalidInput(outside_overlap(name))
    return known


def _keys(k: Values | None, rows: slice, name: str) -> Float | None:
    if k is None:
        return None
    keys = numbers(k[rows], name)
    if np.any(np.abs(keys) > _EXACT):
        raise InvalidInput(too_large(name))
    # Written so that NaN is refused too.
    if not np.array_equal(np.rint(keys), keys):
        raise InvalidInput(
            f"{name} must hold a whole number for every record, as a sample is chosen by it: fill or number them."
        )
    return keys


def outside_overlap(name: str) -> str:
    """The refusal of a known probability that contradicts the bounds."""
    return f"{name} must lie inside the declared Bounds(propensity=(low, high)): widen them, or check it."


def _arms(values: Values, arms: Levels, name: str) -> Codes:
    try:
        return arms.codes(values)
    except InvalidInput:
        if len(arms.levels) > 2:
            raise InvalidInput(
                f"{name} must hold one of the labels in Bounds(treatment=[control, ...]) in every record: declare all "
                "arms, and leave out records without a treatment."
            ) from None
        raise InvalidInput(
            f"{name} must hold 0 or 1 (or booleans, or the two labels in Bounds(treatment=(control, treated))) "
            "in every record: recode it, and leave out records without a treatment."
        ) from None


def _events(values: Values, labels: Levels, name: str) -> Codes:
    try:
        return labels.codes(values, name)
    except InvalidInput:
        raise InvalidInput(unlabelled(name)) from None


def _settled(values: Values, name: str) -> Values:
    # Python objects are turned into an array of one type here, rather than again in every pass.
    return plain(arrow(values, name) if isinstance(values, np.ndarray) and values.dtype.kind == "O" else values)
