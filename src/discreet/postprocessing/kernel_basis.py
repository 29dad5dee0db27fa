"""Functions of coded covariates, from smooth to rough, and their products: a basis that grows without end.

A kernel for each covariate (a line and a parabola in its value, a line in its rank, a path that may jump anywhere, and
every code for itself) has eigenfunctions that are orthonormal to the covariate's released distribution, with their
prior variances; products of two and three have products of these. A basis is made of as many of them as the budget
affords, the largest prior variances first. Post-processing, but for the features, which are functions of one record at
a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.postprocessing.coding import Coding

# A record whose squared norm exceeds this part of the expected one is weighted down: noise falls with it.
NORM_CAP = 0.75
# Parts of an ordered covariate's kernel: a line and a parabola in the value, a line in the rank, a path, and every code
# for itself. By hand, but for the parabola: of 0, .15, .3 and 1 beside even parts, on the studies of `_EVEN` below.
_VALUE, _CURVED, _RANK, _PATH, _OWN = 0.3, 0.3, 0.2, 0.35, 0.15
# Power of its number by which the prior variance of a function of an ordered covariate falls. By hand, on studies 2000
# to 2239 of evidence/population and the shapes of docs/evidence/trust.md (other seeds than those reported).
_DECAY = 2.0
# Functions of one covariate in products at most.
_IN_PRODUCTS = 24
# Part of a covariate's prior variance that follows what was found of it: of 0 and .5, and of .5 times how sure that is,
# on the observational studies with one to 40 covariates and n mu of 1,000 and more among 61,000 to 61,699 of
# evidence/population.
_EVIDENCE = 0.5
# Parts of the prior variance that single covariates have, products of two and products of three; by hand, on the same
# studies of evidence/population and shapes.
_ORDERS = (0.55, 0.4, 0.05)
# Part of the prior variance of products that all of them share evenly, whatever their covariates say by themselves: of
# 0, .25 and .5, on the observational studies with one to 40 covariates and n mu of 500 and more among 90,000 to 90,786
# and 92,000 to 93,137 of evidence/population. Without it, products of covariates that say nothing alone are missed.
_EVEN = 0.25
# Covariates that enter products of three at most; and products of two.
_TRIPLE_COLUMNS, _PAIR_COLUMNS = 6, 14
# Part of the norm of the constant, and the least of any other feature, beside the largest.
_INTERCEPT, _LEAST_WEIGHT = 1.5, 0.2


# Covariates and functions whose product a feature is.
Member = tuple[tuple[int, int], ...]
_GROUPS = 5


def _group(size: int, *, plain: bool) -> int:
    """Features whose coefficients are of about one size: first functions of covariates, their others, products of two
    first functions (``plain``), other products of two, and products of three; 0 for the constant.
    """
    return (0, 1 if plain else 2, 3 if plain else 4, 5)[size]


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Functions of one covariate: a row for every code, a column for every function, and their prior variances."""

    table: Float
    variance: Float

    @classmethod
    def of(cls, coding: Coding) -> Curves:
        """Eigenfunctions of the kernel, orthonormal to the distribution of codes."""
        mass = coding.mass
        if coding.count < 2:
            return cls(np.empty((coding.count, 0)), np.empty(0))
        if coding.ordered:
            below = np.cumsum(mass) - mass / 2.0
            value = np.clip(_standard(coding.value, mass), -4.0, 4.0)
            path = np.minimum(below[:, None], below[None, :])
            kernel = (
                _VALUE * _line(value, mass)
                + _CURVED * _line(value**2, mass)
                + _RANK * _line(below, mass)
                + _PATH * _unit(path, mass)
                + _OWN * _unit(np.eye(coding.count), mass)
            )
        else:
            kernel = np.eye(coding.count)
        root = np.sqrt(mass)
        centred = _centred(kernel, mass)
        values, vectors = np.linalg.eigh(root[:, None] * centred * root[None, :])
        order = np.argsort(values)[::-1][: coding.count - 1]
        values, table = np.maximum(values[order], 1e-9), vectors[:, order] / root[:, None]
        # The sign is arbitrary: let functions rise.
        sign = np.where((mass * coding.value) @ table < 0.0, -1.0, 1.0)
        # Curved functions matter more often than by such a kernel: products of them must have a chance.
        variance = 1.0 / np.arange(1.0, len(order) + 1.0) ** _DECAY if coding.ordered else values
        # Functions are looked up one by one: each lies together in memory.
        return cls(np.asfortranarray(table * sign), variance / variance.sum())

    def turned(self, second: Float) -> Curves:
        """The first of these functions, turned to where their coefficients were found.

        ``second`` has second moments of some coefficients, as evidence has them; the others' axes stay. Half of the
        prior variance follows evidence, because what matters beside other covariates may not show alone.
        """
        k, whole = len(second), float(np.trace(second))
        if not whole > 0.0:
            return self
        part = float(self.variance[:k].sum())
        mixed = np.diag((1.0 - _EVIDENCE) * self.variance[:k]) + _EVIDENCE * part / whole * second
        values, axes = np.linalg.eigh(mixed)
        # The sign is arbitrary: let each axis have more of its largest part.
        axes *= np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(k)])
        table = self.table.copy(order="F")
        table[:, :k] = self.table[:, :k] @ axes[:, ::-1]
        return Curves(table, np.concatenate([values[::-1], self.variance[k:]]))


@lru_cache(maxsize=128)
def curves_of(coding: Coding) -> Curves:
    """Functions of one coding, for all bases that are made of it."""
    return Curves.of(coding)


def _standard(values: Float, mass: Float) -> Float:
    centred = values - mass @ values
    return np.asarray(centred / max(float(np.sqrt(mass @ centred**2)), 1e-12))


def _line(values: Float, mass: Float) -> Float:
    own = _standard(values, mass)
    return np.outer(own, own)


def _centred(kernel: Float, mass: Float) -> Float:
    rows = kernel - (mass @ kernel)[None, :]
    return np.asarray(rows - (rows @ mass)[:, None])


def _unit(kernel: Float, mass: Float) -> Float:
    centred = _centred(kernel, mass)
    return np.asarray(centred / max(float(mass @ np.diag(centred)), 1e-12))


@dataclass(frozen=True, slots=True, eq=False)
class CodedBasis:
    """Feature map of coded covariates: a constant, functions of single covariates, products of two and of three.

    Parameters
    ----------
    codings, curves
        Codes of each covariate, and functions of them.
    members
        The covariates and functions whose product each feature is; none for the constant.
    variance
        Prior variance of each feature's coefficient beside the others', for a feature of unit size.
    left_out
        Prior variance of each group of functions that is not in the basis.
    """

    codings: tuple[Coding, ...]
    curves: tuple[Curves, ...]
    members: tuple[Member, ...]
    variance: Float
    left_out: Float = field(default_factory=lambda: np.zeros(_GROUPS + 1))
    weight: Float = field(init=False, repr=False)
    group: IntArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # a frozen fact that works out its own parts
        weight = (self.variance / max(float(self.variance[1:].max(initial=0.0)), 1e-300)) ** 0.25
        weight = np.maximum(weight, _LEAST_WEIGHT)
        weight[0] = _INTERCEPT
        set_(self, "weight", weight)
        plain = [not any(curve for _, curve in member) for member in self.members]
        set_(
            self, "group", np.array([_group(len(own), plain=one) for own, one in zip(self.members, plain, strict=True)])
        )

    @classmethod
    def build(
        cls, codings: Sequence[Coding], importance: Float, m: int, curves: tuple[Curves, ...] | None = None
    ) -> CodedBasis:
        """The features with the largest prior variances, ``m`` in all; every covariate's first one is among them.

        With ``curves``, of these functions of covariates.
        """
        curves = tuple(map(curves_of, codings)) if curves is None else curves
        order = np.argsort(importance, kind="stable")[::-1]
        columns = [
            range(len(codings)),
            sorted(order[:_PAIR_COLUMNS].tolist()),
            sorted(order[:_TRIPLE_COLUMNS].tolist()),
        ]
        # Values within one code are taken to be alike.
        coarse = [1.0 / coding.count**2 if coding.ordered else 0.0 for coding in codings]
        columns_of, which, variances, group = [], [], [], []
        left_out = np.zeros(_GROUPS + 1)
        for size, part in enumerate(_ORDERS, 1):
            chosen = list(combinations(columns[size - 1], size))
            shares = np.array([np.prod(importance[list(each)]) for each in chosen])
            even = _EVEN if size > 1 else 0.0
            shares = part * ((1.0 - even) * shares / (shares.sum() or 1.0) + even / max(len(chosen), 1))
            for each, share in zip(chosen, shares.tolist(), strict=True):
                lost = max(coarse[j] for j in each)
                left_out[_group(size, plain=True)] += share * lost
                own = share * (1.0 - lost)
                most = m if size == 1 else min(m, _IN_PRODUCTS)
                numbers, variance = _products([curves[j].variance[:most] for j in each], own, m)
                columns_of += [each] * len(variance)
                which += numbers
                variances.append(variance)
                group += [_group(size, plain=not any(of)) for of in numbers]
                left_out[_group(size, plain=False)] += own - float(variance.sum())
        variance, groups = np.concatenate([*variances, np.empty(0)]), np.array(group, dtype=np.int64)
        first, rest = np.flatnonzero(groups == 1), np.flatnonzero(groups > 1)
        rest = rest[np.argsort(-variance[rest], kind="stable")]
        more = max(0, m - 1 - len(first))
        np.add.at(left_out, groups[rest[more:]], variance[rest[more:]])
        kept = [
            (tuple(zip(columns_of[k], which[k], strict=True)), float(variance[k]))
            for k in np.concatenate([first, rest[:more]])
        ]
        kept.sort(key=lambda each: (len(each[0]), each[0]))
        members = ((), *(member for member, _ in kept))
        return cls(tuple(codings), curves, members, np.array([1.0, *(own for _, own in kept)]), left_out)

    @classmethod
    def of_singles(cls, codings: Sequence[Coding], most: int) -> CodedBasis:
        """The first functions of every covariate alone."""
        curves = tuple(map(curves_of, codings))
        kept = [(j, k) for j, own in enumerate(curves) for k in range(min(most, len(own.variance)))]
        variance = np.array([1.0, *(curves[j].variance[k] / len(codings) for j, k in kept)])
        return cls(tuple(codings), curves, ((), *((each,) for each in kept)), variance)

    @property
    def m(self) -> int:
        """Number of features, the constant included."""
        return len(self.members)

    @property
    def radius(self) -> float:
        """Norm to which a record's features are held."""
        return float(np.sqrt(NORM_CAP * np.sum(self.weight**2)))

    def codes(self, x: Float) -> list[IntArray]:
        """Codes of each covariate."""
        return [coding.codes(x[:, j]) for j, coding in enumerate(self.codings)]

    def from_codes(
        self,
        codes: Sequence[IntArray],
        n: int,
        out: Float | None = None,
        kept: IntArray | None = None,
        scale: Float | None = None,
        factor: Float | None = None,
    ) -> Float:
        """Weighted features; in ``out``, whose columns lie one after the other, if it is given.

        With ``kept``, those features alone, of sizes ``scale``; with ``factor``, times one number to each record.
        Elementwise and in a fixed order.
        """
        which = range(self.m) if kept is None else kept.tolist()
        rows = np.empty((len(which), n)) if out is None else out.T
        taken: dict[tuple[int, int], Float] = {}
        first: dict[tuple[int, int], Float] = {}
        for row, k, size in zip(rows, which, self.weight if scale is None else scale, strict=True):
            member = self.members[k]
            for each in member:
                if each not in taken:
                    taken[each] = self.curves[each[0]].table[:, each[1]].take(codes[each[0]])
            if not member:
                row[:] = size if factor is None else size * factor
                continue
            lead = taken[member[0]]
            if factor is not None:
                if member[0] not in first:
                    first[member[0]] = lead * factor
                lead = first[member[0]]
            np.multiply(lead, size, out=row)
            for each in member[1:]:
                row *= taken[each]
        return rows.T

    def held(self, features: Float) -> Float:
        """Each record's weight, for its features to stay within the radius."""
        square, term = np.zeros(len(features)), np.empty(len(features))
        for feature in features.T:
            square += np.multiply(feature, feature, out=term)
        return np.minimum(1.0, self.radius**2 / square)

    def __str__(self) -> str:
        return words(self.members)


def words(members: Sequence[Member]) -> str:
    """How many features of which kind there are, for people."""
    kinds = {1: ("function", "of single covariates"), 2: ("product", "of two"), 3: ("product", "of three")}
    counts = {size: sum(len(member) == size for member in members) for size in kinds}
    named = [
        f"{counts[size]} {kind}{'s' * (counts[size] > 1)} {of}" for size, (kind, of) in kinds.items() if counts[size]
    ]
    return ", ".join(named) or "none"


def _products(variances: Sequence[Float], share: float, m: int) -> tuple[list[tuple[int, ...]], Float]:
    """Products of one function of each covariate and their prior variances, the largest ``m`` of them."""
    variance = np.array(share)
    for own in variances:
        variance = np.multiply.outer(variance, own)
    flat = variance.ravel()
    # Those that may be among the largest come first: sorting all of them takes ten times as long.
    least = np.partition(flat, -m)[-m] if m < flat.size else -np.inf
    likely = np.flatnonzero(flat >= least)
    order = likely[np.argsort(flat[likely], kind="stable")][::-1][:m]
    return list(zip(*(own.tolist() for own in np.unravel_index(order, variance.shape)), strict=True)), flat[order]


class CodedTables:
    """Features times coefficients, by tables over codes; or their squares times these.

    A product is one of all functions but the last, times a table that adds up whatever last functions of one covariate
    it is multiplied by. (Tables over two codes would be fewer, but too large for the cache.) A row's values do not
    depend on its neighbours in memory: values are added in a fixed order. Only what tables are made of is sent to other
    processes.
    """

    def __init__(self, basis: CodedBasis, coefficients: Float, power: int = 1) -> None:
        self.basis, self.coefficients, self.power = basis, coefficients, power
        curves = [each.table**power for each in basis.curves]
        size = coefficients * basis.weight**power
        self.constant = float(size[0])
        tables: dict[Member, dict[int, Float]] = {}
        for k in 1 + np.flatnonzero(size[1:]):
            *ahead, (j, curve) = basis.members[k]
            own, table = tables.setdefault(tuple(ahead), {}), size[k] * curves[j][:, curve]
            own[j] = own[j] + table if j in own else table
        # Functions, and the tables that they multiply: each with the covariate by whose codes it is looked up.
        self.groups = [
            ([(j, curves[j][:, curve]) for j, curve in ahead], list(own.items())) for ahead, own in tables.items()
        ]

    def __reduce__(self) -> tuple[type[CodedTables], tuple[CodedBasis, Float, int]]:
        return CodedTables, (self.basis, self.coefficients, self.power)

    def __call__(self, x: Float) -> Float:
        """The value for every row of x."""
        return self.from_codes(self.basis.codes(x), len(x))

    def from_codes(self, codes: Sequence[IntArray], n: int) -> Float:
        """The same from codes."""
        total = np.full(n, self.constant)
        for ahead, tables in self.groups:
            value = np.zeros(n)
            for j, table in tables:
                value += table.take(codes[j])
            for j, function in ahead:
                value *= function.take(codes[j])
            total += value
        return total


def combine(features: Float, coefficients: Float) -> Float:
    """Features times coefficients, added up in a fixed order (BLAS would round differently by position)."""
    total, term = np.zeros(len(features)), np.empty(len(features))
    for k in np.flatnonzero(coefficients):
        total += np.multiply(features[:, k], coefficients[k], out=term)
    return total
