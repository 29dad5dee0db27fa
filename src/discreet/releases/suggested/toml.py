"""A suggestion as a bounds file that teaches: what was seen, what to check, and what is left to fill in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.data._arrays import Level
from discreet.data.declared.toml import toml_key, toml_value
from discreet.privacy.guarantee import Guarantee
from discreet.releases.suggested.columns import SuggestedLevels, SuggestedRange

_HEAD = """\
# Bounds that were suggested under differential privacy, with {budget} for {unit}.
# They are released numbers: this file may be published, and whoever uses it spends nothing on them again.
# They are also guesses through noise. Check each against what is known of the subject, and change it where you know
# better: an age ends at 110 or so, whatever noise says. Values outside a range are clipped to it, which costs accuracy
# and never privacy.
"""
_FILL_IN = "# Noise hides where the values are: fill in, or delete this part.\n# low = 0\n# high = 100"


def bounds_file(
    outcome: str | None,
    columns: Sequence[SuggestedRange | SuggestedLevels],
    treatment: tuple[Level, Level] | None,
    guarantee: Guarantee,
) -> str:
    """The text of the file."""
    lines = [_HEAD.format(budget=guarantee.budget, unit=guarantee.unit)]
    if guarantee.status == "test":
        lines.append("# Drawn with seeded noise: a test, and not private. Do not publish it.\n")
    rest = list(columns)
    lines += _outcome(outcome, rest.pop(0) if outcome is not None else None)
    lines += ["", "# Smallest and largest probability of treatment that anyone can have. Not looked at: a declaration."]
    lines += ["propensity = {low = 0.05, high = 0.95}", ""]
    if treatment is not None:
        control, treated = map(toml_value, treatment)
        lines += [f"treatment = {{control = {control}, treated = {treated}}}"]
    else:
        lines += ["# The two labels of the treatment column, if they are not 0 and 1 or true and false."]
        lines += ['# treatment = {control = "placebo", treated = "drug"}']
    for column in rest:
        lines += _part(column)
    return "\n".join(lines) + "\n"


def _outcome(name: str | None, column: SuggestedRange | SuggestedLevels | None) -> Iterator[str]:
    if not isinstance(column, SuggestedRange) or not column.found:
        yield f"# {'The outcome' if name is None else name}: no range was found. Fill one in."
        yield "# outcome = {low = 0, high = 100}"
        return
    yield f"# The outcome, {_comment(name)}. {' '.join(column.remarks)}".rstrip()
    if column.two_values:
        yield "# If these are all the values that it can have, declare a binary outcome instead: {levels = [0, 1]}"
    if column.missing:
        yield "# Missing outcomes are refused; to count them as a value of your choice, add: fill = 0"
    yield f"outcome = {{low = {toml_value(column.low)}, high = {toml_value(column.high)}}}"


def _part(column: SuggestedRange | SuggestedLevels) -> Iterator[str]:
    yield ""
    yield f"[covariates.{toml_key(column.name)}]"
    yield from (f"# {remark}" for remark in column.remarks if column.found)
    if not column.found:
        yield _FILL_IN
        return
    spec = column.spec
    if isinstance(column, SuggestedRange):
        if column.two_values:
            yield "# As categories: levels = [0, 1]"
        yield f"low = {toml_value(column.low)}"
        yield f"high = {toml_value(column.high)}"
    else:
        yield "# Frequent candidates. Whatever else the column holds counts as the last one."
        yield f"levels = {toml_value([*column.levels, *([] if column.other is None else [column.other])])}"
        if column.other is not None:
            yield f"other = {toml_value(column.other)}"
    if spec.fill is not None:
        yield f"# Missing values count as this one.\nfill = {toml_value(spec.fill)}"


def _comment(name: str | None) -> str:
    """A column's name in a comment, which a line's end would end."""
    return toml_value(name or "")
