"""The command line: files in, a readable table, a release and a page out.

Libraries are imported inside the commands, so that help appears at once.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, ParamSpec

import typer

from discreet.errors import DiscreetError, InvalidInput
from discreet.terminal import console, show_release, show_table
from discreet.terminal import progress as progress_bar

if TYPE_CHECKING:
    from discreet.bounds import Bounds
    from discreet.release import Release

P = ParamSpec("P")
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

_UNEXPECTED = (
    "something went wrong that should not have; nothing more is said here, because it might quote records "
    "(DISCREET_DEBUG=1 shows the traceback: keep it to yourself)."
)

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
Outcome = Annotated[str, typer.Option(help="Column of the outcome.")]
Treatment = Annotated[str, typer.Option(help="Column of the treatment.")]
Epsilon = Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")]
Chance = Annotated[
    str | None, typer.Option(help="Probability of treatment if known by design: a number, or its column.")
]
Relation = Annotated[Neighbours, typer.Option(help="Which data sets may not be told apart.")]


def _command(group: typer.Typer, name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a command whose errors become one sentence and an exit code: 2 if refused, 1 if unexpected."""

    def register(function: Callable[P, None]) -> Callable[P, None]:
        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except DiscreetError as error:
                _fail(str(error), 2)
            except Exception:
                if os.environ.get("DISCREET_DEBUG") == "1":
                    raise
                _fail(_UNEXPECTED, 1)

        group.command(name)(guarded)
        return function

    return register


def _fail(sentence: str, code: int) -> None:
    typer.echo(f"discreet: {sentence}", err=True)
    # Neither the cause nor its traceback may follow.
    raise typer.Exit(code) from None


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
    file: Annotated[str, typer.Argument(help="CSV or Parquet file, or a pattern in quotes such as 'part-*.parquet'.")],
    outcome: Outcome,
    treatment: Treatment,
    bounds: BoundsFile,
    epsilon: Epsilon,
    delta: Annotated[float | None, typer.Option(help="Chance that the budget may be missed, far below 1/n.")] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns to adjust for: a,b,c. Default: all in the bounds.")
    ] = None,
    propensity: Chance = None,
    neighbours: Relation = "replace-one",
    alpha: Alpha = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="Write the release to this JSON file, which may be published.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")] = None,
) -> None:
    """Estimate an average treatment effect and publish it."""
    from discreet.ate import ATE
    from discreet.bounds import Bounds

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
    with progress_bar("checking the records") as progress:
        estimator.fit_table(file, outcome=outcome, treatment=treatment, progress=progress)
    release: Release = estimator.release_
    # Shown first: should writing fail, what was paid for is not lost.
    show_release(release, alpha)
    if out is not None:
        with _writing(out):
            release.save(out)
        typer.echo(f"Release: {out}")
    if report is not None:
        from discreet.report import save_report

        with _writing(report):
            save_report(release, report, title=f"Effect of {treatment} on {outcome}")
        typer.echo(f"Page: {report}")


@_command(app, "uplift")
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

    _check_level(alpha)
    _check_target(out, "--out", replace=False)
    estimator = Uplift(
        epsilon=epsilon,
        delta=delta,
        bounds=Bounds.load(bounds),
        by=segments_in_words(by),
        propensity=_number_or_name(propensity),
        neighbours=neighbours,
    )
    with progress_bar("checking the records") as progress:
        estimator.fit_table(file, outcome=outcome, treatment=treatment, progress=progress)
    promised = estimator.guarantee_
    show_table("Effects by segment", *estimator.release_.shown(alpha))
    typer.echo(f"Privacy: {promised.budget} ({promised.neighbours}, {promised.status})")
    for note in estimator.release_.notes:
        typer.echo(f"- {note}")
    if out is not None:
        with _writing(out):
            estimator.release_.save(out)
        typer.echo(f"Release: {out}")


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
    from discreet.bounds import Bounds
    from discreet.planning import plan

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
    from discreet.release import Release
    from discreet.report import save_report

    _check_target(out, "--out", replace=True)
    loaded = Release.load(release)
    with _writing(out):
        save_report(loaded, out, title=title)
    typer.echo(f"Page: {out}")


@_command(app, "demo")
def demo_(
    out: Annotated[Path, typer.Option(help="Directory for what it makes.")] = Path("discreet-demo"),
) -> None:
    """Publish a generated study at several budgets, and write a page about it."""
    _check_extra()
    with progress_bar("getting ready") as progress:
        from discreet import demo

        found = demo.run(out, progress=progress)
    demo.show(found, console())


@_command(reproduce_app, "list")
def reproduce_list() -> None:
    """List what can be reproduced."""
    from discreet.reproduce import papers

    for paper, targets in papers().items():
        for target in targets.values():
            typer.echo(f"{paper:12} {target.name:10} {target.title}")


def _add_paper(paper: str, words: str) -> None:
    """A command for the tables and figures of one paper."""

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


_add_paper("adum", "Figures of ADUM: effects by cell from noisy sums and counts.")
_add_paper("private-ci", "Tables and figures of PrivATE: private confidence intervals for average effects.")
_add_paper("propensity", "Tables and figures of private propensity scores.")


def _reproduce(paper: str, what: str, full: bool, out: Path, cache: Path, processes: int) -> None:
    _check_extra()
    from discreet.reproduce import find
    from discreet.reproduce.pages import write
    from discreet.reproduce.runner import collect

    target = find(paper, what)
    with progress_bar("getting ready") as progress:
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


def _only(bounds: "Bounds", covariates: str | None) -> "Bounds":
    """The bounds of the named covariates, in the order of the bounds."""
    if covariates is None:
        return bounds
    from dataclasses import replace

    names = [name.strip() for name in covariates.split(",") if name.strip()]
    missing = [name for name in names if name not in bounds.names]
    if missing or not bounds.named:
        raise InvalidInput(f"--covariates names {(missing or names)[0]!r}, which the bounds do not: declare it there.")
    declared: Any = {name: spec for name, spec in zip(bounds.names, bounds.columns, strict=True) if name in set(names)}
    return replace(bounds, covariates=declared)


def _number_or_name(propensity: str | None) -> float | str | None:
    try:
        return None if propensity is None else float(propensity)
    except ValueError:
        return propensity


def _check_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InvalidInput("--alpha must lie between 0 and 1: 0.05 asks for a 95 % interval.")


def _check_extra() -> None:
    from discreet.plots import require

    require()


def _check_target(path: Path | None, option: str, *, replace: bool) -> None:
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"{option} {str(path)!r} cannot be written: name a file in a directory that exists.")
    if path.exists() and not replace:
        raise InvalidInput(f"{option} {str(path)!r} exists already: choose another name, or move it away.")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise InvalidInput(f"{str(path)!r} cannot be written: check its directory and the space left.") from None
