"""Effects on those whom an instrument moves to treatment, with a proved (epsilon, delta) and a Fieller interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._base import ROWS_ALIKE, ROWS_JOINED, Progress, TableFits, count_first
from discreet.estimators._effect_allocation import shares_of_parts
from discreet.estimators._parameters import NO_COLUMNS, Parameters, Role
from discreet.estimators._results import EffectResult
from discreet.estimators.ate import ATE
from discreet.estimators.measurements.location import locate, pilot_effect
from discreet.estimators.natural_experiments.allocation import INSTRUMENT_PARTS, PILOT
from discreet.estimators.natural_experiments.views import INSTRUMENT, Compliance, Remainder
from discreet.estimators.weighted.average import AS_GOOD_AS_RANDOM
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.guarantee import Neighbours
from discreet.releases.average import Release
from discreet.releases.local_effects.fieller import Part
from discreet.releases.local_effects.release import LocalEffectRelease

_COMPLIANCE, _PILOT, _OUTCOME = INSTRUMENT_PARTS
# Choice: noise deviations that the share of the instrument lies from none and from all, if it varies. By hand.
_DEVIATIONS = 3.0


class LATE(TableFits[LocalEffectRelease], EffectResult[LocalEffectRelease], Parameters):
    """Local average treatment effect: on compliers, whom an instrument such as an offer moves to treatment.

    The instrument's effect on the outcome over its effect on treatment. Three parts of the budget: the rounds of `ATE`
    for the effect on treatment; a rough guess at the quotient; and the rounds of `ATE` for the effect on what the guess
    leaves of the outcome. Intervals are Fieller's (Anderson and Rubin's): they hold however weak the instrument is, and
    are unbounded where it may move nobody.

    ``fit(Y, T, Z=Z, X=X)``; ``fit_table(table, outcome="y", treatment="t", instrument="z")``.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range, covariates, and as ``propensity`` the overlap of the instrument: the smallest and
        largest probability that it is 1.
    propensity : float, array or column name, optional
        Probability that the instrument is 1 where it is known by design (a randomised offer).
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : LocalEffectRelease
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcome, treatment, instrument and covariates under the stated relation, for every data set.
    Public: the bounds, the number of records under replace-one, a known propensity. Proof: docs/proofs/late.md.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> rng = np.random.default_rng(1)
    >>> z, keen = rng.integers(0, 2, 6_000), rng.random(6_000)
    >>> t = ((keen > 0.8) | ((keen > 0.3) & (z == 1))).astype(int)
    >>> y = 3.0 * keen + 1.0 * t + rng.normal(0, 0.5, 6_000)
    >>> bounds = dc.Bounds(outcome=(-2, 6))
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     late = dc.LATE(epsilon=2.0, delta=1e-6, bounds=bounds, propensity=0.5).fit(y, t, Z=z)
    >>> low, high = late.interval(alpha=0.05)
    >>> bool(low < 1.0 < high)
    True
    """

    method_id: ClassVar[str] = "discreet/late"
    release_types: ClassVar = (LocalEffectRelease,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)
    samples: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (INSTRUMENT,)

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours

    def region(self, alpha: float = 0.05) -> tuple[tuple[float, float], ...]:
        """All effects that are not excluded at level ``1 - alpha``: one interval, or two that are unbounded."""
        return self._released().region(alpha)

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("LATE needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")

    def _fit_arrays(
        self, Y: Any, T: Any, X: Any, progress: Progress | None, further: Mapping[Role, Any] = NO_COLUMNS
    ) -> Self:
        # What the caller wrote, and not what the records hold.
        if further.get(INSTRUMENT) is T:
            raise InvalidInput(
                "Z is the object that was given as the treatment: give the instrument, or use ATE, which then asks the "
                "same with less noise."
            )
        return super()._fit_arrays(Y, T, X, progress, further)

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        counts, left = gate.spent, gate.left
        parts = {name: part * left for name, part in INSTRUMENT_PARTS.items()}
        average = ATE(**self.get_params())
        compliance = average._measure(GatePart(gate.viewed(Compliance()), parts[_COMPLIANCE], _COMPLIANCE))
        pilot = _pilot(GatePart(gate.viewed(Remainder.of(0.0, gate.bounds)), parts[_PILOT], _PILOT), compliance)
        guess = pilot.guess
        view = Remainder.of(guess, gate.bounds)
        remainder = average._measure(GatePart(gate.viewed(view), parts[_OUTCOME], _OUTCOME))
        shares = {_COMPLIANCE: compliance.adjustment["shares"], _PILOT: dict(PILOT.shares)}
        shares[_OUTCOME] = remainder.adjustment["shares"]
        if not pilot.varies:
            compliance, remainder = _unknown(compliance, 1.0), _unknown(remainder, gate.bounds.outcome_width)
        public = ("the declared bounds", *(() if gate.counts_rows else ("the number of records",)))
        public += ("the probability of the instrument",) if self.propensity is not None else ()
        self.release_ = LocalEffectRelease(
            guess=guess,
            remainder=Part(remainder.estimate, remainder.uncertainty),
            compliance=Part(compliance.estimate, compliance.uncertainty),
            n=gate.n,
            guarantee=gate.guarantee(proof="late.md", public=public),
            bounds=gate.bounds,
            design=remainder.design,
            adjustment=remainder.adjustment | {"shares": shares_of_parts(counts, parts, shares)},
            notes=_notes(compliance, remainder, varies=pilot.varies),
        )


class _Guessed(NamedTuple):
    """A rough quotient, and whether the instrument varies for all that noisy counts say."""

    guess: float
    varies: bool


def _pilot(part: Gate, compliance: Release) -> _Guessed:
    """The quotient may be as wrong as it likes: it is taken off outcomes first, and put back at the end."""
    allocation = PILOT.after_counts(part)
    location = locate(part, allocation["location"])
    pilot = pilot_effect(part, allocation["arm means"], location)
    width, moved = part.bounds.outcome_width, compliance.estimate
    share = 0.5 + float(location.ends[1].sum() - location.ends[0].sum()) / 2.0
    varies = min(share, 1.0 - share) > _DEVIATIONS * location.treated_noise
    if moved == 0.0:
        return _Guessed(0.0, varies)
    # Where noise may be all there is, nothing is taken off.
    weight = moved * moved / (moved * moved + compliance.uncertainty.se**2)
    weight *= pilot.effect**2 / (pilot.effect**2 + pilot.noise**2) if pilot.effect else 0.0
    return _Guessed(min(max(weight * width / 2.0 * pilot.effect / moved, -width), width), varies)


def _unknown(release: Release, most: float) -> Release:
    """Where one of the arms may be empty, an effect may be as large as can be, of either sign."""
    parts = replace(release.uncertainty, clipping=most + abs(release.estimate))
    return replace(release, uncertainty=parts)


def _first_stage(compliance: Release, varies: bool) -> tuple[str, ...]:
    """What noisy numbers say against the instrument. No record is looked at."""
    if not varies:
        return (
            "By a noisy count, the instrument may be the same in nearly every record, so that nothing is known of its "
            "effects: if it is, name another column; if it is not, take more records or a larger budget.",
        )
    low, high = compliance.interval()
    if low <= 0.0 <= high:
        return (
            "It is not certain that the instrument moves anybody (95 % interval for the share of compliers: "
            f"{max(low, -1.0):.3f} to {min(high, 1.0):.3f}).",
        )
    if high >= 1.0:
        return (
            f"The instrument may move everybody (95 % interval for the share of compliers: {low:.3f} to 1). If it is "
            "the treatment itself, name another column, or use ATE, which asks the same with less noise.",
        )
    return ()


def _notes(compliance: Release, remainder: Release, *, varies: bool) -> tuple[str, ...]:
    """What the interval rests on; of the rounds' own notes, those about the instrument."""
    own = [
        note.replace(AS_GOOD_AS_RANDOM, "the instrument is as good as random among people with the same covariates")
        .replace("robabilities of treatment", "robabilities of the instrument")
        .replace("Treatment is", "The instrument is")
        .replace("of the records are treated", "of the records have the instrument")
        .replace("after treatment was drawn", "after the instrument was drawn")
        for note in remainder.notes
    ]
    return (
        "The effect is that on compliers: people whom the instrument moves to treatment. The interval assumes that the "
        "instrument acts on the outcome through treatment alone, and moves nobody away from it.",
        *_first_stage(compliance, varies),
        *own,
    )
