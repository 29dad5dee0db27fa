"""Command for audits: what a mechanism really gives away."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import check_extra, check_target, command, progress, show_table, writing
from discreet.estimators.registry import REGISTRY, Neighbours
from discreet.exceptions import InvalidInput

if TYPE_CHECKING:
    from discreet.audit import AuditResult


# Estimators of the library by the name that the command knows.
_KNOWN = {name: entry for name, entry in REGISTRY.items() if entry.audited is not None}


def audit_(
    estimator: Annotated[
        str, typer.Argument(help="ate, cate, uplift, papers.DPCATE, ...; 'list' names estimators and attacks.")
    ],
    epsilon: Annotated[float | None, typer.Option(help="The claim to audit; an attack has one of its own.")] = None,
    delta: Annotated[
        float | None, typer.Option(help="Delta of the claim; by default the attack's, or 1e-6 where noise is Gaussian.")
    ] = None,
    attack: Annotated[str | None, typer.Option(help="A known failure by its name: see 'discreet audit list'.")] = None,
    trials: Annotated[int | None, typer.Option(help="Runs on each of two data sets.")] = None,
    neighbours: Annotated[Neighbours | None, typer.Option(help="The relation, where there is a choice.")] = None,
    bounds: Annotated[Path | None, typer.Option(help="Bounds file (TOML); made-up ones otherwise.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the result to this JSON file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a page about it to this HTML file.")] = None,
) -> None:
    """Find out what a mechanism really spends: lower bounds on its epsilon and delta."""
    if estimator == "list":
        _list()
        return
    check_target(json, "--json", replace=True)
    check_target(report, "--report", replace=True)
    if report is not None:
        check_extra()
    from discreet.audit import audit

    name, attack = _known(estimator, attack)
    made = _made(name, epsilon, delta, attack, neighbours, bounds)
    with progress("getting ready") as show_progress:
        result = audit(made, attack=attack, trials=trials, progress=show_progress)
    show_table(result.mechanism, ["", ""], _rows(result))
    for sentence in result.found:
        typer.echo(f"! {sentence}")
    for part in result.parts or (result,):
        for sentence in part.notes:
            typer.echo(f"- {part.instrument}: {sentence}")
    if json is not None:
        with writing(json):
            result.to_json(json)
        typer.echo(f"Result: {json}")
    if report is not None:
        from discreet.audit.result import save_page

        with writing(report):
            save_page(result, report)
        typer.echo(f"Page: {report}")


def _list() -> None:
    from discreet.audit import ATTACKS

    show_table("Attacks", ["attack", "on", "what it shows"], [[a.name, a.mechanism, a.title] for a in ATTACKS.values()])
    others = {attack.mechanism for attack in ATTACKS.values()} - _KNOWN.keys()
    typer.echo(f"Estimators: {', '.join([*_KNOWN, *sorted(others)])}")


def _known(name: str, attack: str | None) -> tuple[str, str | None]:
    """The name as it is spelt here, and the attack: what is not of this library has nothing but attacks."""
    from discreet.audit.attacks import ATTACKS

    foreign = {known.mechanism for known in ATTACKS.values()} - _KNOWN.keys()
    spelt = {each.lower().replace("-", ""): each for each in (*_KNOWN, *foreign)}
    name = spelt.get(name.lower().replace("-", ""), name)
    if name in foreign and attack is None:
        own = [known.name for known in ATTACKS.values() if known.mechanism == name]
        if len(own) > 1:
            raise InvalidInput(f"{name} has several attacks: choose --attack {' or --attack '.join(own)}.")
        attack = own[0]
    return name, attack


def _made(
    name: str,
    epsilon: float | None,
    delta: float | None,
    attack: str | None,
    neighbours: Neighbours | None,
    bounds: Path | None,
) -> Any:
    """The mechanism that is to be audited: in the attack's own setting, or on made-up bounds."""
    from discreet.audit._configurations import public_facts
    from discreet.audit.attacks import find_attack
    from discreet.data.bounds import Bounds
    from discreet.privacy.budget import Budget

    if attack is not None:
        known = find_attack(attack)
        if known.mechanism != name:
            raise InvalidInput(f"--attack {known.name} is on {known.mechanism}, not on {name}: choose another.")
        if neighbours is not None or bounds is not None:
            option = "--bounds" if neighbours is None else "--neighbours"
            raise InvalidInput(f"{option} cannot be chosen with --attack, which brings its own records: leave it out.")
        claim = known.budget
        epsilon = claim.epsilon if epsilon is None else epsilon
        delta = claim.delta if delta is None else delta
        return known.make(Budget(epsilon=epsilon, delta=delta))
    if name not in _KNOWN:
        raise InvalidInput(f"there is no estimator {name!r} to audit: 'discreet audit list' names them.")
    if epsilon is None:
        raise InvalidInput("--epsilon is needed: it is the claim that is audited.")
    entry = _KNOWN[name]
    kind, given = entry.load(), dict(entry.audited or {})
    given |= {
        "epsilon": epsilon,
        "bounds": public_facts(3, entry.audited_outcome) if bounds is None else Bounds.load(bounds),
    }
    parameters = kind._get_param_names()
    if neighbours is not None:
        if "neighbours" not in parameters and neighbours != "replace-one":
            raise InvalidInput(f"{name} knows replace-one only: leave --neighbours out.")
        given |= {"neighbours": neighbours} if "neighbours" in parameters else {}
    if delta is not None:
        if "delta" not in parameters:
            raise InvalidInput(f"{name} has no delta: leave --delta out.")
        given["delta"] = delta
    return kind(**given)


def _rows(result: "AuditResult") -> list[list[str]]:
    rows = [
        ["claimed", f"{result.claimed} ({result.neighbours}, {result.status})"],
        ["attack", f"{result.attack} ({result.instrument})"],
        ["shown", result.shown()],
        ["confidence", "exact" if result.confidence == 1 else f"{100 * result.confidence:g} %"],
        ["runs", f"{result.trials:,}"],
        ["worst neighbours", result.worst],
        ["verdict", result.verdict],
    ]
    rows += [[f"by {part.instrument}", f"{part.shown()}; {part.verdict}"] for part in result.parts]
    return rows


def add_audit(app: typer.Typer) -> None:
    """Register the command."""
    command(app, "audit")(audit_)
