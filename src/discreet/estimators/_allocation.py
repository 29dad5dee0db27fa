"""Who gets which share of a budget, and how large models may be: every public rule of the estimators, in one place.

A rule depends on n mu (the number of records times the budget's Gaussian parameter, called information here), on the
number of records and on declared facts; never on a record. `Allocation` names shares as the events of a release do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum, isclose, sqrt
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from discreet.data.bounds import Bounds
from discreet.data.columns import Range
from discreet.postprocessing.basis import MOST_CURVED_PAIRS, MOST_PAIRS, Basis, Size
from discreet.postprocessing.marginals import Column
from discreet.privacy.budget import Shares
from discreet.privacy.gate import Gate

_ROUNDING = 1e-9


def information_per_covariate(information: float, p: int) -> float:
    """N mu as it would be with six covariates: what it is worth falls with the root of their number."""
    return information / sqrt(max(p, 2) / 6.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """Every share that a fit spends, by the name that its event carries.

    Parameters
    ----------
    measurements
        Share of each measurement. One that asks a single question has the name of its event.
    parts
        Of measurements that ask several questions: the part of each, by the name of its event.
    unspent
        Share of measurements that have nothing to ask, such as marginals where there are no covariates.
    provenance
        Where the numbers are from.
    """

    measurements: Mapping[str, float]
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    unspent: float = 0.0
    provenance: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "measurements", MappingProxyType(dict(self.measurements)))
        whole = fsum((*self.shares.values(), self.unspent))
        if not isclose(whole, 1.0, abs_tol=_ROUNDING):
            raise ValueError(f"the shares of an allocation add up to {whole}, not to one: {dict(self.shares)}.")

    @classmethod
    def of(
        cls,
        measurements: Mapping[str, float],
        *,
        parts: Mapping[str, Mapping[str, float]],
        provenance: str,
    ) -> Allocation:
        """A table as it is written down; what rounding adds beyond one is taken off."""
        return cls(measurements=Shares(**measurements).to_dict(), parts=parts, provenance=provenance)

    @property
    def shares(self) -> dict[str, float]:
        """Shares by the names of events."""
        found: dict[str, float] = {}
        for name, share in self.measurements.items():
            found |= {event: part * share for event, part in self.parts.get(name, {name: 1.0}).items()}
        return found

    def __getitem__(self, name: str) -> float:
        """The share of a measurement, or of one event."""
        return self.measurements[name] if name in self.measurements else self.shares[name]

    def __contains__(self, name: object) -> bool:
        return name in self.measurements or name in self.shares

    def events(self, name: str) -> tuple[str, ...]:
        """The events of a measurement, in their order; none if it is not there."""
        return tuple(self.parts.get(name, {name: 1.0})) if name in self.measurements else ()

    def after_counts(self, gate: Gate) -> Allocation:
        """What is left by numbers of records that are private, of all records and of a sample, and have been asked."""
        counts = COUNT if gate.counts_rows else 0.0
        counts += SAMPLE.count if gate.spent > counts + SAMPLE.count / 2.0 else 0.0
        left = 1.0 - counts
        measurements = {"number of records": counts} if counts else {}
        measurements |= {name: left * share for name, share in self.measurements.items()}
        return replace(self, measurements=measurements, unspent=left * self.unspent)

    def without(self, name: str) -> Allocation:
        """The same where a measurement has nothing to ask."""
        rest = {other: share for other, share in self.measurements.items() if other != name}
        return replace(self, measurements=rest, unspent=self.unspent + self[name])

    def divided(self, name: str, parts: Mapping[str, float]) -> Allocation:
        """The same where a measurement asks other questions."""
        return replace(self, parts={**self.parts, name: parts})

    def joined(self, name: str, into: str) -> Allocation:
        """The same where one event is not asked for, and another measurement has its share."""
        shares = self.shares
        joined = {other: share for other, share in shares.items() if other != name}
        joined[into] = shares[into] + shares[name]
        return replace(self, measurements=joined, parts={})


# Shares that go to the private number of records, under add-remove, before everything else.
COUNT = 0.02

# Questions of one measurement, and the part of its share that each has.
LOCATION: Mapping[str, float] = MappingProxyType(
    {
        "share of treated": 0.3,
        "outcome mean and square": 0.3,
        "centre of the outcome": 0.15,
        "outcome magnitude": 0.25,
    }
)
MODELS: Mapping[str, float] = MappingProxyType(
    {"outcome moments": 0.38, "outcome contrast": 0.12, "treatment moments": 0.5}
)
MODELS_OF_KNOWN_DESIGN: Mapping[str, float] = MappingProxyType({"outcome moments": 0.7, "outcome contrast": 0.3})
WINDOWS: Mapping[str, float] = MappingProxyType({"marginals": 0.4, "marginals within windows": 0.6})

_BY_HAND = (
    "Chosen by hand, among close to a hundred variants that were compared on the designs of docs/evidence/ate.md with "
    "other seeds (docs/evidence/index.md); no search is recorded."
)
_BY_HAND_CATE = (
    "Chosen by hand on other designs of the same kinds as those of docs/evidence/cate.md, which says what these "
    "settled as well; no search is recorded."
)
_BY_HAND_UPLIFT = (
    "Chosen by hand; the share of counts among some twenty variants on ADUM's generator with other seeds "
    "(docs/evidence/uplift.md)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRule:
    """When models are fitted to a sample of a long table, and to how large a one.

    Parameters
    ----------
    records
        A sample has this many times sqrt(terms n) records, so that the product of both models' sampling errors is a
        tenth of the sampling error of the effect;
    information
        and its n mu, with six covariates, is at least this.
    largest_part
        Larger parts of the records are not worth a sample.
    count
        Share of the budget for the sample's number of records.
    uneven, deviations
        A sample whose size is off by more than this part, and by so many standard deviations, was not chosen evenly.
    """

    records: float
    information: float
    largest_part: float
    count: float
    uneven: float
    deviations: float

    def part(self, gate: Gate, terms: int) -> float:
        """Which part of the records a sample would be."""
        least = self.information * sqrt(max(gate.bounds.p, 2) / 6.0) / gate.mu
        return max(self.records * sqrt(terms * gate.n), least) / gate.n


SAMPLE = SampleRule(records=10.0, information=30_000.0, largest_part=0.5, count=0.01, uneven=0.02, deviations=6.0)

MEANS = Allocation.of(
    {"location": 0.12, "arm means": 0.06, "score magnitude": 0.07, "score": 0.75},
    parts={"location": LOCATION},
    provenance=_BY_HAND,
)
KNOWN_DESIGN = Allocation.of(
    {
        "location": 0.05,
        "arm means": 0.02,
        "marginals": 0.03,
        "second moments": 0.08,
        "models": 0.15,
        "score magnitude": 0.05,
        "score": 0.62,
    },
    parts={"location": LOCATION, "models": MODELS_OF_KNOWN_DESIGN},
    provenance=_BY_HAND,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationalRule:
    """Shares without a known design.

    Parameters
    ----------
    fixed
        Shares that do not depend on anything.
    magnitudes
        Parts of the share for magnitudes.
    score
        Part of the rest that goes to the score where features are few for the information there is, and where they are
        many.
    score_beside_sample
        The same beside models from a sample: the score, of all records, has noise to spare.
    features
        What few and many features are: their number to the power 1.5, over n mu.
    refined, unrefined
        Parts of what the score leaves, with a propensity that is refined on the records, and without.
    refinements
        From which n mu, with six covariates, the propensity is refined, and the part of each round.
    linear_effect
        Part of the correction's share for an effect that is linear in covariates, where the propensity is refined.
    """

    fixed: Mapping[str, float]
    magnitudes: Mapping[str, float]
    score: tuple[float, float]
    score_beside_sample: float
    features: tuple[float, float]
    refined: Mapping[str, float]
    unrefined: Mapping[str, float]
    refinements: tuple[tuple[float, tuple[float, ...]], ...]
    linear_effect: float
    provenance: str

    def rounds(self, information: float, p: int) -> tuple[float, ...]:
        """Parts of the refinement's share that its rounds get; none where n mu is small."""
        enough = information_per_covariate(information, p)
        return max((parts for least, parts in self.refinements if enough >= least), key=len, default=())

    def allocation(self, information: float, terms: int, p: int, *, sampled: bool = False) -> Allocation:
        """The more features for the information there is, the more goes to the models and the less to the score."""
        rounds = self.rounds(information, p)
        rest = 1.0 - sum(self.fixed.values())
        few, many = self.features
        place = np.clip(np.log(terms**1.5 / information / few) / np.log(many / few), 0.0, 1.0)
        high, low = self.score
        score = rest * (self.score_beside_sample if sampled else float(high + (low - high) * place))
        others = self.refined if rounds else self.unrefined
        parts: dict[str, Mapping[str, float]] = {"location": LOCATION, "models": MODELS, "magnitudes": self.magnitudes}
        parts["propensity"] = {f"propensity refinement {number}": part for number, part in enumerate(rounds, 1)}
        linear = self.linear_effect if rounds and p else 0.0
        parts["correction"] = {"linear effect moments": linear} if linear else {}
        parts["correction"] = {**parts["correction"], "residual moments": 1.0 - linear}
        return Allocation.of(
            {**self.fixed, **{name: (rest - score) * part for name, part in others.items()}, "score": score},
            parts=parts,
            provenance=self.provenance,
        )


OBSERVATIONAL = ObservationalRule(
    fixed=MappingProxyType(
        {
            "location": 0.04,
            "arm means": 0.015,
            "marginals": 0.03,
            "second moments": 0.04,
            "effect moment": 0.025,
            "magnitudes": 0.05,
        }
    ),
    magnitudes=MappingProxyType({"residual magnitude": 0.4, "score magnitude": 0.6}),
    score=(0.6, 0.25),
    score_beside_sample=0.3,
    features=(0.03, 0.5),
    refined=MappingProxyType({"models": 0.45, "propensity": 0.2, "correction": 0.35}),
    unrefined=MappingProxyType({"models": 0.65, "correction": 0.35}),
    refinements=((1500.0, (0.3, 0.7)), (8000.0, (0.15, 0.25, 0.6))),
    linear_effect=0.2,
    provenance=_BY_HAND,
)
# One of each kind is made, so that a wrong table is found when it is read and not in a fit.
for _information in (100.0, 3e3, 3e4):
    OBSERVATIONAL.allocation(_information, 10, 3)


def average_allocation(information: float, terms: int, p: int, *, known: bool, sampled: bool = False) -> Allocation:
    """Shares of an average effect: by n mu, the numbers of features and covariates, and the design."""
    shares = KNOWN_DESIGN if known else OBSERVATIONAL.allocation(information, terms, p, sampled=sampled)
    return shares if p else shares.without("marginals")


def trimmed(bounds: Bounds, treated: float, information: float) -> tuple[float, float]:
    """Where fitted propensities stop: the declared overlap, or further in while n mu is small.

    Noise makes extreme fitted propensities unreliable; trimming them costs only a second-order error. Chosen by hand.
    """
    rule = min(0.1, 30.0 / information)
    low, high = bounds.propensity
    return max(low, min(rule, 0.3 * treated)), min(high, 1.0 - min(rule, 0.3 * (1.0 - treated)))


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRule:
    """Shares and sizes of an effect function.

    Parameters
    ----------
    constant, constant_per_covariate
        Below this n mu, as it is and with six covariates, no noisy function beats a constant.
    degrees
        Highest power from which n mu on, with six covariates.
    pairs, curved, jumps
        From which n mu on, with six covariates, there are products of two covariates, curved ones, and jumps.
    jump_ranks
        Ranks at which each covariate may jump, up to which number of covariates.
    records_per_feature
        The basis is plainer while there are fewer.
    fixed
        Shares that do not depend on n mu.
    rounds
        From which n mu on, with six covariates: shares of the initial moments and of each round of effect moments.
        Where there is enough, a round more takes out what the slopes of others had wrong.
    first_magnitude, outcome_magnitude, effect_magnitudes
        Parts of the share for magnitudes: of the initial residual, before each round of the outcome, and before all
        rounds of the effect together.
    """

    constant: float
    constant_per_covariate: float
    degrees: tuple[tuple[float, int], ...]
    pairs: float
    curved: float
    jumps: float
    jump_ranks: tuple[tuple[int, int], ...]
    records_per_feature: int
    fixed: Mapping[str, float]
    rounds: tuple[tuple[float, float, tuple[float, ...]], ...]
    first_magnitude: float
    outcome_magnitude: float
    effect_magnitudes: float
    provenance: str

    def varies(self, information: float, columns: tuple[Column, ...]) -> bool:
        """Whether a function is released, and not a constant."""
        enough = information_per_covariate(information, len(columns)) >= self.constant_per_covariate
        return information >= self.constant and enough and bool(columns)

    def size(self, information: float, n: float, columns: tuple[Column, ...]) -> Size:
        """Size of the basis by n mu with six covariates (``information``); `basis.choose_size` is that of averages."""
        terms = [1 if isinstance(column, Range) else len(column.levels) - 1 for column in columns]
        products, pairs = (sum(terms) ** 2 - sum(k * k for k in terms)) // 2, len(columns) * (len(columns) - 1) // 2
        degree = max(degree for least, degree in self.degrees if information >= least)
        few = 0 < products <= MOST_PAIRS
        ranks = next((ranks for most, ranks in self.jump_ranks if len(columns) <= most), 0)
        sizes = [
            Size(
                degree=degree,
                pairs=few and information >= self.pairs,
                curved=few and 0 < pairs <= MOST_CURVED_PAIRS and information >= self.curved,
                jumps=ranks if information >= self.jumps else 0,
            )
        ]
        sizes += [Size(degree=k, pairs=False, curved=False) for k in range(degree, 0, -1)]
        least = self.records_per_feature
        return next((size for size in sizes if least * Basis.flat(columns, size).m <= n), sizes[-1])

    def allocation(self, information: float, columns: tuple[Column, ...], propensity: Any) -> tuple[Allocation, int]:
        """Shares by n mu with six covariates (``information``), and the number of rounds for the effect.

        A known propensity need not be refined, nor one number be measured: the last round has these shares.
        """
        first, effects = next((first, effects) for least, first, effects in self.rounds if information >= least)
        last, count = f"effect moments {len(effects)}", len(effects)
        shares = {**self.fixed, "initial moments": first}
        shares |= {f"effect moments {number}": part for number, part in enumerate(effects, 1)}
        if propensity is not None:
            shares[last] += shares.pop("propensity refinement")
            if isinstance(propensity, Real):
                shares[last] += shares.pop("treatment moments")
        magnitudes = {"initial residual magnitude": self.first_magnitude}
        magnitudes |= {f"outcome residual magnitude {number}": self.outcome_magnitude for number in (1, 2)}
        each = self.effect_magnitudes / count
        magnitudes |= {f"effect residual magnitude {number}": each for number in range(1, count + 1)}
        parts = {"location": LOCATION, "magnitudes": magnitudes}
        if any(isinstance(column, Range) for column in columns):
            parts["marginals"] = WINDOWS
        return Allocation.of(shares, parts=parts, provenance=self.provenance), count


EFFECT = EffectRule(
    constant=350.0,
    constant_per_covariate=150.0,
    degrees=((0.0, 2), (200.0, 3), (350.0, 4), (3000.0, 5)),
    pairs=400.0,
    curved=3000.0,
    jumps=3000.0,
    jump_ranks=((6, 11), (12, 3)),
    records_per_feature=10,
    fixed=MappingProxyType(
        {
            "location": 0.03,
            "arm means": 0.01,
            "marginals": 0.04,
            "second moments": 0.03,
            "magnitudes": 0.05,
            "outcome moments 1": 0.06,
            "outcome moments 2": 0.04,
            "treatment moments": 0.06,
            "propensity refinement": 0.02,
        }
    ),
    rounds=((300.0, 0.16, (0.13, 0.13, 0.24)), (0.0, 0.22, (0.18, 0.26))),
    first_magnitude=0.2,
    outcome_magnitude=0.15,
    effect_magnitudes=0.5,
    provenance=_BY_HAND_CATE,
)
for _information in (100.0, 3e3):
    EFFECT.allocation(_information, (), None)

# A longer table says nothing about any of its segments, and takes long to smooth.
MOST_SEGMENTS = 512
# Part of the table's share that counts have where arms share a sum: effects are small beside the outcome's range.
_TABLE_COUNTS = 0.12
ARMS_APART: Mapping[str, float] = MappingProxyType({"pairs by segment and arm": 1.0})
ARMS_IN_ONE_SUM: Mapping[str, float] = MappingProxyType(
    {"counts by segment": _TABLE_COUNTS, "signed sums by segment": 1.0 - _TABLE_COUNTS}
)
DECLARED = Allocation.of(
    {"mean outcome": 0.02, "mean square of the outcome": 0.03, "table": 0.95},
    parts={"table": ARMS_APART},
    provenance=_BY_HAND_UPLIFT,
)
CLUSTERED = Allocation.of(
    {"partition": 0.5, "mean outcome": 0.02, "mean square of the outcome": 0.03, "table": 0.45},
    parts={"table": ARMS_APART},
    provenance=_BY_HAND_UPLIFT + " Half for the partition, as in the epsilon-ADUM paper (section 3.2).",
)


def lloyd_shares(share: float, p: int) -> dict[str, float]:
    """Shares of one round of clustering by p covariates: in the ratio of the diameters, so that all noise is alike."""
    return {"clusters: counts": share / (1 + p), "clusters: sums": share * p / (1 + p)}
