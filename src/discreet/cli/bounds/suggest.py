"""The command that has bounds suggested by noisy histograms: a release, which is paid for."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import (
    Analyst,
    Dataset,
    DecimalMark,
    Delimiter,
    Encoding,
    LedgerAt,
    MaxRows,
    MissingCode,
    Relation,
    Stratum,
    UnitColumn,
    Where,
    Workers,
    charging,
    check_extra,
    check_target,
    names_in,
    number_or_name,
    of_rows,
    progress,
    show_table,
    writing,
)
from discreet.cli._keeping import keeping
from discreet.cli._sources import Select, Source, Table
from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.releases.suggested.release import SuggestedBounds


def suggest(
    source: Source,
    epsilon: Annotated[float, typer.Option(help="Privacy budget for all columns together: 0.1 goes a long way.")],
    outcome: Annotated[str | None, typer.Option(help="Column of the outcome, if it needs a range.")] = None,
    covariates: Annotated[str | None, typer.Option(help="Columns of numbers to adjust for: a,b,c.")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(help="A column of categories with candidates: ward=north,south; repeat for more."),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="With it, many columns get less noise.")] = None,
    neighbours: Relation = "replace-one",
    where: Where = None,
    unit: UnitColumn = None,
    max_rows: MaxRows = None,
    workers: Workers = None,
    na: MissingCode = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    encoding: Encoding = None,
    table: Table = None,
    query: Select = None,
    out: Annotated[Path, typer.Option(help="Bounds file to write, with comments.")] = Path("bounds.toml"),
    release: Annotated[Path | None, typer.Option(help="Write the release to this JSON file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")] = None,
    ledger: LedgerAt = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    stratum: Stratum = None,
) -> None:
    """Suggest bounds by noisy histograms, for a budget; declare instead whatever is known."""
    # Whatever can be refused is refused before any budget is spent.
    check_target(out, "--out", replace=False)
    check_target(release, "--release", replace=False)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    if (table is not None or query is not None) and "://" not in source:
        raise InvalidInput("--table and --query are for PostgreSQL: name a file alone.")
    asked: dict[str, Any] = {
        "outcome": outcome,
        "covariates": names_in(covariates or ""),
        "categories": candidates_in(category or []),
        "epsilon": epsilon,
        "delta": delta,
        "neighbours": neighbours,
    }
    text = {"na": na, "delimiter": delimiter, "decimal": decimal, "encoding": encoding}
    options = of_rows(where, unit, max_rows, workers) | {name: each for name, each in text.items() if each}
    options |= {"relation": table, "query": query}
    from discreet.estimators.suggestions.suggest import suggest_bounds

    with charging(ledger, dataset, analyst, stratum) as paid, progress("checking the records", rows=True) as show:
        found = suggest_bounds(source, **asked, **options, **paid, progress=show)
    _show_and_write(found, out, release, report)


def _show_and_write(found: "SuggestedBounds", out: Path, release: Path | None, report: Path | None) -> None:
    with keeping(found, release):
        shown = found.display()
        show_table(found.title, shown.head, shown.lines)
        for paragraph in shown.below:
            typer.echo(paragraph)
        with writing(out):
            out.write_bytes(found.to_toml().encode())
        typer.echo(f"Check it against what is known: {out}")
        if report is not None:
            from discreet.releases.report import save_page

            with writing(report):
                save_page(found, report)
            typer.echo(f"Page: {report}")


def candidates_in(words: list[str]) -> dict[str, list[Any]]:
    """Columns of categories as the command line takes them: "ward=north,south"; numbers if all candidates are."""
    found: dict[str, list[Any]] = {}
    for word in words:
        name, equals, levels = word.partition("=")
        listed = names_in(levels)
        if not equals or not name or len(listed) < 2 or name in found:
            raise InvalidInput(f"--category takes ward=north,south with two candidates or more, and not {word!r}.")
        numbers = [number_or_name(level) for level in listed]
        found[name] = numbers if all(isinstance(level, float) for level in numbers) else listed
    return found
