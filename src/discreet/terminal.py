"""What commands show in a terminal: tables and progress bars. Rich is imported when something is shown."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.release import Release


def show_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(*head, title=title, title_justify="left", title_style="bold")
    for line in lines:
        table.add_row(*map(Text, line))
    out = console()
    if not out.is_terminal:
        # A file or a pipe has no width that a table would have to fit in.
        out.width = 240
    out.print(table)


def console(stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr)


@contextmanager
def progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, in terminals only, that disappears when the work is done."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    out = console(stderr=True)
    # Names come from modules of this package, and are no markup.
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task(first, total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def show_release(release: "Release", alpha: float) -> None:
    """Show an average effect, where its uncertainty comes from and what is promised."""
    from rich.table import Table
    from rich.text import Text

    from discreet.report import guess

    out = console()
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
    out.print(table)
    for note in release.notes:
        out.print(Text(f"- {note}"), style="dim")
