"""What commands show in a terminal: tables and progress bars. Rich is imported when something is shown."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


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
