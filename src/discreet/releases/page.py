"""What every page about a release shares: the guarantee and the bounds in words, templates, and figures inside them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.bounds import Bounds, Levels, Range, Spec
from discreet.privacy.guarantee import Guarantee
from discreet.releases.plots import require, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How often an attacker who knows all other records is right, and what to call it.
_PROTECTION = ((0.53, "Very strong"), (0.62, "Strong"), (0.77, "Moderate"), (0.92, "Limited"), (1.0, "Weak"))
# A hyphen that stands for a minus: before a number, or in its exponent. It is too short, and lines break after it.
_HYPHEN = re.compile(r"(?<![\w-])-(?=[\d.])|(?<=\de)-(?=\d)")


def with_minus(text: object) -> str:
    """Text with minus signs where hyphens stand for them."""
    return _HYPHEN.sub("\N{MINUS SIGN}", str(text))


def guess(guarantee: Guarantee) -> dict[str, Any]:
    """How often someone who knows all other records is right about one, at most, where a coin is right half the time.

    The best test between two neighbouring data sets, each with probability one half, is right with probability
    (1 + total variation) / 2, and the total variation is the delta at epsilon = 0.
    """
    factor = math.exp(min(guarantee.epsilon, 700.0))
    stated = (factor - 1 + 2 * guarantee.delta) / (factor + 1)
    right = (1 + min(stated, guarantee.delta_at(0.0), 1.0)) / 2
    # Rounded up: a promise must not sound stronger than it is.
    times = math.ceil(1000 * right - 1e-9) / 10
    word = next(word for limit, word in _PROTECTION if right <= limit)
    return {"right": right, "times": f"{times:g}", "length": f"{times - 50:.1f}", "word": word}


def guarantee_facts(guarantee: Guarantee) -> dict[str, Any]:
    """A guarantee as the templates want it."""
    return {
        "unit": guarantee.unit,
        "neighbours": guarantee.neighbours,
        "status": guarantee.status,
        "public": guarantee.public,
        "budget": str(guarantee.budget),
        "factor": f"{math.exp(guarantee.epsilon):.3g}" if guarantee.epsilon < 700 else "more than 1e+304",
        "delta": f"{guarantee.delta:.3g}" if guarantee.delta else "",
        "one_in": f"{1 / guarantee.delta:,.0f}" if guarantee.delta > 1e-15 else "",
        "audit": guarantee.audit,
        "proofs": [f"docs/proofs/{name}" for name in (guarantee.proof or "").split(", ") if name],
    }


def page(template: str, **context: Any) -> str:
    """Fill a template; everything is escaped but the figures that this package drew."""
    require()
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["minus"] = with_minus
    return templates.get_template(template).render(context)


def inline_figure(figure: Figure, description: str) -> Any:
    """A figure as it may stand in a template unescaped; the description is for those who cannot see it."""
    drawn = svg(figure, description)
    from markupsafe import Markup

    return Markup(drawn)


def bounds_rows(bounds: Bounds) -> list[tuple[str, str]]:
    """Declared bounds, a row each."""
    low, high = bounds.propensity
    rows = [
        ("outcome", _outcome(bounds) + _called(bounds, "outcome")),
        ("probability of treatment", f"{low:g} to {high:g}"),
    ]
    if bounds.treatment is not None:
        control, *treated = bounds.treatment
        words = f"{treated[0]} (treated)" if len(treated) == 1 else ", ".join(map(str, treated))
        rows.append(("treatment", f"{control} (control), {words}" + _called(bounds, "treatment")))
    elif bounds.label("treatment", ""):
        rows.append(("treatment", "0 (control), 1 (treated)" + _called(bounds, "treatment")))
    return rows + [
        (f"covariate {name}", _spec(spec) + _called(bounds, name))
        for name, spec in zip(bounds.names, bounds.columns, strict=True)
    ]


def _called(bounds: Bounds, name: str) -> str:
    """Unit and label of a column, where they were declared."""
    unit, label = bounds.unit(name), bounds.label(name, "")
    return (f" {unit}" if unit else "") + (f" ({label})" if label else "")


def _outcome(bounds: Bounds) -> str:
    if bounds.outcome_levels is None:
        return _spec(bounds.outcome_range)
    first, second = bounds.outcome_levels.levels
    return f"{first} (no event), {second} (event)" + _fill(bounds.outcome_levels)


def _spec(spec: Spec) -> str:
    ends = [spec.written(end) for end in (spec.low, spec.high)] if isinstance(spec, Range) else []
    words = " to ".join(end if isinstance(end, str) else f"{end:g}" for end in ends)
    words = words if isinstance(spec, Range) else ", ".join(map(str, spec.levels))
    other = "" if isinstance(spec, Range) or spec.other is None else f"; anything else counts as {spec.other}"
    return words + other + _fill(spec)


def _fill(spec: Spec) -> str:
    fill = spec.fill if spec.fill is None or isinstance(spec, Levels) else spec.written(spec.fill)
    return "" if fill is None else f"; missing counts as {fill}"
