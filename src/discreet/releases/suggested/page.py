"""The page about suggested bounds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.releases.page import guarantee_facts, guess, page
from discreet.releases.suggested.release import SuggestedBounds
from discreet.releases.wording import listed, rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def render_suggestion(release: SuggestedBounds, *, title: str | None = None) -> str:
    """The page about a suggestion: HTML with its style inside, so that it needs no network."""
    return page(
        "suggestion.html",
        title=title or release.title,
        finding=suggestion_finding(release),
        records=release.records.capitalize(),
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        columns=[(column.name, column.words, " ".join(column.remarks)) for column in release.columns],
        notes=release.notes,
        methods=release.methods(),
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        toml=release.to_toml(),
        json=json.dumps(release.to_dict(), indent=1, ensure_ascii=False),
    )


def suggestion_finding(release: SuggestedBounds) -> str:
    """What was found, in a sentence or two."""
    found = [column.name for column in release.columns if column.found]
    hidden = [column.name for column in release.columns if not column.found]
    words = f"Ranges or levels are suggested for {listed(found)}." if found else "Nothing stood out of the noise."
    return words + (f" Noise hides the values of {listed(hidden)}." if hidden and found else "")


def suggestion_facts(release: SuggestedBounds) -> dict[str, Any]:
    """What a page of the service says about a suggestion."""
    lines = [[column.name, column.words, " ".join(column.remarks)] for column in release.columns]
    return {
        "finding": suggestion_finding(release),
        "table": (["column", "suggestion", "remarks"], lines),
        "numbers": [("records", release.records)],
        "methods": release.methods(),
    }


def suggestion_figures(release: SuggestedBounds, most: int) -> list[tuple[str, Figure]]:
    """A suggestion is a table, and has no figures."""
    return []
