"""All rounds where outcomes are missing: how many, the effect among the observed, and that among the others.

Proof, and why each of the two is doubly robust: docs/proofs/missing.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import hypot, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np

from discreet.data._arrays import Float
from discreet.data.presence import PRESENT
from discreet.data.views.within import Everyone, Observed
from discreet.estimators._allocation import MISSING
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Outcome
from discreet.estimators.missing.views import EffectOfObserved, WithoutDesign
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.gate_within import gate_within
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Cells
from discreet.releases.average import Release, Uncertainty

# Choice: below this share of missing outcomes, or two standard deviations of the noise in it, nothing is asked about
# them: then the effect among those people is taken to differ from that among the others by about so many scales of the
# outcome. By hand.
_FEW, _CLEAR, _UNLIKE = 0.01, 2.0, 0.25
# Choice: a record counts for so many standard deviations of the released score at most in what is said about people
# without outcomes, whose number is smaller. By hand.
_FAR = 5.0
# Numerical: no standard deviation is taken to be smaller.
_LEAST = 1e-6
# Noise of a part of the effect falls with the root of its share and counts as often as the part: shares in proportion
# to two thirds of a power of it make the least of their sum. At most half goes to the people without outcomes.
_POWER, _MOST = 2.0 / 3.0, 0.5
MISSING_PART = "missing outcomes: "
"""What comes before the names of the rounds about people without outcomes."""


class Models(NamedTuple):
    """Public models of treatment and outcome among the observed."""

    location: Location
    outcome: Outcome


# The rounds of an estimator on some of the records: a release, and the models where it has some.
Fit: TypeAlias = Callable[[Gate], tuple[Release, Models | None]]


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
        """Whether so few are missing that nothing is asked about them."""
        return self.share < max(_FEW, _CLEAR * self.noise)

    @property
    def part(self) -> float:
        """Part of the budget that goes to people without outcomes."""
        odds = (self.share / (1.0 - self.share)) ** _POWER
        return min(odds / (1.0 + odds), _MOST)


def measure_observed(gate: Gate, fit_observed: Fit, fit_missing: Callable[[Gate], Release] | None) -> Release:
    """The effect on everyone: that on the observed, and on the others as far as covariates say that it differs.

    ``fit_missing`` gives the mean outcome of records that count as treated, less the others' zero, over the latter.
    """
    gate = gate.viewed(WithoutDesign())
    missing = count_missing(gate)
    seen, left = gate_within(gate, Observed(), MISSING, counted=missing.observed), gate.left
    if missing.few or fit_missing is None or not gate.bounds.p:
        part, release = 0.0, fit_observed(GatePart(seen, left))[0]
        unlike = _UNLIKE * release.bounds.outcome_width / 2.0 if gate.bounds.p and fit_missing is not None else 0.0
        found = replace(release.uncertainty, nuisance=hypot(release.uncertainty.nuisance, unlike * missing.share))
        return _published(gate, release, missing, release.estimate, found)
    part = missing.part
    release, models = fit_observed(GatePart(seen, (1.0 - part) * left))
    assert models is not None
    half = gate.bounds.outcome_width / 2.0
    # Of units with several rows the release counts these as alike.
    reach = _FAR * max(release.uncertainty.sampling / half * sqrt(missing.observed / gate.most_rows), _LEAST)
    view = EffectOfObserved(models.outcome, models.location, reach)
    seen_as = gate_within(gate.viewed(view), Everyone(), MISSING, counted=gate.n)
    others = fit_missing(GatePart(seen_as, part * left, MISSING_PART))
    centre = models.outcome.effect * half
    return _published(gate, release, missing, *_together(release, others, centre, missing, gate))


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


def _together(
    observed: Release, others: Release, centre: float, missing: Missing, gate: Gate
) -> tuple[float, Uncertainty]:
    """The effect on everyone, with its errors: those of the sampling may all go together, noise is independent."""
    q, r = missing.share, 1.0 - missing.share
    apart = observed.estimate - centre - others.estimate
    own, of_others = observed.uncertainty, others.uncertainty
    between = abs(apart) * sqrt(gate.most_rows * q * r / gate.n)
    return r * observed.estimate + q * (centre + others.estimate), Uncertainty(
        sampling=hypot(r * own.sampling + q * of_others.sampling, between),
        privacy=hypot(r * own.privacy, q * of_others.privacy, apart * missing.noise),
        # What models leave out is as large among the people without outcomes.
        nuisance=hypot(own.nuisance, q * of_others.nuisance),
        clipping=r * own.clipping + q * of_others.clipping,
    )


def _published(gate: Gate, release: Release, missing: Missing, estimate: float, uncertainty: Uncertainty) -> Release:
    """The release of all records; everything new in it is computed from released numbers and public facts."""
    public = ("the declared bounds",) if gate.counts_rows else ("the declared bounds", "the number of records")
    width = release.bounds.outcome_width
    (control, control_sd), (treated, treated_sd) = missing.by_arm
    like = "the same arm with the same declared covariates" if release.adjustment["covariates"] else "the same arm"
    notes = (
        f"By a noisy count {control:.1%} of the controls' outcomes (noise {control_sd:.1%}) and {treated:.1%} of the "
        f"treated's (noise {treated_sd:.1%}) are missing. They are taken to be missing at random among people of "
        f"{like}.",
        "Models, shares of treated and differences of the arms are those of the people whose outcomes were observed.",
    )
    return replace(
        release,
        estimate=min(max(estimate, -width), width),
        uncertainty=uncertainty,
        n=gate.n,
        guarantee=gate.guarantee(proof="missing.md, ate.md", public=public),
        bounds=replace(gate.bounds, outcome_fill=None),
        adjustment=release.adjustment | {"shares": gate.spent_on},
        notes=(*notes, *release.notes),
        reference=release.reference | {"missing_share_control": control, "missing_share_treated": treated},
    )
