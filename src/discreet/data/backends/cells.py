"""Which cell of a partition a row is in, as an expression of an engine: bit for bit where NumPy puts encoded values.

Cells are found by comparing raw values with thresholds. Encoding a range is monotone in floating point as well, so that
a record's encoded value reaches an edge exactly if its raw value reaches the smallest number that is encoded so.
Dividing by a width is monotone too: where it steps at these very numbers, it takes the comparisons' place.
What cannot be used makes a record's cell NULL, and is then refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.data.backends.dialect import Dialect, T
from discreet.data.backends.scan import Columns
from discreet.data.bounds import Levels, Range
from discreet.data.declared.absent import Absent
from discreet.data.partition import Cut, Partition


@lru_cache(maxsize=256)
def thresholds(cut: Cut, spec: Range) -> tuple[float, ...]:
    """Smallest raw numbers that belong to the second part, the third and so on."""
    if not cut.edges:
        return ()
    edges = spec.encode(np.array(cut.edges, dtype=np.float64))
    # Floats in the order of integers: bisect between the lowest and the highest number there is.
    low = np.full(len(edges), _ordered(-np.finfo(np.float64).max))
    high = np.full(len(edges), _ordered(np.finfo(np.float64).max))
    while np.any(low < high):
        # Halved one by one: the sum of two such integers may not fit.
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = spec.encode(_float(middle)) >= edges
        high = np.where(reached, middle, high)
        low = np.where(reached, low, np.minimum(middle + 1, high))
    return tuple(_float(high).tolist())


class Steps(NamedTuple):
    """``floor((x - origin) / width) + first`` is the part of every x from ``low`` to less than ``high``."""

    low: float
    high: float
    origin: float
    width: float
    first: int


def equal_steps(cut: Cut, spec: Range) -> Steps | None:
    """How to divide instead of compare; None where that would be wrong for a single number, as edges are rounded.

    Differences, quotients and floors keep order, so that only the numbers around each threshold have to be tried.
    """
    edges, width = np.array(thresholds(cut, spec)), (spec.high - spec.low) / cut.count
    # Next to the high end the quotient may be rounded up.
    low, high = spec.low, spec.high - width / 2**40
    if not len(edges) or width == 0.0 or not low < edges[0] <= edges[-1] < high:
        return None
    tried = np.concatenate([edges, np.nextafter(edges, -np.inf), [low, high]])
    parts = np.searchsorted(edges, tried, side="right")
    for origin, first in [(low, 0), (spec.middle, cut.count // 2)]:
        if np.array_equal(np.floor((tried - origin) / width) + first, parts):
            return Steps(low, high, origin, width, first)
    return None


def _ordered(value: float) -> int:
    bits = int(np.array(value).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def _float(ordered: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Float:
    size = np.abs(ordered).view(np.float64)
    return np.where(ordered < 0, -size, size)


def cell_of(columns: Columns, partition: Partition | None, dialect: Dialect[T]) -> T:
    """The number of a row's cell; NULL where some part of it is."""
    cell: T | None = None
    for cut in () if partition is None else partition.cuts:
        part = part_of(cut, columns, dialect)
        cell = (
            part
            if cell is None
            else dialect.arithmetic("+", dialect.arithmetic("*", cell, dialect.whole(cut.count)), part)
        )
    return dialect.whole(0) if cell is None else cell


def part_of(cut: Cut, columns: Columns, dialect: Dialect[T]) -> T:
    """Which part of a cut a row is in; NULL where that cannot be said."""
    spec, name = columns.bounds.columns[cut.column], columns.covariates[cut.column]
    if isinstance(spec, Absent):
        value = dialect.text(name) if spec.text else dialect.number(name)
        there, absent = (dialect.whole(group) for group in cut.groups or ())
        return dialect.choose([(dialect.missing(value, text=spec.text), absent)], there)
    if isinstance(spec, Levels):
        return level_of(name, spec, [dialect.whole(group) for group in cut.groups or ()], dialect)
    x, edges = dialect.number(name), thresholds(cut, spec)
    otherwise = dialect.nothing
    if spec.fill is not None:
        part = int(cut.parts(spec.encode(np.array([spec.fill])), spec)[0])
        otherwise = dialect.choose([(dialect.missing(x, text=False), dialect.whole(part))])
    # Asked outright: engines that know the least and the largest number of a column drop comparisons that all numbers
    # meet, and let NaN pass with them.
    fits = [] if (check := dialect.usable(name)) is None else [check]
    if spec.fill is None and (found := stepped(x, cut, spec, fits, otherwise, dialect)) is not None:
        return found
    found = tree(x, edges, [dialect.whole(k) for k in range(cut.count)], dialect)
    return dialect.choose([(dialect.every([dialect.finite(x), *fits]), found)], otherwise)


def stepped(x: T, cut: Cut, spec: Range, fits: Sequence[T], otherwise: T, dialect: Dialect[T]) -> T | None:
    """Which part of a range a number is in, by division; None where only comparisons tell."""
    if (steps := equal_steps(cut, spec)) is None:
        return None
    apart = x if steps.origin == 0.0 else dialect.arithmetic("-", x, dialect.constant(steps.origin))
    # NaN is caught here as well, should a comparison have let it pass.
    part = dialect.floor(dialect.arithmetic("/", apart, dialect.constant(steps.width)), steps.first)
    if part is None:
        return None
    low, high = dialect.constant(steps.low), dialect.constant(steps.high)
    usable = [dialect.finite(x), *fits]
    return dialect.choose(
        [
            (dialect.every([dialect.compare(">=", x, low), dialect.compare("<", x, high), *fits]), part),
            (dialect.every([dialect.compare("<", x, low), *usable]), dialect.whole(0)),
            (dialect.every([dialect.compare(">=", x, high), *usable]), dialect.whole(cut.count - 1)),
        ],
        otherwise,
    )


def tree(x: T, edges: Sequence[float], leaves: Sequence[T], dialect: Dialect[T]) -> T:
    """The leaf between whose edges a number is, a leaf holding its lower edge."""
    if not edges:
        return leaves[0]
    half = len(edges) // 2
    below = dialect.compare("<", x, dialect.constant(edges[half]))
    first, rest = (
        tree(x, edges[:half], leaves[: half + 1], dialect),
        tree(x, edges[half + 1 :], leaves[half + 1 :], dialect),
    )
    return dialect.choose([(below, first)], rest)


def level_of(name: str, spec: Levels, leaves: Sequence[T], dialect: Dialect[T]) -> T:
    """What there is for a row's level; NULL where it has none."""
    value = dialect.text(name) if spec.is_text else dialect.number(name)
    cases = [
        (dialect.compare("=", value, dialect.constant(level if isinstance(level, str) else float(level))), leaf)
        for level, leaf in zip(spec.levels, leaves, strict=True)
    ]
    otherwise = dialect.nothing
    absent = dialect.missing(value, text=spec.is_text)
    if spec.other is not None:
        # What is missing is no other level, and neither is a number that float64 cannot tell from its neighbours.
        other, check = leaves[spec.levels.index(spec.other)], None if spec.is_text else dialect.usable(name)
        otherwise = dialect.choose(
            [(absent, dialect.nothing)], other if check is None else dialect.choose([(check, other)])
        )
    if spec.fill is not None:
        otherwise = dialect.choose([(absent, leaves[spec.levels.index(spec.fill)])], otherwise)
    return dialect.choose(cases, otherwise)
