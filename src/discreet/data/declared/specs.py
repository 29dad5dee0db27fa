"""Columns in files of bounds: what is declared of one as plain values, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from discreet.data.columns import Levels, Range
from discreet.data.declared.dates import DateRange, is_date
from discreet.exceptions import InvalidInput


@contextmanager
def naming(argument: str) -> Iterator[None]:
    """Say which argument a refusal is about."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{argument}: {error}") from None


def spec_to_dict(spec: Range | Levels) -> dict[str, Any]:
    """What is declared of a column, JSON-ready."""
    if isinstance(spec, Range):
        out: dict[str, Any] = {"low": spec.written(spec.low), "high": spec.written(spec.high)}
        if spec.fill is not None:
            out["fill"] = spec.written(spec.fill)
    else:
        out = {"levels": list(spec.levels)}
        if spec.other is not None:
            out["other"] = spec.other
        if spec.fill is not None:
            out["fill"] = spec.fill
    if spec.missing is not None:
        out["missing"] = spec.missing
    return out


def spec_from_dict(what: str, facts: object) -> Range | Levels:
    """What ``spec_to_dict`` wrote; keys that it does not know are refused by name."""
    if facts == {}:
        raise InvalidInput(f"{what} is not filled in: give low and high, or levels, or delete its part.")
    with_levels = isinstance(facts, Mapping) and "levels" in facts
    needed = {"levels"} if with_levels else {"low", "high"}
    facts = table_of(what, facts, needed | {"fill", "missing"} | ({"other"} if with_levels else set()), needed)
    with naming(what):
        dated = not with_levels and is_date(facts["low"]) and is_date(facts["high"])
        return (Levels if with_levels else DateRange if dated else Range)(**facts)


def outcome_from_dict(facts: object) -> dict[str, Any]:
    """What bounds say of the outcome, as arguments of `Bounds`."""
    with_levels = isinstance(facts, Mapping) and "levels" in facts
    needed = {"levels"} if with_levels else {"low", "high"}
    outcome = table_of("outcome", facts, needed | {"fill"}, needed)
    if with_levels and not isinstance(outcome["levels"], list):
        raise InvalidInput("outcome: levels must be a list of two labels, the event second: write them in brackets.")
    declared = outcome["levels"] if with_levels else (outcome["low"], outcome["high"])
    return {"outcome": declared, "outcome_fill": outcome.get("fill")}


def table_of(what: str, facts: object, known: set[str] | None = None, needed: set[str] | None = None) -> dict[str, Any]:
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
