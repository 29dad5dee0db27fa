"""All rounds where outcomes are missing: how many, who they are, and the effect among the observed, so weighted.

Proof, and what the estimate relies on: docs/proofs/missing.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.data.views.presence import PRESENT
from discreet.data.views.within import Observed
from discreet.estimators._allocation import MISSING
from discreet.estimators.measurements.estimand import RecordWeights
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome, Propensity
from discreet.estimators.missing.views import WhetherObserved
from discreet.postprocessing.effect_shrinkage import guessed_variance
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.gate_within import gate_within
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.average import Release

# Choice: below this share of missing outcomes, or two standard deviations of the noise in it, nobody asks who they are,
# and the effect among those people is taken to differ from that among the others by about so many scales of the
# outcome. By hand.
_FEW, _CLEAR, _UNLIKE = 0.01, 2.0, 0.25
# Choice: the more are missing, the larger a part of the budget goes to who they are: this power of the odds, and at
# most that part. By hand.
_POWER, _MOST = 2.0 / 3.0, 0.4
WHO_IS_OBSERVED = "observed: "
"""What comes before the names of the rounds about who is observed."""

FitObserved: TypeAlias = Callable[[Gate, RecordWeights | None], tuple[Release, Location, Outcome]]
"""The rounds of an average effect on some of the records, of which some count for more than others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """How many outcomes are missing, by a noisy count.

    Parameters
    ----------
    observed
        Number of outcomes that are there.
    share, noise
        Share of all outcomes that are missing, and the noise in it.
    by_arm
        The same share among controls and among the treated, and the noise in each.
    """

    observed: float
    share: float
    noise: float
    by_arm: tuple[tuple[float, float], tuple[float, float]]

    @property
    def few(self) -> bool:
        """Whether so few are missing that nobody asks who they are."""
        return self.share < max(_FEW, _CLEAR * self.noise)

    @property
    def part(self) -> float:
        """Part of the budget that goes to who is observed."""
        odds = float((self.share / (1.0 - self.share)) ** _POWER)
        return min(odds / (1.0 + odds), _MOST)


def measure_observed(gate: Gate, fit: FitObserved, fit_missing: Callable[[Gate], Propensity]) -> Release:
    """The effect on everyone, from the observed, who count by how likely people like them are to be observed."""
    missing = count_missing(gate)
    seen = gate_within(gate, Observed(), MISSING, counted=missing.observed)
    half = gate.bounds.outcome_width / 2.0
    if missing.few or not gate.bounds.p:
        release, location, _ = fit(GatePart(seen, gate.left), None)
        left = _UNLIKE * location.scale * missing.share if gate.bounds.p else 0.0
        return _published(gate, release, missing, half * left)
    model = fit_missing(GatePart(gate.viewed(WhetherObserved()), missing.part * gate.left, WHO_IS_OBSERVED))
    release, location, _ = fit(GatePart(seen, gate.left), _weights(model, missing))
    return _published(gate, release, missing, half * _remainder(model, location))


def measure_by_arm(gate: Gate, fit: Callable[[Gate], Release]) -> Release:
    """The same where outcomes are missing at random within each arm: the observed count alike."""
    missing = count_missing(gate)
    seen = gate_within(gate, Observed(), MISSING, counted=missing.observed)
    return _published(gate, fit(GatePart(seen, gate.left)), missing, 0.0)


def count_missing(gate: Gate) -> Missing:
    """How many outcomes are missing in each arm."""
    (counts,) = gate.ask(
        Query("missing outcomes", MISSING, Cells((4,)), lambda c: (2 * c.t + c.more[PRESENT]).astype(np.int64))
    )
    table, sd = np.maximum(counts.value, 0.0).reshape(2, 2), float(counts.sd)
    observed = float(np.clip(table[:, 1].sum(), 1.0, gate.n))
    return Missing(
        observed=observed,
        share=1.0 - observed / gate.n,
        noise=sqrt(2.0) * sd / gate.n,
        by_arm=(_share(table[0], sd), _share(table[1], sd)),
    )


def _share(counts: Float, sd: float) -> tuple[float, float]:
    """Share of an arm's outcomes that are missing, and the noise in it."""
    number = max(float(counts.sum()), 1.0)
    share = float(counts[0]) / number
    return share, min(sd / number * hypot(share, 1.0 - share), 1.0)


def _weights(model: Propensity, missing: Missing) -> RecordWeights:
    """The inverse of the probability that an outcome is observed, times their share: one on average."""
    share = 1.0 - missing.share
    return RecordWeights(lambda c: share / model(c), share / model.high, share / model.low)


def _remainder(model: Propensity, location: Location) -> float:
    """Standard deviation of E[(rho - p)(tau(x) - tau)/p]: the score takes the effect for a constant.

    By the errors of the model, and by how much effects vary before anything is known of it.
    """
    setting, p = model.setting, model.on_reference
    gram = float(np.mean(1.0 - p)) * setting.weighted(1.0 - p)
    effects = guessed_variance(setting.basis, location.magnitude.scale)
    # The constant is the effect that was taken.
    effects[0] = 0.0
    return sqrt(max(float(np.sum(model.covariance * ((gram * effects) @ gram))), 0.0))


def _published(gate: Gate, release: Release, missing: Missing, remainder: float) -> Release:
    """The release of all records; everything new in it is computed from released numbers and public facts."""
    public = ("the declared bounds",) if gate.counts_rows else ("the declared bounds", "the number of records")
    (control, control_sd), (treated, treated_sd) = missing.by_arm
    like = "the same arm with the same declared covariates" if release.adjustment["covariates"] else "the same arm"
    notes = (
        f"By a noisy count {control:.1%} of the controls' outcomes (noise {control_sd:.1%}) and {treated:.1%} of the "
        f"treated's (noise {treated_sd:.1%}) are missing. They are taken to be missing at random among people of "
        f"{like}.",
        "Models, shares of treated and differences of the arms are those of the people whose outcomes were observed.",
    )
    own = release.uncertainty
    return replace(
        release,
        uncertainty=replace(own, nuisance=hypot(own.nuisance, remainder)),
        n=gate.n,
        guarantee=gate.guarantee(proof="missing.md, ate.md", public=public),
        bounds=gate.bounds,
        adjustment=release.adjustment | {"shares": gate.spent_on},
        notes=(*notes, *release.notes),
        reference=release.reference | {"missing_share_control": control, "missing_share_treated": treated},
    )
