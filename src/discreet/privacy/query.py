"""What may be asked of the gate, and what it answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput
from discreet.privacy.compiled.products import Products
from discreet.privacy.sensitivity.fixed_point import Grid, SensitivitySet


# Compared by identity: a gate recognises what was prepared by its being the very same question.
@dataclass(frozen=True, slots=True, eq=False)
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
        else: neither on other records nor on its place in the chunk. It may run in another process. A `ByCell` can be
        added up wherever the records are.
    of_units
        Whether numbers of one unit's rows, one number each, are added up before their sum is forced into the set;
        where `Gate.joins_rows` says that they can be.
    """

    name: str
    share: float
    geometry: SensitivitySet
    map: Callable[[Chunk], Any]
    of_units: bool = False


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


def unit_sums(name: str, values: Float, units: IntArray | None) -> Float:
    """One number per unit of what a query's map gives its rows. Proof: docs/proofs/units.md, lemma 3.

    Numbers are sorted first, so that the order of rows does not matter, not even to the last bit.
    """
    if units is None or values.ndim != 1:
        raise InvalidInput(f"query {name!r} of units needs one number per row, and rows that say whose they are.")
    order = np.lexsort((values, units))
    places = np.cumsum(np.diff(units[order], prepend=units[order[:1]]) != 0)
    return np.asarray(np.bincount(places, weights=values[order]), dtype=np.float64)


def rows_of(query: Query, chunk: Chunk) -> Any:
    """What a query's map makes of a chunk, if it has the shape that its geometry asks for."""
    # A map that returned more rows than records would switch the sensitivity off.
    found, rows, columns = query.map(chunk), len(chunk.t), query.geometry.columns
    values = found if isinstance(found, Products) else np.asarray(found)
    if values.dtype.kind not in "biuf":
        raise InvalidInput(f"the map of query {query.name!r} must return real numbers.")
    if values.shape != ((rows,) if columns is None else (rows, columns)) and (columns != 1 or values.shape != (rows,)):
        raise InvalidInput(
            f"the map of query {query.name!r} must return one row per record and "
            f"{'no columns' if columns is None else f'{columns} columns'}: see its geometry."
        )
    if query.of_units:
        return unit_sums(query.name, np.asarray(values), chunk.u)
    return values if columns is None or isinstance(values, Products) else values.reshape(rows, columns)


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
