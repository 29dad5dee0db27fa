"""Command for effects by segment."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli_sources import Select, Source, Spark, Table, reading
from discreet.console import (
    Analyst,
    Dataset,
    LedgerAt,
    MaxRows,
    Stratum,
    UnitColumn,
    Where,
    Workers,
    charging,
    check_extra,
    check_level,
    check_target,
    command,
    number_or_name,
    of_rows,
    progress,
    show_table,
    writing,
)
from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.releases.segments import UpliftRelease

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
    source: Source,
    outcome: Outcome,
    treatment: Treatment,
    bounds: BoundsFile,
    epsilon: Epsilon,
    by: Annotated[
        list[str] | None, typer.Option(help="Segments: age=8, age=auto, age=18,40,65 or sex=levels; repeat to cross.")
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(help="In place of --by: find so many segments, with half of the budget.")
    ] = None,
    delta: Annotated[float | None, typer.Option(help="Leave it out for pure epsilon.")] = None,
    propensity: Chance = None,
    neighbours: Relation = "replace-one",
    where: Where = None,
    unit: UnitColumn = None,
    max_rows: MaxRows = None,
    workers: Workers = None,
    alpha: Alpha = 0.05,
    table: Table = None,
    query: Select = None,
    spark: Spark = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the release to this JSON file, which may be published.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")] = None,
    ledger: LedgerAt = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    stratum: Stratum = None,
) -> None:
    """Estimate effects by segment and publish them."""
    from discreet.data.bounds import Bounds
    from discreet.estimators.clustering import PrivateKMeans
    from discreet.estimators.uplift import Uplift, segments_in_words

    # Whatever can be refused is refused before any budget is spent.
    check_level(alpha)
    check_target(out, "--out", replace=False)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    if bool(by) == (clusters is not None):
        raise InvalidInput("segments are declared with --by or found with --clusters: give one of the two.")
    estimator = Uplift(
        epsilon=epsilon,
        delta=delta,
        bounds=Bounds.load(bounds),
        by=segments_in_words(by or []) if clusters is None else PrivateKMeans(clusters=clusters),
        propensity=number_or_name(propensity),
        neighbours=neighbours,
    )
    rows = of_rows(where, unit, max_rows, workers) | {"outcome": outcome, "treatment": treatment}
    place = reading(source, estimator, rows, table=table, query=query, spark=spark)
    paying = charging(ledger, dataset, analyst, stratum)
    with paying as paid, place as (records, options), progress("checking the records", rows=True) as told:
        estimator.fit_table(records, progress=told, **options, **paid)
    release: UpliftRelease = estimator.release_
    promised = release.guarantee
    # Shown first: should writing fail, what was paid for is not lost.
    show_table(release.title, *release.shown(alpha))
    typer.echo(f"Privacy: {promised.budget} ({promised.neighbours}, {promised.status})")
    for note in release.notes:
        typer.echo(f"- {note}")
    if out is not None:
        with writing(out):
            release.save(out)
        typer.echo(f"Release: {out}")
    if report is not None:
        from discreet.releases.report import save_page

        with writing(report):
            save_page(release, report, title=f"Effect of {treatment} on {outcome}, by segment")
        typer.echo(f"Page: {report}")


def add_uplift(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "uplift")(uplift)
