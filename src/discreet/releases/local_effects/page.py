"""The page and the figure of an effect on compliers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.data.bounds import Bounds
from discreet.releases.local_effects.release import LocalEffectRelease
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.parts import labels
from discreet.releases.plots import release_figure
from discreet.releases.wording import rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEVELS = (0.2, 0.1, 0.05, 0.01)
_CAPTION = "The estimate with its 80 % and 95 % intervals, and where the uncertainty comes from."
_DRAWN_TO = " An end that is unbounded is drawn where no effect can be any larger, as the outcome's range ends there."


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A release as figures draw it: ends of intervals are finite, because the outcome's range is."""

    release: LocalEffectRelease

    @property
    def estimate(self) -> float:
        return self.release.estimate

    @property
    def bounds(self) -> Bounds:
        return self.release.bounds

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        most = self.release.bounds.outcome_width
        low, high = self.release.interval(alpha)
        return max(low, -most), min(high, most)

    def text(self, value: float) -> str:
        return self.release.text(value)

    def shares(self) -> dict[str, float]:
        return self.release.shares()


def render(release: LocalEffectRelease, *, title: str | None = None) -> str:
    """The page as text: HTML with its style and figure inside, so that it needs no network."""
    caption = _CAPTION + ("" if release.bounded() else _DRAWN_TO)
    return page(
        "effect.html",
        title=title or release.title,
        finding=finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "an instrument assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(caption, inline_figure(figure_of(release), caption))],
        table=None,
        notes=release.notes,
        methods=release.methods(),
        numbers=_numbers(release),
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=2, ensure_ascii=False),
    )


def figure_of(release: LocalEffectRelease) -> Figure:
    """The estimate with its intervals, above a bar that splits the uncertainty by its sources."""
    return release_figure(_Drawn(release))


def figures(release: LocalEffectRelease, most: int) -> list[tuple[str, Figure]]:
    """Captions and figures of a release: one figure, however many are wanted."""
    return [(_CAPTION + ("" if release.bounded() else _DRAWN_TO), figure_of(release))][:most]


def finding(release: LocalEffectRelease) -> str:
    """The result in one sentence or two."""
    share = f"The instrument moved about {100 * release.compliance.estimate:.0f} % of the people to treatment."
    if not release.bounded():
        return f"{share} That may be nobody at all, so that the data do not bound the effect on them."
    low, high = release.interval()
    on = labels.outcome(release.bounds) if release.bounds.label("outcome", "") else "their outcome"
    treated = labels.treatment(release.bounds)
    estimate, ends = labels.amount(release.bounds, release.text(release.estimate)), release.interval_text()
    if low <= 0 <= high:
        return (
            f"{share} The data do not show whether {treated} raised or lowered {on}: the effect is estimated "
            f"as {estimate}, with a 95 % interval from {ends} that includes zero."
        )
    verb = "raised" if low > 0 else "lowered"
    return f"{share} On average, {treated} {verb} {on}: by {estimate} (95 % interval from {ends})."


def facts(release: LocalEffectRelease) -> dict[str, Any]:
    """What a page of the service says about a release."""
    return {
        "finding": finding(release),
        "estimate": release.text(release.estimate),
        "interval": release.interval_text(),
        "numbers": _numbers(release),
        "methods": release.methods(),
    }


def _numbers(release: LocalEffectRelease) -> list[tuple[str, str]]:
    numbers = [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in _LEVELS]
    return [row for row in release.rows() if not row[0].endswith("interval")] + numbers
