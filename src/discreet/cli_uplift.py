"""Command for effects by segment."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.console import check_level, check_target, command, number_or_name, progress, show_table, writing

Neighbours = Literal["replace-one", "add-remove"]

BoundsFile = Annotated[
    Path, typer.Option("--bounds", help="Bounds file (TOML): write one with 'discreet bounds init'.")
]
Outcome = Annotated[str, typer.Option(help="Column of the outcome.")]
Treatment = Annotated[str, typer.Option(help="Column of the treatment.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")]
Chance = Annotated[
    str | None, typer.Option(help="Probability of treatment if known by design: a number, or its column.")
]
Alpha = Annotated[float, typer.Option(help="The interval covers with probability 1 - alpha.")]
Relation = Annotated[Neighbours, typer.Option(help="Which data sets may not be told apart.")]


def uplift(
    file: Annotated[str, typer.Argument(help="CSV or Parquet file, or a pattern in quotes.")],
    by: Annotated[
        list[str], typer.Option(help="Segments: age=8, age=auto, age=18,40,65 or sex=levels; repeat to cross.")
    ],
    outcome: Outcome,
    treatment: Treatment,
    bounds: BoundsFile,
    epsilon: Epsilon,
    delta: Annotated[float | None, typer.Option(help="Leave it out for pure epsilon.")] = None,
    propensity: Chance = None,
    neighbours: Relation = "replace-one",
    alpha: Alpha = 0.05,
    out: Annotated[Path | None, typer.Option(help="Write the release to this JSON file.")] = None,
) -> None:
    """Estimate effects by segment and publish them."""
    from discreet.bounds import Bounds
    from discreet.uplift import Uplift, segments_in_words

    check_level(alpha)
    check_target(out, "--out", replace=False)
    estimator = Uplift(
        epsilon=epsilon,
        delta=delta,
        bounds=Bounds.load(bounds),
        by=segments_in_words(by),
        propensity=number_or_name(propensity),
        neighbours=neighbours,
    )
    with progress("checking the records") as told:
        estimator.fit_table(file, outcome=outcome, treatment=treatment, progress=told)
    promised = estimator.guarantee_
    show_table("Effects by segment", *estimator.release_.shown(alpha))
    typer.echo(f"Privacy: {promised.budget} ({promised.neighbours}, {promised.status})")
    for note in estimator.release_.notes:
        typer.echo(f"- {note}")
    if out is not None:
        with writing(out):
            estimator.release_.save(out)
        typer.echo(f"Release: {out}")


def add_uplift(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "uplift")(uplift)
