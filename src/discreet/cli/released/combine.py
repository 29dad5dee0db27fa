"""The command that makes one release of those of several sites."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from discreet.cli._console import Alpha, check_extra, check_level, check_target, names_in, show_table, writing


def combine(
    releases: Annotated[list[Path], typer.Argument(help="Release files (JSON), one for each site.")],
    model: Annotated[
        Literal["fixed", "random"],
        typer.Option(help="fixed: all sites have one effect; random: effects differ, their mean is wanted."),
    ],
    people: Annotated[
        Literal["disjoint", "overlapping"],
        typer.Option(help="disjoint if no one has records at two sites: yours to state, and printed."),
    ] = "overlapping",
    names: Annotated[str | None, typer.Option(help="What sites are called: a,b,c; by default their files.")] = None,
    alpha: Alpha = 0.05,
    out: Annotated[Path | None, typer.Option(help="Write the combined release to this file (JSON).")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")] = None,
) -> None:
    """One estimate and interval from several sites' releases of an average effect; this costs no privacy."""
    from discreet.releases import load
    from discreet.releases.combined.combining import combine as combined

    check_level(alpha)
    check_target(out, "--out", replace=True)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    loaded = [load(path) for path in releases]
    stems = [path.stem for path in releases]
    called = names_in(names) if names is not None else stems if len(set(stems)) == len(stems) else None
    release = combined(loaded, model=model, people=people, names=called)
    shown = release.display(alpha)
    show_table(release.title, shown.head, shown.lines)
    for paragraph in shown.below:
        typer.echo(paragraph)
    if out is not None:
        with writing(out):
            release.save(out)
        typer.echo(f"Release: {out}")
    if report is not None:
        from discreet.releases.report import save_page

        with writing(report):
            save_page(release, report)
        typer.echo(f"Page: {report}")
