"""Effects by segment with a proved epsilon, or (epsilon, delta): what each segment gains from treatment."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from numbers import Real
from typing import Any, get_args

import numpy as np
from sklearn.base import BaseEstimator

from discreet import fitted
from discreet.blocks import Pairs
from discreet.bounds import Bounds, Levels
from discreet.budget import Budget, Shares
from discreet.clusters import Clusters, PrivateKMeans, first_clusters, lloyd
from discreet.columns import Float
from discreet.contrasts import FEWEST, Kind, Look, arm_rows, kind_for, parts_for, signed_rows
from discreet.errors import InvalidInput, NotFitted
from discreet.fitted import Progress, open_gate
from discreet.gate import Gate, Query
from discreet.geometry import Interval
from discreet.guarantee import Guarantee, Neighbours
from discreet.partition import By, Partition, column_places
from discreet.records import Chunk, Records
from discreet.uplift_release import UpliftCurve, UpliftRelease

DECLARED = Shares(mean=0.02, square=0.03, pairs=0.95)
CLUSTERED = Shares(partition=0.5, mean=0.02, square=0.03, pairs=0.45)
# A longer table says nothing about any of its segments, and takes long to smooth.
MOST_SEGMENTS = 512


class Uplift(BaseEstimator):  # type: ignore[misc]
    """Effects by segment, smoothed over ordered segments and shrunk over unordered ones.

    One table goes through the gate: for every segment and arm the pair of sums of (1 + y) / 2 and (1 - y) / 2, y the
    outcome mapped onto [-1, 1]. A pair adds up to a number of records, and its difference to a sum of outcomes; a record
    adds 1 to it in all, whatever its outcome. Everything else is computed from that table.

    Parameters
    ----------
    epsilon, delta : float
        The budget; without a delta all noise is Laplace noise and the guarantee is pure.
    bounds : Bounds
        Public facts: outcome range, covariates.
    by : mapping or PrivateKMeans
        From a covariate (name or position) to "auto", a number of equal cuts (8 to 16 do well), a list of edges,
        "levels" or groups of levels; several are crossed. `PrivateKMeans` finds segments with half of the budget.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design. Without it, treatment has to be as good as random within
        each segment.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : UpliftRelease
        The only thing that fitting leaves behind; it may be published.

    Notes
    -----
    Intervals are those of a Gaussian process with known noise and estimated sampling variance, averaged over a grid of
    hyper-parameters and widened by a tenth. They are made to cover the effect of a segment, or of a record's covariates, on
    average over segments: where the effect jumps within a segment, or one segment stands out by less than the noise, they
    cover less there. The evidence says how often they do.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public: the
    bounds, declared segments, the number of records under replace-one, a known propensity. Proof: docs/proofs/uplift.md.
    """

    fit, fit_table = fitted.fit, fitted.fit_table

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        by: By | PrivateKMeans,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.by = by
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours

    def effect(self, X: Any) -> Float:
        """Effects of any records by their covariates, interpolated between ordered segments. Costs nothing."""
        return self._released().effect(X)

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float]:
        """Intervals at level ``1 - alpha`` for the effects of any records: noise and sampling error together."""
        return self._released().effect_interval(X, alpha)

    def table(self, alpha: float = 0.05) -> list[dict[str, Any]]:
        """One row per segment: what it is, its effect with an interval, and its noisy numbers of records."""
        return self._released().table(alpha)

    def targeting(self, X: Any, fraction: float) -> Any:
        """Which rows to treat if only this share of them can be: those with the largest effects."""
        return self._released().targeting(X, fraction)

    def uplift_curve(self, alpha: float = 0.05) -> UpliftCurve:
        """What treating the best segments first is worth per record of all, with a band; from the release alone."""
        return self._released().uplift_curve(alpha)

    def ate(self) -> float:
        """The average effect over all segments."""
        return self._released().ate()

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval at level ``1 - alpha`` for the average effect."""
        return self._released().ate_interval(alpha)

    @property
    def guarantee_(self) -> Guarantee:
        """What the release promises, and to whom."""
        return self._released().guarantee

    def summary(self) -> str:
        """The release as a readable table."""
        return self._released().summary()

    def plot(self, ax: Any = None) -> Any:
        """Draw the effect of every segment with its interval (needs matplotlib)."""
        return self._released().plot(ax)

    def _fit(self, records: Records, progress: Progress | None) -> Uplift:
        gate = open_gate(self, records, progress)
        clustered = isinstance(self.by, PrivateKMeans)
        share = (CLUSTERED if clustered else DECLARED).to_dict()
        partition: Partition | Clusters | None = lloyd(gate, self.by, share["partition"]) if clustered else None
        look = _look(gate, share["mean"], share["square"])
        noise = gate.noise_sd(Pairs(1), share["pairs"])
        if partition is None:
            partition = Partition.of(declared(self.by, self.bounds, parts_for(look.n, noise)), self.bounds)
        known = float(self.propensity) if isinstance(self.propensity, Real) else None
        weighted = self.propensity is not None and known is None
        kind = kind_for(look, partition.count, noise, known)
        pairs, noise = _pairs(gate, share["pairs"], partition, kind, known)
        self.release_ = UpliftRelease(
            partition=partition,
            kind=kind,
            pairs=pairs,
            noise_sd=noise,
            look=look,
            propensity=known,
            weighted=weighted,
            guarantee=gate.guarantee(proof="uplift.md", public=self._public()),
            bounds=self.bounds,
            settings={"segments": partition.count, "arms": "in one pair" if kind == "signed" else "apart"},
            notes=_notes(kind, self.propensity is not None, pairs, noise),
        )
        return self

    def _check_budget(self, budget: Budget) -> None:
        """Refuse what can be refused without looking at a record."""
        if self.neighbours not in get_args(Neighbours):
            raise InvalidInput("neighbours must be 'replace-one' or 'add-remove'; say which data sets are compared.")
        if isinstance(self.propensity, bool):
            raise InvalidInput("propensity must be a probability, an array of them or a column's name: give one.")
        if isinstance(self.by, PrivateKMeans):
            count = first_clusters(self.by, self.bounds).count
        else:
            count = Partition.of(declared(self.by, self.bounds, FEWEST), self.bounds).count
        if count > MOST_SEGMENTS:
            raise InvalidInput(f"by makes {count:,} segments, more than {MOST_SEGMENTS}: cut more coarsely.")

    def _public(self) -> tuple[str, ...]:
        segments = () if isinstance(self.by, PrivateKMeans) else ("the declared segments",)
        known = ("the number of records",) if self.neighbours == "replace-one" else ()
        design = ("the probability of treatment",) if self.propensity is not None else ()
        return ("the declared bounds", *segments, *known, *design)

    def _released(self) -> UpliftRelease:
        try:
            release: UpliftRelease = self.release_
        except AttributeError:
            raise NotFitted("this Uplift has no release yet; call fit first.") from None
        return release


def declared(by: Any, bounds: Bounds, parts: int) -> Any:
    """A declaration with numbers for "auto": together with all other cuts, about ``parts`` segments, but two at least."""
    if not isinstance(by, Mapping) or "auto" not in [value for value in by.values() if isinstance(value, str)]:
        return by
    specs = {key: bounds.columns[column_places([key], bounds)[0]] for key in by}
    by = {key: "levels" if how == "auto" and isinstance(specs[key], Levels) else how for key, how in by.items()}
    rest = {key: how for key, how in by.items() if how != "auto"}
    others = Partition.of(rest, bounds).count if rest else 1
    free = len(by) - len(rest)
    each = max(2, int((parts / others) ** (1 / max(free, 1))))
    return {key: each if how == "auto" else how for key, how in by.items()}


def _look(gate: Gate, mean_share: float, square_share: float) -> Look:
    """How many records there are, where the outcome is and how wide. Diameters: docs/proofs/uplift.md, lemma 2."""
    mean, square = gate.ask(
        Query("mean outcome", mean_share, Pairs(1), _whole),
        Query("mean square of the outcome", square_share, Interval(0.0, 1.0), lambda chunk: chunk.y**2),
    )
    (plus, minus), noise = mean.value[0], float(mean.sd)
    n = gate.n if gate.neighbours == "replace-one" else max(float(plus + minus), 1.0)
    return Look(
        n=n,
        mean=float(np.clip((plus - minus) / max(plus + minus, 2 * noise, 1.0), -1.0, 1.0)),
        square=float(np.clip(float(square.value) / n, 0.0, 1.0)),
        noise=float(square.sd) / n,
    )


def _pairs(
    gate: Gate, share: float, partition: Partition | Clusters, kind: Kind, known: float | None
) -> tuple[Float, float]:
    """The table. Diameters: docs/proofs/uplift.md, lemma 1."""
    arms = 2 if kind == "arms" else 1

    def rows(chunk: Chunk) -> Float:
        cell = partition.cells(chunk.x).astype(np.float64)
        if kind == "signed" and known is not None:
            return signed_rows(cell, chunk, known)
        return arm_rows(cell, chunk, gate.bounds, weighted=known is None)

    (table,) = gate.ask(Query("pairs by segment", share, Pairs(arms * partition.count), rows))
    return table.value.reshape(partition.count, arms, 2), float(table.sd)


def _whole(chunk: Chunk) -> Float:
    return np.column_stack([np.zeros(len(chunk.y)), chunk.y, np.ones(len(chunk.y))])


def _notes(kind: Kind, known: bool, pairs: Float, noise: float) -> tuple[str, ...]:
    notes = []
    if not known:
        notes.append("Effects are causal if treatment was as good as random within each segment.")
    if kind == "signed":
        notes.append("Noise would outweigh what telling the arms apart is worth: both arms share a pair per segment.")
    lost = int((pairs.sum(axis=2).min(axis=1) < 2 * np.sqrt(2) * noise).sum())
    if lost:
        notes.append(f"{lost} of {prod(pairs.shape[:1])} segments have too few records to be told from noise by themselves.")
    return tuple(notes)
