"""Commands that estimate and publish: one for each estimator of the registry, all with one body."""

from collections.abc import Iterator
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import (
    Alpha,
    Analyst,
    BoundsFile,
    Dataset,
    DecimalMark,
    Delimiter,
    Encoding,
    LedgerAt,
    MaxRows,
    MissingCode,
    SampleBy,
    Simultaneous,
    Stratum,
    UnitColumn,
    Where,
    Workers,
    by_arm,
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
    show_table,
    writing,
)
from discreet.cli._keeping import keeping
from discreet.cli._sources import Select, Source, Spark, Table, reading
from discreet.estimators.registry import REGISTRY, Entry

if TYPE_CHECKING:
    from discreet.releases.protocol import AnyRelease, Display

_ALPHA = 0.05
# Groups of options that all these commands share: names with annotations. The first have no default.
_NEEDED: dict[str, Any] = {
    "source": Source,
    "outcome": Annotated[str, typer.Option(help="Column of the outcome.")],
    "treatment": Annotated[str, typer.Option(help="Column of the treatment.")],
    "bounds": BoundsFile,
    "epsilon": Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")],
}
_ROWS: dict[str, Any] = {
    "where": Where,
    "unit": UnitColumn,
    "max_rows": MaxRows,
    "sample_by": SampleBy,
    "workers": Workers,
}
_TEXT: dict[str, Any] = {"na": MissingCode, "delimiter": Delimiter, "decimal": DecimalMark, "encoding": Encoding}
_PLACE: dict[str, Any] = {"table": Table, "query": Select, "spark": Spark}
_WRITTEN: dict[str, Any] = {
    "out": Annotated[Path | None, typer.Option(help="Write the release to this JSON file, which may be published.")],
    "report": Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")],
}
_PAID: dict[str, Any] = {"ledger": LedgerAt, "dataset": Dataset, "analyst": Analyst, "stratum": Stratum}


def add_estimators(app: typer.Typer) -> None:
    """Add a command for each estimator of the registry that has one."""
    for entry in REGISTRY.values():
        if entry.command:
            _add(app, entry)


def _add(app: typer.Typer, entry: Entry) -> None:
    def run(**asked: Any) -> None:
        _estimate(entry, asked)

    parameters = list(_parameters(entry))
    # Typer reads options from a function's signature.
    run.__dict__["__signature__"] = Signature(parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = entry.help
    command(app, entry.name)(run)


def _parameters(entry: Entry) -> Iterator[Parameter]:
    """What the command takes, in the order in which help lists it."""
    for name, annotation in _NEEDED.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation)
    for column in entry.columns:
        annotation = Annotated[column.type, typer.Option(help=column.help)]
        # One that may be left out says so by its type.
        needed = Parameter.empty if column.type is str else None
        yield Parameter(column.name, Parameter.KEYWORD_ONLY, annotation=annotation, default=needed)
    for option in entry.options:
        yield _optional(option.name, Annotated[option.type, typer.Option(help=option.help)], option.default)
    for name, annotation in _ROWS.items():
        if name != "sample_by" or entry.samples:
            yield _optional(name, annotation)
    if entry.level:
        yield _optional("alpha", Alpha, _ALPHA)
    if entry.simultaneous:
        yield _optional("simultaneous", Simultaneous, False)
    for name, annotation in (_TEXT | _PLACE | _WRITTEN | _PAID).items():
        yield _optional(name, annotation)


def _optional(name: str, annotation: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _estimate(entry: Entry, asked: dict[str, Any]) -> None:
    """Check, fit, show and write."""
    out, report, alpha = asked["out"], asked["report"], asked.get("alpha", _ALPHA)
    # Whatever can be refused is refused before any budget is spent.
    check_level(alpha)
    check_target(out, "--out", replace=False)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    estimator = _made(entry, asked)
    rows = of_rows(asked["where"], asked["unit"], asked["max_rows"], asked["workers"], asked.get("sample_by"))
    rows |= {name: asked[name] for name in _TEXT if asked[name] is not None}
    rows |= {name: asked[name] for name in ("outcome", "treatment", *(column.name for column in entry.columns))}
    place = reading(asked["source"], estimator, rows, **{name: asked[name] for name in _PLACE})
    paying = charging(**{name: asked[name] for name in _PAID})
    with paying as paid, place as (records, options), progress("checking the records", rows=True) as show_progress:
        estimator.fit_table(records, progress=show_progress, **options, **paid)
    release: AnyRelease = estimator.release_
    with keeping(release, out):
        _show(release, alpha, {"simultaneous": asked["simultaneous"]} if entry.simultaneous else {})
        if report is not None:
            from discreet.releases.report import save_page

            title = entry.page_title.format(treatment=asked["treatment"], outcome=asked["outcome"])
            with writing(report):
                save_page(release, report, title=title)
            typer.echo(f"Page: {report}")


def _made(entry: Entry, asked: dict[str, Any]) -> Any:
    """The estimator with everything that was chosen."""
    from discreet.data.bounds import Bounds

    chosen = {option.name: asked[option.name] for option in entry.options}
    covariates = chosen.pop("covariates", None)
    public = only(Bounds.load(asked["bounds"]), covariates)
    if "cap" in chosen:
        chosen["cap"] = number_or_name(chosen["cap"])
    if "propensity" in chosen:
        chosen["propensity"] = by_arm(chosen["propensity"], public)
    arguments = entry.arguments(chosen)
    return entry.load()(epsilon=asked["epsilon"], bounds=public, **arguments)


def _show(release: "AnyRelease", alpha: float, more: dict[str, Any]) -> None:
    shown = release.display(alpha, **more)
    if shown.lines and not shown.head:
        _show_facts(release, shown)
        return
    if shown.lines:
        show_table(release.title, shown.head, shown.lines)
    for paragraph in shown.below:
        typer.echo(paragraph)


def _show_facts(release: "AnyRelease", shown: "Display") -> None:
    """Names with values, and what the guarantee means."""
    from rich.table import Table
    from rich.text import Text

    from discreet.releases.page import guess

    table = Table(title=release.title, title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    times = guess(release.guarantee)["times"]
    meaning = ("an attacker is right", f"at most {times} times in 100, where a coin is right 50 times")
    if release.guarantee.status == "test":
        meaning = ("not private", "drawn with seeded noise: do not publish it")
    for name, value in (*shown.lines, meaning):
        # Text objects: nothing that comes from a file is read as markup.
        table.add_row(name, Text(value))
    out = console()
    out.print(table)
    for paragraph in shown.below:
        out.print(Text(paragraph), style="dim")
