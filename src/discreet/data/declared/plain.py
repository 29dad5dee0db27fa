"""Declared columns, read back from plain JSON; what cannot be read is refused by name."""

from collections.abc import Mapping
from typing import Any

from discreet.data.columns import Levels, Range
from discreet.data.declared.dates import DateRange, is_date
from discreet.exceptions import InvalidInput


def spec_from_dict(what: str, facts: object) -> Range | Levels:
    if facts == {}:
        raise InvalidInput(f"{what} is not filled in: give low and high, or levels, or delete its part.")
    with_levels = isinstance(facts, Mapping) and "levels" in facts
    needed = {"levels"} if with_levels else {"low", "high"}
    facts = table(what, facts, needed | ({"other", "fill"} if with_levels else {"fill"}), needed)
    try:
        dated = not with_levels and is_date(facts["low"]) and is_date(facts["high"])
        return (Levels if with_levels else DateRange if dated else Range)(**facts)
    except InvalidInput as error:
        raise InvalidInput(f"{what}: {error}") from None


def outcome_from_dict(facts: object) -> dict[str, Any]:
    with_levels = isinstance(facts, Mapping) and "levels" in facts
    needed = {"levels"} if with_levels else {"low", "high"}
    outcome = table("outcome", facts, needed | {"fill"}, needed)
    if with_levels and not isinstance(outcome["levels"], list):
        raise InvalidInput("outcome: levels must be a list of two labels, the event second: write them in brackets.")
    declared = outcome["levels"] if with_levels else (outcome["low"], outcome["high"])
    return {"outcome": declared, "outcome_fill": outcome.get("fill")}


def table(what: str, facts: object, known: set[str] | None = None, needed: set[str] | None = None) -> dict[str, Any]:
    """The facts as a dictionary, if it has the needed keys and no unknown ones."""
    if not isinstance(facts, Mapping):
        raise InvalidInput(f"{what} must be a table of keys and values: compare it with a file written by Bounds.save.")
    for key in facts:
        if known is not None and key not in known:
            raise InvalidInput(f"{what} has an unknown key {key!r}: use {', '.join(sorted(known))}.")
    for key in sorted(needed or ()):
        if key not in facts:
            raise InvalidInput(f"{what} lacks the key {key!r}: add it.")
    return dict(facts)
