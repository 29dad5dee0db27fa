"""A release in words and numbers, as its page shows it."""

from __future__ import annotations

from typing import Any

from discreet.releases.diagnostics.diagnosed import Diagnosed
from discreet.releases.page import guarantee_facts, guess, with_minus
from discreet.releases.report import kind_of
from discreet.serve.pages.figures import charts_of


def release_facts(made: Any) -> dict[str, Any]:
    """What a page about a release says."""
    shared: dict[str, Any] = {
        "guarantee": guarantee_facts(made.guarantee),
        "guess": guess(made.guarantee),
        "notes": made.notes,
        "bounds": made.bounds,
        "estimate": None,
        "interval": None,
        "sources": [],
        "table": None,
        "numbers": [],
        "methods": None,
        "diagnostics": made.arms_in_words() if isinstance(made, Diagnosed) else [],
        "title": None,
    }
    shared |= charts_of(made)
    kind = kind_of(made)
    if kind is None:
        settings = [(name, str(value)) for name, value in made.settings.items()]
        return shared | {"finding": f"{made.method}.", "numbers": settings}
    facts = kind.facts(made)
    return shared | {"title": made.title} | facts | {name: with_minus(facts[name]) for name in ("estimate", "interval")}
