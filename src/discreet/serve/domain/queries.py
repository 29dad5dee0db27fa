"""Released functions, asked about people: as often as anyone likes, because a release costs nothing more."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Levels
from discreet.exceptions import InvalidInput
from discreet.papers.dp_cate.release import AnswersRelease
from discreet.releases.protocol import AnswersCurves, AnswersEffects, AnswersIntervals
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


def curves(made: Any) -> list[dict[str, Any]]:
    """Where the marks of the figures stand: the effect along each covariate, with its band."""
    if not isinstance(made, AnswersCurves):
        return []
    names = sorted(made.bounds.names, key=lambda name: -made.importance[name])
    return [_curve(made, name) for name in names]


def _curve(made: AnswersCurves, name: str) -> dict[str, Any]:
    curve = made.curve(name, points=61)
    width, height, left, right, top, bottom = 340.0, 200.0, 46.0, 12.0, 12.0, 30.0
    low, high = min(float(np.min(curve.low)), 0.0), max(float(np.max(curve.high)), 0.0)
    margin = 0.06 * (high - low) or 1.0
    low, high = low - margin, high + margin
    steps = len(curve.values)
    levels = isinstance(made.bounds.columns[made.bounds.names.index(name)], Levels)

    def x(place: int) -> float:
        part = (place + 0.5) / steps if levels else place / (steps - 1)
        return round(left + part * (width - left - right), 1)

    def y(value: float) -> float:
        return round(top + (high - value) / (high - low) * (height - top - bottom), 1)

    marks = [(x(k), y(float(curve.effect[k])), y(float(curve.low[k])), y(float(curve.high[k]))) for k in range(steps)]
    line = " ".join(f"{'L' if k else 'M'}{a} {b}" for k, (a, b, _, _) in enumerate(marks))
    upper = " ".join(f"{'L' if k else 'M'}{a} {d}" for k, (a, _, _, d) in enumerate(marks))
    lower = " ".join(f"L{a} {c}" for a, _, c, _ in reversed(marks))
    ends = [(x(k), str(level)) for k, level in enumerate(curve.values)] if levels else []
    if not levels:
        ends = [(x(k), f"{curve.values[k]:.3g}") for k in (0, steps // 2, steps - 1)]
    return {
        "name": name,
        "share": made.importance[name],
        "levels": levels,
        "width": width,
        "height": height,
        "left": left,
        "right": width - right,
        "bottom": height - bottom,
        "marks": marks,
        "line": line,
        "band": f"{upper} {lower} Z",
        "zero": y(0.0),
        "x_ticks": ends,
        "y_ticks": [(y(value), f"{value:.3g}") for value in _ticks(low, high)],
        "table": [
            (f"{v:.3g}" if isinstance(v, float) else str(v), f"{e:.3g}", f"{a:.3g}", f"{b:.3g}")
            for v, e, a, b in list(zip(curve.values, curve.effect, curve.low, curve.high, strict=True))[
                :: 1 if levels else 12
            ]
        ],
    }


def _ticks(low: float, high: float) -> list[float]:
    import math

    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 5)
    return [step * k for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
