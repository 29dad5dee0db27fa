"""What `LATE` publishes: the instrument's effects on treatment and on the outcome, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, get_args

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import SOURCES, StudyDesign, Uncertainty
from discreet.releases.local_effects.fieller import Part, combined, fieller
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, columns, guarantee_words, mechanism_words

FORMAT = "discreet-local-effect"
_UNBOUNDED = "unbounded: the instrument may move nobody to treatment, so that no effect can be excluded"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LocalEffectRelease(ReleaseCard):
    """An effect on compliers as it may be published.

    Parameters
    ----------
    guess
        A released guess at the effect, in the outcome's unit, which was taken off the outcomes of the treated.
    remainder
        The instrument's effect on what this left, with where its error comes from.
    compliance
        The instrument's effect on treatment: the share of compliers.
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee
        What is promised to the people in the records.
    bounds
        The public facts that were declared.
    design
        "observational", or "known propensity" where the chance of the instrument was known.
    adjustment
        Public description of the adjustment, plain JSON.
    notes
        Assumptions and warnings, one sentence each.

    Privacy
    -------
    Everything here is covered by ``guarantee``: intervals at any level, tables, pages and files cost nothing more.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> rng = np.random.default_rng(1)
    >>> z = rng.integers(0, 2, 3_000)
    >>> t = np.where(rng.random(3_000) < 0.6, z, 0)
    >>> y = rng.uniform(0, 1, 3_000) + t
    >>> with dc.testing.seeded_noise(0):
    ...     late = dc.LATE(epsilon=1.0, delta=1e-6, bounds=dc.Bounds(outcome=(0, 2)), propensity=0.5).fit(y, t, Z=z)
    >>> low, high = late.release_.interval()
    >>> bool(low < 1.0 < high), late.release_.bounded()
    (True, True)
    >>> dc.LocalEffectRelease.from_dict(late.release_.to_dict()) == late.release_
    True
    """

    format: ClassVar[str] = FORMAT

    guess: float
    remainder: Part
    compliance: Part
    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.design not in get_args(StudyDesign):
            raise InvalidInput(
                f"design must be one of {', '.join(get_args(StudyDesign))}; say how the instrument came about."
            )
        numbers = [self.guess, self.remainder.estimate, self.compliance.estimate, self.n]
        parts = [*self.remainder.uncertainty.to_dict().values(), *self.compliance.uncertainty.to_dict().values()]
        for value in [*numbers, *parts]:
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise InvalidInput("a local effect must be made of finite numbers to be released; check the file.")
        if self.n <= 0 or min(parts) < 0:
            raise InvalidInput("n must be positive and no part of the uncertainty negative; check the file.")
        object.__setattr__(self, "guess", float(self.guess))
        object.__setattr__(self, "n", float(self.n))
        object.__setattr__(self, "notes", tuple(self.notes))
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))

    @property
    def estimate(self) -> float:
        """The effect on compliers, in the outcome's unit; no further than the outcome's range allows."""
        width, moved = self.bounds.outcome_width, self.compliance.estimate
        if moved == 0.0:
            return self.guess
        return min(max(self.guess + self.remainder.estimate / moved, -width), width)

    def region(self, alpha: float = 0.05) -> tuple[tuple[float, float], ...]:
        """All effects that are not excluded at level ``1 - alpha``: one interval, or two that are unbounded."""
        if not isinstance(alpha, int | float) or not 0 < alpha < 1:
            raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")
        found = fieller(self.remainder, self.compliance, self.bounds.outcome_width, alpha)
        return tuple((low + self.guess, high + self.guess) for low, high in found)

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval that covers the effect with probability ``1 - alpha``, privacy noise included; it may be unbounded.

        Two unbounded intervals (see `region`) are one from minus to plus infinity.
        """
        found = self.region(alpha)
        return found[0][0], found[-1][1]

    def bounded(self, alpha: float = 0.05) -> bool:
        """Whether the interval has two ends: whether it is certain enough that the instrument moves somebody."""
        return all(map(math.isfinite, self.interval(alpha)))

    def share_of_compliers(self, alpha: float = 0.05) -> tuple[float, float, float]:
        """How many people the instrument moves to treatment, as a share, with an interval."""
        low, high = self.compliance.uncertainty.interval(self.compliance.estimate, alpha)
        return self.compliance.estimate, max(low, -1.0), min(high, 1.0)

    def effect_of_instrument(self, alpha: float = 0.05) -> tuple[float, float, float]:
        """The instrument's own effect on the outcome ("intention to treat"), with an interval."""
        found = combined(self.remainder, self.compliance, 1.0, self.guess)
        return found.estimate, *found.uncertainty.interval(found.estimate, alpha)

    @property
    def uncertainty(self) -> Uncertainty:
        """Where the error of the estimate comes from, in the unit of the instrument's effect on the outcome."""
        return combined(self.remainder, self.compliance, 1.0, self.guess - self.estimate).uncertainty

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return titled(self.bounds, "Average treatment effect on compliers", "Average {effect}, on compliers")

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def text(self, value: float) -> str:
        """A number in the outcome's unit, with as many decimals as the standard error gives meaning to."""
        if not math.isfinite(value):
            return "infinity" if value > 0 else "-infinity"
        scale = self.uncertainty.se / max(abs(self.compliance.estimate), 1e-3) or 1.0
        text = f"{value:,.{min(max(1 - math.floor(math.log10(scale)), 0), 9)}f}"
        return text.removeprefix("-") if not text.strip("-0.") else text

    def interval_text(self, alpha: float = 0.05) -> str:
        """An interval in words."""
        region = self.region(alpha)
        if len(region) == 1 and math.isfinite(region[0][0]):
            return f"{self.text(region[0][0])} to {self.text(region[0][1])}"
        if len(region) == 1:
            return _UNBOUNDED
        return f"unbounded: all but {self.text(region[0][1])} to {self.text(region[1][0])}"

    def shares(self) -> dict[str, float]:
        """Share of each source in the uncertainty, under the names that people use; clipping only if it matters."""
        shares = {SOURCES[name]: share for name, share in self.uncertainty.share().items()}
        return {name: share for name, share in shares.items() if name != SOURCES["clipping"] or share >= 0.005}

    def rows(self) -> list[tuple[str, str]]:
        """Results, a row each."""
        moved, itt = self.share_of_compliers(), self.effect_of_instrument()
        return [
            ("estimate", self.text(self.estimate)),
            ("95 % interval", self.interval_text()),
            ("80 % interval", self.interval_text(0.2)),
            ("share of compliers", f"{moved[0]:.3f} ({moved[1]:.3f} to {moved[2]:.3f})"),
            ("effect of the instrument", f"{itt[0]:.4g} ({itt[1]:.4g} to {itt[2]:.4g})"),
            ("records", self.records),
            ("design", self.design),
        ]

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the estimate with its interval, and what is promised."""
        promised, (share, low, high) = self.guarantee, self.share_of_compliers(alpha)
        rows = [("estimate", self.text(self.estimate))]
        rows += [(f"{100 * (1 - alpha):g} % interval", self.interval_text(alpha))]
        rows += [("compliers", f"{share:.1%} ({low:.1%} to {high:.1%})".replace("%", " %")), ("records", self.records)]
        rows += [("uncertainty from", ", ".join(f"{name} {100 * part:.0f} %" for name, part in self.shares().items()))]
        rows += [("privacy", f"{promised.budget} ({promised.neighbours}, {promised.status})")]
        return Display(lines=tuple(rows), below=tuple(f"- {note}" for note in self.notes))

    def summary(self) -> str:
        """A table in plain text."""
        lines = [self.title, *columns(self.rows())]
        lines += ["", "Where the uncertainty comes from (shares of the variance)"]
        lines += columns([(name, f"{share:.0%}".replace("%", " %")) for name, share in self.shares().items()])
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        share, low, high = self.share_of_compliers()
        return (
            "The average treatment effect on compliers was estimated as the quotient of the instrument's effects on "
            "the outcome and on treatment, each by augmented inverse probability weighting, from "
            f"{self.records} records under differential privacy with {guarantee_words(self.guarantee)} "
            f"{clipping_words(self.bounds, self.bounds.names)}. {mechanism_words(self.guarantee.events)} "
            f"The instrument moved a share of {share:.3f} to treatment (95 % interval {low:.3f} to {high:.3f}). The "
            f"estimate is {self.text(self.estimate)} (95 % interval {self.interval_text()}). The interval holds all "
            "effects that a test of Anderson and Rubin's kind does not exclude, with the added noise, sampling "
            "errors that may depend on each other in any way, and an allowance for clipping."
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {name: plain[name].to_dict() for name in ("guarantee", "bounds")}
        for name in ("remainder", "compliance"):
            made[name] = {"estimate": plain[name].estimate, "uncertainty": plain[name].uncertainty.to_dict()}
        return io.head(FORMAT) | plain | made | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> LocalEffectRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        with io.wrong_types_named():
            made: dict[str, Any] = {
                name: Part(float(rest[name]["estimate"]), Uncertainty.from_dict(rest[name]["uncertainty"]))
                for name in ("remainder", "compliance")
            }
            made |= {
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(rest["notes"]),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> LocalEffectRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))
