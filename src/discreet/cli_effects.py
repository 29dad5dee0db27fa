"""Commands for effects as functions: estimate one, and ask a release file about people."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli_sources import Select, Source, Spark, Table, reading
from discreet.console import (
    Analyst,
    Dataset,
    LedgerAt,
    MaxRows,
    SampleBy,
    Stratum,
    UnitColumn,
    Where,
    Workers,
    charging,
    check_extra,
    check_level,
    check_target,
    command,
    console,
    number_or_name,
    of_rows,
    only,
    progress,
    writing,
)
from discreet.exceptions import UnsupportedRelease

if TYPE_CHECKING:
    from discreet.releases.function import EffectRelease

# Rows that are shown where no file is asked for.
_SHOWN = 20


def cate(
    source: Source,
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    bounds: Annotated[
        Path, typer.Option("--bounds", help="Bounds file (TOML): write one with 'discreet bounds init'.")
    ],
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")],
    delta: Annotated[float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns that the effect may vary with: a,b,c. Default: all in the bounds.")
    ] = None,
    propensity: Annotated[
        str | None, typer.Option(help="Probability of treatment if known by design: a number, or its column.")
    ] = None,
    correction: Annotated[
        Literal["R", "DR"],
        typer.Option(help="Moments that correct the effect: the R-learner's, or those of the doubly robust score."),
    ] = "R",
    neighbours: Annotated[
        Literal["replace-one", "add-remove"], typer.Option(help="Which data sets may not be told apart.")
    ] = "replace-one",
    where: Where = None,
    unit: UnitColumn = None,
    max_rows: MaxRows = None,
    sample_by: SampleBy = None,
    workers: Workers = None,
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
    """Estimate the effect as a function of covariates and publish it."""
    from discreet.data.bounds import Bounds
    from discreet.estimators.cate import CATE

    # Whatever can be refused is refused before any budget is spent.
    check_target(out, "--out", replace=False)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    public = only(Bounds.load(bounds), covariates)
    estimator = CATE(
        epsilon=epsilon,
        delta=delta,
        bounds=public,
        propensity=number_or_name(propensity),
        correction=correction,
        neighbours=neighbours,
    )
    rows = of_rows(where, unit, max_rows, workers, sample_by) | {"outcome": outcome, "treatment": treatment}
    place = reading(source, estimator, rows, table=table, query=query, spark=spark)
    paying = charging(ledger, dataset, analyst, stratum)
    with paying as paid, place as (records, options), progress("checking the records", rows=True) as told:
        estimator.fit_table(records, progress=told, **options, **paid)
    release: EffectRelease = estimator.release_
    # Shown first: should writing fail, what was paid for is not lost.
    typer.echo(release.summary())
    if out is not None:
        with writing(out):
            release.save(out)
        typer.echo(f"Release: {out}")
    if report is not None:
        from discreet.releases.report import save_page

        with writing(report):
            save_page(release, report, title=f"Effect of {treatment} on {outcome}")
        typer.echo(f"Page: {report}")


def effect(
    release: Annotated[Path, typer.Argument(help="Release file of 'discreet cate' or 'discreet uplift'.")],
    file: Annotated[str, typer.Argument(help="CSV or Parquet file with a row for each person.")],
    alpha: Annotated[float, typer.Option(help="The intervals cover with probability 1 - alpha.")] = 0.05,
    covariates: Annotated[
        str | None, typer.Option(help="Columns to use, if the file has others or the release names none: a,b,c.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write: effect, low, high, a line for each row.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the release to this HTML file.")] = None,
) -> None:
    """Effects for the rows of a file, from a release alone; this costs no privacy."""
    import numpy as np

    from discreet.data.backends.files import read_covariates
    from discreet.releases.average import Release
    from discreet.releases.function import EffectRelease
    from discreet.releases.report import load_release

    check_level(alpha)
    check_target(out, "--out", replace=True)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    loaded = load_release(release)
    if isinstance(loaded, Release):
        raise UnsupportedRelease(
            f"{str(release)!r} holds an average effect and no function: give a file of 'discreet cate' or 'uplift'."
        )
    names = None if covariates is None else [name.strip() for name in covariates.split(",") if name.strip()]
    people = read_covariates(file, loaded.bounds, names)
    answers = np.column_stack([loaded.effect(people), *loaded.effect_interval(people, alpha)])
    if out is None:
        _show_answers(answers.tolist(), f"{100 * (1 - alpha):g} % interval")
    else:
        with writing(out):
            lines = (",".join(repr(value) for value in row) for row in answers.tolist())
            out.write_text("\n".join(["effect,low,high", *lines]) + "\n")
        typer.echo(f"Effects: {out}")
    average = f"Average over {len(answers):,} rows: {answers[:, 0].mean():.4g}"
    if isinstance(loaded, EffectRelease):
        low, high = loaded.effect_on_interval(people, alpha)
        average += f" ({low:.4g} to {high:.4g})"
    typer.echo(average)
    if report is not None:
        from discreet.releases.report import save_page

        with writing(report):
            save_page(loaded, report)
        typer.echo(f"Page: {report}")


def _show_answers(answers: list[list[float]], interval: str) -> None:
    from rich.table import Table

    table = Table("row", "effect", interval)
    for number, (value, low, high) in enumerate(answers[:_SHOWN], 1):
        table.add_row(str(number), f"{value:.4g}", f"{low:.4g} to {high:.4g}")
    console().print(table)
    if len(answers) > _SHOWN:
        typer.echo(f"The first {_SHOWN} rows; --out writes all of them.")


def add_effects(app: typer.Typer) -> None:
    """Register the commands."""
    command(app, "cate")(cate)
    command(app, "effect")(effect)
