"""Commands that say what to expect before anything is spent."""

from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from discreet.cli._console import Alpha, BoundsFile, Relation, command
from discreet.estimators.registry import BY, REGISTRY, Entry

# What all plans take.
_COMMON: dict[str, tuple[Any, Any]] = {
    "epsilon": (
        Annotated[float | None, typer.Option(help="Privacy budget; leave it out to solve for it.")],
        None,
    ),
    "delta": (Annotated[float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")], None),
    "alpha": (Alpha, 0.05),
    "width": (
        Annotated[float | None, typer.Option(help="Interval width to reach, where epsilon is left out.")],
        None,
    ),
    "propensity": (Annotated[float | None, typer.Option(help="Probability of treatment if known by design.")], None),
    "outcome_sd": (
        Annotated[float | None, typer.Option(help="Standard deviation of the outcome, if roughly known.")],
        None,
    ),
    "outcome_mean": (Annotated[float | None, typer.Option(help="Mean of the outcome, if roughly known.")], None),
    "prevalence": (
        Annotated[float | None, typer.Option(help="Share of events of a yes/no outcome, if roughly known.")],
        None,
    ),
    "treated": (Annotated[float, typer.Option(help="Expected share of treated.")], 0.5),
    "cap": (Annotated[float | None, typer.Option(help="What larger outcomes will count as.")], None),
    "by": (Annotated[list[str] | None, typer.Option(help=f"For uplift. {BY.help}")], None),
    "neighbours": (Relation, "replace-one"),
}


def add_plans(app: typer.Typer) -> None:
    """Add ``plan`` with a command for each estimator that can be planned."""
    plans = typer.Typer(no_args_is_help=True, help="See what to expect before anything is spent.")
    for entry in REGISTRY.values():
        if entry.command and entry.planned_as == entry.name:
            _add_plan(plans, entry)
    app.add_typer(plans, name="plan")


def _add_plan(plans: typer.Typer, entry: Entry) -> None:
    def plan_(**asked: Any) -> None:
        from discreet.data.bounds import Bounds
        from discreet.estimators.planning import plan
        from discreet.estimators.uplift import segments_in_words

        # A grid of times in words, as the estimator's own command takes it.
        times = {"times": asked["times"]} if "times" in asked else {}
        asked |= entry.arguments(times) if times else {}
        by, public = asked.pop("by"), Bounds.load(asked.pop("bounds"))
        planned = plan(entry.name, bounds=public, by=segments_in_words(by) if by else None, **asked)
        typer.echo(planned.summary())

    parameters = list(_parameters(entry))
    # Typer reads options from a function's signature.
    plan_.__dict__["__signature__"] = Signature(parameters)
    plan_.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    plan_.__doc__ = (
        f"Interval width, noise and detectable effect of 'discreet {entry.name}', from public numbers alone."
    )
    command(plans, entry.name)(plan_)


def _parameters(entry: Entry) -> Iterator[Parameter]:
    """What the command takes, in the order in which help lists it."""
    n = Annotated[int, typer.Option(help="Number of records.")]
    yield Parameter("n", Parameter.KEYWORD_ONLY, annotation=n)
    yield Parameter("bounds", Parameter.KEYWORD_ONLY, annotation=BoundsFile)
    for name, (annotation, default) in _COMMON.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
    for option in entry.planning:
        shown: Any = Annotated[option.type, typer.Option(help=option.help)]
        yield Parameter(option.name, Parameter.KEYWORD_ONLY, annotation=shown, default=option.default)
