"""Released functions, asked about people: as often as anyone likes, because a release costs nothing more."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import Any

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels, Spec
from discreet.exceptions import InvalidInput
from discreet.papers.dp_cate.release import AnswersRelease
from discreet.releases.protocol import AnswersEffects, AnswersIntervals
from discreet.serve.domain import interactive_functions as functions
from discreet.serve.domain.releases import rows_of
from discreet.serve.domain.users import Identity
from discreet.serve.service import Service


def asks(made: Any) -> bool:
    """Whether a release can be asked about people."""
    return isinstance(made, AnswersEffects)


def secret(made: Any) -> bool:
    """Whether asking it writes to the database."""
    return isinstance(made, AnswersRelease)


def answers(
    service: Service, identity: Identity, release: str, rows: list[dict[str, Any]], alpha: float = 0.05
) -> list[dict[str, float]]:
    """Effects for people, with intervals where the release has any."""
    made = service.shelf.get(service.engine, release)
    X = rows_of(rows, made.bounds)
    if isinstance(made, AnswersIntervals):
        return _triples(*made.effect_with_interval(X, alpha))
    if secret(made):
        return [{"effect": effect} for effect in functions.ask(service, identity, release, X, made.bounds).tolist()]
    return [{"effect": effect} for effect in made.effect(X).tolist()]


def _triples(effects: Float, low: Float, high: Float) -> list[dict[str, float]]:
    found = zip(effects.tolist(), low.tolist(), high.tolist(), strict=True)
    return [{"effect": effect, "low": a, "high": b} for effect, a, b in found]


def published(service: Service, release: str) -> Any:
    """The release as it is now: answers of a secret function belong to it as soon as they were given."""
    from dataclasses import replace

    made = service.shelf.get(service.engine, release)
    if secret(made):
        return replace(made, effects=functions.answered(service, release))
    return made


def rows_in(body: bytes, bounds: Bounds, most: int) -> list[dict[str, Any]]:
    """People in a CSV file: a head that names exactly the declared covariates, and a line each."""
    try:
        reader = csv.reader(io.StringIO(body.decode("utf-8-sig"), newline=""), strict=True)
        head = [name.strip() for name in next(reader, [])]
        if sorted(head) != sorted(bounds.declared):
            raise InvalidInput(f"the file's first line must name exactly {', '.join(bounds.declared)}: check it.")
        rows = []
        for line in reader:
            if not line:
                continue
            if len(line) != len(head):
                raise InvalidInput("every line of the file must have as many fields as the first: check it.")
            rows.append(dict(zip(head, line, strict=True)))
            if len(rows) > most:
                raise InvalidInput(f"the file has more than {most:,} lines: send it in parts.")
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInput("the file is not CSV in UTF-8 with commas and double quotes: save it so.") from None
    if not rows:
        raise InvalidInput("the file has no line below its first: give at least one person.")
    return [_typed(row, bounds) for row in rows]


def _typed(row: dict[str, str], bounds: Bounds) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, spec in bounds.declared.items():
        text = row[name].strip()
        if isinstance(spec, Levels) and spec.is_text:
            out[name] = text
            continue
        try:
            out[name] = float(text)
        except ValueError:
            raise InvalidInput(f"column {name!r} of the file must hold numbers: check every line.") from None
    return out


def middle(made: Any) -> dict[str, Any]:
    """Somebody in the middle of everything, for the form to begin with."""
    columns = made.bounds.declared.items()
    return {name: 0 if isinstance(spec, Levels) else spec.middle for name, spec in columns}


def outside(rows: list[dict[str, Any]], bounds: Bounds) -> list[list[str]]:
    """For each row the covariates outside of what was declared: they count as the nearer end, or as "other"."""
    specs = dict(zip(bounds.names, bounds.columns, strict=True))
    return [[name for name, spec in specs.items() if _is_outside(row[name], spec)] for row in rows]


def _is_outside(value: Any, spec: Spec) -> bool:
    if isinstance(spec, Levels):
        return value not in spec.levels
    return isinstance(value, int | float) and not spec.low <= value <= spec.high


def outside_words(name: str, bounds: Bounds) -> str:
    """What is wrong with a covariate that lies outside, and what was done about it."""
    spec, label = bounds.columns[bounds.names.index(name)], bounds.label(name)
    if isinstance(spec, Levels):
        return f"{label} is none of its declared levels: the answer is that for {spec.other}."
    ends = f"{spec.written(spec.low)} to {spec.written(spec.high)}"
    return f"{label} lies outside of its declared range, {ends}: the answer is that for the nearer end."


def warnings(rows: list[dict[str, Any]], bounds: Bounds) -> list[str]:
    """A sentence for each covariate that lies outside in some row, with how many rows these are."""
    counts = Counter(name for names in outside(rows, bounds) for name in names)
    return [f"{count} of {len(rows)} rows: {outside_words(name, bounds)}" for name, count in counts.items()]
