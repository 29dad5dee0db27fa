"""Who gets which share of a budget, and when models are from a sample: the public rules of average effects.

Those of effect functions and segments are in `discreet.estimators._effect_allocation`.

A rule depends on n mu (the number of records times the budget's Gaussian parameter, called information here), on the
number of records and on declared facts; never on a record. `Allocation` names shares as the events of a release do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import fsum, isclose, sqrt
from numbers import Real
from types import MappingProxyType

import numpy as np

from discreet.data.bounds import Bounds
from discreet.privacy.budget import Shares
from discreet.privacy.gate import Gate

_ROUNDING = 1e-9


def information_per_covariate(information: float, p: int) -> float:
    """Information as it would be with six covariates: what it is worth falls with the root of their number."""
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
        """The share of a measurement, or of one event; of the measurement where both have the name."""
        return self.measurements[name] if name in self.measurements else self.shares[name]

    def __contains__(self, name: object) -> bool:
        return name in self.measurements or name in self.shares

    def events(self, name: str) -> tuple[str, ...]:
        """The events of a measurement, in their order; none if it is not there."""
        return tuple(self.parts.get(name, {name: 1.0})) if name in self.measurements else ()

    def after_counts(self, gate: Gate) -> Allocation:
        """What is left by what was asked first: private numbers of records, of all and of a sample, and a cap."""
        left = 1.0 - gate.spent
        measurements = gate.spent_on | {name: left * share for name, share in self.measurements.items()}
        return replace(self, measurements=measurements, unspent=left * self.unspent)

    def beside(self, questions: Mapping[str, float]) -> Allocation:
        """The same beside questions that everything else pays for evenly."""
        left = 1.0 - fsum(questions.values())
        kept = {name: left * share for name, share in self.measurements.items()}
        return replace(self, measurements={**kept, **questions}, unspent=left * self.unspent)

    def without(self, name: str) -> Allocation:
        """The same where a measurement has nothing to ask."""
        rest = {other: share for other, share in self.measurements.items() if other != name}
        return replace(self, measurements=rest, unspent=self.unspent + self[name])

    def divided(self, name: str, parts: Mapping[str, float]) -> Allocation:
        """The same where a measurement asks other questions."""
        return replace(self, parts={**self.parts, name: parts})

    def joined(self, name: str, into: str) -> Allocation:
        """The same where one event is not asked for, and another measurement has its share."""
        moved = self.shares[name]
        measurements, parts = dict(self.measurements), dict(self.parts)
        for measurement, inside in self.parts.items():
            if name in inside and measurement in measurements:
                rest = {event: part for event, part in inside.items() if event != name}
                whole = sum(rest.values())
                measurements[measurement] -= moved
                parts[measurement] = {event: part / whole for event, part in rest.items()}
        measurements.pop(name, None)
        measurements[into] += moved
        return replace(self, measurements=measurements, parts=parts)


# Share of every question that only prepares others: where outcomes and covariates lie, how large something is, what
# goes together, where to clip.
QUESTION = 0.02
# Shares that go to the private number of records, under add-remove, before everything else; and to the histogram by
# which a cap of the outcome is chosen, where it is chosen by the records.
COUNT, CAP = QUESTION, 2.0 * QUESTION
MISSING = MEAN_WEIGHT = QUESTION  # of the count of missing outcomes by arm, and of the mean survey weight


# Shares of a column's part of a suggestion of bounds, by the beginning of the event's name. What "inside one cell" does
# not need, as few columns do, the last round has.
SUGGESTION = MappingProxyType(
    {
        # Choice: by hand, on the columns of `evidence.bounds` with seeds below 1,000,000.
        "powers of ten": 0.2,
        "closer cells": 0.1,
        "inside one cell": 0.1,
        "around the middle": 0.6,
    }
)


def _evenly(*events: str) -> Mapping[str, float]:
    """Events that divide the share of their measurement evenly."""
    return MappingProxyType({event: 1.0 / len(events) for event in events})


# Questions of one measurement, and the part of its share that each has.
LOCATION = _evenly(
    "arms and ends of the outcome", "outcome mean and square", "centre of the outcome", "outcome magnitude"
)
WINDOWS = _evenly("marginals", "marginals within windows")
MODELS: Mapping[str, float] = MappingProxyType(
    {"outcome moments": 0.38, "outcome contrast": 0.12, "treatment moments": 0.5}
)
MODELS_OF_KNOWN_DESIGN: Mapping[str, float] = MappingProxyType({"outcome moments": 0.7, "outcome contrast": 0.3})


def _questions(*measurements: str) -> dict[str, float]:
    """Shares of measurements that only prepare others."""
    # Mass that noise hides in the tails costs width: they are asked about with two shares.
    count = {"location": len(LOCATION), "marginals": len(WINDOWS), "residual tails": 2}
    return {name: QUESTION * count.get(name, 1) for name in measurements}


_BY_HAND = (
    "Chosen by hand. The share of a question, among .01, .015, .02 and .025, and the score's: on trials 40,000 to "
    "40,699 and, all but .02, on observational studies 10,000 to 10,499 of evidence/population. Trimming is "
    "inherited from choices on the designs of docs/evidence/ate.md. The others were settled on studies 2000 to "
    "2239, and the size of the basis and the use of covariates in trials also after looking at shapes and trials "
    "of docs/evidence/trust.md."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRule:
    """When models are fitted to a sample of a long table, and to how large a one.

    Parameters
    ----------
    records
        A sample has this many times sqrt(terms n) records, so that intervals are hardly wider than with all of them;
    information
        and its n mu, with six covariates, is at least this.
    largest_part
        Larger parts of the records are not worth a sample.
    by_place
        From so many records on, places choose a sample where no column does.
    count
        Share of the budget for the sample's number of records, where a column chooses.
    uneven, deviations
        A sample whose size is off by more than this part, and by so many standard deviations, was not chosen evenly.
    """

    records: float
    information: float
    largest_part: float
    by_place: float
    count: float
    uneven: float
    deviations: float
    provenance: str

    def part(self, gate: Gate, terms: int) -> float:
        """Which part of the records a sample would be."""
        least = self.information * sqrt(max(gate.bounds.p, 2) / 6.0) / gate.mu
        return max(self.records * sqrt(terms * gate.n), least) / gate.n


SAMPLE = SampleRule(
    records=28.0,
    information=30_000.0,
    largest_part=0.5,
    by_place=1e6,
    count=0.01,
    uneven=0.02,
    deviations=6.0,
    provenance="By hand: of 10, 20 and 28 times the root, the one by which an observational study of a million records "
    "had an interval less than 1.1 times as wide.",
)

_OF_MEANS = _questions("location", "arm means", "residual tails", "clipped excess")
# Laplace noise falls with a share and not with its root: small ones are this many times as large where it is drawn. By
# hand, near the shares that pure budgets had before; no search is recorded.
_PURE = 1.5


def _means(times: float) -> Allocation:
    questions = {name: times * share for name, share in _OF_MEANS.items()}
    return Allocation.of(
        {**questions, "score": 1.0 - sum(questions.values())}, parts={"location": LOCATION}, provenance=_BY_HAND
    )


MEANS, MEANS_OF_PURE = _means(1.0), _means(_PURE)
# Beside these, models have so much, and the score has the rest.
_MODELS_PART = 0.2
_OF_COVARIATES = _questions("marginals", "correlations", "screening moments", "second moments")
KNOWN_DESIGN = Allocation.of(
    {
        **_OF_MEANS,
        **_OF_COVARIATES,
        "models": _MODELS_PART,
        "score": 1.0 - _MODELS_PART - sum(_OF_MEANS.values()) - sum(_OF_COVARIATES.values()),
    },
    parts={"location": LOCATION, "marginals": WINDOWS, "models": MODELS_OF_KNOWN_DESIGN},
    provenance=_BY_HAND,
)


# From this n mu on, with six covariates, models of the outcome are worth their budget where the design is known.
_MODELS_PAY = 1500.0


def models_pay(information: float, p: int, propensity: object = None) -> bool:
    """Whether covariates are used where the design is known: noise is larger where one arm is rarer."""
    rarer = min(float(propensity), 1.0 - float(propensity)) if isinstance(propensity, Real) else 0.5
    return p > 0 and 2.0 * rarer * information_per_covariate(information, p) >= _MODELS_PAY


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationalRule:
    """Shares without a known design.

    Parameters
    ----------
    score
        Part of the rest that goes to the score where features are few for the information there is, and where they are
        many.
    score_beside_sample
        The same beside models from a sample: the score, of all records, has noise to spare.
    features
        What few and many features are: their number to the power 1.5, over n mu.
    refined
        Parts of what the score leaves.
    refinements
        From which n mu on, with six covariates, both models are corrected once more.
    """

    score: tuple[float, float]
    score_beside_sample: float
    features: tuple[float, float]
    refined: Mapping[str, float]
    refinements: tuple[float, ...]
    provenance: str

    def cycles(self, information: float, p: int) -> int:
        """How often both models are corrected on the records."""
        enough = information_per_covariate(information, p)
        return 1 + sum(enough >= least for least in self.refinements)

    def allocation(self, information: float, terms: int, p: int, *, sampled: bool = False) -> Allocation:
        """The more features for the information there is, the more goes to the models and the less to the score."""
        cycles = self.cycles(information, p)
        fixed = {**_OF_MEANS, **_OF_COVARIATES, **_questions("effect moment")}
        fixed |= _questions(*(f"residual magnitude {k}" for k in range(1, cycles + 1)))
        rest = 1.0 - sum(fixed.values())
        few, many = self.features
        place = np.clip(np.log(terms**1.5 / information / few) / np.log(many / few), 0.0, 1.0)
        high, low = self.score
        score = rest * (self.score_beside_sample if sampled else float(high + (low - high) * place))
        later = 1.5 ** np.arange(cycles)
        later /= later.sum()
        parts: dict[str, Mapping[str, float]] = {"location": LOCATION, "marginals": WINDOWS, "models": MODELS}
        parts["propensity"] = {f"propensity refinement {k}": float(part) for k, part in enumerate(later, 1)}
        parts["correction"] = {f"residual moments {k}": float(part) for k, part in enumerate(later, 1)}
        return Allocation.of(
            {**fixed, **{name: (rest - score) * part for name, part in self.refined.items()}, "score": score},
            parts=parts,
            provenance=self.provenance,
        )


OBSERVATIONAL = ObservationalRule(
    score=(0.5, 0.25),
    score_beside_sample=0.3,
    features=(0.03, 0.5),
    refined=MappingProxyType({"models": 0.35, "propensity": 0.27, "correction": 0.38}),
    refinements=(1500.0, 6000.0, 25000.0),
    provenance=_BY_HAND,
)
# One of each kind is made, so that a wrong table is found when it is read and not in a fit.
for _information in (100.0, 3e3, 3e4):
    OBSERVATIONAL.allocation(_information, 10, 3)


# Part of what adjustment changed that it is taken to have left out, as a standard deviation.
LEFT_OUT = 0.03


def basis_terms(information: float, n: float, columns: tuple[object, ...]) -> int:
    """Size of the basis, by n mu, the number of records and the declared columns."""
    p = len(columns)
    most = max(TERMS * information, 2.0 * p + 1.0) if p else 1.0
    return int(max(1.0, min(most, n / 10.0, MOST_TERMS)))


TERMS, MOST_TERMS = 0.02, 300.0


def average_allocation(information: float, terms: int, p: int, *, known: bool, sampled: bool = False) -> Allocation:
    """Shares of an average effect: by n mu, the numbers of features and covariates, and the design."""
    shares = KNOWN_DESIGN if known else OBSERVATIONAL.allocation(information, terms, p, sampled=sampled)
    if p < 2:
        shares = shares.joined("screening moments", into="models").joined("correlations", into="models")
    return shares if p else shares.without("marginals")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimRule:
    """Where fitted propensities stop, unless the declared overlap stops them earlier.

    Noise makes extreme fitted propensities unreliable; trimming them costs only a second-order error.

    Parameters
    ----------
    information
        They stop at this over n mu,
    most
        but never further in than here,
    of_arm
        nor than this part of the arm's released share.
    """

    information: float
    most: float
    of_arm: float
    provenance: str

    def interval(self, bounds: Bounds, treated: float, information: float) -> tuple[float, float]:
        """Lowest and highest propensity."""
        rule = min(self.most, self.information / information)
        low, high = bounds.propensity
        return max(low, min(rule, self.of_arm * treated)), min(high, 1.0 - min(rule, self.of_arm * (1.0 - treated)))


TRIM = TrimRule(information=30.0, most=0.1, of_arm=0.3, provenance=_BY_HAND)

# The sum that an average over some of the records is divided by. Choice: as much as a histogram of tails has: errors of
# this sum matter only as far as the effect is off before. By hand.
WEIGHTS, _OF_WEIGHTS = "sum of weights", 2.0 * QUESTION


# The level of the outcome, from which and the effect the arms' means follow, and its product with the effect's score,
# which says how their errors go together. Choice: noise of everything else grows by 3 %, and Laplace noise by 4 %.
LEVEL, CROSS = "level of the outcome", "effect by level"
_OF_LEVEL, _OF_LEVEL_PURE = {LEVEL: 0.05, CROSS: 0.01}, {LEVEL: 0.035, CROSS: 0.005}


def beside(*, weighted: bool, level: bool, pure: bool = False, joined: bool = False) -> dict[str, float]:
    """Shares of what an average asks for beside effect and models."""
    asked = {WEIGHTS: _OF_WEIGHTS} if weighted else {}
    if not level:
        return asked
    shares = _OF_LEVEL_PURE if pure else _OF_LEVEL
    # The products of sums over units are no sums over rows.
    return asked | ({LEVEL: sum(shares.values())} if joined else shares)
