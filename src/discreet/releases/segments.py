"""What `Uplift` publishes: noisy pairs by segment, and everything that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, get_args

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.clusters import Clusters, partition_from
from discreet.data.frames import encoded
from discreet.data.partition import Partition
from discreet.exceptions import InvalidInput
from discreet.postprocessing.segment_intervals import assisted, each_level
from discreet.postprocessing.segment_means import Kind, Means, OutcomeMoments, Table, arm_means, signed_effects
from discreet.postprocessing.segment_smoothing import Factor, Posterior, interpolated, posterior
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import StudyDesign
from discreet.releases.function_plots import plot_gains
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.plots import plot_segments
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, guarantee_words, listed, mechanism_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-uplift"
# Unit: lines of a table in words.
_SHOWN = 24
# Choice: what intervals of averages and curves are widened by, as their variances are estimates. Chosen by hand; the
# average of a design with 15 % treated was covered in .876 without it (.932; replications 30,000 to 30,249).
_WIDER = 1.1
# Choice: what standard deviations of segments are multiplied by, for the same reason. Chosen between 1 and 1.1 on
# replications 5,000 to 5,499 of evidence.uplift.designs, after others had been seen to cover less without it.
_ESTIMATED = 1.05


class UpliftCurve(NamedTuple):
    """What treating the segments with the largest effects first is worth, per record of all; with its band.

    Examples
    --------
    >>> import numpy as np
    >>> share, value = np.array([0.0, 0.5, 1.0]), np.array([0.0, 1.0, 1.2])
    >>> float(UpliftCurve(share, value, low=value - 0.1, high=value + 0.1).value.max())
    1.2
    """

    share: Float
    value: Float
    low: Float
    high: Float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class UpliftRelease(ReleaseCard):
    """Noisy pairs by segment, and effects, intervals and curves that follow from them alone.

    Parameters
    ----------
    partition
        Which segment a record is in.
    kind
        "arms" where both arms are counted and summed apart, "signed" where they share a sum.
    noisy
        Counts and sums of outcomes (in halves of their range, from its middle) by segment and arm, and their noise.
    outcome_moments
        Number of records, mean and mean square of the outcome, and the noise of the latter.
    propensity
        Probability of treatment where it is one known number.
    weighted
        Whether records were weighted by a known probability each.
    guarantee, bounds
        What is promised and to whom; the public facts that were declared.
    settings, notes
        Public settings by name, plain JSON; assumptions and warnings, one sentence each.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> trial = adum(n=1_000, seed=1)
    >>> uplift = dc.Uplift(epsilon=2.0, delta=1e-6, bounds=trial.bounds, by={0: 4}, propensity=0.5)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = uplift.fit(trial.Y, trial.T, X=trial.X)
    >>> read = dc.UpliftRelease.from_dict(uplift.release_.to_dict())
    >>> [row["segment"] for row in read.table()], read.ate() == uplift.ate()
    (['x0 [-1, -0.5)', 'x0 [-0.5, 0)', 'x0 [0, 0.5)', 'x0 [0.5, 1]'], True)
    """

    format: ClassVar[str] = FORMAT

    partition: Partition | Clusters
    kind: Kind
    noisy: Table
    outcome_moments: OutcomeMoments
    propensity: float | None
    weighted: bool
    guarantee: Guarantee
    bounds: Bounds
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    _factors: tuple[Factor, ...] = field(init=False, repr=False)
    _means: Means = field(init=False, repr=False)
    _smoothed: list[Posterior] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind) or (self.kind == "signed" and self.propensity is None):
            raise InvalidInput("kind must be 'arms', or 'signed' with a known propensity: check the file.")
        shape = (self.partition.count, 2 if self.kind == "arms" else 1)
        if any(part.shape != shape or not np.isfinite(part).all() for part in self.noisy[:2]):
            raise InvalidInput("counts and sums need one finite number per segment and arm: check the file.")
        if not all(0 < sd < np.inf for sd in self.noisy[2:]):
            raise InvalidInput("count_sd and sum_sd must be positive numbers: check the file.")
        factors = tuple(
            Factor(len(ends) - 1, ends) if ends is not None else Factor(count)
            for ends, count in zip(self.partition.ends(), _counts(self.partition), strict=True)
        )
        pure = self.guarantee.delta == 0
        if self.kind == "arms":
            means = arm_means(self.noisy, self.outcome_moments, self.bounds, self.weighted, pure)
        else:
            assert self.propensity is not None
            means = signed_effects(self.noisy, self.outcome_moments, self.propensity, pure)
        object.__setattr__(self, "_factors", factors)
        object.__setattr__(self, "_means", means)
        object.__setattr__(self, "_smoothed", [])

    @property
    def _posterior(self) -> Posterior:
        # Worked out when it is first asked for: it takes longer than a pass over a million records.
        if not self._smoothed:
            self._smoothed.append(posterior(self._factors, self._means.value, self._means.variance))
        return self._smoothed[0]

    @property
    def _covariance(self) -> Float:
        """Of smoothed effects, with what the own variances have in excess of those that smoothing took for granted."""
        excess = np.sqrt(np.maximum(self._means.own.variance / self._means.variance.sum(axis=1), 1.0))
        return np.asarray(excess[:, None] * self._posterior.covariance * excess)

    def single(self) -> UpliftRelease:
        """The effects of two arms, which are all that there are."""
        return self

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return titled(self.bounds, "Treatment effects by segment", "The {effect} by segment")

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        n = f"{self.outcome_moments.n:,.0f}"
        return n if self.guarantee.counts_public else f"about {n}"

    @property
    def design(self) -> StudyDesign:
        """Whether the probability of treatment was known."""
        return "known propensity" if self.weighted or self.propensity is not None else "observational"

    @property
    def effects(self) -> Float:
        """The effect in each segment."""
        return self._unit * self._posterior.mean

    @property
    def counts(self) -> Float:
        """About how many records each segment has, no fewer than noise allows to say."""
        return self._means.counts

    def interval(self, alpha: float = 0.05, simultaneous: bool = False) -> tuple[Float, Float]:
        """Intervals for the effects of the segments: for each of them, or for all at once."""
        _check(alpha)
        if not isinstance(simultaneous, bool):
            raise InvalidInput("simultaneous must be True or False: say whether intervals cover all segments at once.")
        each = each_level(alpha, self.partition.count) if simultaneous else alpha
        found, own = self._posterior, self._means.own
        own = own._replace(variance=_ESTIMATED**2 * own.variance)
        ends = assisted(own, found.others_mean, found.others_variance, each)
        # An interval without the effect beside it would puzzle readers; and no effect exceeds the outcome's range.
        low, high = np.minimum(ends[0], found.mean), np.maximum(ends[1], found.mean)
        return self._unit * np.maximum(low, -2.0), self._unit * np.minimum(high, 2.0)

    def difference_sd(self, one: int, other: int) -> float:
        """Standard deviation of the difference of two segments' effects."""
        apart = np.eye(self.partition.count)[one] - np.eye(self.partition.count)[other]
        return self._unit * float(np.sqrt(max(float(apart @ self._covariance @ apart), 0.0)))

    def effect(self, X: Any) -> Float:
        """Effects of any records by their covariates, as often as you like."""
        x = encoded(X, self.bounds)
        smooth = interpolated(self._factors, self.partition.places(x), self._posterior.smooth)
        return np.asarray(self._unit * (smooth + self._posterior.rough.ravel()[self.partition.cells(x)]))

    def effect_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float]:
        """Intervals for the effects of any records: their segment's, wider where the effect is less well known."""
        x, effect = encoded(X, self.bounds), self.effect(X)
        cells, (low, high) = self.partition.cells(x), self.interval(alpha)
        variance = interpolated(self._factors, self.partition.places(x), self._posterior.variance)
        sd = np.sqrt(variance / np.diag(self._posterior.covariance)[cells])
        most = self.bounds.outcome_width
        below, above = sd * (self.effects - low)[cells], sd * (high - self.effects)[cells]
        return np.maximum(effect - below, -most), np.minimum(effect + above, most)

    def effect_with_interval(self, X: Any, alpha: float = 0.05) -> tuple[Float, Float, Float]:
        """Effect and interval for each row of X."""
        return self.effect(X), *self.effect_interval(X, alpha)

    def targeting(self, X: Any, fraction: float) -> Any:
        """Which rows to treat: as many as the fraction allows, those with the largest effects."""
        if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 <= fraction <= 1:
            raise InvalidInput("fraction must lie between 0 and 1: it is the share of rows to treat.")
        effect = self.effect(X)
        chosen = np.zeros(len(effect), dtype=bool)
        chosen[np.argsort(-effect, kind="stable")[: int(np.floor(fraction * len(effect) + 1e-9))]] = True
        return chosen

    def ate(self) -> float:
        """The average effect: that of the segments, each by its number of records."""
        return float(self._share @ self.effects)

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval for the average effect."""
        sd = np.sqrt(max(float(self._share @ self._covariance @ self._share), 0.0))
        low, high = self._around(np.array(self.ate()), np.array(sd), alpha)
        return float(low), float(high)

    def uplift_curve(self, alpha: float = 0.05) -> UpliftCurve:
        """What treating the best segments first is worth, and a band that covers each of its points."""
        order = np.argsort(-self.effects, kind="stable")
        steps = np.tril(np.ones((len(order), len(order)))) * self._share[order]
        covariance = self._covariance[np.ix_(order, order)]
        sd = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", steps, covariance, steps), 0.0))
        value = steps @ self.effects[order]
        low, high = self._around(value, sd, alpha)
        share = np.minimum(np.cumsum(self._share[order]), 1.0)
        return UpliftCurve(*(np.append(0.0, part) for part in (share, value, low, high)))

    def table(self, alpha: float = 0.05, simultaneous: bool = False) -> list[dict[str, Any]]:
        """One row per segment: what it is, its effect with an interval, and its noisy numbers of records.

        Each interval covers its segment's effect with probability ``1 - alpha``; if ``simultaneous``, all of them do at
        once.
        """
        low, high = self.interval(alpha, simultaneous)
        noisy = self.noisy.counts
        rows = []
        for k, label in enumerate(self.partition.labels()):
            row = {"segment": label, "effect": float(self.effects[k]), "low": float(low[k]), "high": float(high[k])}
            if self.kind == "arms" and not self.weighted:
                row |= {"control_count": float(noisy[k, 0]), "treated_count": float(noisy[k, 1])}
            rows.append(row | {"count": float(self.counts[k])})
        return rows

    def shown(self, alpha: float = 0.05, simultaneous: bool = False) -> tuple[list[str], list[list[str]]]:
        """The table in words: its head and its lines, the average effect last, with an interval for itself."""
        lines = [
            [row["segment"], f"{row['effect']:.3g}", f"{row['low']:.3g} to {row['high']:.3g}", f"{row['count']:,.0f}"]
            for row in self.table(alpha, simultaneous)
        ]
        low, high = self.ate_interval(alpha)
        lines.append(["all", f"{self.ate():.3g}", f"{low:.3g} to {high:.3g}", f"{self.counts.sum():,.0f}"])
        words = ", segments at once" * simultaneous
        return ["segment", "effect", f"{_level(alpha)} interval{words}", "records, about"], lines

    def display(self, alpha: float = 0.05, simultaneous: bool = False) -> Display:
        """What a terminal shows: the table, and what is promised."""
        promised, (head, lines) = self.guarantee, self.shown(alpha, simultaneous)
        privacy = f"Privacy: {promised.budget} ({promised.neighbours}, {promised.status})"
        notes = (f"- {note}" for note in self.notes)
        return Display(head=tuple(head), lines=tuple(map(tuple, lines)), below=(privacy, *notes))

    def summary(self) -> str:
        """A table in plain text."""
        head, lines = self.shown()
        if len(lines) > _SHOWN:
            lines = [*lines[: _SHOWN - 1], ["... and more: see table()", "", "", ""], lines[-1]]
        widths = [max(len(line[k]) for line in [head, *lines]) for k in range(4)]
        text = [self.title]
        for first, *rest in [head, *lines]:
            numbers = (f"{word:>{width}}" for word, width in zip(rest, widths[1:], strict=True))
            text.append(f"  {first:<{widths[0]}}  {'  '.join(numbers)}".rstrip())
        text += ["", *(f"  {name}: {value}" for name, value in self.settings.items())]
        text += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            text += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(text)

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        low, high = self.ate_interval()
        names = listed([self.bounds.names[j] for j in self.partition.columns])
        known = self.design == "known propensity"
        sentences = [
            f"Effects in {self.partition.count} segments {self._segments_words()} {names} were estimated from "
            f"{self.records} records under differential privacy with {guarantee_words(self.guarantee)}",
            f"{clipping_words(self.bounds)}.",
            mechanism_words(self.guarantee.events),
            "The probability of treatment was known by design."
            if known
            else "Arms were compared within segments, as if treatment had been drawn by lot there.",
            "Effects were smoothed over ordered segments and shrunk over unordered ones, by Gaussian processes that "
            "the marginal likelihood of the released table weighs.",
            f"Over all segments, the average effect is {self.ate():.4g} (95 % interval {low:.4g} to {high:.4g}).",
            "Intervals allow for sampling error and privacy noise.",
        ]
        return " ".join(sentences)

    def _segments_words(self) -> str:
        return "found by private k-means on" if isinstance(self.partition, Clusters) else "declared by"

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the effect of every segment with its interval (needs matplotlib)."""
        return plot_segments(
            self.partition.labels(), self.effects, self.interval(alpha), f"effect ({_level(alpha)} intervals)", ax
        )

    def plot_curve(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw what treating the best segments first is worth, with its band (needs matplotlib)."""
        return plot_gains(self.uplift_curve(alpha), _level(alpha), ax)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {name: getattr(self, name) for name in _stored()}
        made = {name: plain[name].to_dict() for name in ("partition", "outcome_moments", "guarantee", "bounds")}
        made |= {"noisy": {name: np.asarray(part).tolist() for name, part in self.noisy._asdict().items()}}
        return io.head(FORMAT) | plain | made | {"notes": list(self.notes)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> UpliftRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, set(_stored()))
        with io.wrong_types_named():
            bounds = Bounds.from_dict(rest["bounds"])
            made = {
                "partition": partition_from(rest["partition"], bounds),
                "noisy": _table(**rest["noisy"]),
                "outcome_moments": OutcomeMoments(
                    **{name: float(value) for name, value in rest["outcome_moments"].items()}
                ),
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
    def load(cls, path: str | Path) -> UpliftRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    @property
    def _unit(self) -> float:
        return self.bounds.outcome_width / 2

    @property
    def _share(self) -> Float:
        return np.asarray(self.counts / self.counts.sum())

    def _around(self, centre: Float, sd: Float, alpha: float) -> tuple[Float, Float]:
        _check(alpha)
        half = -float(ndtri(alpha / 2)) * _WIDER * self._unit * sd
        # No effect can exceed the outcome's range.
        return np.maximum(centre - half, -2.0 * self._unit), np.minimum(centre + half, 2.0 * self._unit)


def _table(counts: Any, sums: Any, count_sd: Any, sum_sd: Any) -> Table:
    return Table(np.array(counts, dtype=float), np.array(sums, dtype=float), float(count_sd), float(sum_sd))


def _check(alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")


def _level(alpha: float) -> str:
    return f"{round(1 - alpha, 12):.12%}".rstrip("%").rstrip("0").rstrip(".") + " %"


def _stored() -> tuple[str, ...]:
    """Names of the fields that a file holds, in its order."""
    return tuple(part.name for part in fields(UpliftRelease) if part.init)


def _counts(partition: Partition | Clusters) -> list[int]:
    return [cut.count for cut in partition.cuts] if isinstance(partition, Partition) else [partition.count]
