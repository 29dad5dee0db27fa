"""What is published of several sites at once: an estimate, an interval, a guarantee, and how far the sites differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from scipy.special import chdtrc, stdtrit

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.privacy.guarantee import Guarantee
from discreet.releases import io
from discreet.releases.average import SOURCES, Uncertainty
from discreet.releases.combined.forest import plot_forest
from discreet.releases.combined.sites import Heterogeneity, Site
from discreet.releases.combined.weighing import Model, People, degrees_of
from discreet.releases.function_parts import checked_level
from discreet.releases.notebooks.card import ReleaseCard
from discreet.releases.protocol import Display
from discreet.releases.wording import clipping_words, columns, guarantee_words, listed, with_decimals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "discreet-combined-release"
BETWEEN = "differences between sites"
# Fields that not every file has.
_OPTIONAL = frozenset({"cap"})
# Stated sums are good to twelve digits.
_DIGITS = 1e-9
_MODELS = {
    "fixed": "fixed effects: inverse-variance weights, as estimates of one effect that all sites have",
    "random": "random effects: variance between sites by Paule and Mandel's method, and Student's t (Hartung and "
    "Knapp) with one degree of freedom less than as many sites of equal weight would be worth",
}
_PEOPLE = {
    "disjoint": "no one has records at two sites, as was stated by whoever combined them",
    "overlapping": "people may have records at several sites",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CombinedRelease(ReleaseCard):
    """An average effect from the releases of several sites, as `combine` makes it.

    Parameters
    ----------
    kind, estimand
        What each site estimated: its release's kind, and the same in words.
    model
        "fixed" or "random" effects.
    people
        "disjoint" where no one has records at two sites, else "overlapping".
    estimate
        The weighted mean of the sites' estimates, in the outcome's unit.
    uncertainty
        Where its error comes from, differences between sites aside.
    tau, q
        Standard deviation between sites, and Cochran's Q.
    sites
        What each site released, and its weight.
    guarantee
        What is promised to the people in the records of all sites.
    bounds
        The public facts that all sites declared.
    notes
        Assumptions and warnings, one sentence each.
    cap
        What larger outcomes counted as, where the effect is that on a capped outcome.

    Privacy
    -------
    Made of releases alone, and covered by ``guarantee``. Proof: docs/proofs/combine.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trials = [private_ci_rct(n=2_000, seed=seed) for seed in (1, 2, 3)]
    >>> with dc.testing.seeded_noise(0):
    ...     fits = [dc.DifferenceInMeans(epsilon=1.0, bounds=t.bounds).fit(t.Y, t.T, X=t.X) for t in trials]
    >>> both = dc.combine([fit.release_ for fit in fits], model="fixed", people="disjoint")
    >>> both.guarantee.epsilon, both.heterogeneity.degrees
    (1.0, 2)
    >>> dc.CombinedRelease.from_dict(both.to_dict()) == both
    True
    """

    format: ClassVar[str] = FORMAT

    kind: str
    estimand: str
    model: Model
    people: People
    estimate: float
    uncertainty: Uncertainty
    tau: float
    q: float
    sites: tuple[Site, ...]
    guarantee: Guarantee
    bounds: Bounds
    notes: tuple[str, ...] = ()
    cap: float | None = None

    def __post_init__(self) -> None:
        if self.model not in get_args(Model) or self.people not in get_args(People):
            raise InvalidInput("model must be 'fixed' or 'random', and people 'disjoint' or 'overlapping': check them.")
        numbers = [self.estimate, self.tau, self.q, *self.uncertainty.to_dict().values()]
        if not all(map(math.isfinite, numbers)) or min(numbers[1:]) < 0.0:
            raise InvalidInput("every released number must be finite, and no part of an error negative; check them.")
        if len(self.sites) < 2 or len({site.name for site in self.sites}) < len(self.sites):
            raise InvalidInput("sites must be two or more, each with a name of its own; check the file.")
        total = math.fsum(site.weight for site in self.sites)
        mean = math.fsum(site.weight * site.estimate for site in self.sites)
        size = max(abs(site.estimate) for site in self.sites)
        if abs(total - 1.0) > _DIGITS or abs(mean - self.estimate) > _DIGITS * size:
            raise InvalidInput(
                "the estimate must be the mean of the sites' estimates by their weights; check the file."
            )
        if not all(isinstance(word, str) for word in (self.kind, self.estimand, *self.notes)):
            raise InvalidInput("kind, estimand and notes must be text; check the file.")

    @property
    def between(self) -> float:
        """Standard error that differences between sites add to their mean; none with fixed effects."""
        if self.model == "fixed":
            return 0.0
        return self.tau * math.hypot(*(site.weight for site in self.sites))

    @property
    def degrees(self) -> float:
        """Degrees of freedom of random effects: one less than there are sites, and fewer where weights are unequal."""
        return degrees_of([site.weight for site in self.sites])

    @property
    def se(self) -> float:
        """Standard error: that of the sites' estimates, and what differs between sites."""
        return math.hypot(self.uncertainty.se, self.between)

    @property
    def heterogeneity(self) -> Heterogeneity:
        """How far sites differ.

        ``tau`` is in the outcome's unit. I squared is the share of the scatter of estimates that their own errors do
        not explain: privacy noise is among these errors, so that it makes I squared smaller, whatever the effects are.
        """
        degrees = len(self.sites) - 1
        i2 = max(1.0 - degrees / self.q, 0.0) if self.q else 0.0
        return Heterogeneity(self.tau, self.tau**2, i2, self.q, degrees, float(chdtrc(degrees, self.q)))

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval that covers the effect with probability ``1 - alpha``: the one effect, or the mean over sites."""
        if self.model == "fixed":
            return self._within(*self.uncertainty.interval(self.estimate, checked_level(alpha)))
        return self._student(self.degrees, self.se, alpha)

    def prediction_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Where the effect at one more site of the same kind lies with probability ``1 - alpha``."""
        if self.model == "fixed" or len(self.sites) < 3:
            raise InvalidInput("a prediction needs model='random' and three sites or more: combine them so.")
        return self._student(max(self.degrees - 1.0, 1.0), math.hypot(self.se, self.tau), alpha)

    def site_interval(self, site: Site, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of one site, as its own release has it."""
        low, high = site.uncertainty.interval(site.estimate, checked_level(alpha))
        most = self._most
        return min(max(low, -most), site.estimate), max(min(high, most), site.estimate)

    @property
    def title(self) -> str:
        """What was estimated, for people."""
        return f"{self.estimand}, {len(self.sites)} sites together"

    @property
    def n(self) -> float:
        """Number of records at all sites; noisy where it is private."""
        return math.fsum(site.n for site in self.sites)

    @property
    def records(self) -> str:
        """The number of records in words: exact, or about so many where it is private."""
        return f"{self.n:,.0f}" if self.guarantee.counts_public else f"about {self.n:,.0f}"

    def text(self, value: float) -> str:
        """A number in the outcome's unit, with as many decimals as the standard error gives meaning to."""
        return with_decimals(value, self.se)

    def interval_text(self, alpha: float = 0.05) -> str:
        """An interval in words."""
        low, high = self.interval(alpha)
        return f"{self.text(low)} to {self.text(high)}"

    def shares(self) -> dict[str, float]:
        """Share of each source in the uncertainty; clipping and differences between sites only if they matter."""
        parts = {SOURCES[name]: value for name, value in self.uncertainty.to_dict().items()} | {BETWEEN: self.between}
        most = max(parts.values()) or 1.0
        squares = {name: (value / most) ** 2 for name, value in parts.items()}
        total = math.fsum(squares.values()) or 1.0
        shares = {name: square / total for name, square in squares.items()}
        return {
            name: each for name, each in shares.items() if name not in (SOURCES["clipping"], BETWEEN) or each >= 0.005
        }

    def shown(self, alpha: float = 0.05) -> tuple[list[str], list[list[str]]]:
        """Sites and all of them together as a table in words: its head and its lines."""
        lines = []
        for site in self.sites:
            low, high = self.site_interval(site, alpha)
            words = [with_decimals(value, site.uncertainty.se) for value in (site.estimate, low, high)]
            lines.append(
                [site.name, words[0], f"{words[1]} to {words[2]}", f"{100 * site.weight:.0f} %", f"{site.n:,.0f}"]
            )
        together = [self.text(self.estimate), self.interval_text(alpha), "100 %", f"{self.n:,.0f}"]
        return ["site", "effect", f"{_level(alpha)} interval", "weight", "records"], [*lines, ["all", *together]]

    def display(self, alpha: float = 0.05) -> Display:
        """What a terminal shows: the sites, all of them together, and what is promised."""
        head, lines = self.shown(alpha)
        promised = self.guarantee
        below = [self.differences(), f"Privacy: {promised.budget} ({promised.neighbours}, {promised.status})"]
        return Display(
            head=tuple(head), lines=tuple(map(tuple, lines)), below=(*below, *(f"- {n}" for n in self.notes))
        )

    def differences(self) -> str:
        """How far sites differ, in one sentence."""
        found = self.heterogeneity
        return (
            f"Between sites: standard deviation (tau) {self.text(found.tau)}, I squared {100 * found.i2:.0f} %, Q = "
            f"{found.q:.3g} on {found.degrees} degree{'s' if found.degrees > 1 else ''} of freedom (p = {found.p:.2g})."
        )

    def summary(self) -> str:
        """A table in plain text."""
        head, lines = self.shown()
        widths = [max(len(line[k]) for line in [head, *lines]) for k in range(len(head))]
        text = [self.title]
        for first, *rest in [head, *lines]:
            words = (f"{word:>{width}}" for word, width in zip(rest, widths[1:], strict=True))
            text.append(f"  {first:<{widths[0]}}  {'  '.join(words)}")
        text += ["", "How sites were combined", f"  {_MODELS[self.model]}", f"  {self.differences()}"]
        text += ["", "Where the uncertainty comes from (shares of the variance)"]
        text += columns([(name, f"{share:.0%}".replace("%", " %")) for name, share in self.shares().items()])
        text += ["", "Privacy", f"  People: {_PEOPLE[self.people]}."]
        text += [f"  {line}" for line in str(self.guarantee).splitlines()]
        if self.notes:
            text += ["", "Notes", *(f"  - {note}" for note in self.notes)]
        return "\n".join(text)

    def __str__(self) -> str:
        return self.summary()

    def methods(self) -> str:
        """A paragraph for a paper's methods section, numbers filled in."""
        names, estimand = listed(site.name for site in self.sites), self.estimand[0].lower() + self.estimand[1:]
        sentences = [
            f"The {estimand} was estimated at {len(self.sites)} sites ({names}; {self.records} records in all), each "
            "time under differential privacy, and the published estimates were combined without going back to the "
            f"records ({_MODELS[self.model]}).",
            f"All releases together have {guarantee_words(self.guarantee)}",
            f"This takes it that {_PEOPLE[self.people]}.",
            f"{clipping_words(self.bounds, (), self.cap)}.",
            f"The estimate is {self.text(self.estimate)} (95 % interval {self.interval_text()}).",
            self.differences(),
            f"The interval combines {listed(self._error_words())}"
            + (
                f", and allows for a bias of up to {self.uncertainty.clipping:.3g} by clipping"
                * bool(self.uncertainty.clipping)
            )
            + ".",
        ]
        return " ".join(sentences)

    def _error_words(self) -> Iterator[str]:
        parts = self.uncertainty
        yield f"sampling error (standard error {parts.sampling:.3g})"
        yield f"the noise added at the sites (standard deviation {parts.privacy:.3g})"
        if parts.nuisance:
            yield f"noise in the adjustment (standard deviation {parts.nuisance:.3g})"
        if self.between:
            yield f"differences between sites (standard error {self.between:.3g})"

    def plot(self, ax: Axes | None = None, alpha: float = 0.05) -> Axes:
        """Draw a forest plot: an interval for each site, and one for all of them (needs matplotlib)."""
        return plot_forest(self, ax, checked_level(alpha))

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        plain: dict[str, Any] = {part.name: getattr(self, part.name) for part in fields(self)}
        made = {name: plain[name].to_dict() for name in ("uncertainty", "guarantee", "bounds")}
        listed_ = {"sites": [site.to_dict() for site in self.sites], "notes": list(self.notes)}
        done = io.head(FORMAT) | plain | made | listed_
        return {name: value for name, value in done.items() if name not in _OPTIONAL or value is not None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> CombinedRelease:
        """Read a release back; its guarantee is checked against its events again."""
        rest = io.fields_of(plain, FORMAT, {part.name for part in fields(cls)}, optional=_OPTIONAL)
        with io.wrong_types_named():
            made: dict[str, Any] = {
                "uncertainty": Uncertainty.from_dict(rest["uncertainty"]),
                "sites": tuple(Site.from_dict(site) for site in rest["sites"]),
                "guarantee": Guarantee.from_dict(rest["guarantee"]),
                "bounds": Bounds.from_dict(rest["bounds"]),
                "notes": tuple(rest["notes"]),
            }
            made |= {name: float(rest[name]) for name in ("estimate", "tau", "q", "cap") if name in rest}
            return cls(**(rest | made))

    def save(self, path: str | Path) -> None:
        """Write a release file."""
        io.write(path, self.to_dict())

    @classmethod
    def load(cls, path: str | Path) -> CombinedRelease:
        """Read a release file."""
        return cls.from_dict(io.read_json(path))

    @property
    def _most(self) -> float:
        """No effect can exceed the outcome's range."""
        return self.bounds.outcome_width if self.cap is None else self.cap - self.bounds.outcome[0]

    def _within(self, low: float, high: float) -> tuple[float, float]:
        return min(max(low, -self._most), self.estimate), max(min(high, self._most), self.estimate)

    def _student(self, degrees: float, se: float, alpha: float) -> tuple[float, float]:
        half = float(stdtrit(degrees, 1.0 - checked_level(alpha) / 2.0)) * se + self.uncertainty.clipping
        return self._within(self.estimate - half, self.estimate + half)


def _level(alpha: float) -> str:
    return f"{100 * (1 - alpha):g} %"
