"""What `PolicyValue` publishes: the gain of a policy among other records than those that it was chosen from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from math import hypot, isfinite
from pathlib import Path
from typing import Any, ClassVar, get_args

from scipy.special import ndtri

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import StudyDesign, Uncertainty
from discreet.releases.function_parts import checked_level
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.policies.policy import Policy
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, columns, guarantee_words, mechanism_words

FORMAT = "discreet-policy-value"
# Unit: standard deviations that the share of people whom a policy treats is never off by.
_SURE = 6.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PolicyValueRelease(ReleaseCard):
    """What a policy gains per person, and the parts that this is computed from.

    Parameters
    ----------
    policy
        Whom it treats, and at which cost.
    effect_among
        The average effect among people whom it treats, in the outcome's unit.
    uncertainty
        Where the error of that effect comes from.
    share
        Which share of the people it treats.
    share_sampling, share_noise
        Standard deviations of that share: of sampling, and of the noise.
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee, bounds
        What is promised and to whom; the public facts that were declared.
    design
        "observational", or "known propensity" where the chance of treatment was known.
    adjustment
        Public description of the adjustment, plain JSON.
    notes
        Assumptions and warnings, one sentence each.

    Privacy
    -------
    Everything here is covered by ``guarantee``: bounds at any level and files cost nothing more.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> trial = adum(n=2_000, seed=1)
    >>> half = dc.Policy.declare(bounds=trial.bounds, by={0: 2}, treated=[False, True])
    >>> with dc.testing.seeded_noise(0):
    ...     value = dc.PolicyValue(policy=half, epsilon=2.0, bounds=trial.bounds, propensity=0.5)
    ...     _ = value.fit(trial.Y, trial.T, X=trial.X)
    >>> read = dc.PolicyValueRelease.from_dict(value.release_.to_dict())
    >>> round(read.share, 1), read.lower() < read.estimate == value.value_
    (0.5, True)
    """

    format: ClassVar[str] = FORMAT

    policy: Policy
    effect_among: float
    uncertainty: Uncertainty
    share: float
    share_sampling: float
    share_noise: float
    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.design not in get_args(StudyDesign):
            raise InvalidInput(
                f"design must be one of {', '.join(get_args(StudyDesign))}; say how treatment came about."
            )
        errors = [*self.uncertainty.to_dict().values(), self.share_sampling, self.share_noise]
        if not all(map(isfinite, [self.effect_among, self.n, self.share, *errors])):
            raise InvalidInput("every released number must be finite; check how it was computed.")
        if self.n <= 0 or not 0 <= self.share <= 1 or min(errors) < 0:
            raise InvalidInput("n must be positive, share between 0 and 1 and no error negative; check the file.")
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))

    @property
    def estimate(self) -> float:
        """What the policy gains per person of all, its cost taken off."""
        return self.share * self._net

    @property
    def parts(self) -> Uncertainty:
        """Where the error of the gain comes from."""
        share, net, own = self.share, self._net, self.uncertainty
        return Uncertainty(
            sampling=hypot(share * own.sampling, net * self.share_sampling),
            # The number of people whom it treats is in the effect's denominator, too: errors may add up.
            privacy=hypot(share * own.privacy + abs(net) * self.share_noise, own.se * self.share_noise),
            nuisance=share * own.nuisance,
            clipping=share * own.clipping,
        )

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval that covers the gain with probability ``1 - alpha``, privacy noise included."""
        low, high = self.parts.interval(self.estimate, checked_level(alpha))
        return float(min(max(low, self._least), self.estimate)), float(max(min(high, self._most), self.estimate))

    def lower(self, alpha: float = 0.05) -> float:
        """What the policy gains at least, with probability ``1 - alpha``: one-sided."""
        parts = self.parts
        low = self.estimate - parts.clipping + float(ndtri(checked_level(alpha))) * parts.se
        return float(min(max(low, self._least), self.estimate))

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return titled(self.bounds, "Gain of a policy", "Gain of a policy by the {effect}")

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def rows(self, alpha: float = 0.05) -> list[tuple[str, str]]:
        """Results in words, by name."""
        low, high = self.interval(alpha)
        # Unit: a percentage.
        level = f"{100 * (1 - alpha):g} %"
        effect = self.uncertainty.interval(self.effect_among, checked_level(alpha))
        return [
            ("gain per person", f"{self.estimate:.4g}"),
            (f"at least, with {level}", f"{self.lower(alpha):.4g}"),
            (f"{level} interval", f"{low:.4g} to {high:.4g}"),
            ("share treated", f"{self.share:.3g}"),
            ("effect among them", f"{self.effect_among:.4g} ({effect[0]:.4g} to {effect[1]:.4g})"),
            ("cost of treating one", f"{self.policy.cost:.4g}"),
            ("records", self.records),
        ]

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the gain with its bounds, and what is promised."""
        promised = self.guarantee
        rows = [*self.rows(alpha), ("privacy", f"{promised.budget} ({promised.neighbours}, {promised.status})")]
        return Display(lines=tuple(rows), below=tuple(f"- {note}" for note in self.notes))

    def summary(self) -> str:
        """A table in plain text."""
        lines = [self.title, *columns(self.rows()), "", "Treated", *(f"  {name}" for name in self.policy.treats)]
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        low, high = self.interval()
        sentences = [
            "What a policy gains was estimated as the share of people whom it treats times their average effect less "
            f"the cost of {self.policy.cost:.4g}, from {self.records} records under differential privacy with "
            f"{guarantee_words(self.guarantee)}",
            f"{clipping_words(self.bounds, self.bounds.names)}.",
            mechanism_words(self.guarantee.events),
            f"The policy treats a share of {self.share:.3g}, whose average effect is {self.effect_among:.4g}; it gains "
            f"{self.estimate:.4g} per person (95 % interval {low:.4g} to {high:.4g}; at least {self.lower():.4g} with "
            "95 %, one-sided).",
            "Interval and bound allow for sampling error and privacy noise.",
        ]
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {name: plain[name].to_dict() for name in ("policy", "uncertainty", "guarantee", "bounds")}
        return io.head(FORMAT) | plain | made | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> PolicyValueRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)})
        numbers = ("effect_among", "share", "share_sampling", "share_noise", "n")
        with io.wrong_types_named():
            made = {
                "policy": Policy.from_dict(rest["policy"]),
                "uncertainty": Uncertainty.from_dict(rest["uncertainty"]),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(map(str, rest["notes"])),
            }
            return cls(**(rest | made | {name: float(rest[name]) for name in numbers}))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> PolicyValueRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    @property
    def _net(self) -> float:
        """Effect less cost of one who is treated."""
        return self.effect_among - self.policy.cost

    @property
    def _largest_share(self) -> float:
        return min(self.share + _SURE * hypot(self.share_sampling, self.share_noise), 1.0)

    @property
    def _least(self) -> float:
        # No effect exceeds the outcome's range, and few people gain little whatever they gain.
        return -self._largest_share * (self.bounds.outcome_width + self.policy.cost)

    @property
    def _most(self) -> float:
        return self._largest_share * (self.bounds.outcome_width - self.policy.cost)
