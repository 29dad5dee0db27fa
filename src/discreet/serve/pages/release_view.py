"""A release in words and numbers, as its page shows it."""

from __future__ import annotations

from typing import Any

from discreet.releases.page import guarantee_facts, guess, with_minus
from discreet.releases.report import kind_of


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
    }
    kind = kind_of(made)
    if kind is None:
        settings = [(name, str(value)) for name, value in made.settings.items()]
        return shared | {"finding": f"{made.method}.", "numbers": settings}
    facts = kind.facts(made)
    return shared | facts | {name: with_minus(facts[name]) for name in ("estimate", "interval")}
