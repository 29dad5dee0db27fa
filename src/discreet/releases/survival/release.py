"""What `SurvivalEffect` publishes: an effect with its interval, and the noisy table that curves follow from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

import numpy as np

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.postprocessing.survival.curves import Arm, Band, same_level
from discreet.postprocessing.survival.pseudo_outcome import Measure
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import SOURCES, StudyDesign, Uncertainty
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.parts.labels import titled
from discreet.releases.protocol import Display
from discreet.releases.wording import columns, guarantee_words, listed, mechanism_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-survival"
ARMS = ("control", "treated")
# What is taken to be constant within intervals of the grid counts with what clipping may have done.
_SOURCES = SOURCES | {"clipping": "clipping and grid"}
_OPTIONAL = frozenset({"rows"})
_MEASURED = {
    "rmst": "restricted mean time without the event up to {horizon:g}",
    "risk": "probability of the event up to {horizon:g}",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SurvivalRelease(ReleaseCard):
    """An effect on a time to event as it may be published, with a survival curve per arm.

    Parameters
    ----------
    measure
        "rmst" for the restricted mean time without the event, "risk" for the probability of the event.
    horizon
        Up to when; in the unit of the times, as all that follows.
    times
        Ends of the intervals of the grid, the last is the horizon.
    counts
        By arm (control first), noisy numbers of records with the event in each interval, censored in each, and followed
        beyond.
    count_sd
        Standard deviation of the noise in each of them.
    estimate
        The effect: treated less control.
    uncertainty
        Where its error comes from.
    n
        Number of records: exact where it is public, noisy where it is not.
    guarantee, bounds
        What is promised to the people in the records; the public facts that were declared.
    design
        "observational", or "known propensity" where the chance of treatment was known.
    adjustment
        Public description of the adjustment, plain JSON.
    notes
        Assumptions and warnings, one sentence each.
    rows
        Most rows of one unit, which may all be alike: bands allow for it.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import survival_trial
    >>> trial = survival_trial(n=2_000, seed=1)
    >>> effect = dc.SurvivalEffect(epsilon=2.0, delta=1e-6, bounds=trial.bounds, horizon=365)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = effect.fit(trial.time, trial.T, event=trial.event, X=trial.X)
    >>> read = dc.SurvivalRelease.from_dict(effect.release_.to_dict())
    >>> read == effect.release_, sorted(read.curves())
    (True, ['control', 'treated'])
    """

    format: ClassVar[str] = FORMAT

    measure: Measure
    horizon: float
    times: tuple[float, ...]
    counts: tuple[tuple[float, ...], ...]
    count_sd: float
    estimate: float
    uncertainty: Uncertainty
    n: float
    guarantee: Guarantee
    bounds: Bounds
    design: StudyDesign
    adjustment: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rows: int = 1
    _arms: tuple[Arm, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.measure not in get_args(Measure) or self.design not in get_args(StudyDesign):
            raise InvalidInput("measure and design must be among those that the class names: check the file.")
        object.__setattr__(self, "adjustment", io.plain_copy(self.adjustment))
        grid = np.array([0.0, *self.times])
        if len(grid) < 2 or not np.all(np.diff(grid) > 0.0) or self.times[-1] != self.horizon:
            raise InvalidInput("times must increase from above zero and end at the horizon: check the file.")
        numbers = [self.count_sd, self.estimate, self.n, self.horizon, *self.uncertainty.to_dict().values()]
        numbers += [number for row in self.counts for number in row]
        if not all(map(math.isfinite, numbers)) or min(self.count_sd, self.n) <= 0.0:
            raise InvalidInput("numbers of a release must be finite, and count_sd and n positive: check the file.")
        if [len(row) for row in self.counts] != [2 * len(self.times) + 1] * len(ARMS):
            raise InvalidInput("counts need a row per arm, two numbers per time and one more: check the file.")
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InvalidInput("rows must be a whole number from 1 on: check the file.")
        times = np.array(self.times)
        arms = tuple(Arm.of(times, np.array(row), self.count_sd, self.rows) for row in self.counts)
        object.__setattr__(self, "_arms", arms)

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval that covers the effect with probability ``1 - alpha``, privacy noise included."""
        _check(alpha)
        low, high = self.uncertainty.interval(self.estimate, alpha)
        most = self.horizon if self.measure == "rmst" else 1.0
        return min(max(low, -most), self.estimate), max(min(high, most), self.estimate)

    def curves(self, alpha: float = 0.05, simultaneous: bool = False) -> dict[str, Band]:
        """The survival curve of each arm at the times of the grid, with a band; not adjusted for covariates.

        Bands cover each point with probability ``1 - alpha``; if ``simultaneous``, all points of both curves at once.
        """
        _check(alpha)
        each = same_level(alpha, len(self.times)) if simultaneous else alpha
        return {name: arm.band(each) for name, arm in zip(ARMS, self._arms, strict=True)}

    def table(self, alpha: float = 0.05, simultaneous: bool = False) -> list[dict[str, Any]]:
        """One row per time and arm: survival with its band, and about how many were at risk just before."""
        return [
            {
                "time": float(time),
                "arm": name,
                "survival": float(survival),
                "low": float(low),
                "high": float(high),
                "at_risk": float(at_risk),
            }
            for (name, band), arm in zip(self.curves(alpha, simultaneous).items(), self._arms, strict=True)
            for time, survival, low, high, at_risk in zip(*(part[1:] for part in band), arm.at_risk, strict=True)
        ]

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw the survival curves of both arms with their bands (needs matplotlib)."""
        from discreet.releases.survival.plots import plot_curves

        return plot_curves(self.curves(alpha), f"{100 * (1 - alpha):g} %", ax)

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return titled(self.bounds, f"Difference in the {self.measured}", f"The {{effect}}: {self.measured}")

    @property
    def measured(self) -> str:
        """What the arms are compared by, for people."""
        return _MEASURED[self.measure].format(horizon=self.horizon)

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def text(self, value: float) -> str:
        """A number with as many decimals as the standard error gives meaning to."""
        decimals = 1 - math.floor(math.log10(self.uncertainty.se)) if self.uncertainty.se else 3
        text = f"{value:,.{max(decimals, 0)}f}"
        return text.removeprefix("-") if not text.strip("-0.") else text

    def interval_text(self, alpha: float = 0.05) -> str:
        """An interval in words."""
        low, high = self.interval(alpha)
        return f"{self.text(low)} to {self.text(high)}"

    def shares(self) -> dict[str, float]:
        """Share of each source in the uncertainty, under the names that people use."""
        return {_SOURCES[name]: share for name, share in self.uncertainty.share().items()}

    def facts(self, alpha: float = 0.05) -> list[tuple[str, str]]:
        """Names and values: the estimate, its interval, the curves at the horizon."""
        rows = [("estimate", self.text(self.estimate))]
        rows += [(f"{100 * (1 - alpha):g} % interval", self.interval_text(alpha)), ("records", self.records)]
        for name, band in self.curves(alpha).items():
            words = f"{band.survival[-1]:.3f} ({band.low[-1]:.3f} to {band.high[-1]:.3f})"
            rows.append((f"without the event at {self.horizon:g}, {name}", words))
        return rows

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the estimate with its interval, the curves at the horizon, and what is promised."""
        promised, rows = self.guarantee, self.facts(alpha)
        rows += [("uncertainty from", ", ".join(f"{name} {100 * part:.0f} %" for name, part in self.shares().items()))]
        rows += [("privacy", f"{promised.budget} ({promised.neighbours}, {promised.status})")]
        return Display(lines=tuple(rows), below=tuple(f"- {note}" for note in self.notes))

    def summary(self) -> str:
        """A table in plain text."""
        lines = [self.title, *columns([*self.facts(), ("design", self.design)])]
        lines += ["", "Without the event, with a 95 % band at each time"]
        bands = self.curves()
        for k, time in enumerate(self.times, 1):
            words = (f"{b.survival[k]:.3f} ({b.low[k]:.3f} to {b.high[k]:.3f})" for b in bands.values())
            lines.append(f"  {time:>8.6g}  {'  '.join(f'{n} {w}' for n, w in zip(bands, words, strict=True))}")
        lines += ["", "Where the uncertainty comes from (shares of the variance)"]
        lines += columns([(name, f"{100 * share:.0f} %") for name, share in self.shares().items()])
        lines += ["", "Privacy", *(f"  {line}" for line in str(self.guarantee).splitlines())]
        if self.notes:
            lines += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        u = self.uncertainty
        names = f", adjusted for {listed(self.bounds.names)}" if self.bounds.p else ""
        errors = f"{u.sampling:.3g} from sampling, {u.privacy:.3g} from noise, {u.nuisance:.3g} from the adjustment"
        sentences = [
            f"The difference between the arms in the {self.measured} was estimated from {self.records} records{names} "
            f"under differential privacy with {guarantee_words(self.guarantee)}",
            f"Times beyond {self.horizon:g} were taken as censored there. Each record counted as its efficient score "
            f"under independent censoring within arms, by hazards from a released table of {len(self.times)} intervals "
            "of time, and these scores were compared by augmented inverse probability weighting.",
            mechanism_words(self.guarantee.events),
            f"The estimate is {self.text(self.estimate)} (95 % interval {self.interval_text()}; standard errors: "
            f"{errors}).",
            "Survival curves are those of the table, with bands for sampling error and noise.",
        ]
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain = {name: getattr(self, name) for name in _stored()}
        made = {name: plain[name].to_dict() for name in ("uncertainty", "guarantee", "bounds")}
        lists = {"times": list(self.times), "counts": [list(row) for row in self.counts], "notes": list(self.notes)}
        done = io.head(FORMAT) | plain | made | lists
        # Files of records that are units of their own do not say so.
        return {name: value for name, value in done.items() if name not in _OPTIONAL or value != 1}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> SurvivalRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, set(_stored()), _OPTIONAL)
        with io.wrong_types_named():
            made = {
                "times": tuple(map(float, rest["times"])),
                "counts": tuple(tuple(map(float, row)) for row in rest["counts"]),
                "uncertainty": Uncertainty.from_dict(rest["uncertainty"]),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(map(str, rest["notes"])),
            }
            made |= {name: float(rest[name]) for name in ("horizon", "count_sd", "estimate", "n")}
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> SurvivalRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))


def _check(alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")


def _stored() -> tuple[str, ...]:
    """Names of the fields that a file holds, in its order."""
    return tuple(part.name for part in fields(SurvivalRelease) if part.init)
