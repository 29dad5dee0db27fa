"""The page about an effect on a time to event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.survival.plots import curves_figure
from discreet.releases.survival.release import SurvivalRelease
from discreet.releases.wording import rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SurvivalRelease", "facts", "figures", "finding", "render"]

_CAPTION = (
    "Who is without the event, by arm, with a 95 % band at each time. The curves are not adjusted for covariates."
)
_LEVELS = (0.2, 0.1, 0.05, 0.01)


def finding(release: SurvivalRelease) -> str:
    """The result in one sentence."""
    low, high = release.interval()
    if low <= 0.0 <= high:
        return (
            f"The data do not show whether treatment raises or lowers the {release.measured}: the difference is "
            f"estimated as {release.text(release.estimate)}, with a 95 % interval from {release.interval_text()} that "
            "includes zero."
        )
    verb, ends = ("raised", (low, high)) if low > 0.0 else ("lowered", (-high, -low))
    return (
        f"Treatment {verb} the {release.measured} by {release.text(abs(release.estimate))}, and most likely by between "
        f"{release.text(ends[0])} and {release.text(ends[1])} (95 % interval)."
    )


def render(release: SurvivalRelease, *, title: str | None = None) -> str:
    """The page: HTML with its style and figures inside, so that it needs no network."""
    head = ["time, arm", "without the event", "95 % band", "at risk, about"]
    lines = [
        [
            f"{row['time']:g}, {row['arm']}",
            f"{row['survival']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
            f"{row['at_risk']:,.0f}",
        ]
        for row in release.table()
    ]
    return page(
        "effect.html",
        title=title or release.title,
        finding=finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(caption, inline_figure(figure, caption)) for caption, figure in figures(release, 1)],
        table=(head, lines),
        notes=release.notes,
        methods=release.methods(),
        numbers=_numbers(release),
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=1, ensure_ascii=False),
    )


def facts(release: SurvivalRelease) -> dict[str, Any]:
    """What a page of the service says about it."""
    return {
        "finding": finding(release),
        "estimate": release.text(release.estimate),
        "interval": release.interval_text(),
        "numbers": _numbers(release),
        "methods": release.methods(),
    }


def figures(release: SurvivalRelease, most: int) -> list[tuple[str, Figure]]:
    """Captions and figures: one, however many are wanted."""
    return [(_CAPTION, curves_figure(release.curves()))][:most]


def _numbers(release: SurvivalRelease) -> list[tuple[str, str]]:
    numbers = [("estimate", release.text(release.estimate))]
    numbers += [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in _LEVELS]
    parts = release.uncertainty
    numbers += [("sampling error (sd)", f"{parts.sampling:.3g}"), ("privacy noise (sd)", f"{parts.privacy:.3g}")]
    numbers += [("noise in the adjustment (sd)", f"{parts.nuisance:.3g}")]
    return [*numbers, ("allowance for clipping and the grid", f"{parts.clipping:.3g}"), ("records", release.records)]
