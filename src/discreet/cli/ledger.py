"""Commands for ledgers: what may be spent on data sets, what was, and whether anybody has changed the log."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from discreet.cli._console import Relation, check_target, command, console, ledger_file, writing
from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.ledger import Account, Ledger

Composition = Literal["either", "gaussian", "plain"]

ledgers = typer.Typer(no_args_is_help=True, help="Keep budgets of data sets, which cannot be overspent.")

Where = Annotated[
    str,
    typer.Option("--ledger", envvar="DISCREET_LEDGER", help="Address: sqlite:///file or postgresql://user@host/base."),
]
Name = Annotated[str, typer.Argument(help="Name of the data set.")]
Curator = Annotated[str, typer.Option(help="Who does this; it is written to the log.")]
Epsilon = Annotated[float, typer.Option(help="The cap: smaller is more private.")]
Delta = Annotated[float | None, typer.Option(help="Delta of the cap; leave it out for pure epsilon.")]
Reason = Annotated[str | None, typer.Option(help="Why, in a few words.")]
HERE = "sqlite:///budget.db"


def add_ledger(app: typer.Typer) -> None:
    """Add ``ledger`` and its commands."""
    app.add_typer(ledgers, name="ledger")


@command(ledgers, "open")
def open_(
    name: Name,
    epsilon: Epsilon,
    delta: Delta = None,
    neighbours: Relation = "replace-one",
    unit: Annotated[str, typer.Option(help="Whose data one record is.")] = "one record",
    stratum: Annotated[list[str] | None, typer.Option(help="A disjoint part; repeat for each.")] = None,
    version: Annotated[str, typer.Option(help="Of the records.")] = "1",
    composition: Annotated[Composition, typer.Option(help="How costs add up; see docs/proofs/ledger.md.")] = "either",
    curator: Curator = "curator",
    ledger: Where = HERE,
) -> None:
    """Open a data set with a cap; the ledger is made where there is none."""
    with _ledger(ledger, new=True) as made:
        made.open(
            name,
            epsilon=epsilon,
            delta=delta,
            neighbours=neighbours,
            unit=unit,
            strata=stratum or (),
            version=version,
            composition=composition,
            curator=curator,
        )
        _show(made.account(name))


@command(ledgers, "show")
def show(
    name: Annotated[str | None, typer.Argument(help="Name of a data set; all by default.")] = None,
    ledger: Where = HERE,
) -> None:
    """Show caps, what is spent and reserved, and the head of the log."""
    with _ledger(ledger) as made:
        for each in made.datasets() if name is None else (name,):
            _show(made.account(each))
        _head(made)


@command(ledgers, "export")
def export(
    file: Annotated[Path, typer.Argument(help="File for the log, one line of JSON each.")],
    ledger: Where = HERE,
) -> None:
    """Write the log to a file that anyone can verify."""
    check_target(file, "file", replace=False)
    with _ledger(ledger) as made, writing(file):
        made.export(file)
        typer.echo(f"Log: {file}")
        _head(made)


@command(ledgers, "verify")
def verify(
    head: Annotated[str | None, typer.Option(help="A head that was kept elsewhere: NUMBER:HASH.")] = None,
    file: Annotated[Path | None, typer.Option(help="An exported log, instead of the ledger itself.")] = None,
    against: Annotated[
        str | None, typer.Option(help="The anchor that followed the log: file:PATH or a database's address.")
    ] = None,
    ledger: Where = HERE,
) -> None:
    """Find out whether anybody has changed the log."""
    from discreet.ledger import Head, verify_lines

    if against is not None:
        _verify_against(ledger, against)
        return

    anchor = None if head is None else Head.parse(head)
    if file is not None:
        try:
            with file.open(encoding="utf-8") as lines:
                found = verify_lines(lines, anchor)
        except (OSError, UnicodeDecodeError):
            raise InvalidInput("--file cannot be read as a log: name a file that 'ledger export' wrote.") from None
    else:
        with _ledger(ledger) as made:
            found = made.verify(anchor)
    typer.echo(f"{found.seq} lines verify. Head: {found}")
    if anchor is None:
        typer.echo("Whether lines are missing at the end shows only with --head, a head that was kept elsewhere.")


@command(ledgers, "backup")
def backup(
    file: Annotated[Path, typer.Argument(help="New file for the copy, which is as secret as the database.")],
    ledger: Where = HERE,
) -> None:
    """Copy the ledger, with a service's tables beside it, as of one moment, and verify the copy."""
    from discreet.ledger.governance.backups import back_up

    head = back_up(ledger, file)
    typer.echo(f"Backup: {file}, {head.seq} lines, verified. Head: {head}")


@command(ledgers, "restore")
def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    curator: Curator,
    against: Annotated[
        str | None, typer.Option(help="The anchor that followed the log: file:PATH or a database's address.")
    ] = None,
    ledger: Where = HERE,
) -> None:
    """Make a ledger of a backup, in an empty database; it is halted until two curators say so."""
    from discreet.ledger.governance.anchors import anchor_at
    from discreet.ledger.governance.backups import restore as restored

    head, known = restored(file, ledger, anchor=anchor_at(against) if against else None, curator=curator)
    typer.echo(f"Restored: {head.seq} lines, of which {known} came from the anchor. Head: {head}")
    typer.echo("It is halted. One curator proposes to go on (discreet ledger resume), and another one approves.")
    if against is None:
        typer.echo("What was spent since the backup is not known here: an anchor would know (--against).")


@command(ledgers, "resume")
def resume(curator: Curator, ledger: Where = HERE) -> None:
    """Propose to lift the halt of a restored ledger, which another curator has to approve."""
    with _ledger(ledger) as made:
        number = made.propose_deed("resume", curator=curator)
        typer.echo(f"Proposal {number}. Another curator approves it: discreet ledger approve {number} --curator NAME")


@command(ledgers, "freeze")
def freeze(name: Name, curator: Curator, reason: Reason = None, ledger: Where = HERE) -> None:
    """Stop everything new on a data set."""
    with _ledger(ledger) as made:
        made.freeze(name, curator=curator, reason=reason)
        _show(made.account(name))


@command(ledgers, "unfreeze")
def unfreeze(name: Name, curator: Curator, reason: Reason = None, ledger: Where = HERE) -> None:
    """Let requests go on."""
    with _ledger(ledger) as made:
        made.unfreeze(name, curator=curator, reason=reason)
        _show(made.account(name))


@command(ledgers, "raise")
def raise_(
    name: Name,
    curator: Curator,
    epsilon: Epsilon,
    delta: Delta = None,
    analyst: Annotated[str | None, typer.Option(help="Whose cap; the data set's own by default.")] = None,
    ledger: Where = HERE,
) -> None:
    """Propose a higher cap, which another curator has to approve."""
    with _ledger(ledger) as made:
        number = made.propose(name, epsilon=epsilon, delta=delta, analyst=analyst, curator=curator)
        typer.echo(f"Proposal {number}. Another curator approves it: discreet ledger approve {number} --curator NAME")


@command(ledgers, "approve")
def approve(
    proposal: Annotated[int, typer.Argument(help="Number of the proposal.")], curator: Curator, ledger: Where = HERE
) -> None:
    """Approve a cap that another curator has proposed."""
    with _ledger(ledger) as made:
        made.approve(proposal, curator=curator)
        typer.echo(f"Proposal {proposal} is approved.")


@command(ledgers, "allow")
def allow(
    name: Name,
    analyst: Annotated[str, typer.Argument(help="Name of the analyst.")],
    curator: Curator,
    epsilon: Epsilon,
    delta: Delta = None,
    ledger: Where = HERE,
) -> None:
    """Give an analyst a cap below the data set's own, or lower it; nobody without one may ask then."""
    with _ledger(ledger) as made:
        made.allow(name, analyst, epsilon=epsilon, delta=delta, curator=curator)
        _show(made.account(name))


@command(ledgers, "renew")
def renew(
    name: Name,
    version: Annotated[str, typer.Argument(help="Version of the records from now on.")],
    curator: Curator,
    ledger: Where = HERE,
) -> None:
    """Say that the records have changed, so that stored releases answer no more requests."""
    with _ledger(ledger) as made:
        made.renew(name, version, curator=curator)
        typer.echo(f"{name} is at version {version}. What was spent stays spent.")


@command(ledgers, "cancel")
def cancel(
    request: Annotated[int, typer.Argument(help="Number of the request.")], curator: Curator, ledger: Where = HERE
) -> None:
    """Give back what was reserved and never charged; a fit that still runs will stop before it draws."""
    with _ledger(ledger) as made:
        made.cancel(request, actor=curator)
        typer.echo(f"Request {request} is cancelled.")


@contextmanager
def _ledger(address: str, *, new: bool = False) -> Iterator["Ledger"]:
    with ledger_file(address, new=new) as made:
        yield made


def _verify_against(address: str, against: str) -> None:
    from discreet.ledger.governance.anchors import anchor_at, compare

    with _ledger(address) as made:
        head, kept = made.verify(), anchor_at(against).entries()
        missing = compare(made.log(), kept)
    if missing:
        raise InvalidInput(
            f"this ledger is an older copy: it ends at line {head.seq}, and the anchor knows {len(missing)} more. "
            "Restore it with them: discreet ledger backup, then discreet ledger restore --against."
        )
    typer.echo(f"{head.seq} lines verify, and agree with the {len(kept)} that the anchor holds. Head: {head}")


def _show(account: "Account") -> None:
    from rich.text import Text

    styles: dict[str, Any] = {"█": "red", "▒": "yellow", "·": "green"}
    for line in str(account).splitlines():
        text = Text(line)
        for mark, style in styles.items():
            text.highlight_regex(f"{mark}+", style)
        console().print(text, soft_wrap=True)
    waiting = account.requests.get("reserved", 0)
    if waiting:
        typer.echo(f"  {waiting} reserved: if no process is at work on them any more, discreet ledger cancel NUMBER.")


def _head(ledger: "Ledger") -> None:
    typer.echo(f"Head: {ledger.head}  (keep it elsewhere: it shows later that nothing was removed)")
