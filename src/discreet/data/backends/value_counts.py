"""Counts by cell, arm and outcome, where the outcome is one of a few whole numbers: nothing is left to add up.

This is as fast as an engine's own GROUP BY. What can go wrong with a row is a condition that it has to meet, and rows
that do not are missed afterwards, because the number of rows is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from discreet.data._arrays import IntArray
from discreet.data.backends.base import Groups
from discreet.data.backends.cells import part_of, stepped, thresholds, tree
from discreet.data.backends.dialect import Dialect
from discreet.data.backends.group_by import compile_filters
from discreet.data.backends.scan import Columns
from discreet.data.bounds import Range
from discreet.data.expressions import Formula
from discreet.data.partition import Cut, Partition
from discreet.data.records import Chunk

T = TypeVar("T")

# Whole numbers that an outcome may be for each to be counted by itself.
_MOST_KINDS = 64


class CountingDialect(Dialect[T], Protocol[T]):
    """What an engine has to say to count outcomes."""

    def is_whole(self, column: str) -> bool:
        """Whether a column's type holds whole numbers or truth values only."""
        ...

    def integer(self, column: str) -> T:
        """Such a column as integers, NULL where it is missing."""
        ...

    def given(self, value: T) -> T:
        """Whether a value is not NULL."""
        ...

    def held(self, value: T, low: int, high: int) -> T:
        """An integer held between two others."""
        ...


@dataclass(frozen=True, slots=True)
class Count(Generic[T]):
    """``SELECT keys, count(*) WHERE conditions GROUP BY keys``."""

    keys: tuple[T, ...]
    """cell and arm, whole numbers from 0 on, and outcome, from the first of ``kinds`` on"""
    conditions: tuple[T, ...]
    kinds: tuple[float, ...]
    sizes: tuple[int, ...]
    """of cells and arms, as far as they can be used, and of outcomes"""

    def groups(self, found: Iterable[Sequence[Any]], formulas: Sequence[Formula], columns: Columns) -> Groups:
        """Sums of formulas: NumPy evaluates each once for every outcome and arm."""
        counts = np.zeros(self.sizes, dtype=np.int64)
        usable = True
        first = int(self.kinds[0])
        for *parts, kind, rows in found:
            if None in parts or kind is None:
                usable = False
                continue
            place = (*map(int, parts), int(kind) - first)
            if all(0 <= k < size for k, size in zip(place, self.sizes, strict=True)):
                counts[place] = int(rows)
            else:
                usable = False
        y = columns.bounds.outcome_range.encode(np.array(self.kinds))
        known = None if columns.propensity is None else np.full(len(y), columns.propensity, dtype=np.float64)
        arms = [Chunk(y, np.full(len(y), arm), np.empty((len(y), 0)), known) for arm in (0.0, 1.0)]
        table: IntArray = counts.reshape(-1, 2, len(y))
        steps = [np.stack([formula(arm) for arm in arms]).astype(np.int64) for formula in formulas]
        return Groups(table.sum(axis=2), tuple((table * each).sum(axis=2) for each in steps), usable)


def counted(columns: Columns, partition: Partition | None, dialect: CountingDialect[T]) -> Count[T] | None:
    """The question whose answer is counts; None where there are too many outcomes, or each has its own probability."""
    bounds, spec = columns.bounds, columns.bounds.outcome_range
    kinds = _kinds(spec) if bounds.outcome_levels is None or bounds.outcome_levels.levels == (0, 1) else None
    arms = bounds.arms.levels == (0, 1) and dialect.is_whole(columns.treatment)
    if kinds is None or not arms or not dialect.is_whole(columns.outcome) or isinstance(columns.propensity, str):
        return None
    arm, y = dialect.integer(columns.treatment), dialect.integer(columns.outcome)
    conditions = [*compile_filters(columns.where, dialect)]
    conditions.append(dialect.some([dialect.compare("=", arm, dialect.whole(value)) for value in (0, 1)]))
    keys: list[T] = []
    for cut in () if partition is None else partition.cuts:
        of, name = bounds.columns[cut.column], columns.covariates[cut.column]
        if isinstance(of, Range) and of.fill is None:
            conditions += [check for check in [dialect.usable(name)] if check is not None]
            # One part too many, for what cannot be used: engines know how many there are, as they would not with NULL.
            part = stepped(dialect.number(name), cut, of, [], dialect.whole(cut.count), dialect)
            if part is None:
                # Each by itself: a sum of large numbers that can all be used may be infinite.
                conditions.append(dialect.finite(dialect.number(name)))
                part = _bare_part(dialect.number(name), cut, of, dialect)
            keys.append(part)
        else:
            keys.append(part_of(cut, columns, dialect))
    conditions += [check for check in [dialect.usable(columns.outcome)] if check is not None]
    first, last = int(kinds[0]), int(kinds[-1])
    outcome = dialect.held(y, first, last)
    if bounds.binary:
        # Any other number is missed, where that of a range would be clipped.
        labels = [dialect.compare("=", y, dialect.whole(kind)) for kind in (first, last)]
        conditions.append(dialect.some([*labels, *([] if spec.fill is None else [dialect.missing(y, text=True)])]))
    elif spec.fill is None:
        conditions.append(dialect.given(y))
    if spec.fill is not None:
        outcome = dialect.choose([(dialect.missing(y, text=True), dialect.whole(last + 1))], outcome)
        kinds = [*kinds, spec.fill]
    sizes = (*((cut.count for cut in partition.cuts) if partition is not None else ()), 2, len(kinds))
    return Count((*keys, arm, outcome), tuple(conditions), tuple(kinds), sizes)


def _bare_part(x: T, cut: Cut, spec: Range, dialect: Dialect[T]) -> T:
    edges = thresholds(cut, spec)
    return tree(x, edges, [dialect.whole(k) for k in range(len(edges) + 1)], dialect)


def _kinds(spec: Range) -> list[float] | None:
    """The whole numbers in a range, and one beyond an end that is none; None if there are too many to count each."""
    first, last = math.floor(spec.low), math.ceil(spec.high)
    return None if last - first > _MOST_KINDS else [float(kind) for kind in range(first, last + 1)]
