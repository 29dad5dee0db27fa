"""Requests and plans as forms write them: text in, checked models out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from discreet.data.bounds import Bounds, Range
from discreet.exceptions import InvalidInput
from discreet.serve.domain.plans import Planned, planned_of
from discreet.serve.domain.requests import Asked, asked_of
from discreet.serve.pages import asks

T = TypeVar("T")
# What an earlier report may say of the outcome.
_KNOWN = ("outcome_sd", "outcome_mean", "prevalence")
_PROBLEMS = {
    "kind": "the form has a value that cannot be used: choose what to estimate from its list.",
    "epsilon": "epsilon must be a number from 0.001 to 100: smaller is more private.",
    "delta": "delta must be a number from 0 to 0.5, far below one over the number of records: 1e-6 is usual.",
    "width": "± must be a positive number, in the outcome's unit.",
    "outcome_sd": "the standard deviation must be a positive number, in the outcome's unit: leave it out if unknown.",
    "outcome_mean": "the mean must be a number in the outcome's range: leave it out if unknown.",
    "prevalence": "the share of events must lie between 0 and 1: leave it out if unknown.",
    "horizon": "the time up to which events count must be a number in the range of times: write one.",
    "cap": "larger outcomes count as a number in the outcome's range, or write auto: check it, or leave it out.",
    "clusters": "the number of segments to find must be a whole number from 2 to 64: check it, or declare segments.",
    "n": "n must be a whole number of at least 10: it is the number of records that you expect.",
    "by": "segments must be a number of cuts, a choice of the list, or edges: choose again.",
}


def fields(given: Mapping[str, Any], bounds: Bounds) -> dict[str, Any]:
    """What a form says about a request, without empty fields."""
    out: dict[str, Any] = {"kind": str(given.get("kind") or "ate")}
    for name in ("epsilon", "delta", "n"):
        text = str(given.get(name) or "").strip()
        if text:
            out[name] = text
    names = [name for j, name in enumerate(bounds.declared) if given.get(f"use-{j}")]
    if names and len(names) < len(bounds.declared):
        out["covariates"] = names
    cuts = {name: _cut(str(given.get(f"by-{j}") or "")) for j, name in enumerate(bounds.declared)}
    if out["kind"] == "uplift":
        out["by"] = {name: cut for name, cut in cuts.items() if cut is not None}
        if "clusters" in (found := asks.read("uplift", given)) and not out["by"]:
            del out["by"]
        return out | found
    return out | asks.read(out["kind"], given)


def asked(given: Mapping[str, Any], bounds: Bounds) -> Asked:
    """The request of a form."""
    out = fields(given, bounds)
    out.pop("n", None)
    if out["kind"] == "uplift" and "delta" not in out:
        out["delta"] = None
    return _checked(asked_of, out)


def planned(given: Mapping[str, Any], bounds: Bounds) -> Planned:
    """The plan that a form asks about: at an epsilon, or for an interval of plus or minus something."""
    out = fields(given, bounds)
    for name in _KNOWN:
        text = str(given.get(name) or "").strip()
        if text:
            out[name] = text
    half = str(given.get("half") or "").strip()
    if half and given.get("solve"):
        out.pop("epsilon", None)
        try:
            out["width"] = 2.0 * float(half) * unit_of(bounds)[0]
        except ValueError:
            raise InvalidInput(_PROBLEMS["width"]) from None
    out.setdefault("epsilon", None)
    return _checked(planned_of, out)


def unit_of(bounds: Bounds) -> tuple[float, str]:
    """Size and name of the unit in which people say how wide an interval may be."""
    return (
        (0.01, "points") if bounds.outcome == (0.0, 1.0) else (1.0, bounds.unit("outcome") or "in the outcome's unit")
    )


def person(given: Mapping[str, Any], bounds: Bounds) -> dict[str, Any]:
    """One person's covariates from a form, by position: names of columns are nobody's field names."""
    out: dict[str, Any] = {}
    for j, (name, spec) in enumerate(bounds.declared.items()):
        text = str(given.get(f"x-{j}") or "").strip()
        if isinstance(spec, Range):
            try:
                out[name] = float(text)
            except ValueError:
                raise InvalidInput(f"{name} must be a number from {spec.low:g} to {spec.high:g}: write one.") from None
        else:
            places = {str(k): level for k, level in enumerate(spec.levels)}
            if text not in places:
                raise InvalidInput(f"{name} must be one of the levels of the list: choose one.")
            out[name] = places[text]
    return out


def _cut(text: str) -> Any:
    if text in ("", "none"):
        return None
    if text in ("auto", "levels"):
        return text
    if "," in text:
        try:
            return [float(edge) for edge in text.split(",")]
        except ValueError:
            raise InvalidInput(_PROBLEMS["by"]) from None
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _checked(read: Callable[[dict[str, Any]], T], out: dict[str, Any]) -> T:
    try:
        return read(out)
    except InvalidInput as error:
        first = re.split(r"[:. ]", str(error))[0]
        raise InvalidInput(_PROBLEMS.get(first, str(error))) from None
