"""Commands that ask a release file: about people, and whom to treat."""

from pathlib import Path
from typing import Annotated

import typer

from discreet.cli._console import check_extra, check_level, check_target, command, console, names_in, writing
from discreet.estimators.registry import REGISTRY
from discreet.exceptions import UnsupportedRelease

# Rows that are shown where no file is asked for.
_SHOWN = 20
_WRITERS = [entry.name for entry in REGISTRY.values() if entry.command and entry.answers]
_FILES = " or ".join(f"'discreet {name}'" for name in _WRITERS)


def effect(
    release: Annotated[Path, typer.Argument(help=f"Release file of {_FILES}.")],
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

    from discreet.data.backends.text.people import People
    from discreet.releases import load
    from discreet.releases.protocol import AnswersAverages, AnswersIntervals

    check_level(alpha)
    check_target(out, "--out", replace=True)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    loaded = load(release)
    if not isinstance(loaded, AnswersIntervals):
        writers = "' or '".join(_WRITERS)
        raise UnsupportedRelease(
            f"{str(release)!r} holds no function with intervals: give a file of 'discreet {writers}'."
        )
    people = People(
        path=file, bounds=loaded.bounds, covariates=None if covariates is None else names_in(covariates)
    ).table()
    answers = np.column_stack([loaded.effect(people), *loaded.effect_interval(people, alpha)])
    if out is None:
        _show_answers(answers.tolist(), f"{100 * (1 - alpha):g} % interval")
    else:
        with writing(out):
            lines = (",".join(repr(value) for value in row) for row in answers.tolist())
            out.write_text("\n".join(["effect,low,high", *lines]) + "\n")
        typer.echo(f"Effects: {out}")
    average = f"Average over {len(answers):,} rows: {answers[:, 0].mean():.4g}"
    if isinstance(loaded, AnswersAverages):
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


def policy(
    release: Annotated[Path, typer.Argument(help=f"Release file of {_FILES}.")],
    cost: Annotated[float, typer.Option(help="What treating one person costs, in the outcome's unit.")] = 0.0,
    capacity: Annotated[float | None, typer.Option(help="Largest share of the people that may be treated.")] = None,
    people: Annotated[
        str | None, typer.Option(help="For 'discreet cate': CSV or Parquet file of public or made-up people to count.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the policy to this JSON file.")] = None,
) -> None:
    """Whom to treat, from a release alone; this costs no privacy."""
    from discreet.data.backends.text.people import People
    from discreet.releases import load
    from discreet.releases.policies.policy import Policy

    check_target(out, "--out", replace=False)
    loaded = load(release)
    rows = None if people is None else People(path=people, bounds=loaded.bounds).table()
    chosen = Policy.of(loaded, cost=cost, capacity=capacity, X=rows)
    typer.echo(chosen.summary())
    if out is not None:
        with writing(out):
            chosen.save(out)
        typer.echo(f"Policy: {out}")


def add_query(app: typer.Typer) -> None:
    """Add ``effect`` and ``policy``."""
    command(app, "effect")(effect)
    command(app, "policy")(policy)
