"""Data sets of the audit's own making, and records that try to move a release as far as a record can.

Everything here is drawn from declared bounds alone: no audit reads anybody's records.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds, Levels
from discreet.privacy.guarantee import Neighbours

KINDS = ("ordinary", "concentrated", "lopsided", "tiny arm")
# One more, for models of treatment and outcome that go from end to end, each along a covariate of its own.
STEEP = "steep"
# The record that neighbours differ in; in a tiny arm it is the only treated one, so that flipping it empties the arm.
PLACE = 5
# A value that no clip may let through.
_FAR = 1e12


@dataclass(frozen=True, slots=True)
class Record:
    """One record, in the columns' own units, and what makes it special."""

    y: Any
    t: Any
    x: tuple[Any, ...]
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Records as arrays."""

    y: Any
    t: Any
    x: Any

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.y)

    def record(self, place: int, label: str = "as it was") -> Record:
        """The record at a place."""
        return Record(self.y[place], self.t[place], tuple(self.x[place]), label)

    def with_record(self, place: int, record: Record) -> Table:
        """The same data set, but for the record at a place."""
        y, t, x = self.y.copy(), self.t.copy(), self.x.copy()
        y[place], t[place] = record.y, record.t
        if x.shape[1]:
            x[place] = record.x
        return Table(y, t, x)

    def and_record(self, record: Record) -> Table:
        """The same data set and one record more."""
        last = Table(*(np.concatenate([part, part[-1:]]) for part in (self.y, self.t, self.x)))
        return last.with_record(self.n, record)

    def without(self, place: int) -> Table:
        """The same data set without a record."""
        return Table(*(np.delete(part, place, axis=0) for part in (self.y, self.t, self.x)))

    def neighbour(self, relation: Neighbours, place: int, record: Record) -> Table:
        """Replace a record, or add one."""
        return self.with_record(place, record) if relation == "replace-one" else self.and_record(record)


def table_of(records: list[Record], bounds: Bounds) -> Table:
    """Records as arrays of the kind that estimators take."""
    labels = any(isinstance(level, str) for spec in bounds.columns if isinstance(spec, Levels) for level in spec.levels)
    x = np.empty((len(records), bounds.p), dtype=object if labels else np.float64)
    for row, record in enumerate(records):
        if bounds.p:
            x[row] = record.x
    treatment: Any = [record.t for record in records]
    return Table(np.array([record.y for record in records], dtype=np.float64), np.array(treatment), x)


def labelled(y: Any, bounds: Bounds) -> Any:
    """Outcomes as the bounds declare them: of binary ones, the labels in place of 0 and 1."""
    levels = bounds.outcome_levels
    if levels is None:
        return y
    values = [levels.levels[int(each)] if each in (0.0, 1.0) else None if math.isnan(each) else each for each in y]
    return np.array(values, dtype=object) if levels.is_text else np.array(values, dtype=np.float64)


def base(bounds: Bounds, n: int, kind: str, rng: Any, *, binary: bool = False) -> Table:
    """An ordinary study; one in which nearly everybody is alike; few treated and heavy tails; one treated record.

    A steep one has covariates, treatment and outcome at the ends of their ranges, nearly always.
    """
    u = rng.uniform(0.0, 1.0, (n, bounds.p))
    if kind == "concentrated":
        u = 0.5 + 0.005 * (u - 0.5)
    elif kind in ("lopsided", STEEP):
        u = np.round(u) if bounds.p else u
    drive = (8.0 if kind == STEEP else 4.0) * (u[:, 0] - 0.5) if bounds.p else np.zeros(n)
    share = 1.0 / (1.0 + np.exp(-drive))
    treated = rng.uniform(0.0, 1.0, n) < share
    if kind in ("concentrated", "lopsided"):
        treated = np.arange(n) % (2 if kind == "concentrated" else 7) == 0
    treated[:4] = [True, False, True, False]
    if kind == "tiny arm":
        treated = np.arange(n) == PLACE
    noise = rng.standard_t(1.5, n) if kind == "lopsided" else rng.normal(0.0, 1.0, n)
    low, high = bounds.outcome
    size = {"concentrated": 0.002, "lopsided": 0.1}.get(kind, 0.15) * (high - low)
    y = np.clip((low + high) / 2 + size * (0.5 * drive + treated + noise), low, high)
    if kind == STEEP:
        y = low + (high - low) * u[:, 1 % bounds.p]
    y = np.where(y > (low + high) / 2, high, low) if binary or bounds.binary else y
    arms = bounds.arms.levels
    return table_of(
        [
            Record(
                float(y[i]),
                arms[_arm(bounds, treated[i], i)],
                tuple(_at(bounds, j, u[i, j]) for j in range(bounds.p)),
                "",
            )
            for i in range(n)
        ],
        bounds,
    )


def _arm(bounds: Bounds, treated: Any, place: int) -> int:
    """The number of a record's arm: those that are treated are in all arms but the first, in turn."""
    return 1 + place // 2 % (len(bounds.arms.levels) - 1) if treated else 0


def extremes(bounds: Bounds, *, binary: bool = False) -> list[Record]:
    """Admissible records at the ends of what is declared, and beyond: outcomes, arms, leverage."""
    low, high = bounds.outcome
    outcomes = {"low": low, "high": high, "middle": (low + high) / 2, "far": _FAR}
    if binary or bounds.binary:
        outcomes = {"low": low, "high": high}
    places: dict[str, tuple[Any, ...]] = {
        "in the middle": tuple(_at(bounds, j, 0.5) for j in range(bounds.p)),
        "at the low ends": tuple(_at(bounds, j, 0.0) for j in range(bounds.p)),
        "at the high ends": tuple(_at(bounds, j, 1.0) for j in range(bounds.p)),
        "at alternate ends": tuple(_at(bounds, j, float(j % 2)) for j in range(bounds.p)),
        "beyond the ends": tuple(_beyond(bounds, j, _FAR) for j in range(bounds.p)),
    }
    kinds = {isinstance(spec, Levels) for spec in bounds.columns}
    if len(kinds) > 1:
        # Opposite to the high ends as a direction: with its indicator of a level, as long as any record.
        far = tuple(_at(bounds, j, float(isinstance(spec, Levels))) for j, spec in enumerate(bounds.columns))
        places["at the low ends, last levels"] = far
    return [
        Record(y, arm, x, f"outcome {word}, {'treated' if treated else 'control'}, {position}")
        for position, x in (places.items() if bounds.p else {"": ()}.items())
        for word, y in outcomes.items()
        for treated, arm in enumerate(bounds.arms.levels)
    ]


def unwelcome(bounds: Bounds, table: Table, place: int) -> list[Record]:
    """Records that must be refused or clipped: NaN, infinities, new levels; and a twin of another."""
    plain = table.record(place)
    bad = [replace(plain, y=value, label=f"outcome {value}") for value in (math.nan, math.inf, -math.inf)]
    for j, spec in enumerate(bounds.columns):
        if isinstance(spec, Levels):
            new: Any = "a level that nobody declared" if isinstance(spec.levels[0], str) else 987_654
            bad.append(replace(plain, x=_put(plain.x, j, new), label=f"a new level of covariate {j + 1}"))
        else:
            bad += [
                replace(plain, x=_put(plain.x, j, value), label=f"covariate {j + 1} {value}")
                for value in (math.nan, math.inf)
            ]
    arms = bounds.arms.levels
    flipped = arms[0] if plain.t == arms[1] else arms[1]
    twin = table.record((place + 1) % table.n, "a twin of another record")
    return [*bad[:8], twin, replace(plain, t=flipped, label="its treatment flipped")]


def mutant(record: Record, bounds: Bounds, rng: Any, *, binary: bool = False) -> Record:
    """A record with one or two things changed, at random: what a search without gradients takes its steps with."""
    changed = record
    for _ in range(int(rng.randint(1, 3))):
        what = int(rng.randint(-2, bounds.p))
        if what == -2:
            changed = replace(changed, t=bounds.arms.levels[int(rng.randint(0, len(bounds.arms.levels)))])
        elif what == -1:
            low, high = bounds.outcome
            u = float(rng.randint(0, 2)) if binary or bounds.binary or rng.uniform() < 0.5 else rng.uniform()
            changed = replace(changed, y=low + u * (high - low))
        else:
            u = float(rng.randint(0, 2)) if rng.uniform() < 0.5 else rng.uniform()
            changed = replace(changed, x=_put(changed.x, what, _at(bounds, what, u)))
    low, high = bounds.outcome
    arm = "treated" if changed.t == bounds.arms.levels[1] else "control"
    label = f"outcome at {(changed.y - low) / (high - low):.2g} of its range, {arm}, found by search"
    return replace(changed, label=label)


def random_record(bounds: Bounds, rng: Any, *, binary: bool = False) -> Record:
    """Any admissible record."""
    low, high = bounds.outcome
    y = low + (high - low) * (float(rng.randint(0, 2)) if binary or bounds.binary else rng.uniform())
    x = tuple(_at(bounds, j, rng.uniform()) for j in range(bounds.p))
    return Record(y, bounds.arms.levels[int(rng.randint(0, len(bounds.arms.levels)))], x, "drawn at random")


def _at(bounds: Bounds, j: int, u: float) -> Any:
    """The value of a covariate at a share of its range, or of its list of levels."""
    spec = bounds.columns[j]
    if isinstance(spec, Levels):
        return spec.levels[min(int(u * len(spec.levels)), len(spec.levels) - 1)]
    return spec.low + u * (spec.high - spec.low)


def _beyond(bounds: Bounds, j: int, far: float) -> Any:
    return _at(bounds, j, 1.0) if isinstance(bounds.columns[j], Levels) else far


def _put(x: tuple[Any, ...], j: int, value: Any) -> tuple[Any, ...]:
    return (*x[:j], value, *x[j + 1 :])
