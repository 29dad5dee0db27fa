"""What a request would cost and bring, from public numbers alone: free, and as often as anyone likes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from discreet.data.bounds import Bounds
from discreet.estimators.planning import Plan, plan
from discreet.estimators.registry import REGISTRY
from discreet.estimators.registry import Planned as Method
from discreet.exceptions import InvalidInput
from discreet.serve.domain.datasets import Dataset
from discreet.serve.domain.requests import LEAST, MOST, OFFERED, Kind, chosen, first_problem, models, options_of

# Epsilons of the figure.
LOW, HIGH, POINTS = 0.05, 10.0, 33
# Choice: outcomes that an interval is planned for where nothing is known: standard deviations in the outcome's range,
# up to the largest of an outcome with one mode, and shares of events.
_DEVIATIONS, _PREVALENCES = (0.02, 1.0 / 3.0), (0.02, 0.5)


class Planned(BaseModel):
    """A question about a request that might be made: what all kinds have in common."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    kind: Kind = Field(default="ate", description="What would be estimated.")
    epsilon: float | None = Field(default=None, ge=LEAST, le=MOST, description="Privacy budget; or leave it out.")
    delta: float | None = Field(default=None, ge=0, le=0.5, description="Chance that the budget may be missed.")
    width: float | None = Field(default=None, gt=0, description="Width of the interval to find an epsilon for.")
    n: int | None = Field(default=None, ge=10, le=10**12, description="Records to plan with, where n is private.")
    alpha: float = Field(default=0.05, gt=0, lt=1, description="One minus the interval's level.")
    outcome_sd: float | None = Field(default=None, gt=0, description="Standard deviation of the outcome, if known.")
    outcome_mean: float | None = Field(default=None, description="Mean of the outcome, if known.")
    prevalence: float | None = Field(default=None, gt=0, lt=1, description="Share of events of a yes/no outcome.")
    covariates: list[str] | None = Field(default=None, max_length=200, description="Covariates that would be used.")


if TYPE_CHECKING:
    AnyPlanned = Planned
else:
    AnyPlanned = Annotated[Union[tuple(models(Planned, needed=False).values())], Field(discriminator="kind")]  # noqa: UP007


class Question(RootModel[AnyPlanned]):
    """A question about a request that might be made, of any kind."""

    @model_validator(mode="before")
    @classmethod
    def _of_a_kind(cls, given: Any) -> Any:
        """Plans are about the average effect unless they say otherwise."""
        return {"kind": Planned.model_fields["kind"].default} | given if isinstance(given, dict) else given


def planned_of(plain: Mapping[str, Any]) -> Planned:
    """A question from plain JSON; what cannot be one is refused by the name of its first field that does not fit."""
    try:
        return Question.model_validate(dict(plain)).root
    except ValidationError as error:
        raise InvalidInput(first_problem(error.errors())) from None


@dataclass(frozen=True, slots=True)
class Answer:
    """A plan, and what has to be known about it."""

    plan: Plan
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        made = self.plan
        return {
            "estimator": made.estimator,
            "epsilon": made.epsilon,
            "delta": made.delta,
            "n": made.n,
            "alpha": made.alpha,
            # JSON has no infinity: an interval that is expected to be unbounded has no width.
            "width": made.width if math.isfinite(made.width) else None,
            "plus_minus": made.width / 2 if math.isfinite(made.width) else None,
            "noise_sd": made.noise_sd,
            "detectable_effect": made.detectable_effect,
            "width_without_privacy": made.without_privacy,
            "uncertainty": made.uncertainty.to_dict(),
            "assumptions": list(made.assumptions),
            "notes": list(self.notes),
        }


def answer(dataset: Dataset, asked: Planned) -> Answer:
    """The plan that answers a question."""
    facts = _facts(dataset, asked)
    if (asked.epsilon is None) == (asked.width is None):
        raise InvalidInput("plan takes either epsilon, or a width to find it for: give one of the two.")
    made = _plan(*facts, asked.epsilon, asked.width)
    _, note = _planned_as(asked.kind)
    unbounded = "The interval is expected to have no end: take more records, or a larger budget."
    return Answer(made, (*((note,) if note else ()), *(() if math.isfinite(made.width) else (unbounded,))))


def curve(dataset: Dataset, asked: Planned) -> list[tuple[float, float]]:
    """Epsilons and the widths that they buy."""
    facts = _facts(dataset, asked)
    step = (HIGH / LOW) ** (1 / (POINTS - 1))
    epsilons = [LOW * step**k for k in range(POINTS)]
    return [(epsilon, _plan(*facts, epsilon, None).width) for epsilon in epsilons]


def expected_range(dataset: Dataset, asked: Planned, made: Plan) -> tuple[float, float] | None:
    """The widths that outcomes of other standard deviations would have; None where it was said what the outcome is.

    From little that differs to the largest standard deviation of an outcome with one mode, a third of the range; of a
    yes/no outcome, from events that are rare to those that are as common as not.
    """
    if asked.outcome_sd is not None or asked.prevalence is not None:
        return None
    low, high = dataset.bounds.outcome
    if dataset.bounds.binary or (low, high) == (0.0, 1.0):
        others = [asked.model_copy(update={"prevalence": share}) for share in _PREVALENCES]
    else:
        others = [asked.model_copy(update={"outcome_sd": part * (high - low)}) for part in _DEVIATIONS]
    found = [_plan(*_facts(dataset, other), made.epsilon, None).width for other in others]
    return min(*found, made.width), max(*found, made.width)


def _planned_as(kind: str) -> tuple[Method, str]:
    """Whose plan holds for a kind, and the note that goes with it."""
    entry = OFFERED[kind]
    if entry.planned_as is None:
        raise InvalidInput(f"kind {kind!r} cannot be planned yet: plan 'ate', and expect a wider interval.")
    return entry.planned_as, entry.plan_note


def _facts(dataset: Dataset, asked: Planned) -> tuple[Any, ...]:
    n = dataset.n if dataset.n_public else (asked.n or dataset.n_about)
    if n is None:
        raise InvalidInput("n must be given: the number of records of this data set is private, so say what you guess.")
    bounds = chosen(dataset.bounds, asked.covariates)
    known = dataset.propensity if isinstance(dataset.propensity, float) else None
    method, _ = _planned_as(asked.kind)
    options: dict[str, Any] = {
        "n": n,
        "delta": asked.delta or None,
        "alpha": asked.alpha,
        "propensity": known,
        "outcome_sd": asked.outcome_sd,
        "outcome_mean": asked.outcome_mean,
        "prevalence": asked.prevalence,
        "neighbours": dataset.neighbours,
    }
    asked_of, own = options_of(asked), {option.name for option in REGISTRY[method].planning}
    by = json.dumps(asked_of.get("by", {})) if method == "uplift" else None
    # What a request of this kind chooses, as far as its plan asks for it; lists are kept as tuples.
    options |= {
        name: tuple(value) if isinstance(value, list) else value for name, value in asked_of.items() if name in own
    }
    return method, bounds, by, tuple(options.items())


@lru_cache(maxsize=20_000)
def _plan(
    method: Method,
    bounds: Bounds,
    by: str | None,
    options: tuple[tuple[str, Any], ...],
    epsilon: float | None,
    width: float | None,
) -> Plan:
    # Segments are text here, so that plans can be kept.
    cuts = None if by is None else json.loads(by)
    if method == "uplift" and not cuts:
        # Nobody has chosen segments yet: all records are one.
        return plan("difference-in-means", bounds=bounds, epsilon=epsilon, width=width, **dict(options))
    return plan(method, bounds=bounds, by=cuts, epsilon=epsilon, width=width, **dict(options))
