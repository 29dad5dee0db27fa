"""The page about several arms by segment, and what a service says of them."""

from __future__ import annotations

import json
from typing import Any

from discreet.releases.arms.segments import ArmSegmentsRelease
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.plots import segments_figure
from discreet.releases.wording import rounds

_CAPTION = "Effects against the first arm, by segment. Each 95 % interval is one for its own effect."
_AT_ONCE = "The same, with intervals that hold all of them at once."


def render_arm_segments(release: ArmSegmentsRelease, *, title: str | None = None) -> str:
    """The page: HTML with its style and figures inside, so that it needs no network."""
    return page(
        "effect.html",
        title=title or release.title,
        finding=arm_segments_finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "arms assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(caption, inline_figure(figure, caption)) for caption, figure in arm_segments_figures(release, 2)],
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


def arm_segments_finding(release: ArmSegmentsRelease) -> str:
    """What arms and segments say, in one sentence or two."""
    control = release.arms[0]
    averages = [
        f"{row.arm} {row.effect:.3g} ({row.low:.3g} to {row.high:.3g})" for row in release.averages(against=control)
    ]
    rows = release.contrasts(simultaneous=True, against=control)
    away = [row for row in rows if row.low > 0.0 or row.high < 0.0]
    count = f"{len(away)} of {len(rows)} effects by segment are away from zero, all taken together."
    return f"Against {control}, average effects are {', '.join(averages)}, with 95 % intervals. {count}"


def arm_segments_figures(release: ArmSegmentsRelease, most: int) -> list[tuple[str, Any]]:
    """Captions and figures: every effect with its interval, and with one that holds for all at once."""
    found = []
    for caption, at_once in ((_CAPTION, False), (_AT_ONCE, True)):
        labels, effects, ends = release.forest(simultaneous=at_once)
        found.append((caption, segments_figure(labels, effects, ends, "effect (95 % intervals)")))
    return found[:most]


def arm_segments_facts(release: ArmSegmentsRelease) -> dict[str, Any]:
    """What a page of the service says about them."""
    row = release.averages(against=release.arms[0])[0]
    return {
        "finding": arm_segments_finding(release),
        "estimate": f"{row.effect:.3g}",
        "interval": f"{row.low:.3g} to {row.high:.3g} ({row.arm} against {row.against})",
        "numbers": _numbers(release),
        "table": release.shown(),
        "methods": release.methods(),
    }


def _numbers(release: ArmSegmentsRelease) -> list[tuple[str, str]]:
    found = [
        (f"average effect, {row.arm} against {row.against}", f"{row.effect:.4g} ({row.low:.4g} to {row.high:.4g})")
        for row in release.averages()
    ]
    return [*found, ("segments", str(release.partition.count)), ("records", release.records)]
