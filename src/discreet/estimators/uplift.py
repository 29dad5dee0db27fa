"""Effects by segment with a proved epsilon, or (epsilon, delta): what each segment gains from treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, NamedTuple, TypeAlias, get_args

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels
from discreet.data.clusters import Clusters
from discreet.data.expressions import ByCell, Y, number
from discreet.data.partition import By, Partition, column_places
from discreet.data.records import Records
from discreet.estimators._allocation import Allocation
from discreet.estimators._base import ROWS_ALIKE, Progress, TableFits
from discreet.estimators._effect_allocation import ARMS_APART, ARMS_IN_ONE_SUM, CLUSTERED, DECLARED, MOST_SEGMENTS
from discreet.estimators._parameters import Parameters
from discreet.estimators.arms.design import known_shares
from discreet.estimators.arms.segments import PAIRS, arms_query, measure_table
from discreet.estimators.clustering import PrivateKMeans, first_clusters, lloyd
from discreet.exceptions import InvalidInput
from discreet.postprocessing.segment_means import (
    FEWEST,
    Kind,
    OutcomeMoments,
    Table,
    arm_numbers,
    kind_for,
    parts_for,
    signed_number,
)
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells, Interval
from discreet.privacy.sensitivity.table import CellSums, Pairs
from discreet.releases.arms.segments import ArmSegmentsRelease
from discreet.releases.policies.policy import Policy
from discreet.releases.segments import UpliftCurve, UpliftRelease

AnySegments: TypeAlias = UpliftRelease | ArmSegmentsRelease


class Uplift(TableFits[AnySegments], Parameters):
    """Effects by segment, smoothed over ordered segments and shrunk over unordered ones.

    After two moments of the outcome, one table goes through the gate: for every segment and arm the sums of
    (1 + y) / 2 and (1 - y) / 2, y the outcome mapped onto [-1, 1]. Together they count records, and their difference is
    a sum of outcomes; a record adds 1 in all, whatever its outcome. Where the probability of treatment is one known
    number and noise would drown the arms, they share a sum. Everything else is computed from that table.

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
        Probability of treatment where it is known by design (of several arms, a probability for each label). Without
        it, treatment has to be as good as random within each segment.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : UpliftRelease, or ArmSegmentsRelease where the bounds declare more than two arms
        The only thing that fitting leaves behind; it may be published.

    Notes
    -----
    Effects are smoothed; intervals of segments are not narrowed as if smoothing were right. Each is a test of the
    segment's own arms that leans towards what the other segments suggest (Yu and Hoff, Biometrika 2018), so that it
    covers as often where an effect jumps as where it does not. Sampling variances follow from the released means and
    moments: with rare events, a segment with more of them has more variance, and a few events are allowed for that
    nobody has seen. Laplace noise has its own quantiles. ``table(simultaneous=True)`` covers all segments at once.
    Not covered for: variances that differ between arms or segments for other reasons than their means. Intervals for
    a record's covariates cannot know where within a segment an effect jumps; those of the average and of the curve rest
    on smoothing. The evidence says how often all of them cover.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public:
    the bounds, declared segments, the number of records under replace-one, a known propensity. Proof:
    docs/proofs/uplift.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> trial = adum(n=4_000, seed=1)
    >>> uplift = dc.Uplift(epsilon=2.0, delta=1e-6, bounds=trial.bounds, by={0: 8}, propensity=0.5)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     _ = uplift.fit(trial.Y, trial.T, X=trial.X)
    >>> uplift.targeting([[-0.9], [0.9]], fraction=0.5)
    array([False,  True])
    """

    method_id: ClassVar[str] = "discreet/uplift"
    release_types: ClassVar = (UpliftRelease, ArmSegmentsRelease)
    several_arms: ClassVar[bool] = True
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_ALIKE)

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
        return self._released().single().effect(X)

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float]:
        """Intervals at level ``1 - alpha`` for the effects of any records: noise and sampling error together."""
        return self._released().single().effect_interval(X, alpha)

    def table(self, alpha: float = 0.05, simultaneous: bool = False) -> list[dict[str, Any]]:
        """One row per segment: what it is, its effect with an interval, and its noisy numbers of records.

        Each interval covers its segment's effect with probability ``1 - alpha``; if ``simultaneous``, all of them do at
        once.
        """
        return self._released().single().table(alpha, simultaneous)

    def targeting(self, X: Any, fraction: float) -> Any:
        """Which rows to treat if only this share of them can be: those with the largest effects."""
        return self._released().single().targeting(X, fraction)

    def policy(self, *, cost: float = 0.0, capacity: float | None = None) -> Policy:
        """Whom to treat: whole segments that gain more than the cost, those that gain most within the capacity."""
        return Policy.of(self._released().single(), cost=cost, capacity=capacity)

    def uplift_curve(self, alpha: float = 0.05) -> UpliftCurve:
        """What treating the best segments first is worth per record of all, with a band; from the release alone."""
        return self._released().single().uplift_curve(alpha)

    def ate(self) -> float:
        """The average effect over all segments."""
        return self._released().single().ate()

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval at level ``1 - alpha`` for the average effect."""
        return self._released().single().ate_interval(alpha)

    def plot(self, ax: Any = None) -> Any:
        """Draw the effect of every segment with its interval (needs matplotlib)."""
        return self._released().plot(ax)

    def plot_curve(self, ax: Any = None) -> Any:
        """Draw what treating the best segments first is worth, with its band (needs matplotlib)."""
        return self._released().single().plot_curve(ax)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        if gate.bounds.several_arms:
            self.release_ = self._measure_arms(gate)
            return
        partition: Partition | Clusters | None = None
        allocation = DECLARED
        if isinstance(self.by, PrivateKMeans):
            allocation = CLUSTERED
            partition = lloyd(gate, self.by, allocation["partition"])
        known = float(self.propensity) if isinstance(self.propensity, Real) else None
        weighted = self.propensity is not None and known is None
        noise = gate.noise_sd(Pairs(1), allocation["table"])
        questions = _moment_questions(allocation)
        tables: _Tables | None = None
        if partition is None and not (gate.counts_rows and _is_auto(self.by)):
            # Segments follow from public numbers alone: one pass over the records is enough for all questions.
            parts = FEWEST if gate.counts_rows else parts_for(gate.n, noise)
            partition = Partition.of(declared(self.by, self.bounds, parts), self.bounds)
            tables = _Tables.of(allocation, partition, self.bounds, known, weighted)
            gate.prepare(*questions, *tables.all)
        moments = _outcome_moments(gate, questions)
        if partition is None:
            partition = Partition.of(declared(self.by, self.bounds, parts_for(moments.n, noise)), self.bounds)
        tables = tables or _Tables.of(allocation, partition, self.bounds, known, weighted)
        one_sum = allocation.divided("table", ARMS_IN_ONE_SUM)["signed sums by segment"]
        kind = kind_for(moments, partition.count, noise, gate.noise_sd(CellSums(1.0, partition.count), one_sum), known)
        noisy = _table(gate, tables, kind, partition.count)
        self.release_ = UpliftRelease(
            partition=partition,
            kind=kind,
            noisy=noisy,
            outcome_moments=moments,
            propensity=known,
            weighted=weighted,
            guarantee=gate.guarantee(proof="uplift.md", public=self._public(gate)),
            bounds=self.bounds,
            settings={"segments": partition.count, "arms": "in one sum" if kind == "signed" else "apart"},
            notes=_notes(kind, self.propensity is not None, noisy),
        )

    def _measure_arms(self, gate: Gate) -> ArmSegmentsRelease:
        """The same rounds where there are several arms: arms never share a sum."""
        found, allocation = None, DECLARED
        if isinstance(self.by, PrivateKMeans):
            allocation = CLUSTERED
            found = lloyd(gate, self.by, allocation["partition"])
        arms, shares = len(self.bounds.arms.levels), known_shares(self.propensity, self.bounds)
        noise = gate.noise_sd(Pairs(1), allocation["table"])
        moments = _outcome_moments(gate, _moment_questions(allocation))
        partition = found or Partition.of(declared(self.by, self.bounds, parts_for(moments.n, noise)), self.bounds)
        noisy = measure_table(gate, arms_query(partition, arms, allocation[PAIRS]), partition.count, arms)
        return ArmSegmentsRelease(
            partition=partition,
            noisy=noisy,
            outcome_moments=moments,
            shares=None if shares is None else tuple(shares.tolist()),
            guarantee=gate.guarantee(proof="uplift.md", public=self._public(gate)),
            bounds=self.bounds,
            settings={"segments": partition.count, "arms": arms},
            notes=_notes("arms", shares is not None, noisy),
        )

    def _check_budget(self, budget: Budget) -> None:
        """Refuse what can be refused without reading a record."""
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

    def _public(self, gate: Gate) -> tuple[str, ...]:
        segments = () if isinstance(self.by, PrivateKMeans) else ("the declared segments",)
        known = () if gate.counts_rows else ("the number of records",)
        design = ("the probability of treatment",) if self.propensity is not None else ()
        return ("the declared bounds", *segments, *known, *design)


def declared(by: Any, bounds: Bounds, parts: int) -> Any:
    """A declaration with numbers for "auto": with all other cuts about ``parts`` segments, but at least two parts."""
    if not isinstance(by, Mapping) or "auto" not in [value for value in by.values() if isinstance(value, str)]:
        return by
    specs = {key: bounds.columns[column_places([key], bounds)[0]] for key in by}
    by = {key: "levels" if how == "auto" and isinstance(specs[key], Levels) else how for key, how in by.items()}
    rest = {key: how for key, how in by.items() if how != "auto"}
    others = Partition.of(rest, bounds).count if rest else 1
    free = len(by) - len(rest)
    each = max(FEWEST, int((parts / others) ** (1 / max(free, 1))))
    return {key: each if how == "auto" else how for key, how in by.items()}


def segments_in_words(words: Sequence[str]) -> dict[str, Any]:
    """Segments as the command line takes them: "age=8", "age=auto", "age=18,40,65" and "sex=levels"."""
    by: dict[str, Any] = {}
    for word in words:
        name, equals, how = word.rpartition("=")
        if not equals or not name or not how or name in by:
            raise InvalidInput(f"--by takes age=8, age=auto, age=18,40,65 or sex=levels, each once, and not {word!r}.")
        try:
            by[name] = how if how in ("auto", "levels") else int(how) if "," not in how else _edges(how)
        except ValueError:
            raise InvalidInput(f"--by {name}= takes a number of cuts, edges, 'auto' or 'levels': check it.") from None
    return by


def _edges(words: str) -> list[float]:
    return [float(word) for word in words.split(",")]


def _is_auto(by: Any) -> bool:
    return "auto" in [value for value in by.values() if isinstance(value, str)]


def _moment_questions(allocation: Allocation) -> tuple[Query, Query]:
    """Where the outcome is and how wide. Diameters: docs/proofs/uplift.md, lemma 2."""
    mean, square = "mean outcome", "mean square of the outcome"
    return (
        Query(mean, allocation[mean], Pairs(1), ByCell(None, False, (Y, number(1.0)))),
        Query(square, allocation[square], Interval(0.0, 1.0), ByCell(None, False, (Y * Y,), alone=True)),
    )


def _outcome_moments(gate: Gate, questions: tuple[Query, Query]) -> OutcomeMoments:
    """How many records there are, where the outcome is and how wide."""
    mean, square = gate.ask(*questions)
    (plus, minus), noise = mean.value[0], float(mean.sd)
    n = max(float(plus + minus), 1.0) if gate.counts_rows else gate.n
    return OutcomeMoments(
        n=n,
        mean=float(np.clip((plus - minus) / max(plus + minus, 2 * noise, 1.0), -1.0, 1.0)),
        square=float(np.clip(float(square.value) / n, 0.0, 1.0)),
        noise=float(square.sd) / n,
        rows=float(gate.most_rows),
    )


class _Tables(NamedTuple):
    """What may be asked of segments: one sum per arm, or one for both where the probability of treatment is known."""

    arms: Query
    signed: tuple[Query, Query] | None

    @classmethod
    def of(
        cls,
        allocation: Allocation,
        partition: Partition | Clusters,
        bounds: Bounds,
        known: float | None,
        weighted: bool,
    ) -> _Tables:
        """Diameters: docs/proofs/uplift.md, lemma 1 and lemma 3."""
        k = partition.count
        (pairs,) = ARMS_APART
        arms = Query(pairs, allocation[pairs], Pairs(2 * k), ByCell(partition, True, arm_numbers(bounds, weighted)))
        if known is None:
            return cls(arms, None)
        counts, sums = ARMS_IN_ONE_SUM
        allocation = allocation.divided("table", ARMS_IN_ONE_SUM)
        signed = ByCell(partition, False, (signed_number(known),))
        return cls(
            arms,
            (
                Query(counts, allocation[counts], Cells((k,)), ByCell(partition, False)),
                Query(sums, allocation[sums], CellSums(1.0, k), signed),
            ),
        )

    @property
    def all(self) -> tuple[Query, ...]:
        """Every question, asked or not."""
        return (self.arms, *(self.signed or ()))


def _table(gate: Gate, tables: _Tables, kind: Kind, k: int) -> Table:
    """Counts and sums by segment and arm."""
    if kind == "signed" and tables.signed is not None:
        counts, sums = gate.ask(*tables.signed)
        return Table(counts.value.reshape(k, 1), sums.value.reshape(k, 1), float(counts.sd), float(sums.sd))
    (pairs,) = gate.ask(tables.arms)
    plus, minus = pairs.value.reshape(k, 2, 2).transpose(2, 0, 1)
    noise = float(pairs.sd) * 2**0.5
    return Table(plus + minus, plus - minus, noise, noise)


def _notes(kind: Kind, known: bool, noisy: Table) -> tuple[str, ...]:
    notes = []
    if known:
        notes.append("Effects rely on the stated probability of treatment.")
    else:
        notes.append("Effects are causal if treatment was as good as random within each segment.")
    if kind == "signed":
        notes.append("Noise would outweigh what a sum per arm is worth: the arms share a sum in every segment.")
    lost = int(noisy.lost.any(axis=1).sum())
    if lost:
        have = "has" if lost == 1 else "have"
        notes.append(f"{lost} of {len(noisy.counts)} segments {have} too few records to stand out from noise.")
    return tuple(notes)
