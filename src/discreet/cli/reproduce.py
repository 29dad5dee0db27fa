"""Commands that run the tables and figures of the papers."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

import discreet
from discreet.cli._console import check_extra, command, progress, show_table, writing
from discreet.exceptions import MissingExtra

# Named here, so that help appears without the modules that do the work.
_PAPERS = {
    "adum": "Figures of ADUM: effects by cell from noisy sums and counts.",
    "dp-cate": "Figures of DP-CATE: effects at queries and as a function.",
    "meta-learners": "Figures of private learners that split the sample.",
    "private-ci": "Tables and figures of PrivATE: private confidence intervals for average effects.",
    "propensity": "Tables and figures of private propensity scores.",
}

What = Annotated[str, typer.Argument(help="Table or figure: see 'discreet reproduce list'.")]
Full = Annotated[
    bool, typer.Option("--full/--quick", help="Enough replications to judge by (up to 40 minutes), or a short trial.")
]
Evidence = Annotated[Path, typer.Option("--out", help="Directory of evidence; each paper has a folder in it.")]
Kept = Annotated[Path, typer.Option("--cache", help="Where raw results are kept, so that a run can be continued.")]
Processes = Annotated[int, typer.Option(min=1, help="Processes, one thread each.")]


def add_reproduce(app: typer.Typer) -> None:
    """Add ``reproduce`` with a command for each paper."""
    group = typer.Typer(no_args_is_help=True, help="Run the tables and figures of the papers.")
    command(group, "list")(list_)
    for paper, words in _PAPERS.items():
        _add_paper(group, paper, words)
    app.add_typer(group, name="reproduce")


def list_() -> None:
    """List what can be reproduced."""
    _find_evidence()
    from evidence.reproduce import papers

    for paper, targets in papers().items():
        for target in targets.values():
            typer.echo(f"{paper:13} {target.name:10} {target.title}")


def _find_evidence() -> None:
    """Make the package ``evidence`` importable: beside the source of this one in a checkout, else installed."""
    checkout = Path(discreet.__file__).resolve().parents[2]
    if (checkout / "evidence" / "reproduce").is_dir():
        if str(checkout) not in sys.path:
            sys.path.insert(0, str(checkout))
    elif find_spec("evidence") is None:
        raise MissingExtra(
            "reproduce needs the package discreet-evidence, which is in the folder evidence of discreet's repository: "
            "clone the repository and install it with pip install ./evidence."
        )


def _add_paper(group: typer.Typer, paper: str, words: str) -> None:
    def reproduce(
        what: What,
        full: Full = False,
        out: Evidence = Path("docs/evidence"),
        cache: Kept = Path(".evidence-cache/reproduce"),
        processes: Processes = 2,
    ) -> None:
        _reproduce(paper, what, full, out, cache, processes)

    reproduce.__doc__ = words
    command(group, paper)(reproduce)


def _reproduce(paper: str, what: str, full: bool, out: Path, cache: Path, processes: int) -> None:
    check_extra()
    _find_evidence()
    from evidence.reproduce import find
    from evidence.reproduce.pages import write
    from evidence.reproduce.runner import collect

    target = find(paper, what)
    with progress("getting ready") as show_progress:
        results = collect(target, paper=paper, full=full, processes=processes, cache=cache, progress=show_progress)
    page = target.page(results)
    # A short trial must not take the place of evidence.
    stem = what if full else f"{what}-quick"
    asked = f"discreet reproduce {paper} {what} {'--full' if full else '--quick'}"
    with writing(out / paper):
        written = write(page, out / paper, stem=stem, title=target.title, command=asked)
    show_table(target.title, page.head, page.lines)
    for path in written:
        typer.echo(f"Written: {path}")
