"""What `Uplift` publishes of several arms: noisy pairs by segment and arm, and effects of any two arms by segment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from discreet.data._arrays import Float, Level
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters, partition_from
from discreet.data.partition import Partition
from discreet.exceptions import InvalidInput
from discreet.postprocessing.segment_means import OutcomeMoments, Table
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import StudyDesign
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.plots import plot_segments
from discreet.releases.protocol import Display
from discreet.releases.segments import UpliftRelease
from discreet.releases.wording import clipping_words, guarantee_words, listed, mechanism_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-arm-segments"


class SegmentContrast(NamedTuple):
    """How much higher the mean outcome of an arm is than that of another in one segment, with its interval.

    Examples
    --------
    >>> SegmentContrast("age [18, 40)", "high", "placebo", 1.5, 1.0, 2.0).effect
    1.5
    """

    segment: str
    arm: Level
    against: Level
    effect: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ArmSegmentsRelease(ReleaseCard):
    """Noisy pairs by segment and arm, and everything that follows from them alone.

    Parameters
    ----------
    partition
        Which segment a record is in.
    noisy
        Counts and sums of outcomes (in halves of their range, from its middle) by segment and arm, and their noise.
    outcome_moments
        Number of records, mean and mean square of the outcome, and the noise of the latter.
    shares
        Probabilities of the arms where they were known by design, in the order of the declared labels.
    guarantee, bounds
        What is promised and to whom; the public facts that were declared, the arms among them.
    settings, notes
        Public settings by name, plain JSON; assumptions and warnings, one sentence each.

    Privacy
    -------
    Everything here is covered by ``guarantee``: effects of any two arms, at any level and together, cost nothing more.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> T, age = np.tile(["placebo", "low", "high"], 2_000), np.repeat([30.0, 60.0], 3_000)
    >>> Y = np.random.default_rng(1).normal(0.0, 1.0, 6_000) + 2.0 * (T == "high") * (age > 40)
    >>> bounds = dc.Bounds(outcome=(-5, 5), treatment=["placebo", "low", "high"], covariates={"age": (18, 90)})
    >>> uplift = dc.Uplift(epsilon=1.0, bounds=bounds, by={"age": [18, 40, 90]})
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     release = uplift.fit(Y, T, X=age[:, None]).release_
    >>> for row in release.contrasts(simultaneous=True, against="placebo"):
    ...     print(row.segment, row.arm, row.low > 0)
    age [18, 40) low False
    age [40, 90] low False
    age [18, 40) high False
    age [40, 90] high True
    """

    format: ClassVar[str] = FORMAT

    partition: Partition | Clusters
    noisy: Table
    outcome_moments: OutcomeMoments
    shares: tuple[float, ...] | None
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _pairs: dict[tuple[int, int], UpliftRelease] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shape = (self.partition.count, len(self.arms))
        if any(part.shape != shape or not np.isfinite(part).all() for part in self.noisy[:2]):
            raise InvalidInput("counts and sums need one finite number per segment and arm: check the file.")
        if not all(0 < sd < np.inf for sd in self.noisy[2:]):
            raise InvalidInput("count_sd and sum_sd must be positive numbers: check the file.")
        if self.shares is not None and (len(self.shares) != len(self.arms) or min(self.shares) <= 0.0):
            raise InvalidInput("shares must hold a positive number for every declared arm: check the file.")
        object.__setattr__(self, "_pairs", {})

    @property
    def arms(self) -> tuple[Level, ...]:
        """The declared labels, the control first."""
        return self.bounds.arms.levels

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return "Effects of several arms by segment"

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        n = f"{self.outcome_moments.n:,.0f}"
        return n if self.guarantee.counts_public else f"about {n}"

    @property
    def design(self) -> StudyDesign:
        """Whether the probabilities of the arms were known."""
        return "observational" if self.shares is None else "known propensity"

    def against(self, arm: Level, control: Level | None = None) -> UpliftRelease:
        """The effects of one arm against another (by default the first), as a release of two arms.

        It answers for the covariates of any records, has the average effect and the curve of treating the best segments
        first, and policies can be chosen from it. Its guarantee is that of this release.
        """
        return self._pair(self._place(arm, "arm"), 0 if control is None else self._place(control, "control"))

    def single(self) -> NoReturn:
        """There are no effects of several arms but those of two of them."""
        raise InvalidInput(
            "Several arms have effects for every two of them: ask release_.contrasts(), or release_.against(arm) for "
            "all that two arms have."
        )

    def contrasts(
        self, alpha: float = 0.05, simultaneous: bool = False, against: Level | None = None
    ) -> list[SegmentContrast]:
        """Effects by segment: of every two arms, or of all others against one.

        Parameters
        ----------
        alpha : float
            Each interval covers its effect with probability ``1 - alpha``;
        simultaneous : bool
            if true, all of them do at once: by Bonferroni's inequality over pairs of arms, which share records, and by
            Sidak's over segments, which do not.
        against : label, optional
            Only effects against this arm, such as the control.
        """
        pairs = self._asked(against)
        each = alpha / len(pairs) if simultaneous else alpha
        rows = []
        for arm, other in pairs:
            pair = self._pair(arm, other)
            low, high = pair.interval(each, simultaneous)
            effects = zip(self.partition.labels(), pair.effects, low, high, strict=True)
            rows += [
                SegmentContrast(label, self.arms[arm], self.arms[other], float(effect), float(first), float(last))
                for label, effect, first, last in effects
            ]
        return rows

    def averages(self, alpha: float = 0.05, against: Level | None = None) -> list[SegmentContrast]:
        """The same over all segments together."""
        rows = []
        for arm, other in self._asked(against):
            pair = self._pair(arm, other)
            rows.append(SegmentContrast("all", self.arms[arm], self.arms[other], pair.ate(), *pair.ate_interval(alpha)))
        return rows

    def _asked(self, against: Level | None) -> list[tuple[int, int]]:
        arms = range(len(self.arms))
        if against is None:
            return [(second, first) for first, second in combinations(arms, 2)]
        one = self._place(against, "against")
        return [(arm, one) for arm in arms if arm != one]

    def _pair(self, arm: int, other: int) -> UpliftRelease:
        if arm == other:
            raise InvalidInput("arm and control must be two different arms: name another one.")
        if (arm, other) not in self._pairs:
            two = [other, arm]
            self._pairs[arm, other] = UpliftRelease(
                partition=self.partition,
                kind="arms",
                noisy=self.noisy._replace(counts=self.noisy.counts[:, two], sums=self.noisy.sums[:, two]),
                outcome_moments=self.outcome_moments,
                propensity=None if self.shares is None else self.shares[arm] / (self.shares[arm] + self.shares[other]),
                weighted=False,
                guarantee=self.guarantee,
                bounds=replace(self.bounds, treatment=(self.arms[other], self.arms[arm])),
                settings=self.settings | {"arm": str(self.arms[arm]), "against": str(self.arms[other])},
                notes=self.notes,
            )
        return self._pairs[arm, other]

    def _place(self, label: object, argument: str) -> int:
        if isinstance(label, str | int | float) and label in self.arms:
            return self.arms.index(label)
        raise InvalidInput(f"{argument} must be one of the declared arms: {', '.join(map(str, self.arms))}.")

    def shown(self, alpha: float = 0.05, simultaneous: bool = False) -> tuple[list[str], list[list[str]]]:
        """All effects against the control in words: the head of a table and its lines, the average ones last."""
        control = self.arms[0]
        rows = [*self.contrasts(alpha, simultaneous, control), *self.averages(alpha, control)]
        lines = [[row.segment, str(row.arm), f"{row.effect:.3g}", f"{row.low:.3g} to {row.high:.3g}"] for row in rows]
        # Unit: a percentage.
        words = f"{100 * (1 - alpha):g} % interval" + ", segments and arms at once" * simultaneous
        return ["segment", "arm", f"effect against {control}", words], lines

    def display(self, alpha: float = 0.05, simultaneous: bool = False) -> Display:
        """What a terminal shows: the table, and what is promised."""
        promised, (head, lines) = self.guarantee, self.shown(alpha, simultaneous)
        privacy = f"Records: {self.records}. Privacy: {promised.budget} ({promised.neighbours}, {promised.status})"
        notes = (f"- {note}" for note in self.notes)
        return Display(head=tuple(head), lines=tuple(map(tuple, lines)), below=(privacy, *notes))

    def summary(self) -> str:
        """A table in plain text."""
        head, lines = self.shown()
        widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
        text = [self.title]
        text += [
            "  ".join(f"{word:<{width}}" for word, width in zip(line, widths, strict=True)).rstrip()
            for line in [head, *lines]
        ]
        text += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            text += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(text)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        average = [
            f"{row.effect:.4g} for {row.arm} ({row.low:.4g} to {row.high:.4g})"
            for row in self.averages(against=self.arms[0])
        ]
        known = self.shares is not None
        sentences = [
            f"Effects of {len(self.arms)} arms ({listed(map(str, self.arms))}) in {self.partition.count} segments were "
            f"estimated from {self.records} records under differential privacy with {guarantee_words(self.guarantee)}",
            f"{clipping_words(self.bounds)}.",
            mechanism_words(self.guarantee.events),
            "The probabilities of the arms were known by design."
            if known
            else "Arms were compared within segments, as if treatment had been drawn by lot there.",
            "Effects of every two arms were smoothed over ordered segments and shrunk over unordered ones.",
            f"Against {self.arms[0]}, over all segments, they are {listed(average)} (95 % intervals).",
            "Intervals allow for sampling error and privacy noise.",
        ]
        return " ".join(sentences)

    def forest(self, alpha: float = 0.05, simultaneous: bool = False) -> tuple[list[str], Float, tuple[Float, Float]]:
        """What a plot shows: labels, effects against the control and the ends of their intervals."""
        rows = self.contrasts(alpha, simultaneous, self.arms[0])
        ends = np.array([row.low for row in rows]), np.array([row.high for row in rows])
        return [f"{row.arm}, {row.segment}" for row in rows], np.array([row.effect for row in rows]), ends

    def plot(self, ax: Axes | None = None, alpha: float = 0.05, simultaneous: bool = False) -> Axes:
        """Draw the effects of all arms against the control, by segment (needs matplotlib)."""
        return plot_segments(*self.forest(alpha, simultaneous), "effect", ax)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {name: getattr(self, name) for name in _stored()}
        made = {name: plain[name].to_dict() for name in ("partition", "outcome_moments", "guarantee", "bounds")}
        made |= {"noisy": {name: np.asarray(part).tolist() for name, part in self.noisy._asdict().items()}}
        made |= {"shares": None if self.shares is None else list(self.shares), "notes": list(self.notes)}
        return io.head(FORMAT) | plain | made

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> ArmSegmentsRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, set(_stored()))
        with io.wrong_types_named():
            bounds, noisy = Bounds.from_dict(rest["bounds"]), rest["noisy"]
            counts, sums = (np.array(noisy[name], dtype=float) for name in ("counts", "sums"))
            moments = {name: float(value) for name, value in rest["outcome_moments"].items()}
            shares = rest["shares"]
            made = {
                "partition": partition_from(rest["partition"], bounds),
                "noisy": Table(counts, sums, float(noisy["count_sd"]), float(noisy["sum_sd"])),
                "outcome_moments": OutcomeMoments(**moments),
                "shares": None if shares is None else tuple(float(share) for share in shares),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": bounds,
                "settings": io.plain_copy(rest["settings"]),
                "notes": tuple(map(str, rest["notes"])),
            }
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> ArmSegmentsRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))


def _stored() -> tuple[str, ...]:
    """Names of the fields that a file holds, in its order."""
    return tuple(part.name for part in fields(ArmSegmentsRelease) if part.init)
