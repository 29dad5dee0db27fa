"""What a release of any kind says first; it is asked what it can do, and not which it is."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from discreet.data._arrays import Level
from discreet.data.bounds import Bounds
from discreet.exceptions import UnsupportedRelease
from discreet.privacy.guarantee import Guarantee
from discreet.releases.average import Uncertainty

AVERAGE = "Average treatment effect"


class Published(Protocol):
    """What releases of all kinds have, those of published systems included."""

    @property
    def format(self) -> str: ...
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def bounds(self) -> Bounds: ...
    @property
    def notes(self) -> tuple[str, ...]: ...
    def summary(self) -> str:
        """A table in plain text."""


@runtime_checkable
class HasInterval(Protocol):
    """One effect with an interval."""

    @property
    def estimate(self) -> float: ...
    @property
    def text(self) -> Any:
        """Writes a number."""

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the effect."""


@runtime_checkable
class HasContrasts(Protocol):
    """Several arms, and no single effect: to ask for one is refused."""

    @property
    def contrasts(self) -> Any:
        """Differences of every two arms."""

    @property
    def arms(self) -> tuple[Level, ...]:
        """The declared labels, the control first."""


@runtime_checkable
class HasAverages(Protocol):
    """Several arms by segment: their effects over all segments together."""

    @property
    def averages(self) -> Any:
        """Average differences of every two arms."""


@runtime_checkable
class HasAverage(Protocol):
    """Effects of people or segments, and their average with an interval."""

    def ate(self) -> float:
        """The average effect."""

    def ate_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the average effect."""


@runtime_checkable
class HasEstimate(Protocol):
    """One effect without an interval."""

    @property
    def estimate(self) -> float: ...


@runtime_checkable
class HasTitle(Protocol):
    """A release of an estimator of this library."""

    @property
    def title(self) -> str: ...
    @property
    def records(self) -> str: ...


@runtime_checkable
class HasMethod(Protocol):
    """A release of a published system."""

    @property
    def method(self) -> str: ...


@runtime_checkable
class HasSources(Protocol):
    """A release that divides its uncertainty by source."""

    @property
    def uncertainty(self) -> Uncertainty: ...
    def shares(self) -> dict[str, float]:
        """Share of each source."""


@runtime_checkable
class HasDesign(Protocol):
    """A release that says how treatment came about."""

    @property
    def design(self) -> str: ...


@runtime_checkable
class HasCap(Protocol):
    """A release that may be about a capped outcome."""

    @property
    def cap(self) -> float | None: ...


@runtime_checkable
class HasSites(Protocol):
    """A release of several sites together."""

    @property
    def sites(self) -> tuple[Any, ...]: ...
    @property
    def model(self) -> str: ...
    @property
    def estimand(self) -> str: ...


class Headline(NamedTuple):
    """What was estimated and how it came out, in words; empty where a release has no such thing."""

    name: str
    what: str
    estimate: str
    interval: str
    records: str
    ends: tuple[float, float] | None


def headline(release: Published, alpha: float = 0.05) -> Headline:
    """The first things to say of a release: its name, average or only effect, interval and number of records."""
    name = release.title if isinstance(release, HasTitle) else ""
    name = name or (release.method if isinstance(release, HasMethod) else "")
    if not name:
        raise UnsupportedRelease(
            "release must be what discreet.load or an estimator's release_ gives: read it with that."
        )
    records = release.records if isinstance(release, HasTitle) else ""
    if isinstance(release, HasContrasts):
        return Headline(name, name, "", "", records, None)
    if isinstance(release, HasAverage):
        low, high = release.ate_interval(alpha)
        return Headline(name, AVERAGE, f"{release.ate():.3g}", f"{low:.3g} to {high:.3g}", records, (low, high))
    if isinstance(release, HasInterval):
        low, high = release.interval(alpha)
        words = f"{release.text(low)} to {release.text(high)}"
        what = release.estimand if isinstance(release, HasSites) else name
        return Headline(name, what, release.text(release.estimate), words, records, (low, high))
    estimate = f"{release.estimate:.4g}" if isinstance(release, HasEstimate) else ""
    return Headline(name, name, estimate, "", records, None)


def design_of(release: Published) -> str:
    """How treatment came about, in words."""
    if isinstance(release, HasSites):
        designs = {site.design for site in release.sites}
        return designs.pop() if len(designs) == 1 else "differs between sites"
    return release.design if isinstance(release, HasDesign) else ""


def cap_of(release: Published) -> float | None:
    """What larger outcomes counted as."""
    return release.cap if isinstance(release, HasCap) else None
