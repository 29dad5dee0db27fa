"""What is published of an average effect, put together from released numbers and public facts."""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt
from typing import Any

from discreet.estimators.measurements.level import Level
from discreet.estimators.measurements.score import Score
from discreet.privacy.gate import Gate
from discreet.releases.average import Kind, Release, Uncertainty
from discreet.releases.parts.arm_means import ArmMeans

# Where the rounds are listed, if not in ate.md.
_PROOFS = dict.fromkeys(("att", "atc", "ato"), "att.md")


def sample_note(gate: Gate, model_gate: Gate, what: str = "Models of treatment and outcome") -> tuple[str, ...]:
    """What a release says of the records that its models are from."""
    if model_gate is gate:
        return ()
    chosen = "a column named for it" if model_gate.counts_rows else "their places in the table"
    return (
        f"{what} were fitted to a sample of about {model_gate.n:,.0f} records, chosen by {chosen}; the effect is "
        "estimated from all records.",
    )


def uncertainty_of(gate: Gate, score: Score, remainder: float) -> Uncertainty:
    """The parts of an average effect's uncertainty, in the outcome's unit."""
    unit = gate.bounds.outcome_width / 2.0
    return Uncertainty(
        sampling=unit * sqrt(score.variance / gate.n),
        privacy=unit * score.noise,
        nuisance=unit * remainder,
        clipping=unit * score.hidden,
    )


def average_release(
    kind: Kind,
    gate: Gate,
    score: Score,
    uncertainty: Uncertainty,
    *,
    known: bool,
    adjustment: dict[str, Any],
    notes: tuple[str, ...],
    reference: dict[str, float],
) -> Release:
    """What is published of an average effect; everything in it is computed from released numbers and public facts."""
    unit = gate.bounds.outcome_width / 2.0
    public = ["the declared bounds"]
    public += [] if gate.counts_rows else ["the number of records"]
    public += ["the probability of treatment"] if known else []
    return Release(
        kind=kind,
        # No effect can exceed the outcome's range.
        estimate=unit * min(max(score.mean, -2.0), 2.0),
        uncertainty=uncertainty,
        n=gate.n,
        guarantee=gate.guarantee(proof=_PROOFS.get(kind, "ate.md"), public=tuple(public)),
        bounds=gate.bounds,
        design="known propensity" if known else "observational",
        adjustment=adjustment,
        notes=notes,
        reference=reference,
    )


def with_arms(release: Release, gate: Gate, level: Level | None, remainder: float = 0.0) -> Release:
    """A release with the level of its outcome, from which and the effect the means of both arms follow.

    What the effect's models leave is taken to be in either mean, ``remainder`` is in the level alone.
    """
    if level is None:
        return release
    effect = release.uncertainty
    unit, q = gate.bounds.outcome_width / 2.0, level.part
    low, high = (unit**2 * end / gate.n for end in level.covariance)
    arms = ArmMeans(
        level=gate.bounds.outcome[0] + unit * (1.0 + level.mean),
        part=q,
        uncertainty=Uncertainty(
            sampling=unit * sqrt(level.variance / gate.n),
            privacy=unit * level.noise,
            # Of one arm it is a mean without models.
            nuisance=0.0 if q in (0.0, 1.0) else hypot(max(q, 1.0 - q) * effect.nuisance, unit * remainder),
            clipping=unit * level.hidden,
        ),
        covariance=(low, high),
    )
    return replace(release, arms=arms)


def clip_note(uncertainty: Uncertainty) -> tuple[str, ...]:
    """What a release says of clipped scores, where that matters."""
    if uncertainty.share()["clipping"] < 0.1:
        return ()
    return ("Rare extreme scores (poor overlap or heavy tails) were clipped; the interval is wider to allow for it.",)
