"""The command that compares a bounds file with a table: every mistake at once, before any budget is spent."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.cli._console import BoundsFile, Where, names_in
from discreet.cli.bounds.template import NUMBERS, TEXT, columns_of
from discreet.exceptions import DiscreetError, InvalidInput

if TYPE_CHECKING:
    from discreet.data.bounds import Bounds, Spec

# Sections that a file may have besides those of covariates; what stands in for an outcome while others are checked.
_SECTIONS = ("outcome", "propensity", "treatment")
_OUTCOME = {"low": 0, "high": 1}


def check(
    file: Annotated[str, typer.Argument(help="CSV or Parquet file, or a pattern in quotes.")],
    bounds: BoundsFile,
    outcome: Annotated[str | None, typer.Option(help="Column of the outcome.")] = None,
    treatment: Annotated[str | None, typer.Option(help="Column of the treatment.")] = None,
    covariates: Annotated[str | None, typer.Option(help="Columns to adjust for: a,b,c. Default: all.")] = None,
    where: Where = None,
) -> None:
    """Check a bounds file against the columns of a table; no record is read, and nothing is spent."""
    columns = columns_of(file)
    given = {"--outcome": outcome, "--treatment": treatment}
    wanted = None if covariates is None else names_in(covariates)
    found = list(mistakes(read(bounds), columns, {name: each for name, each in given.items() if each}, wanted))
    found += _conditions(where, columns)
    for mistake in found:
        typer.echo(f"- {mistake}")
    if found:
        raise InvalidInput(f"{str(bounds)!r} has {len(found)} mistake{'s' if len(found) > 1 else ''}, listed above.")
    typer.echo(f"{bounds} fits {file}: every part is filled in, and the columns are there. Nothing was spent.")


def read(path: Path) -> dict[str, Any]:
    """What a bounds file holds, whatever it is worth."""
    try:
        return tomllib.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise InvalidInput(f"There is no bounds file {str(path)!r}: check the path.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"The bounds file {str(path)!r} is not UTF-8 text: save it as TOML.") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{str(path)!r} is not valid TOML: {error}.") from None


def mistakes(
    facts: Mapping[str, Any], columns: Mapping[str, str | None], given: Mapping[str, str], wanted: list[str] | None
) -> Iterator[str]:
    """Everything that is wrong with a bounds file, a sentence each.

    Parameters
    ----------
    facts
        What the file holds.
    columns
        The table's columns and their types, None where the file does not say.
    given
        Columns of outcome and treatment, by the options that named them.
    wanted
        Covariates that were asked for; None for all.
    """
    yield from _sections(facts)
    for option, name in given.items():
        if name not in columns:
            yield f"{option}: the table has no column {name!r}."
    covariates = facts.get("covariates", {})
    if not isinstance(covariates, Mapping):
        yield "covariates: parts need names, so that columns can be found: write [covariates.age]."
        return
    roles = {name: option.removeprefix("--") for option, name in given.items()}
    for name, part in covariates.items():
        if wanted is None or name in wanted:
            yield from _covariate(name, part, columns, roles)
    for name in wanted or ():
        if name not in covariates:
            yield f"--covariates: {name!r} has no part in the bounds file."
    if "outcome" in facts and "--outcome" in given:
        made = _made({"outcome": facts["outcome"]})
        if made is not None:
            yield from _kind("outcome", given["--outcome"], made.outcome_column, columns)
    if "--treatment" in given:
        made = _made({"outcome": _OUTCOME} | {key: facts[key] for key in ("treatment",) if key in facts})
        if made is not None:
            yield from _kind("treatment", given["--treatment"], made.arms, columns)


def _sections(facts: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with all parts but those of covariates."""
    for key in facts:
        if key not in (*_SECTIONS, "covariates"):
            yield f"{key}: there is no such part; there are outcome, propensity, treatment and covariates."
    if "outcome" not in facts:
        yield "outcome: it is not filled in. Give its range, or have one suggested: 'discreet bounds suggest'."
    for key in _SECTIONS:
        if key in facts:
            yield from _refusal({"outcome": _OUTCOME} | {key: facts[key]})


def _covariate(name: str, part: object, columns: Mapping[str, str | None], roles: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the part of one covariate."""
    if name in roles:
        yield f"covariate {name!r} is the {roles[name]}: delete its part."
        return
    if name not in columns:
        yield f"covariate {name!r}: the table has no such column. Check its spelling, or delete its part."
    facts = {"outcome": _OUTCOME, "covariates": {name: part}}
    refusals = list(_refusal(facts))
    yield from refusals
    if not refusals and name in columns:
        made = _made(facts)
        assert made is not None
        yield from _kind(f"covariate {name!r}", name, made.columns[0], columns)


def _kind(what: str, name: str, spec: "Spec", columns: Mapping[str, str | None]) -> Iterator[str]:
    """Whether a column's type contradicts what is declared of it."""
    from discreet.data.bounds import Levels

    kind = columns.get(name)
    text = isinstance(spec, Levels) and spec.is_text
    if kind is not None and (kind in TEXT) != text and (kind in TEXT or kind in NUMBERS or kind == "boolean"):
        has, needs = ("text", "levels in quotes") if kind in TEXT else ("numbers", "a range, or levels without quotes")
        yield f"{what}: its column holds {has}, so that it needs {needs}."


def _refusal(facts: Mapping[str, Any]) -> Iterator[str]:
    from discreet.data.bounds import Bounds

    try:
        Bounds.from_dict(facts)
    except DiscreetError as error:
        yield str(error)


def _made(facts: Mapping[str, Any]) -> "Bounds | None":
    from discreet.data.bounds import Bounds

    try:
        return Bounds.from_dict(facts)
    except DiscreetError:
        return None


def _conditions(where: list[str] | None, columns: Mapping[str, str | None]) -> list[str]:
    from discreet.data.filters import conditions, in_words

    try:
        met = conditions(in_words(where or []))
    except DiscreetError as error:
        return [str(error)]
    return [f"--where: the table has no column {each.column!r}." for each in met if each.column not in columns]
