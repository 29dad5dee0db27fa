"""What all releases share: how they put events into words."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from discreet.data.bounds import Bounds
from discreet.privacy.budget import ClaimedEvent, Event, GaussianEvent, LaplaceEvent, ParallelEvent
from discreet.privacy.guarantee import Guarantee

RELATION = {
    "replace-one": "neighbouring data sets differ in the content of one record",
    "add-remove": "neighbouring data sets differ in the presence of one record",
}
STATUS = {
    "proved": "",
    "claimed": " The guarantee is claimed, not proved.",
    "test": " This result was drawn with seeded noise: it is a test, and it is not private.",
}


def _spending(event: Event) -> tuple[int, float | None]:
    if isinstance(event, GaussianEvent):
        return event.dimension, event.mu**2
    if isinstance(event, LaplaceEvent):
        return event.dimension, event.epsilon
    return 0, None


def leaves(events: Iterable[Event]) -> Iterator[Event]:
    """Events with those of disjoint parts in place."""
    for event in events:
        if isinstance(event, ParallelEvent):
            for part in event.parts:
                yield from leaves(part)
        else:
            yield event


def rounds(events: tuple[Event, ...], prefix: str = "") -> Iterator[tuple[str, int, float | None]]:
    spent = [_spending(event) for event in events]
    whole = math.fsum(cost or 0.0 for _, cost in spent)
    alike = len({type(event) for event in events}) == 1
    for event, (count, cost) in zip(events, spent, strict=True):
        if isinstance(event, ParallelEvent):
            for number, part in enumerate(event.parts, 1):
                yield from rounds(part, f"{prefix}part {number}, ")
        else:
            yield prefix + event.name, count, cost / whole if cost is not None and whole and alike else None


def guarantee_words(guarantee: Guarantee) -> str:
    """Budget, unit and relation in brackets, and a sentence where nothing is proved."""
    return (
        f"{guarantee.budget} (privacy unit: {guarantee.unit}; {RELATION[guarantee.neighbours]})."
        f"{STATUS[guarantee.status]}"
    )


def clipping_words(bounds: Bounds, covariates: Iterable[str] = (), cap: float | None = None) -> str:
    """What was done to outcomes and covariates before anything was computed."""
    names = list(covariates)
    if bounds.outcome_levels is not None:
        first, second = bounds.outcome_levels.levels
        more = f", and covariates ({listed(names)}) clipped to their declared ranges" if names else ""
        return f"Before anything was computed, outcomes were coded as 0 ({first}) and 1 ({second}){more}"
    low, high = bounds.outcome
    more = f" and covariates ({listed(names)}) to theirs" if names else ""
    more += "" if cap is None else f"; outcomes above {cap:g} then counted as {cap:g}"
    return f"Before anything was computed, outcomes were clipped to the declared range from {low:g} to {high:g}{more}"


SUMS = (
    "All that was computed from the records are sums over them: each record's contribution was clipped to a fixed set"
)
"""What every proved estimator may say of itself."""


def mechanism_words(events: tuple[Event, ...], sums: str = SUMS) -> str:
    """What was released, with how much noise, in sentences."""
    flat = list(leaves(events))
    if any(isinstance(event, ClaimedEvent) for event in flat):
        return f"Noise was added as the method's authors prescribe ({listed(event.name for event in flat)})."
    divided = any(isinstance(event, ParallelEvent) for event in events)
    parts = "Records were divided into disjoint parts without regard to their content, each with its own budget. "
    words = "; ".join(_round_words(*round_) for round_ in rounds(events))
    return (
        f"{parts if divided else ''}{sums}, and {_mechanism(flat)} was added (in brackets: how "
        f"many numbers, and their share of the budget): {words}."
    )


def _mechanism(events: list[Event]) -> str:
    if all(isinstance(event, GaussianEvent) for event in events):
        return "discrete Gaussian noise, calibrated by exact accounting of Gaussian differential privacy,"
    if all(isinstance(event, LaplaceEvent) for event in events):
        return "discrete Laplace noise, whose epsilons add up,"
    return "noise whose privacy losses were composed numerically"


def _round_words(name: str, count: int, share: float | None) -> str:
    details = [f"{count:,}"] if count else []
    details += [f"{100 * share:.3g} %"] if share is not None else []
    return f"{name} ({', '.join(details)})" if details else name


def with_decimals(value: float, scale: float) -> str:
    """A number with as many decimals as a standard error gives meaning to."""
    scale = scale or abs(value)
    decimals = 1 - math.floor(math.log10(scale)) if scale else 0
    text = f"{value:.3g}" if decimals > 9 else f"{value:,.{max(decimals, 0)}f}"
    return text.removeprefix("-") if not text.strip("-0.") else text


def listed(parts: Any) -> str:
    *first, last = list(parts)
    return f"{', '.join(first)} and {last}" if first else last


def columns(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


def pair(value: object) -> tuple[float, float] | None:
    """Two numbers, if that is what a file holds there: descriptions are free, so nothing relies on their shape."""
    if isinstance(value, list) and len(value) == 2 and all(isinstance(end, int | float) for end in value):
        return value[0], value[1]
    return None


def error_words(parts: Mapping[str, float]) -> Iterator[str]:
    """Sources of an average effect's error, with their standard deviations."""
    yield f"the sampling error (standard error {parts['sampling']:.3g})"
    yield f"the noise added to the estimate (standard deviation {parts['privacy']:.3g})"
    if parts["nuisance"]:
        yield f"the noise in the adjustment (standard deviation {parts['nuisance']:.3g})"
