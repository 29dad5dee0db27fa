"""The command that runs a published method, as its authors wrote it or with a proof."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from discreet.cli._console import (
    Analyst,
    BoundsFile,
    Dataset,
    LedgerAt,
    Stratum,
    Where,
    charging,
    check_target,
    command,
    only,
    progress,
    writing,
)
from discreet.cli._sources import Source
from discreet.exceptions import InvalidInput


def paper(
    name: Annotated[
        str,
        typer.Argument(
            help="adum, two-model, propensity-iptw, private-ate, s-learner, t-learner, dr-learner, r-learner, "
            "x-learner or dp-cate-function."
        ),
    ],
    source: Source,
    outcome: Annotated[str, typer.Option(help="Column of the outcome.")],
    treatment: Annotated[str, typer.Option(help="Column of the treatment.")],
    bounds: BoundsFile,
    epsilon: Annotated[float, typer.Option(help="Privacy budget: smaller is more private.")],
    delta: Annotated[float | None, typer.Option(help="Its delta, for methods that need one.")] = None,
    calibration: Annotated[
        str, typer.Option(help="'proved', or 'published': what its authors claim, and no more than that.")
    ] = "proved",
    covariates: Annotated[str | None, typer.Option(help="Only these covariates of the bounds: a,b,c.")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A parameter of the method: xi=0.1, base=linear, by='{\"age\": 8}'."),
    ] = None,
    where: Where = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the release to this JSON file, which may be published.")
    ] = None,
    ledger: LedgerAt = None,
    dataset: Dataset = None,
    analyst: Analyst = None,
    stratum: Stratum = None,
) -> None:
    """Run a published method: one of `discreet.papers`, with a proof unless its authors' claim is asked for."""
    from discreet.cli._console import names_in, of_rows
    from discreet.data.bounds import Bounds
    from discreet.papers.commands import method_of
    from discreet.papers.common.claims import calibration_of

    check_target(out, "--out", replace=False)
    public = only(Bounds.load(bounds), covariates)
    given = dict(_setting(each) for each in setting or [])
    model = method_of(name, calibration_of(calibration), given, epsilon=epsilon, delta=delta, bounds=public)
    columns: dict[str, Any] = {"outcome": outcome, "treatment": treatment}
    columns |= {} if covariates is None else {"covariates": names_in(covariates)}
    rows = {key: value for key, value in of_rows(where, None, None, None, None).items() if value is not None}
    paying = charging(ledger=ledger, dataset=dataset, analyst=analyst, stratum=stratum)
    with paying as paid, progress("checking the records", rows=True) as shown:
        model.fit_table(source, progress=shown, **columns, **rows, **paid)
    # Shown first: should writing fail, what was paid for is not lost.
    typer.echo(model.summary())
    if out is not None:
        with writing(out):
            model.release_.save(out)
        typer.echo(f"Release: {out}")


def _setting(text: str) -> tuple[str, Any]:
    """A name and a value: JSON, or a word."""
    name, found, value = text.partition("=")
    if not found or not name:
        raise InvalidInput("--set takes NAME=VALUE, for example --set xi=0.1: write it so.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def add_paper(app: typer.Typer) -> None:
    """Add ``paper``."""
    command(app, "paper")(paper)
