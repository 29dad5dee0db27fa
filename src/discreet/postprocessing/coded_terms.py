"""Terms of a released function of coded covariates: edges of codes, tables of values, and products of these.

Everything that a file needs to answer queries: `CodedBasis` has more, which only fitting needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.columns import Levels
from discreet.exceptions import InvalidInput
from discreet.postprocessing.coding import CellFinder, Column
from discreet.postprocessing.kernel_basis import CodedBasis, Member, words

# Decimals of a table's values, which are of size one.
_DECIMALS = 6


@dataclass(frozen=True, slots=True, eq=False)
class CodedTerms:
    """A constant, functions of single covariates, and products of two and of three.

    Parameters
    ----------
    edges
        Of each covariate, where one code ends and the next begins.
    tables
        Of each covariate, a row for every code and a column for every function.
    members
        The covariates and functions whose product each term is; none for the constant, which comes first.
    """

    edges: tuple[Float, ...]
    tables: tuple[Float, ...]
    members: tuple[Member, ...]

    def __post_init__(self) -> None:
        for array in (*self.edges, *self.tables):
            if not np.all(np.isfinite(array)):
                raise InvalidInput("every released number must be finite; check how it was computed.")
            array.flags.writeable = False

    @classmethod
    def of(cls, basis: CodedBasis, kept: IntArray) -> CodedTerms:
        """Some features of a basis, without their weights, and of each covariate the functions that these need."""
        members = [basis.members[k] for k in kept]
        used = [
            sorted({curve for member in members for at, curve in member if at == j}) for j in range(len(basis.curves))
        ]
        tables = tuple(curves.table[:, own].round(_DECIMALS) for curves, own in zip(basis.curves, used, strict=True))
        # A covariate that no term needs has one code.
        edges = tuple(coding.edges if own else np.empty(0) for coding, own in zip(basis.codings, used, strict=True))
        tables = tuple(table if own else np.empty((1, 0)) for table, own in zip(tables, used, strict=True))
        return cls(edges, tables, tuple(tuple((j, used[j].index(curve)) for j, curve in member) for member in members))

    @property
    def m(self) -> int:
        """Number of terms, the constant included."""
        return len(self.members)

    def features(self, x: Float) -> Float:
        """A column for every term."""
        codes = [CellFinder(edges)(x[:, j]) for j, edges in enumerate(self.edges)]
        values = {
            each: self.tables[each[0]][:, each[1]].take(codes[each[0]])
            for each in sorted({each for member in self.members for each in member})
        }
        rows = np.ones((len(x), self.m), order="F")
        for k, member in enumerate(self.members):
            for each in member:
                rows[:, k] *= values[each]
        return rows

    def along(self, j: int, values: Float, average: Float) -> Float:
        """Terms at values of one covariate, the others averaged as far as their own product is a term.

        Functions of single covariates have mean zero, so that products of two vanish.
        """
        codes, rows = CellFinder(self.edges[j])(values), np.tile(average, (len(values), 1))
        for k, member in enumerate(self.members):
            rest = tuple(each for each in member if each[0] != j)
            if rest != member:
                curve = next(curve for at, curve in member if at == j)
                mean = average[self.members.index(rest)] if len(rest) != 1 and rest in self.members else 0.0
                rows[:, k] = self.tables[j][:, curve].take(codes) * mean
        return rows

    def covariates(self, k: int) -> tuple[int, ...]:
        """The covariates of a term."""
        return tuple(j for j, _ in self.members[k])

    def __str__(self) -> str:
        return words(self.members)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {
            "kind": "codes",
            "edges": [own.tolist() for own in self.edges],
            "tables": [own.T.tolist() for own in self.tables],
            "members": [[list(each) for each in member] for member in self.members],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], columns: Sequence[Column]) -> CodedTerms:
        """Read them back."""
        if set(plain) != {"kind", "edges", "tables", "members"}:
            raise InvalidInput("terms of codes have edges, tables and members, and nothing else; check the file.")
        edges = tuple(np.array(own, dtype=np.float64) for own in plain["edges"])
        if len(edges) != len(columns) or not all(map(_divide, edges, columns)):
            raise InvalidInput("edges must rise inside of each covariate's range; check the file.")
        tables = tuple(
            np.array(own, dtype=np.float64).reshape(len(own), len(ends) + 1).T
            for own, ends in zip(plain["tables"], edges, strict=True)
        )
        members = tuple(tuple((j, curve) for j, curve in member) for member in plain["members"])
        different = len(set(members)) == len(members)
        if not members or members[0] or not different or not all(_is_term(member, tables) for member in members):
            raise InvalidInput("members must name functions of different covariates; check the file.")
        return cls(edges, tables, members)


def _divide(edges: Float, column: Column) -> bool:
    """Whether edges divide a column's values."""
    low, high = (0.0, len(column.levels) - 1.0) if isinstance(column, Levels) else (-1.0, 1.0)
    inside = edges.ndim == 1 and bool(np.all((edges > low) & (edges < high)))
    return inside and bool(np.all(np.diff(edges) > 0.0))


def _is_term(member: Member, tables: tuple[Float, ...]) -> bool:
    """Whether a product is one of functions that are there, of covariates in their order."""
    numbers = all(type(part) is int for each in member for part in each)
    return (
        numbers
        and all(0 <= j < len(tables) and 0 <= curve < tables[j].shape[1] for j, curve in member)
        and all(a < b for (a, _), (b, _) in pairwise(member))
    )
