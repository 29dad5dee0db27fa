"""The one gate: clip, sum, noise. Nothing that was computed from records and is called proved leaves in any other way.

(What `discreet.papers` releases as its authors prescribe does not pass here: its guarantees say "claimed".)
A query is a map of single records, the set that it must lie in and a share of the budget. The gate enforces the set on
every record, sums integers exactly, charges the budget and then draws. Proof: docs/proofs/gate.md.
"""

import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, get_args

import numpy as np

from discreet.accounting import SLACK, calibrate_mu, sets_slack_aside
from discreet.audited import audit_of
from discreet.bounds import Bounds
from discreet.budget import Budget
from discreet.columns import Float, IntArray
from discreet.errors import BudgetExceeded, InvalidBudget, InvalidInput
from discreet.events import Event, GaussianEvent, LaplaceEvent
from discreet.geometry import ROOM, Geometry, Interval
from discreet.guarantee import Guarantee, Neighbours
from discreet.lattice import Grid
from discreet.noise import MAX_SCALE, MIN_SCALE, discrete_gaussian, discrete_laplace, drawing_is_seeded
from discreet.records import CHUNK_ROWS, Chunk, OnRows, Records

# Under add-remove the number of records is private, so that the grid is laid out for this many (docs/proofs/gate.md).
CAPACITY_BITS = 27
# Sums stay below 2**SUM_BITS: int64 cannot overflow, and there is room for the noise.
SUM_BITS = 61
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Query:
    """A sum over records.

    Parameters
    ----------
    name
        What is released, for people.
    share
        Share of the budget.
    geometry
        The set that one record's contribution is forced into.
    map
        From a chunk to one row per record. A row may depend on its own record and on earlier releases, and on nothing
        else: neither on other records nor on its place in the chunk.
    """

    name: str
    share: float
    geometry: Geometry
    map: Callable[[Chunk], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A noisy sum, in the units of the map.

    Parameters
    ----------
    value
        A number without dimensions for `Interval`, a vector for `Ball` and `Cells`, (sum of s, sum of s^2) for
        `MeanSquare`, a symmetric matrix for `Gram`.
    sd
        Standard deviation of the noise: one for all numbers, one each for `MeanSquare`, that of the diagonal for
        `Gram` (off it, sd / sqrt(2)).
    name
        The query's.
    """

    value: Float
    sd: Float | float
    name: str


class Round(NamedTuple):
    """One query as it happened, exact sums included: what replays look at, and never part of a release."""

    query: Query
    grid: Grid
    scale: float
    """of the noise, in grid steps"""
    exact: IntArray
    noisy: IntArray
    released: Released
    pure: bool

    @property
    def diameter(self) -> float:
        """How far the exact sums may move, in grid steps."""
        return self.grid.l1 if self.pure else self.grid.l2


# Sees every question with its exact sums, and may answer in the gate's place: testing.watched sets it, for replays and
# under seeded noise only.
Watcher = Callable[["Gate", tuple[Round, ...]], tuple[Released, ...] | None]
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("discreet_watchers", default=())


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
    on_rows
        Told the number of rows just read, for progress bars.

    Privacy
    -------
    All releases together, each chosen freely after the ones before it, satisfy the budget: docs/proofs/gate.md.
    """

    def __init__(
        self,
        records: Records,
        *,
        budget: Budget,
        neighbours: Neighbours = "replace-one",
        on_rows: OnRows | None = None,
    ) -> None:
        if neighbours not in get_args(Neighbours):
            raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
        if neighbours == "add-remove" and records.n > 2**CAPACITY_BITS:
            raise InvalidInput(
                f"neighbours='add-remove' takes at most 2**{CAPACITY_BITS} records; use 'replace-one' beyond."
            )
        self.budget = budget
        self.neighbours: Neighbours = neighbours
        self.events: tuple[Event, ...] = ()
        self._records = records
        self._on_rows = on_rows
        self._count: float | None = float(records.n) if neighbours == "replace-one" else None
        self._shares: tuple[float, ...] = ()
        self._seeded = False

    @property
    def bounds(self) -> Bounds:
        """What was declared about the records."""
        return self._records.bounds

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
        """Number of records: exact under replace-one, where it is public, and as released by `count` otherwise."""
        if self._count is None:
            raise InvalidInput("n is private under 'add-remove'; release it first with gate.count(share).")
        return self._count

    @property
    def spent(self) -> float:
        """Share of the budget that is spent."""
        return math.fsum(self._shares)

    @property
    def left(self) -> float:
        """Share of the budget that is left."""
        return max(0.0, 1.0 - self.spent)

    def noise_sd(self, geometry: Geometry, share: float) -> float:
        """Noise that a release would have, without touching the records; of the first number for `MeanSquare`."""
        _check_share(share)
        return _sd(*self._plan(geometry, share), self.pure)

    def count(self, share: float) -> float:
        """Number of records, at least 1: released under add-remove, and free under replace-one, where it is public."""
        if self.neighbours == "add-remove":
            (count,) = self.ask(Query("number of records", share, Interval(0, 1), lambda chunk: np.ones(len(chunk.t))))
            self._count = max(1.0, float(count.value))
        return self.n

    def ask(self, *queries: Query) -> tuple[Released, ...]:
        """Release noisy sums, all in one pass over the records.

        Whatever goes wrong before the sums are complete spends nothing. Then the budget is charged, and only then is
        noise drawn.
        """
        shares = self._allot(queries)
        plans = [self._plan(query.geometry, share) for query, share in zip(queries, shares, strict=True)]
        events = [self._event(query, *plan) for query, plan in zip(queries, plans, strict=True)]
        watchers = _watchers.get()
        if watchers and not drawing_is_seeded():
            raise InvalidInput("record_sums needs seeded noise: exact sums of a real release must not be kept.")
        sums = self._sums(queries, [grid for grid, _ in plans])
        # Charge, then draw: a crash from here on loses budget, never privacy.
        self.events += tuple(events)
        self._shares += shares
        self._seeded = self._seeded or drawing_is_seeded()
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
        return Guarantee(
            epsilon=self.budget.epsilon,
            delta=self.budget.delta or 0.0,
            neighbours=self.neighbours,
            unit=unit,
            status="test" if self._seeded else "proved",
            proof=proof,
            public=public,
            events=self.events,
            audit=audit_of(proof, self.neighbours, pure=self.pure),
        )

    @property
    def _total(self) -> float:
        return self.budget.epsilon if self.pure else self.mu

    def _plan(self, geometry: Geometry, share: float) -> tuple[Grid, float]:
        bits = _capacity_bits(self.neighbours, self._records.n)
        aside = self.budget.delta is not None and sets_slack_aside(self.budget.epsilon, self.budget.delta)
        return _plan(geometry, share, self._total, self.pure, self.neighbours, bits, aside)

    def _allot(self, queries: tuple[Query, ...]) -> tuple[float, ...]:
        if not queries:
            raise InvalidInput("ask needs at least one query.")
        for query in queries:
            _check_share(query.share)
        asked, left = math.fsum(query.share for query in queries), self.left
        if asked > left + _ROUNDING or left <= 0:
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

    def _sums(self, queries: tuple[Query, ...], grids: list[Grid]) -> list[IntArray]:
        sizes: list[int] = []

        def kernel(chunk: Chunk) -> IntArray:
            if len(chunk.t) > CHUNK_ROWS:
                raise InvalidInput(
                    f"a chunk may hold at most {CHUNK_ROWS} records: float64 sums are exact up to there."
                )
            parts = [grid.add(_rows(query, chunk)) for query, grid in zip(queries, grids, strict=True)]
            sizes[:] = [part.size for part in parts]
            return np.concatenate(parts)

        total = self._records.sum(kernel, self._on_rows)
        return np.split(total, np.cumsum(sizes)[:-1])


def noise_sd(
    geometry: Geometry, share: float, mu_or_epsilon: float, pure: bool, neighbours: Neighbours, n: int
) -> float:
    """Noise of a release in the map's units: a public number. Of the first number for `MeanSquare`.

    Parameters
    ----------
    geometry, share
        As in a query.
    mu_or_epsilon
        The whole budget: ``calibrate_mu(epsilon, delta)``, or epsilon if pure.
    pure
        Whether the noise is Laplace noise; Gaussian noise is taken to need the lattice's slack, as it does at any usual
        epsilon.
    neighbours, n
        The relation, and the number of records, which plays no part under add-remove.
    """
    _check_share(share)
    return _sd(*_plan(geometry, share, mu_or_epsilon, pure, neighbours, _capacity_bits(neighbours, n), True), pure)


def _sd(grid: Grid, scale: float, pure: bool) -> float:
    return scale * grid.unit * (math.sqrt(2) if pure else 1.0)


@lru_cache(maxsize=4096)
def _plan(
    geometry: Geometry, share: float, total: float, pure: bool, neighbours: Neighbours, bits: int, aside: bool
) -> tuple[Grid, float]:
    """Grid and noise scale of a release, from public numbers alone."""
    if pure and math.isinf(geometry.l1(neighbours)):
        raise InvalidInput("Gram has no Laplace noise: give the budget a delta, or release cells or an interval.")
    strength = total * share if pure else total * math.sqrt(share)
    for room in range(min(ROOM, SUM_BITS - bits), 7, -1):
        grid = geometry.grid(room, neighbours)
        diameter = grid.l1 if pure else grid.l2
        # Huge budgets on long tables would ask for less noise than hides the lattice: they get a little more.
        scale = max(math.nextafter(diameter / strength, math.inf), _least_scale(grid, share, pure, aside))
        if scale <= MAX_SCALE:
            return grid, scale
    raise InvalidBudget("so small a budget asks for more noise than 64-bit integers can hold: raise it.")


def _least_scale(grid: Grid, share: float, pure: bool, aside: bool) -> float:
    """With it, lattice_slack of all shares adds up to at most SLACK, where calibrate_mu has set that aside.

    Where it has not (docs/proofs/gate.md, lemma 11), and under pure budgets, nothing hangs on the lattice.
    """
    if pure:
        return MIN_SCALE
    return max(2 * MIN_SCALE, math.sqrt(grid.numbers / (24 * SLACK * share)) if aside else 0.0)


def _capacity_bits(neighbours: Neighbours, n: int) -> int:
    return CAPACITY_BITS if neighbours == "add-remove" else (n - 1).bit_length()


def _drawn(exact: IntArray, grid: Grid, scale: float, pure: bool) -> IntArray:
    if pure:
        return discrete_laplace(exact, scale)
    if grid.full == exact.size:
        return discrete_gaussian(exact, scale)
    fine = discrete_gaussian(exact[grid.full :], scale / math.sqrt(2))
    return np.concatenate([discrete_gaussian(exact[: grid.full], scale), fine])


def _rows(query: Query, chunk: Chunk) -> Any:
    # A map that returned more rows than records would switch the sensitivity off.
    values, rows, columns = np.asarray(query.map(chunk)), len(chunk.t), query.geometry.columns
    if values.dtype.kind not in "biuf":
        raise InvalidInput(f"the map of query {query.name!r} must return real numbers.")
    if values.shape != ((rows,) if columns is None else (rows, columns)) and (columns != 1 or values.shape != (rows,)):
        raise InvalidInput(
            f"the map of query {query.name!r} must return one row per record and "
            f"{'no columns' if columns is None else f'{columns} columns'}: see its geometry."
        )
    return values.reshape(rows, columns) if columns is not None else values


def _check_share(share: float) -> None:
    # Written so that NaN is refused too.
    if isinstance(share, bool) or not 0 < share <= 1 + _ROUNDING:
        raise InvalidBudget("a share must be a positive number of at most 1.")
