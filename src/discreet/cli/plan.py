"""Commands that say what to expect before anything is spent."""

from typing import Annotated

import typer

from discreet.cli._console import Alpha, BoundsFile, Relation, command
from discreet.estimators.registry import BY, REGISTRY, Planned

Segments = Annotated[list[str] | None, typer.Option(help=f"For uplift. {BY.help}")]


def add_plans(app: typer.Typer) -> None:
    """Add ``plan`` with a command for each estimator that can be planned."""
    plans = typer.Typer(no_args_is_help=True, help="See what to expect before anything is spent.")
    for entry in REGISTRY.values():
        if entry.command and entry.planned_as == entry.name:
            _add_plan(plans, entry.planned_as)
    app.add_typer(plans, name="plan")


def _add_plan(plans: typer.Typer, estimator: Planned) -> None:
    def plan_(
        n: Annotated[int, typer.Option(help="Number of records.")],
        bounds: BoundsFile,
        epsilon: Annotated[float | None, typer.Option(help="Privacy budget; leave it out to solve for it.")] = None,
        delta: Annotated[
            float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")
        ] = None,
        alpha: Alpha = 0.05,
        width: Annotated[float | None, typer.Option(help="Interval width to reach, where epsilon is left out.")] = None,
        propensity: Annotated[float | None, typer.Option(help="Probability of treatment if known by design.")] = None,
        outcome_sd: Annotated[
            float | None, typer.Option(help="Standard deviation of the outcome, if roughly known.")
        ] = None,
        outcome_mean: Annotated[float | None, typer.Option(help="Mean of the outcome, if roughly known.")] = None,
        prevalence: Annotated[
            float | None, typer.Option(help="Share of events of a yes/no outcome, if roughly known.")
        ] = None,
        treated: Annotated[float, typer.Option(help="Expected share of treated.")] = 0.5,
        cap: Annotated[float | None, typer.Option(help="What larger outcomes will count as.")] = None,
        by: Segments = None,
        neighbours: Relation = "replace-one",
    ) -> None:
        from discreet.data.bounds import Bounds
        from discreet.estimators.planning import plan
        from discreet.estimators.uplift import segments_in_words

        planned = plan(
            estimator,
            n=n,
            bounds=Bounds.load(bounds),
            epsilon=epsilon,
            delta=delta,
            alpha=alpha,
            width=width,
            propensity=propensity,
            outcome_sd=outcome_sd,
            outcome_mean=outcome_mean,
            prevalence=prevalence,
            treated=treated,
            cap=cap,
            by=segments_in_words(by) if by else None,
            neighbours=neighbours,
        )
        typer.echo(planned.summary())

    plan_.__doc__ = f"Interval width, noise and detectable effect of 'discreet {estimator}', from public numbers alone."
    command(plans, estimator)(plan_)
