"""Command for audits: what a mechanism really gives away."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from discreet.console import check_extra, check_target, command, progress, show_table, writing
from discreet.errors import InvalidInput

if TYPE_CHECKING:
    from discreet.audit import AuditResult

Neighbours = Literal["replace-one", "add-remove"]

# Estimators of the library by the name that the command knows, with the parameters that they cannot do without.
_NAMES: dict[str, tuple[str, dict[str, Any]]] = {
    "ate": ("ATE", {}),
    "cate": ("CATE", {}),
    "difference-in-means": ("DifferenceInMeans", {}),
    "uplift": ("Uplift", {"by": {0: 4}}),
    "papers.ADUM": ("papers.ADUM", {"by": {0: 4}}),
    "papers.DPCATE": ("papers.DPCATE", {}),
    "papers.DPCATEFunction": ("papers.DPCATEFunction", {}),
    "papers.DRLearner": ("papers.DRLearner", {"base": "linear"}),
    "papers.PrivATE": ("papers.PrivATE", {}),
    "papers.PropensityIPTW": ("papers.PropensityIPTW", {"xi": 0.1}),
    "papers.RLearner": ("papers.RLearner", {"base": "linear"}),
    "papers.SLearner": ("papers.SLearner", {}),
    "papers.TLearner": ("papers.TLearner", {"base": "linear"}),
    "papers.TwoModel": ("papers.TwoModel", {}),
}


def audit_(
    estimator: Annotated[
        str, typer.Argument(help="ate, cate, uplift, papers.DPCATE, ...; 'list' names estimators and attacks.")
    ],
    epsilon: Annotated[float | None, typer.Option(help="The claim to audit; an attack has one of its own.")] = None,
    delta: Annotated[float | None, typer.Option(help="Delta of the claim; leave it out for pure epsilon.")] = None,
    attack: Annotated[str | None, typer.Option(help="A known failure by its name: see 'discreet audit list'.")] = None,
    trials: Annotated[int | None, typer.Option(help="Runs on each of two data sets.")] = None,
    neighbours: Annotated[Neighbours, typer.Option(help="The relation, where there is a choice.")] = "replace-one",
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

    made = _made(estimator, epsilon, delta, attack, neighbours, bounds)
    with progress("getting ready") as told:
        result = audit(made, attack=attack, trials=trials, progress=told)
    show_table(result.mechanism, ["", ""], _rows(result))
    for sentence in (*result.found, *result.notes):
        typer.echo(f"- {sentence}")
    if json is not None:
        with writing(json):
            result.to_json(json)
        typer.echo(f"Result: {json}")
    if report is not None:
        from discreet.audit.page import save_page

        with writing(report):
            save_page(result, report)
        typer.echo(f"Page: {report}")


def _list() -> None:
    from discreet.audit import ATTACKS

    show_table("Attacks", ["attack", "on", "what it shows"], [[a.name, a.mechanism, a.title] for a in ATTACKS.values()])
    others = {attack.mechanism for attack in ATTACKS.values()} - _NAMES.keys()
    typer.echo(f"Estimators: {', '.join([*_NAMES, *sorted(others)])}")


def _made(
    name: str,
    epsilon: float | None,
    delta: float | None,
    attack: str | None,
    neighbours: Neighbours,
    bounds: Path | None,
) -> Any:
    """The mechanism that is to be audited: in the attack's own setting, or on made-up bounds."""
    from discreet.audit.attacks import ATTACKS, find_attack
    from discreet.audit.matrix import public_facts
    from discreet.bounds import Bounds
    from discreet.budget import Budget

    own = [known for known in ATTACKS.values() if known.mechanism == name]
    if attack is not None or (own and name not in _NAMES):
        known = find_attack(attack) if attack is not None else own[0]
        if known.mechanism != name:
            raise InvalidInput(f"--attack {known.name} is on {known.mechanism}, not on {name}: choose another.")
        return known.make(known.budget if epsilon is None else Budget(epsilon=epsilon, delta=delta))
    if name not in _NAMES:
        raise InvalidInput(f"there is no estimator {name!r} to audit: 'discreet audit list' names them.")
    if epsilon is None:
        raise InvalidInput("--epsilon is needed: it is the claim that is audited.")
    import discreet

    where, given = _NAMES[name]
    kind: Any = discreet
    for part in where.split("."):
        kind = getattr(kind, part)
    given = given | {"epsilon": epsilon, "bounds": public_facts(3) if bounds is None else Bounds.load(bounds)}
    parameters = kind._get_param_names()
    if "neighbours" in parameters:
        given["neighbours"] = neighbours
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
