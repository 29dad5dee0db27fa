"""What commands share: refusals in one sentence, progress, and checks before any budget is spent."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from discreet.cli._keeping import leave_pipe, ready_streams
from discreet.estimators.registry import Neighbours
from discreet.exceptions import DiscreetError, InvalidInput

if TYPE_CHECKING:
    from rich.console import Console

    from discreet.data.bounds import Bounds
    from discreet.ledger import Ledger

P = ParamSpec("P")

BoundsFile = Annotated[
    Path, typer.Option("--bounds", help="Bounds file (TOML): write one with 'discreet bounds init'.")
]
Alpha = Annotated[float, typer.Option(help="The interval covers with probability 1 - alpha.")]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Show intervals that cover all segments at once, not each by itself.")
]
Relation = Annotated[Neighbours, typer.Option(help="Which data sets must be indistinguishable.")]
LedgerAt = Annotated[
    str | None,
    typer.Option("--ledger", envvar="DISCREET_LEDGER", help="Charge this ledger: sqlite:///file or postgresql://..."),
]
Dataset = Annotated[str | None, typer.Option(help="Name of the data set in the ledger.")]
Analyst = Annotated[str | None, typer.Option(help="Who asks, for the ledger.")]
Stratum = Annotated[str | None, typer.Option(help="Part of the data set that the file holds, for the ledger.")]

_UNEXPECTED = (
    "something went wrong that should not have; nothing more is shown here, because it might quote records "
    "(DISCREET_DEBUG=1 shows the traceback: keep it to yourself)."
)


def command(group: typer.Typer, name: str) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Register a command whose errors become one sentence and an exit code: 2 if refused, 1 if unexpected."""

    def register(function: Callable[P, None]) -> Callable[P, None]:
        group.command(name)(guarded(function))
        return function

    return register


def guarded(function: Callable[P, None]) -> Callable[P, None]:
    """The same function, whose errors become one sentence and an exit code."""

    @wraps(function)
    def guarding(*args: P.args, **kwargs: P.kwargs) -> None:
        ready_streams()
        try:
            function(*args, **kwargs)
        except BrokenPipeError:
            # `discreet ... | head` has seen enough.
            leave_pipe()
        except DiscreetError as error:
            _fail(str(error), 2)
        except (typer.Exit, typer.Abort):
            raise
        except Exception:
            if os.environ.get("DISCREET_DEBUG") == "1":
                raise
            _fail(_UNEXPECTED, 1)

    return guarding


def _fail(sentence: str, code: int) -> None:
    typer.echo(f"discreet: {sentence}", err=True)
    # Neither the cause nor its traceback may follow.
    raise typer.Exit(code) from None


def console(stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr)


Where = Annotated[
    list[str] | None,
    typer.Option(help="Rows to use: year=2020, ward=a,b, age=18:65 or age=18: (public); repeat for more conditions."),
]
UnitColumn = Annotated[
    str | None, typer.Option("--unit", help="Column that says whose row it is: the promise is then about units.")
]
MaxRows = Annotated[int | None, typer.Option(help="With --unit: the most rows that one unit has.")]
SampleBy = Annotated[
    str | None,
    typer.Option(help="Column of whole numbers, such as an id: models of long tables are fitted to a sample by it."),
]
MissingCode = Annotated[
    list[str] | None,
    typer.Option("--na", help="Text that means a missing value, beside NA, NULL, a dot and the like; repeat for more."),
]
Delimiter = Annotated[str | None, typer.Option(help="What separates fields: ';' or tab. Default: as the header says.")]
DecimalMark = Annotated[str | None, typer.Option("--decimal", help="',' if fractions are written with a comma.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of text, such as latin-1 or cp1252. Default: UTF-8.")]
Workers = Annotated[int | None, typer.Option(help="Processes that read long Parquet tables; default: one a core.")]


def of_rows(
    where: Sequence[str] | None,
    unit: str | None,
    max_rows: int | None,
    workers: int | None = None,
    sample_by: str | None = None,
) -> dict[str, Any]:
    """What ``fit_table`` takes about rows."""
    from discreet.data.filters import in_words

    rows = {"where": in_words(where or []) or None, "unit": unit, "max_rows": max_rows, "workers": workers}
    return rows | ({} if sample_by is None else {"sample_by": sample_by})


@contextmanager
def progress(first: str, *, rows: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on standard error, in terminals only, that disappears when the work is done; with rows a second."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    terminal = console(stderr=True)
    # Names come from modules of this package, and are no markup.
    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    speed = (TextColumn("{task.fields[speed]}", markup=False),) if rows else ()
    with Progress(*columns, *speed, console=terminal, transient=True, disable=not terminal.is_terminal) as bar:
        task = bar.add_task(first, total=None, speed="")
        measured = _Speed()

        def show(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total, speed=measured(what, done, total))

        yield show


class _Speed:
    """Rows a second since a pass began; nothing where the number of rows is private."""

    def __init__(self) -> None:
        self.what, self.start = "", 0.0

    def __call__(self, what: str, done: int, total: int) -> str:
        now = time.monotonic()
        if what != self.what:
            self.what, self.start = what, now
        return f"{done / (now - self.start):,.0f} rows/s" if total > 1 and now > self.start else ""


def names_in(words: str) -> list[str]:
    """Names that commas part."""
    return [name.strip() for name in words.split(",") if name.strip()]


def only(bounds: "Bounds", covariates: str | None) -> "Bounds":
    """The bounds of the named covariates, in the order of the bounds."""
    if covariates is None:
        return bounds
    names = names_in(covariates)
    missing = [name for name in names if name not in bounds.declared]
    if missing or not bounds.named:
        raise InvalidInput(f"--covariates names {(missing or names)[0]!r}, which the bounds do not: declare it there.")
    declared: Any = {name: spec for name, spec in bounds.declared.items() if name in set(names)}
    return bounds.declaring(declared)


def number_or_name(propensity: str | None) -> float | str | None:
    try:
        return None if propensity is None else float(propensity)
    except ValueError:
        return propensity


def by_arm(propensity: str | None, bounds: Any) -> Any:
    """Probabilities of the arms, ``placebo=.5,low=.25,high=.25``, where several are declared."""
    if propensity is None or not bounds.several_arms:
        return number_or_name(propensity)
    labels = {str(label): label for label in bounds.arms.levels}
    try:
        parts = [part.rsplit("=", 1) for part in propensity.split(",")]
        return {labels.get(name.strip(), name.strip()): float(value) for name, value in parts}
    except ValueError:
        raise InvalidInput(
            "--propensity of several arms takes a number for each: write label=.5,other=.25,third=.25."
        ) from None


def check_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InvalidInput("--alpha must lie between 0 and 1: 0.05 asks for a 95 % interval.")


def check_extra() -> None:
    from discreet.releases.plots import require

    require()


def check_target(path: Path | None, option: str, *, replace: bool) -> None:
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(f"{option} {str(path)!r} cannot be written: name a file in a directory that exists.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidInput(f"{option} {str(path)!r} cannot be written: you have no right to; name another file.")
    if path.exists() and not replace:
        raise InvalidInput(f"{option} {str(path)!r} exists already: choose another name, or move it away.")


@contextmanager
def ledger_file(address: str, *, new: bool = False) -> Iterator["Ledger"]:
    """A ledger, which must exist unless a new one is wanted."""
    from discreet.ledger import Ledger

    file = Path(address.removeprefix("sqlite:///"))
    if address.startswith("sqlite:///") and not new and not file.is_file():
        raise InvalidInput(f"there is no ledger {address!r}: make it with 'discreet ledger open', or check --ledger.")
    made = Ledger(address)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def charging(
    ledger: str | None, dataset: str | None, analyst: str | None, stratum: str | None
) -> Iterator[dict[str, Any]]:
    """What a fit takes about the ledger that it is charged to; nothing where there is none."""
    if ledger is None:
        if (dataset, analyst, stratum) != (None, None, None):
            raise InvalidInput("--dataset, --analyst and --stratum belong to a ledger: name it with --ledger.")
        yield {}
        return
    if dataset is None:
        raise InvalidInput("--ledger needs --dataset, the name under which the data set was opened.")
    with ledger_file(ledger) as made:
        yield {"ledger": made, "dataset": dataset, "analyst": analyst, "stratum": stratum}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise InvalidInput(f"{str(path)!r} cannot be written: check its directory and the space left.") from None


def show_table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table; text from files is no markup."""
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
