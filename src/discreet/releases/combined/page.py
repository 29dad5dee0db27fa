"""A page about several sites' releases as one, and what the service says about them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.releases.combined.forest import forest_figure
from discreet.releases.combined.release import CombinedRelease
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.parts import labels
from discreet.releases.wording import rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOREST = (
    "The effect at each site with its 95 % interval, and at all of them together. A square's area is the site's weight."
)


def render_combined(release: CombinedRelease, *, title: str | None = None) -> str:
    """The page: HTML with its style and figures inside, so that it needs no network."""
    return page(
        "effect.html",
        title=title or release.title,
        finding=combined_finding(release),
        records=release.records.capitalize(),
        design=f"{len(release.sites)} sites combined",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(_FOREST, inline_figure(forest_figure(release), combined_finding(release)))],
        table=release.shown(),
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


def combined_finding(release: CombinedRelease) -> str:
    """The result in one sentence."""
    low, high = release.interval()
    treated, on = labels.treatment(release.bounds), labels.outcome(release.bounds)
    over = "at all sites" if release.model == "fixed" else "on average over the sites"
    if low <= 0.0 <= high:
        return (
            f"The sites together do not show whether {treated} raises or lowers {on}: {over}, the effect is "
            f"estimated as {labels.amount(release.bounds, release.text(release.estimate))}, with a 95 % interval from "
            f"{release.interval_text()} that includes zero."
        )
    verb, ends = ("raised", (low, high)) if low > 0.0 else ("lowered", (-high, -low))
    return (
        f"{labels.capital(treated)} {verb} {on} by "
        f"{labels.amount(release.bounds, release.text(abs(release.estimate)))} {over}, and most likely by between "
        f"{release.text(ends[0])} and {release.text(ends[1])} (95 % interval)."
    )


def combined_facts(release: CombinedRelease) -> dict[str, Any]:
    """What a page of the service says."""
    return {
        "finding": combined_finding(release),
        "estimate": release.text(release.estimate),
        "interval": release.interval_text(),
        "numbers": _numbers(release),
        "table": release.shown(),
        "methods": release.methods(),
    }


def combined_figures(release: CombinedRelease, most: int) -> list[tuple[str, Figure]]:
    """Captions and figures: one, however many are wanted."""
    return [(_FOREST, forest_figure(release))][:most]


def _numbers(release: CombinedRelease) -> list[tuple[str, str]]:
    found, parts = release.heterogeneity, release.uncertainty
    rows = [("estimate", release.text(release.estimate))]
    rows += [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in (0.2, 0.1, 0.05, 0.01)]
    rows += [("model", f"{release.model} effects"), ("people", release.people), ("standard error", f"{release.se:.4g}")]
    rows += [("of it, sampling", f"{parts.sampling:.4g}"), ("of it, privacy noise", f"{parts.privacy:.4g}")]
    rows += [
        ("of it, adjustment", f"{parts.nuisance:.4g}"),
        ("of it, differences between sites", f"{release.between:.4g}"),
    ]
    rows += [("allowance for clipping", f"{parts.clipping:.4g}"), ("tau, between sites", f"{found.tau:.4g}")]
    rows += [("tau squared", f"{found.tau2:.4g}"), ("I squared", f"{100 * found.i2:.0f} %")]
    rows += [
        ("Q", f"{found.q:.4g} on {found.degrees} degrees of freedom, p = {found.p:.2g}"),
        ("records", release.records),
    ]
    return rows
