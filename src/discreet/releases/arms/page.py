"""The page about several arms, and what a service says of them."""

from __future__ import annotations

import json
from typing import Any

from discreet.releases.arms.release import ArmsRelease
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.parts.labels import effect_axis, outcome
from discreet.releases.plots import segments_figure

_CAPTION = "Differences between the arms' mean outcomes. Each 95 % interval is one for its own difference."
_AT_ONCE = "The same, with intervals that hold all differences at once."


def render_arms(release: ArmsRelease, *, title: str | None = None) -> str:
    """The page about several arms: HTML with its style and figures inside, so that it needs no network."""
    return page(
        "effect.html",
        title=title or release.title,
        finding=arm_finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "arms assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(caption, inline_figure(figure, caption)) for caption, figure in arm_figures(release, 2)],
        table=release.shown(),
        notes=release.notes,
        methods=release.methods(),
        numbers=[*_means(release), ("records", release.records)],
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in release.rounds()
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=1, ensure_ascii=False),
    )


def arm_finding(release: ArmsRelease) -> str:
    """What the arms say, in one sentence or two."""
    rows = [row for row in release.contrasts(simultaneous=True) if row.low > 0.0 or row.high < 0.0]
    if not rows:
        return "The data do not show that any two arms differ, all differences taken together."
    words = [
        f"{row.arm} raised" if row.effect > 0.0 else f"{row.arm} lowered"
        for row in rows
        if row.against == release.arms[0]
    ]
    count = (
        f"{len(rows)} of {len(release.contrasts())} differences between arms are away from zero, all taken together."
    )
    if not words:
        return f"The data do not show that an arm differs from {release.arms[0]}. But {count}"
    return f"Compared with {release.arms[0]}, {', '.join(words)} {outcome(release.bounds)}. In all, {count}"


def arm_figures(release: ArmsRelease, most: int) -> list[tuple[str, Any]]:
    """Captions and figures: every difference with its interval, and with one that holds for all at once."""
    found = []
    for caption, at_once in ((_CAPTION, False), (_AT_ONCE, True)):
        labels, effects, ends = release.forest(simultaneous=at_once)
        found.append(
            (caption, segments_figure(labels, effects, ends, f"{effect_axis(release.bounds)} (95 % intervals)"))
        )
    return found[:most]


def arm_facts(release: ArmsRelease) -> dict[str, Any]:
    """What a page of the service says about several arms."""
    row = release.contrasts()[0]
    return {
        "finding": arm_finding(release),
        "estimate": f"{row.effect:.3g}",
        "interval": f"{row.low:.3g} to {row.high:.3g} ({row.arm} against {row.against})",
        "numbers": [*_means(release), ("records", release.records)],
        "table": release.shown(),
        "methods": release.methods(),
    }


def _means(release: ArmsRelease) -> list[tuple[str, str]]:
    return [
        (f"mean outcome, {arm}", f"{mean:.4g} ({low:.4g} to {high:.4g})")
        for arm, (mean, low, high) in release.means().items()
    ]
