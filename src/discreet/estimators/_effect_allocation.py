"""Who gets which share of the budget of an effect function or of segments, and how large a function may be.

As `discreet.estimators._allocation`, whose words these are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

from discreet.data.columns import Range
from discreet.estimators._allocation import LOCATION, WINDOWS, Allocation, information_per_covariate
from discreet.postprocessing.basis import MOST_CURVED_PAIRS, MOST_PAIRS, Basis, Size
from discreet.postprocessing.marginals import Column

_BY_HAND_CATE = (
    "Chosen by hand on other designs of the same kinds as those of docs/evidence/cate.md, which says what these "
    "settled as well; no search is recorded. The share of calibration (of .035, .05 and .07, which hardly differ) on "
    "studies 3000 to 3120 of evidence/population, and the average's part (of .3, .35 and .4) on the observational ones "
    "of studies 3000 to 3199, by errors of the function and the width of the average's interval."
)
_BY_HAND_UPLIFT = (
    "Chosen by hand; the share of counts among some twenty variants on ADUM's generator with other seeds "
    "(docs/evidence/uplift.md)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRule:
    """Shares and sizes of an effect function.

    Parameters
    ----------
    average
        Part of the budget that the average effect has, for rounds of its own; n mu below is that of the others.
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
    calibration
        Share of the last round, which says how much of the function the records bear out.
    fixed
        Shares that do not depend on n mu, of what calibration leaves.
    rounds
        From which n mu on, with six covariates: shares of the initial moments and of each round of effect moments.
        Where there is enough, a round more takes out what the slopes of others had wrong.
    first_magnitude, outcome_magnitude, effect_magnitudes
        Parts of the share for magnitudes: of the initial residual, before each round of the outcome, and before all
        rounds of the effect together.
    """

    average: float
    constant: float
    constant_per_covariate: float
    degrees: tuple[tuple[float, int], ...]
    pairs: float
    curved: float
    jumps: float
    jump_ranks: tuple[tuple[int, int], ...]
    records_per_feature: int
    calibration: float
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

        Probabilities of treatment are asked about where a public column has them; otherwise they are one number, or the
        average's rounds have fitted them, and the last round has that share.
        """
        first, effects = next((first, effects) for least, first, effects in self.rounds if information >= least)
        last, count = f"effect moments {len(effects)}", len(effects)
        shares = {**self.fixed, "initial moments": first}
        shares |= {f"effect moments {number}": part for number, part in enumerate(effects, 1)}
        if propensity is None or isinstance(propensity, Real):
            shares[last] += shares.pop("treatment moments")
        magnitudes = {"initial residual magnitude": self.first_magnitude}
        magnitudes |= {f"outcome residual magnitude {number}": self.outcome_magnitude for number in (1, 2)}
        each = self.effect_magnitudes / count
        magnitudes |= {f"effect residual magnitude {number}": each for number in range(1, count + 1)}
        parts = {"location": LOCATION, "magnitudes": magnitudes}
        if any(isinstance(column, Range) for column in columns):
            parts["marginals"] = WINDOWS
        shares = {name: (1.0 - self.calibration) * share for name, share in shares.items()}
        return Allocation.of(
            {**shares, "calibration": self.calibration}, parts=parts, provenance=self.provenance
        ), count


EFFECT = EffectRule(
    average=0.35,
    constant=350.0,
    constant_per_covariate=150.0,
    degrees=((0.0, 2), (200.0, 3), (350.0, 4), (3000.0, 5)),
    pairs=400.0,
    curved=3000.0,
    jumps=3000.0,
    jump_ranks=((6, 11), (12, 3)),
    records_per_feature=10,
    calibration=0.05,
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
        }
    ),
    rounds=((300.0, 0.16, (0.13, 0.13, 0.26)), (0.0, 0.22, (0.18, 0.28))),
    first_magnitude=0.2,
    outcome_magnitude=0.15,
    effect_magnitudes=0.5,
    provenance=_BY_HAND_CATE,
)
for _information in (100.0, 3e3):
    EFFECT.allocation(_information, (), None)

# What comes before the names of the rounds that measure the average effect.
AVERAGE = "average: "


def shares_of_parts(
    counts: float, parts: Mapping[str, float], shares: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Shares of a budget that was divided into parts after the count, by the names of events.

    Numbers of records have one name, whoever asked for them.
    """
    found = {"number of records": counts} if counts else {}
    for prefix, part in parts.items():
        for name, share in shares[prefix].items():
            event = name if name == "number of records" else prefix + name
            found[event] = found.get(event, 0.0) + part * share
    return found


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
