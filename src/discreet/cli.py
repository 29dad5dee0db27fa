"""The command line: files in, a readable table, a release and a page out.

Libraries are imported inside the commands, so that help appears at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from discreet.cli_audit import add_audit
from discreet.cli_effects import add_effects
from discreet.cli_ledger import add_ledger
from discreet.cli_serve import add_serve
from discreet.cli_sources import Select, Source, Spark, Table, reading
from discreet.cli_uplift import add_uplift
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
    of_rows,
    show_table,
)
from discreet.console import charging as _charging
from discreet.console import check_extra as _check_extra
from discreet.console import check_level as _check_level
from discreet.console import check_target as _check_target
from discreet.console import command as _command
from discreet.console import console as _console
from discreet.console import number_or_name as _number_or_name
from discreet.console import only as _only
from discreet.console import progress as _progress
from discreet.console import writing as _writing

if TYPE_CHECKING:
    from discreet.releases.average import Release

Neighbours = Literal["replace-one", "add-remove"]

app = typer.Typer(
    name="discreet",
    help="Treatment effects from sensitive records, published under differential privacy.",
    no_args_is_help=True,
    add_completion=False,
    # Typer's own tracebacks print local variables, and those are records.
    pretty_exceptions_enable=False,
)
plans = typer.Typer(no_args_is_help=True, help="See what to expect before anything is spent.")
bounds_app = typer.Typer(no_args_is_help=True, help="Declare the public facts about the records.")
reproduce_app = typer.Typer(no_args_is_help=True, help="Run the tables and figures of the papers.")
app.add_typer(plans, name="plan")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(bounds_app, name="bounds")

BoundsFile = Annotated[
    Path, typer.Option("--bounds", help="Bounds file (TOML): write one with 'discreet bounds init'.")
]
Alpha = Annotated[float, typer.Option(help="The interval covers with probability 1 - alpha.")]
What = Annotated[str, typer.Argument(help="Table or figure: see 'discreet reproduce list'.")]
Full = Annotated[
    bool, typer.Option("--full/--quick", help="Enough replications to judge by (up to 40 minutes), or a short look.")
]
Evidence = Annotated[Path, typer.Option("--out", help="Directory of evidence; each paper has a folder in it.")]
Kept = Annotated[Path, typer.Option("--cache", help="Where raw results are kept, so that a run can be continued.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes, one thread each.")]
Relation = Annotated[Neighbours, typer.Option(help="Which data sets may not be told apart.")]


def _version(wanted: bool) -> None:
    if wanted:
        from discreet import __version__

        typer.echo(f"discreet {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Treatment effects from sensitive records, published under differential privacy."""


@_command(app, "ate")
def ate(
    source: Source,
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    bounds: BoundsFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")],
    delta: Annotated[float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns to adjust for: a,b,c. Default: all in the bounds.")
    ] = None,
    propensity: Annotated[
        str | None, typer.Option(help="Probability of treatment if known by design: a number, or its column.")
    ] = None,
    neighbours: Relation = "replace-one",
    where: Where = None,
    unit: UnitColumn = None,
    max_rows: MaxRows = None,
    sample_by: SampleBy = None,
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
    """Estimate an average treatment effect and publish it."""
    from discreet.data.bounds import Bounds
    from discreet.estimators.ate import ATE

    # Whatever can be refused is refused before any budget is spent.
    _check_level(alpha)
    _check_target(out, "--out", replace=False)
    _check_target(report, "--report", replace=True)
    if report is not None:
        _check_extra()
    public = _only(Bounds.load(bounds), covariates)
    estimator = ATE(
        epsilon=epsilon, delta=delta, bounds=public, propensity=_number_or_name(propensity), neighbours=neighbours
    )
    rows = of_rows(where, unit, max_rows, workers, sample_by) | {"outcome": outcome, "treatment": treatment}
    place = reading(source, estimator, rows, table=table, query=query, spark=spark)
    paying = _charging(ledger, dataset, analyst, stratum)
    with paying as paid, place as (records, options), _progress("checking the records", rows=True) as progress:
        estimator.fit_table(records, progress=progress, **options, **paid)
    release: Release = estimator.release_
    # Shown first: should writing fail, what was paid for is not lost.
    _show(release, alpha)
    if out is not None:
        with _writing(out):
            release.save(out)
        typer.echo(f"Release: {out}")
    if report is not None:
        from discreet.releases.report import save_report

        with _writing(report):
            save_report(release, report, title=f"Effect of {treatment} on {outcome}")
        typer.echo(f"Page: {report}")


add_effects(app)
add_uplift(app)
add_audit(app)
add_ledger(app)
add_serve(app)


@_command(plans, "ate")
def plan_ate(
    n: Annotated[int, typer.Option(help="Number of records.")],
    bounds: BoundsFile,
    epsilon: Annotated[float | None, typer.Option(help="Privacy budget; leave it out to solve for it.")] = None,
    delta: Annotated[float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")] = None,
    alpha: Alpha = 0.05,
    width: Annotated[float | None, typer.Option(help="Interval width to reach, where epsilon is left out.")] = None,
    propensity: Annotated[float | None, typer.Option(help="Probability of treatment if known by design.")] = None,
    outcome_sd: Annotated[
        float | None, typer.Option(help="Standard deviation of the outcome, if roughly known.")
    ] = None,
    neighbours: Relation = "replace-one",
) -> None:
    """Interval width, noise and detectable effect of 'discreet ate', from public numbers alone."""
    from discreet.data.bounds import Bounds
    from discreet.estimators.planning import plan

    planned = plan(
        "ate",
        n=n,
        bounds=Bounds.load(bounds),
        epsilon=epsilon,
        delta=delta,
        alpha=alpha,
        width=width,
        propensity=propensity,
        outcome_sd=outcome_sd,
        neighbours=neighbours,
    )
    typer.echo(planned.summary())


@_command(bounds_app, "init")
def bounds_init(
    file: Annotated[str, typer.Argument(help="CSV or Parquet file, or a pattern in quotes.")],
    out: Annotated[Path, typer.Option(help="Bounds file to write.")] = Path("bounds.toml"),
    outcome: Annotated[str | None, typer.Option(help="Column of the outcome, which is no covariate.")] = None,
    treatment: Annotated[str | None, typer.Option(help="Column of the treatment, which is no covariate.")] = None,
) -> None:
    """Write a bounds file to fill in: names of columns, and no value from the records."""
    from discreet.skeleton import skeleton

    _check_target(out, "--out", replace=False)
    text = skeleton(file, leave_out=tuple(name for name in (outcome, treatment) if name is not None))
    with _writing(out):
        out.write_bytes(text.encode())
    typer.echo(f"Fill in what is public: {out}")


@_command(app, "report")
def report_(
    release: Annotated[Path, typer.Argument(help="Release file (JSON).")],
    out: Annotated[Path, typer.Option(help="HTML file to write.")],
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
) -> None:
    """Write a page about a release, for readers who have never heard of differential privacy."""
    from discreet.releases.report import load_release, save_page

    _check_target(out, "--out", replace=True)
    loaded = load_release(release)
    with _writing(out):
        save_page(loaded, out, title=title)
    typer.echo(f"Page: {out}")


@_command(app, "demo")
def demo_(
    out: Annotated[Path, typer.Option(help="Directory for what it makes.")] = Path("discreet-demo"),
) -> None:
    """Publish the effects of two generated studies in three ways, and write pages about them."""
    _check_extra()
    with _progress("getting ready") as progress:
        from discreet import demo

        found = demo.run(out, progress=progress)
    demo.show(found, _console())


@_command(reproduce_app, "list")
def reproduce_list() -> None:
    """List what can be reproduced."""
    from evidence.reproduce import papers

    for paper, targets in papers().items():
        for target in targets.values():
            typer.echo(f"{paper:13} {target.name:10} {target.title}")


_PAPERS = {
    "adum": "Figures of ADUM: effects by cell from noisy sums and counts.",
    "dp-cate": "Figures of DP-CATE: effects at queries and as a function.",
    "meta-learners": "Figures of private learners that split the sample.",
    "private-ci": "Tables and figures of PrivATE: private confidence intervals for average effects.",
    "propensity": "Tables and figures of private propensity scores.",
}


def _add_paper(paper: str, words: str) -> None:
    def reproduce(
        what: What,
        full: Full = False,
        out: Evidence = Path("docs/evidence"),
        cache: Kept = Path(".evidence-cache/reproduce"),
        processes: Processes = 2,
    ) -> None:
        _reproduce(paper, what, full, out, cache, processes)

    reproduce.__doc__ = words
    _command(reproduce_app, paper)(reproduce)


for _paper, _words in _PAPERS.items():
    _add_paper(_paper, _words)


def _reproduce(paper: str, what: str, full: bool, out: Path, cache: Path, processes: int) -> None:
    _check_extra()
    from evidence.reproduce import find
    from evidence.reproduce.pages import write
    from evidence.reproduce.runner import collect

    target = find(paper, what)
    with _progress("getting ready") as progress:
        results = collect(target, paper=paper, full=full, processes=processes, cache=cache, progress=progress)
    page = target.page(results)
    # A short look must not take the place of evidence.
    stem = what if full else f"{what}-quick"
    command = f"discreet reproduce {paper} {what} {'--full' if full else '--quick'}"
    with _writing(out / paper):
        written = write(page, out / paper, stem=stem, title=target.title, command=command)
    show_table(target.title, page.head, page.lines)
    for path in written:
        typer.echo(f"Written: {path}")


def _show(release: "Release", alpha: float) -> None:
    from rich.table import Table
    from rich.text import Text

    from discreet.releases.report import guess

    console = _console()
    table = Table(title=release.title, title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    guarantee = release.guarantee
    rows = [
        ("estimate", release.text(release.estimate)),
        (f"{100 * (1 - alpha):g} % interval", release.interval_text(alpha)),
        ("records", release.records),
        ("uncertainty from", ", ".join(f"{name} {100 * share:.0f} %" for name, share in release.shares().items())),
        ("privacy", f"{guarantee.budget} ({guarantee.neighbours}, {guarantee.status})"),
        ("an attacker is right", f"at most {guess(guarantee)['times']} times in 100, where a coin is right 50 times"),
    ]
    if guarantee.status == "test":
        rows[-1] = ("not private", "drawn with seeded noise: do not publish it")
    for name, value in rows:
        # Text objects: nothing that comes from a file is read as markup.
        table.add_row(name, Text(value))
    console.print(table)
    for note in release.notes:
        console.print(Text(f"- {note}"), style="dim")
