"""The one gate: clip, sum, noise. Nothing that was computed from records and is called proved leaves in any other way.

(What `discreet.papers` releases as its authors prescribe does not pass here: its guarantees say "claimed".)
A query is a map of single records, the set that it must lie in and a share of the budget. The gate enforces the set on
every record, sums integers exactly, charges the budget and then draws. Proof: docs/proofs/gate.md.
"""

import math
from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.expressions import ByCell, number
from discreet.data.partition import Partition
from discreet.data.records import CHUNK_ROWS, Chunk, CodeMap, Records, RowProgress, Unit
from discreet.data.views.capped import Capped
from discreet.data.views.viewed import View, ViewedRecords
from discreet.exceptions import BudgetExceeded, InvalidBudget, InvalidInput
from discreet.privacy.accountant import calibrate_mu, sets_slack_aside
from discreet.privacy.budget import Budget, Event, GaussianEvent, LaplaceEvent
from discreet.privacy.guarantee import Guarantee, Neighbours, audit_of
from discreet.privacy.noise import discrete_gaussian, discrete_laplace, drawing_is_seeded
from discreet.privacy.query import Query, Released, Round, rows_of
from discreet.privacy.sensitivity.fixed_point import (
    CAPACITY_BITS,
    ROUNDING,
    Grid,
    SensitivitySet,
    capacity_bits,
    check_share,
    plan_noise,
    sd_of,
)
from discreet.privacy.sensitivity.sets import Interval

# Every record counts as one.
COUNTED = ByCell(None, False, (number(1.0),), alone=True)
# Sees every question with its exact sums, and may answer in the gate's place: testing.watched sets it, for replays and
# under seeded noise only.
Watcher = Callable[["Gate", tuple[Round, ...]], tuple[Released, ...] | None]
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("discreet_watchers", default=())


@dataclass(slots=True)
class _Account:
    """What a gate has spent, together with those on samples of its records."""

    events: tuple[Event, ...] = ()
    shares: tuple[float, ...] = ()
    seeded: bool = False


class _Prepared(NamedTuple):
    """Sums of a question that may be asked later, and the grid that they were taken on."""

    grid_bits: int
    sums: IntArray


class Gate:
    """Spends one budget on sums over one source of records.

    Parameters
    ----------
    records
        The source.
    budget
        What may be spent, all rounds together.
    neighbours
        "replace-one", where the number of records is public, or "add-remove", where it is private.
    progress
        Is given the number of rows just read, for progress bars.

    Privacy
    -------
    All releases together, each chosen freely after the ones before it, satisfy the budget: docs/proofs/gate.md. Where
    the records have a unit, neighbours differ in all rows of one unit, and diameters grow: docs/proofs/units.md.
    """

    def __init__(
        self,
        records: Records,
        *,
        budget: Budget,
        neighbours: Neighbours = "replace-one",
        progress: RowProgress | None = None,
    ) -> None:
        if neighbours not in get_args(Neighbours):
            raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
        self.counts_rows = neighbours == "add-remove" or records.unit is not None
        if self.counts_rows and records.n > 2**CAPACITY_BITS:
            what = "neighbours='add-remove'" if records.unit is None else "unit"
            raise InvalidInput(
                f"{what} takes at most 2**{CAPACITY_BITS} records; use 'replace-one' and one record to a unit beyond."
            )
        self.budget = budget
        self.neighbours: Neighbours = neighbours
        self._account = _Account()
        self._records = records
        self._progress = progress
        self._bits = CAPACITY_BITS if self.counts_rows else capacity_bits(neighbours, records.n)
        self._count: float | None = None if self.counts_rows else float(records.n)
        self._prepared: dict[Query, _Prepared] = {}

    def sampled(self, part: float, share: float) -> "Gate | None":
        """A gate on about so large a part of the records, which spends from the same budget.

        None where no column was named that chooses a sample. Its number of records is private, and is released with a
        ``share`` of the budget. Proof: docs/proofs/gate.md, lemma 15.
        """
        records = self._records.sample(part, part * self.n, self._progress)
        if records is None:
            return None
        gate = copy(self)
        gate._records, gate._prepared, gate.counts_rows, gate._count = records, {}, True, None
        gate.count(share)
        return gate

    def capped(self, cap: float) -> "Gate":
        """A gate on the same records whose larger outcomes count as ``cap``, which spends from the same budget.

        The cap is declared or released: to all rounds the range of the outcome ends there.
        """
        return self.viewed(Capped.of(self.bounds, cap))

    def viewed(self, view: View) -> "Gate":
        """A gate on the same records seen through a map of single records, which spends from the same budget.

        The map is public: declared, or a function of what was released before. Proof: docs/proofs/gate.md, lemma 16.
        """
        gate = copy(self)
        gate._records, gate._prepared = ViewedRecords(self._records, view), {}
        return gate

    def coded(self, codes: CodeMap) -> "Gate":
        """A gate on the same records, which may be kept as codes of their covariates, that spends from the same budget.

        Maps then find codes in `Chunk.c`. They are a public function of single records: docs/proofs/gate.md.
        """
        gate = copy(self)
        gate._records = self._records.coded(codes, self._progress)
        return self if gate._records is self._records else gate

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything released so far, as accountants see it."""
        return self._account.events

    @property
    def bounds(self) -> Bounds:
        """What was declared about the records."""
        return self._records.bounds

    @property
    def most_rows(self) -> int:
        """Most rows of one unit."""
        return 1 if self._records.unit is None else self._records.unit.max_rows

    @property
    def joins_rows(self) -> bool:
        """Whether rows of one unit can be added up before a set is enforced: see `Query`."""
        return self.most_rows > 1 and self._records.by_unit() is not None

    @property
    def pure(self) -> bool:
        """Whether the budget has no delta, so that all noise is Laplace noise."""
        return self.budget.pure

    @property
    def mu(self) -> float:
        """What all Gaussian releases together may add up to."""
        if self.budget.delta is None:
            raise InvalidBudget("a pure budget has no mu; give it a delta to draw Gaussian noise.")
        return calibrate_mu(self.budget.epsilon, self.budget.delta)

    @property
    def n(self) -> float:
        """Number of records: exact where it is public (replace-one, one record to a unit), else as `count` released."""
        if self._count is None:
            raise InvalidInput(
                "n is private under 'add-remove', and where a unit has several rows; release it first with "
                "gate.count(share)."
            )
        return self._count

    @property
    def spent(self) -> float:
        """Share of the budget that is spent."""
        return math.fsum(self._account.shares)

    @property
    def spent_on(self) -> dict[str, float]:
        """Shares that are spent, by the names of events."""
        spent: dict[str, float] = {}
        for event, share in zip(self._account.events, self._account.shares, strict=True):
            spent[event.name] = spent.get(event.name, 0.0) + share
        return spent

    @property
    def left(self) -> float:
        """Share of the budget that is left."""
        return max(0.0, 1.0 - self.spent)

    def noise_sd(self, geometry: SensitivitySet, share: float) -> float:
        """Noise that a release would have, without touching the records; of the first number for `MeanSquare`."""
        check_share(share)
        return sd_of(*self._plan(geometry, share), self.pure)

    def count(self, share: float) -> float:
        """Number of records, at least 1: released where ``counts_rows`` says that it is private, and free elsewhere."""
        if self.counts_rows:
            (count,) = self.ask(Query("number of records", share, Interval(0, 1), COUNTED))
            self._count = max(1.0, float(count.value))
        return self.n

    def prepare(self, *queries: Query) -> None:
        """Take the sums of questions that may be asked later, all in one pass over the records.

        Nothing is charged and nothing leaves: what is not asked for is forgotten with the gate. Questions must be
        public, as those of `ask` are; a question is recognised as the same object, and equals no other.
        """
        grids = [self._plan(query.geometry, query.share, query.of_units)[0] for query in queries]
        for query, grid, sums in zip(queries, grids, self._sums(queries, grids), strict=True):
            self._prepared[query] = _Prepared(grid.grid_bits, sums)

    def ask(self, *queries: Query) -> tuple[Released, ...]:
        """Release noisy sums, all in one pass over the records.

        Whatever goes wrong before the sums are complete spends nothing. Then the budget is charged, and only then is
        noise drawn.
        """
        shares = self._allot(queries)
        plans = [
            self._plan(query.geometry, share, query.of_units) for query, share in zip(queries, shares, strict=True)
        ]
        events = [self._event(query, *plan) for query, plan in zip(queries, plans, strict=True)]
        watchers = _watchers.get()
        if watchers and not drawing_is_seeded():
            raise InvalidInput("record_sums needs seeded noise: exact sums of a real release must not be kept.")
        sums = self._known_sums(queries, [grid for grid, _ in plans])
        # Charge, then draw: a crash from here on loses budget, never privacy.
        account = self._account
        account.events += tuple(events)
        account.shares += shares
        account.seeded = account.seeded or drawing_is_seeded()
        noisy = [_drawn(exact, grid, scale, self.pure) for (grid, scale), exact in zip(plans, sums, strict=True)]
        released = tuple(
            self._in_units(query, *plan, steps) for query, plan, steps in zip(queries, plans, noisy, strict=True)
        )
        for watcher in watchers:
            asked = zip(queries, plans, sums, noisy, released, strict=True)
            rounds = tuple(
                Round(query, *plan, exact, drawn, own, self.pure) for query, plan, exact, drawn, own in asked
            )
            released = watcher(self, rounds) or released
        return released

    def guarantee(self, proof: str, public: tuple[str, ...] = (), unit: str = "one record") -> Guarantee:
        """What everything released so far promises: exactly the budget, checked against the events."""
        if self._records.unit is not None:
            proof, unit = f"{proof}, units.md", str(self._records.unit)
        return Guarantee(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta or 0.0,
            neighbours=self.neighbours,
            unit=unit,
            status="test" if self._account.seeded else "proved",
            proof=proof,
            public=(*public, *self._records.public),
            events=self.events,
            audit=audit_of(proof, self.neighbours, pure=self.pure),
        )

    @property
    def _total(self) -> float:
        return self.budget.epsilon if self.pure else self.mu

    def _plan(self, geometry: SensitivitySet, share: float, of_units: bool = False) -> tuple[Grid, float]:
        aside = self.budget.delta is not None and sets_slack_aside(self.budget.epsilon, self.budget.delta)
        unit = self._records.unit
        if unit is not None and of_units:
            # What is forced into the set is a unit's: docs/proofs/units.md, lemma 3.
            unit = Unit(unit.column, 1)
        return plan_noise(geometry, share, self._total, self.pure, self.neighbours, self._bits, aside, unit)

    def _allot(self, queries: tuple[Query, ...]) -> tuple[float, ...]:
        if not queries:
            raise InvalidInput("ask needs at least one query.")
        for query in queries:
            check_share(query.share)
        asked, left = math.fsum(query.share for query in queries), self.left
        if asked > left + ROUNDING or left <= 0:
            raise BudgetExceeded(
                f"{', '.join(query.name for query in queries)}: asked for {asked:.6g} of the budget, {left:.6g} is "
                f"left, {asked - left:.3g} is missing; lower the shares."
            )
        # Shares such as 0.1 + 0.2 + 0.7 may exceed one by a rounding error: take it away, so that no budget can.
        scale = min(1.0, left / asked)
        return tuple(query.share * scale for query in queries)

    def _in_units(self, query: Query, grid: Grid, scale: float, steps: IntArray) -> Released:
        noisy: Float = steps.astype(np.float64) * grid.units
        if grid.shift:
            noisy += grid.shift * self.n
        sd = grid.units * scale * (math.sqrt(2) if self.pure else 1.0)
        return Released(query.geometry.natural(noisy), sd, query.name)

    def _event(self, query: Query, grid: Grid, scale: float) -> Event:
        if self.pure:
            return LaplaceEvent(name=query.name, diameter=grid.l1, scale=scale, dimension=grid.numbers)
        return GaussianEvent(name=query.name, diameter=grid.l2, sigma=scale, dimension=grid.numbers)

    def _known_sums(self, queries: tuple[Query, ...], grids: list[Grid]) -> list[IntArray]:
        """Sums that were prepared on the same grids; a pass over the records where any is missing."""
        known = [self._prepared.get(query) for query in queries]
        found = [
            each.sums
            for each, grid in zip(known, grids, strict=True)
            if each is not None and each.grid_bits == grid.grid_bits
        ]
        return found if len(found) == len(queries) else self._sums(queries, grids)

    def _sums(self, queries: tuple[Query, ...], grids: list[Grid]) -> list[IntArray]:
        grouped = self._group_sums(queries, grids)
        if grouped is not None:
            return grouped
        records = self._records.by_unit() if any(query.of_units for query in queries) else self._records
        if records is None:
            raise InvalidInput("rows of one unit cannot be brought together here: ask about rows.")
        total = records.sum(Sums(queries, tuple(grids)), self._progress)
        return np.split(total, np.cumsum([grid.length for grid in grids])[:-1])

    def _group_sums(self, queries: tuple[Query, ...], grids: list[Grid]) -> list[IntArray] | None:
        """Sums by cell and arm that the records' own engine adds up, row by row; None where it cannot."""
        if any(query.of_units for query in queries):
            return None
        maps = [query.map for query in queries if isinstance(query.map, ByCell)]
        partitions = {each.partition for each in maps if isinstance(each.partition, Partition)}
        plain = all(each.partition is None or isinstance(each.partition, Partition) for each in maps)
        if len(maps) < len(queries) or not plain or len(partitions) > 1 or any(grid.by_cell is None for grid in grids):
            return None
        return _by_cell(self._records, partitions.pop() if partitions else None, maps, grids, self._progress)


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """The kernel of a pass: all questions' integers of one chunk, one after the other. Pure, and can be pickled."""

    queries: tuple[Query, ...]
    grids: tuple[Grid, ...]

    def __call__(self, chunk: Chunk) -> IntArray:
        """The integers of one chunk."""
        if len(chunk.t) > CHUNK_ROWS:
            raise InvalidInput(f"a chunk may hold at most {CHUNK_ROWS} records: float64 sums are exact up to there.")
        parts = zip(self.queries, self.grids, strict=True)
        return np.concatenate([grid.add(rows_of(query, chunk)) for query, grid in parts])


def _by_cell(
    records: Records, partition: Partition | None, maps: list[ByCell], grids: list[Grid], progress: RowProgress | None
) -> list[IntArray] | None:
    """What each grid's sums are, from counts and sums by cell and arm."""
    asked = [grid.by_cell.steps(each.numbers) for each, grid in zip(maps, grids, strict=True) if grid.by_cell]
    # Numbers that are the same for all records need no sum: records are counted anyway.
    formulas = list(dict.fromkeys(step for steps in asked for step in steps if step.constant is None))
    found = records.group_sums(partition, formulas, progress)
    if found is None:
        return None
    counts, sums = found[0], dict(zip(formulas, found[1:], strict=True))
    arranged = []
    for each, grid, steps in zip(maps, grids, asked, strict=True):
        tables = [sums[step] if step.constant is None else counts * int(step.constant) for step in steps]
        by_cell = grid.by_cell
        assert by_cell is not None
        arranged.append(by_cell.arrange(_by_arm(counts, each), [_by_arm(table, each) for table in tables]))
    return arranged


def _by_arm(table: IntArray, map_: ByCell) -> IntArray:
    """Sums by cell and arm, added up over arms where a map does not separate them."""
    if map_.partition is None:
        table = table.sum(axis=0, keepdims=True)
    return table.ravel() if map_.arms else table.sum(axis=1)


def _drawn(exact: IntArray, grid: Grid, scale: float, pure: bool) -> IntArray:
    if pure:
        return discrete_laplace(exact, scale)
    if grid.full == exact.size:
        return discrete_gaussian(exact, scale)
    fine = discrete_gaussian(exact[grid.full :], scale / math.sqrt(2))
    return np.concatenate([discrete_gaussian(exact[: grid.full], scale), fine])
