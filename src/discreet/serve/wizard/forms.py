"""What the forms of the wizard say: templates of ranges, and the bounds that fields declare."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, NamedTuple

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidInput
from discreet.serve.wizard.columns import Column


class Template(NamedTuple):
    """A range that many studies have, from what is generally known."""

    words: str
    low: float
    high: float
    unit: str


# Choice: ranges beyond which hardly anybody is, as textbooks have them; a curator changes what does not fit.
TEMPLATES = (
    Template("age of adults, 18 to 110 years", 18, 110, "years"),
    Template("age, 0 to 110 years", 0, 110, "years"),
    Template("share, 0 to 1", 0, 1, ""),
    Template("percentage, 0 to 100 %", 0, 100, "%"),
    Template("score, 0 to 10", 0, 10, "points"),
    Template("score, 0 to 20", 0, 20, "points"),
    Template("score, 0 to 100", 0, 100, "points"),
    Template("days, 0 to 40", 0, 40, "days"),
    Template("days of a year, 0 to 365", 0, 365, "days"),
    Template("systolic blood pressure, 40 to 250 mmHg", 40, 250, "mmHg"),
    Template("heart rate, 20 to 250 per minute", 20, 250, "per minute"),
    Template("body temperature, 30 to 43 °C", 30, 43, "°C"),
    Template("body mass index, 10 to 70 kg/m²", 10, 70, "kg/m²"),
    Template("income a year, 0 to 200,000", 0, 200_000, ""),
)
ROLES = {
    "instrument": "Instrument",
    "before": "Outcome before the treatment",
    "event": "Whether the time is an event's",
}
ROLES |= {"weight": "Survey weight"}


def covariates(given: Mapping[str, Any], columns: list[Column]) -> list[tuple[int, Column]]:
    """Places and columns that are ticked as covariates and are nothing else."""
    taken = {given.get("outcome"), given.get("treatment"), *(given.get(f"role-{role}") for role in ROLES)}
    return [(j, column) for j, column in enumerate(columns) if given.get(f"use-{j}") and column.name not in taken]


def check_columns(given: Mapping[str, Any], columns: list[Column]) -> None:
    """Refuse what the second step cannot go on with."""
    known = {column.name for column in columns}
    for role in ("outcome", "treatment"):
        if given.get(role) not in known:
            raise InvalidInput(f"{role} must be one of the columns: choose it from the list.")
    if given["outcome"] == given["treatment"]:
        raise InvalidInput("outcome and treatment must be two columns: choose another for one of them.")


def bounds_from(given: Mapping[str, Any], columns: list[Column]) -> Bounds:
    """The bounds that the fields declare; what is missing or wrong is refused by the column's name."""
    outcome = _spec(given, "y", "outcome")
    declared, labels, units = {}, {}, {}
    for j, column in covariates(given, columns):
        declared[column.name] = _spec(given, f"c-{j}", column.name)
        labels[column.name], units[column.name] = _text(given, f"c-{j}-label"), _text(given, f"c-{j}-unit")
    labels |= {name: _text(given, f"{key}-label") for name, key in (("outcome", "y"), ("treatment", "t"))}
    units["outcome"] = _text(given, "y-unit")
    arms = [_level(part) for part in _text(given, "t-levels").split(",") if part.strip()]
    return Bounds(
        outcome=outcome,
        covariates=declared,
        propensity=(_number(given, "overlap-low", "overlap"), _number(given, "overlap-high", "overlap")),
        treatment=tuple(arms) if arms and arms != [0, 1] else None,
        labels={name: text for name, text in labels.items() if text},
        units={name: text for name, text in units.items() if text},
    )


def new_dataset(given: Mapping[str, Any], columns: list[Column]) -> dict[str, Any]:
    """The fields of a new data set."""
    further = {role: given[f"role-{role}"] for role in ROLES if given.get(f"role-{role}")}
    known = _text(given, "known")
    out: dict[str, Any] = {name: _text(given, name) for name in ("id", "title", "about", "source")}
    out |= {"outcome": given["outcome"], "treatment": given["treatment"], "columns": further}
    out |= {"bounds": bounds_from(given, columns).to_dict(), "propensity": _known(known) if known else None}
    out |= {"epsilon": _text(given, "epsilon"), "delta": _text(given, "delta") or None}
    out |= {"records_are_public": given.get("count") != "private", "admits_claimed": bool(given.get("claimed"))}
    return out | {"records_about": _text(given, "n_about") or None}


def short_name(source: str) -> str:
    """A short name to begin with, from the name of the file or table."""
    last = re.split(r"[/#.\\]", re.sub(r"(\.(csv|tsv|parquet|gz))+$", "", source.lower()))[-1]
    made = re.sub(r"[^a-z0-9]+", "-", last).strip("-")
    return (made if made[:1].isalpha() else f"data-{made}").strip("-")[:40]


def _spec(given: Mapping[str, Any], key: str, name: str) -> Any:
    """A range or levels."""
    if given.get(f"{key}-kind") == "levels":
        levels = [_level(part) for part in _text(given, f"{key}-levels").split(",") if part.strip()]
        if not levels:
            raise InvalidInput(f"{name}: write its levels, separated by commas, as the records have them.")
        if len({isinstance(level, str) for level in levels}) > 1:
            levels = [str(level) for level in levels]
        return levels
    low, high = _text(given, f"{key}-low"), _text(given, f"{key}-high")
    if not low or not high:
        raise InvalidInput(
            f"{name}: declare the smallest and the largest value, from what is known without the records."
        )
    if _is_date(low) and _is_date(high):
        return (low, high)
    return (_number(given, f"{key}-low", name), _number(given, f"{key}-high", name))


def _text(given: Mapping[str, Any], key: str) -> str:
    return str(given.get(key) or "").strip()


def _number(given: Mapping[str, Any], key: str, name: str) -> float:
    try:
        return float(_text(given, key))
    except ValueError:
        raise InvalidInput(f"{name}: its ends must be numbers, such as 0 and 40, or dates like 2020-01-31.") from None


def _level(text: str) -> Any:
    """A level: a whole number where it reads as one, else text."""
    stripped = text.strip()
    return int(stripped) if re.fullmatch(r"-?\d{1,15}", stripped) else stripped


def _known(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True
