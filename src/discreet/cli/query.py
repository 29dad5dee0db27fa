"""Commands that ask a release file: about people, and whom to treat."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from discreet.cli._console import (
    DecimalMark,
    Delimiter,
    Encoding,
    MissingCode,
    check_extra,
    check_level,
    check_target,
    command,
    console,
    names_in,
    writing,
)
from discreet.estimators.registry import REGISTRY
from discreet.exceptions import UnsupportedRelease

if TYPE_CHECKING:
    from discreet.data.backends.text.people import People
    from discreet.releases.protocol import AnswersIntervals

# Rows that are shown where no file is asked for.
_SHOWN = 20
_WRITERS = [entry.name for entry in REGISTRY.values() if entry.command and entry.answers]
_FILES = " or ".join(f"'discreet {name}'" for name in _WRITERS)


def effect(
    release: Annotated[Path, typer.Argument(help=f"Release file of {_FILES}.")],
    file: Annotated[str, typer.Argument(help="File with a row for each person; further columns do not matter.")],
    alpha: Annotated[float, typer.Option(help="The intervals cover with probability 1 - alpha.")] = 0.05,
    covariates: Annotated[str | None, typer.Option(help="Columns to use, if the release names none: a,b,c.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="CSV or Parquet file to write: effect, low, high of each row.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Columns to write beside the effects: id, or a,b.")] = None,  # noqa: A002
    keep: Annotated[bool, typer.Option("--keep", help="Write all columns of the file beside the effects.")] = False,
    na: MissingCode = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    encoding: Encoding = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about the release to this HTML file.")] = None,
) -> None:
    """Effects for the rows of a file, from a release alone; this costs no privacy."""
    from discreet.cli.released.effects import check_columns
    from discreet.data.backends.text.format import TextFormat
    from discreet.data.backends.text.people import People
    from discreet.releases import load
    from discreet.releases.protocol import AnswersIntervals

    kept = None if keep else names_in(id or "")
    check_level(alpha)
    check_target(out, "--out", replace=True)
    check_columns(out, file, kept)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    form = TextFormat.of({"na": na, "delimiter": delimiter, "decimal": decimal, "encoding": encoding})
    loaded = load(release)
    if not isinstance(loaded, AnswersIntervals):
        writers = "' or '".join(_WRITERS)
        raise UnsupportedRelease(
            f"{str(release)!r} holds no function with intervals: give a file of 'discreet {writers}'."
        )
    names = None if covariates is None else names_in(covariates)
    _answer(loaded, People(path=file, bounds=loaded.bounds, covariates=names, kept=kept, form=form), out, alpha)
    if report is not None:
        from discreet.releases.report import save_page

        with writing(report):
            save_page(loaded, report)
        typer.echo(f"Page: {report}")


def _answer(loaded: "AnswersIntervals", people: "People", out: Path | None, alpha: float) -> None:
    """Show or write the effects, a batch at a time, and their average."""
    from discreet.cli.released.effects import answered, writer
    from discreet.releases.protocol import AnswersAverages

    shown: list[list[float]] = []
    rows, total = 0, 0.0
    with nullcontext() if out is None else writing(out), writer(out) as write:
        for batch in answered(loaded, people, alpha):
            write(batch)
            rows, total = rows + batch.num_rows, total + float(batch.column("effect").to_numpy().sum())
            shown += [list(row.values()) for row in batch.slice(0, _SHOWN - len(shown)).to_pylist()]
    if out is None:
        _show_answers(shown, f"{100 * (1 - alpha):g} % interval", rows)
    else:
        typer.echo(f"Effects: {out}")
    average = f"Average over {rows:,} rows: {total / rows:.4g}"
    if isinstance(loaded, AnswersAverages):
        low, high = loaded.effect_on_interval((covariates for covariates, _ in people.batches()), alpha)
        average += f" ({low:.4g} to {high:.4g})"
    typer.echo(average)


def _show_answers(answers: list[list[float]], interval: str, rows: int) -> None:
    from rich.table import Table

    table = Table("row", "effect", interval)
    for number, (value, low, high) in enumerate(answers, 1):
        table.add_row(str(number), f"{value:.4g}", f"{low:.4g} to {high:.4g}")
    console().print(table)
    if rows > _SHOWN:
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
