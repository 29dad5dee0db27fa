"""The page about an average effect."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.releases.average import SOURCES, Release
from discreet.releases.diagnostics.figures import diagnostic_figures, diagnostic_section
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.parts import labels
from discreet.releases.plots import release_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"sampling": "blue", "privacy": "orange", "nuisance": "green", "clipping": "purple"}
EXPLANATIONS = {
    "sampling": "the study has a limited number of records, and another sample would give another answer. "
    "Only more records can shrink this part.",
    "privacy": "random noise was added to the result itself, so that no single record shows. A larger privacy budget "
    "or more records would shrink it.",
    "nuisance": "to compare like with like, models of treatment and outcome were fitted, with noise in them too. "
    "More records, a larger budget or fewer covariates would shrink it.",
    "clipping": "extreme values were limited, so that no record can dominate. The interval allows for the error "
    "that this is taken to have caused.",
}


def render(release: Release, *, title: str | None = None, extra_figures: Sequence[tuple[str, Figure]] = ()) -> str:
    """The page as text: HTML with its style and figures inside, so that it needs no network.

    Parameters
    ----------
    release : Release
        What the page is about.
    title : str, optional
        The page's title.
    extra_figures : sequence of (caption, matplotlib Figure)
        Further figures. They are not covered by the release's guarantee: draw them from releases only.
    """
    numbers = [("estimate", release.text(release.estimate))]
    numbers += [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in (0.2, 0.1, 0.05, 0.01)]
    numbers += [*release.arm_rows(), ("standard error", f"{release.uncertainty.se:.4g}")]
    parts = release.uncertainty.to_dict()
    allowance = parts.pop("clipping")
    numbers += [(f"of it, {SOURCES[name]}", f"{part:.4g}") for name, part in parts.items()]
    numbers += [("allowance for clipping", f"{allowance:.4g}")]
    numbers += [("records", release.records)]
    numbers += [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    numbers += release.arms_in_words()
    return page(
        "report.html",
        title=title or release.title,
        finding=finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        figure=inline_figure(release_figure(release), finding(release)),
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        sources=_sources(release),
        notes=release.notes,
        extra_figures=[(caption, inline_figure(figure, caption)) for caption, figure in extra_figures],
        diagnostics=diagnostic_section(release),
        methods=release.methods(),
        numbers=numbers,
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in release.rounds()
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=2, ensure_ascii=False),
    )


def save_report(
    release: Release,
    path: str | Path,
    *,
    title: str | None = None,
    extra_figures: Sequence[tuple[str, Figure]] = (),
) -> None:
    """Write the page of `render` to a file."""
    Path(path).write_bytes(render(release, title=title, extra_figures=extra_figures).encode())


def finding(release: Release) -> str:
    """The result in one sentence."""
    low, high = release.interval()
    treated, on = labels.treatment(release.bounds), labels.outcome(release.bounds)
    if low <= 0 <= high:
        return (
            f"The data do not show whether {treated} raises or lowers {on}: the average effect is estimated as "
            f"{labels.amount(release.bounds, release.text(release.estimate))}, with a 95 % interval from "
            f"{release.interval_text()} that includes zero."
        )
    verb, ends = ("raised", (low, high)) if low > 0 else ("lowered", (-high, -low))
    return (
        f"On average, {treated} {verb} {on} by "
        f"{labels.amount(release.bounds, release.text(abs(release.estimate)))}, and most likely by "
        f"between {release.text(ends[0])} and {release.text(ends[1])} (95 % interval)."
    )


def facts(release: Release) -> dict[str, Any]:
    """What a page of the service says about a release."""
    numbers = [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in (0.2, 0.1, 0.05, 0.01)]
    numbers += release.arm_rows()
    parts = release.uncertainty
    numbers += [("sampling error (sd)", f"{parts.sampling:.3g}"), ("privacy noise (sd)", f"{parts.privacy:.3g}")]
    numbers += [("noise in the adjustment (sd)", f"{parts.nuisance:.3g}"), ("records", release.records)]
    numbers += [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    numbers += release.arms_in_words()
    return {
        "finding": finding(release),
        "estimate": release.text(release.estimate),
        "interval": release.interval_text(),
        "sources": _sources(release),
        "numbers": numbers,
        "methods": release.methods(),
    }


def figures(release: Release, most: int) -> list[tuple[str, Figure]]:
    """Captions and figures of a release: one figure, and of more those of balance and overlap."""
    caption = "The estimate with its 80 % and 95 % intervals, and where the uncertainty comes from."
    return [(caption, release_figure(release)), *(diagnostic_figures(release) if most > 1 else [])]


def _sources(release: Release) -> list[dict[str, str]]:
    shares = release.shares()
    return [
        {
            "name": SOURCES[name],
            "colour": _COLOURS[name],
            "share": f"{100 * shares[SOURCES[name]]:.0f} %",
            "words": words,
        }
        for name, words in EXPLANATIONS.items()
        if SOURCES[name] in shares
    ]
