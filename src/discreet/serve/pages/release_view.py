"""A release in words and numbers, as its page shows it."""

from __future__ import annotations

from typing import Any

from discreet.releases.report import guarantee_facts, guess, kind_of
from discreet.serve.pages.rendering import minus


def described(made: Any) -> dict[str, Any]:
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
    return shared | facts | {name: minus(facts[name]) for name in ("estimate", "interval")}
