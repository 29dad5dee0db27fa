"""One self-contained page about a release, for readers who have never heard of differential privacy."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.data.bounds import Bounds, Range, Spec
from discreet.plots import release_figure, require, svg
from discreet.privacy.guarantee import Guarantee
from discreet.release import SOURCES, Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = {"sampling": "blue", "privacy": "orange", "nuisance": "green", "clipping": "purple"}
_WORDS = {
    "sampling": "the study has a limited number of records, and another sample would give another answer. "
    "Only more records can shrink this part.",
    "privacy": "random noise was added to the result itself, so that no single record shows. A larger privacy budget "
    "or more records would shrink it.",
    "nuisance": "to compare like with like, models of treatment and outcome were fitted, with noise in them too. "
    "More records, a larger budget or fewer covariates would shrink it.",
    "clipping": "extreme values were limited, so that no record can dominate. The interval allows in full for the "
    "error that this may have caused.",
}
# How often an attacker who knows all other records is right, and what to call it.
_STRENGTH = ((0.53, "Very strong"), (0.62, "Strong"), (0.77, "Moderate"), (0.92, "Limited"), (1.0, "Weak"))
# A hyphen that stands for a minus: before a number, or in its exponent. It would look poor, and lines break after it.
_HYPHEN = re.compile(r"(?<![\w-])-(?=[\d.])|(?<=\de)-(?=\d)")


def render(release: Release, *, title: str | None = None, extra_figures: "Sequence[tuple[str, Figure]]" = ()) -> str:
    """The page as text: HTML with its style and pictures inside, so that it needs no network.

    Parameters
    ----------
    release : Release
        What the page is about.
    title : str, optional
        The page's title.
    extra_figures : sequence of (caption, matplotlib Figure)
        Further pictures. They are not covered by the release's guarantee: draw them from releases only.
    """
    numbers = [("estimate", release.text(release.estimate))]
    numbers += [(f"{100 - 100 * alpha:g} % interval", release.interval_text(alpha)) for alpha in (0.2, 0.1, 0.05, 0.01)]
    numbers += [("standard error", f"{release.uncertainty.se:.4g}")]
    parts = release.uncertainty.to_dict()
    allowance = parts.pop("clipping")
    numbers += [(f"of it, {SOURCES[name]}", f"{part:.4g}") for name, part in parts.items()]
    numbers += [("allowance for clipping", f"{allowance:.4g}")]
    numbers += [("records", release.records)]
    numbers += [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    return page(
        "report.html",
        title=title or release.title,
        finding=finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        picture=picture(release_figure(release), finding(release)),
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        sources=_sources(release),
        notes=release.notes,
        extra_figures=[(caption, picture(figure, caption)) for caption, figure in extra_figures],
        methods=release.methods(),
        numbers=numbers,
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in release.rounds()
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=2, ensure_ascii=False),
    )


def save_report(
    release: Release,
    path: str | Path,
    *,
    title: str | None = None,
    extra_figures: "Sequence[tuple[str, Figure]]" = (),
) -> None:
    """Write the page of `render` to a file."""
    Path(path).write_bytes(render(release, title=title, extra_figures=extra_figures).encode())


def finding(release: Release) -> str:
    """The result in one sentence."""
    low, high = release.interval()
    if low <= 0 <= high:
        return (
            f"The data do not show whether treatment raises or lowers the outcome: the average effect is estimated as "
            f"{release.text(release.estimate)}, with a 95 % interval from {release.interval_text()} that includes zero."
        )
    verb, ends = ("raised", (low, high)) if low > 0 else ("lowered", (-high, -low))
    return (
        f"On average, treatment {verb} the outcome by {release.text(abs(release.estimate))}, and most likely by "
        f"between {release.text(ends[0])} and {release.text(ends[1])} (95 % interval)."
    )


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
    word = next(word for limit, word in _STRENGTH if right <= limit)
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
    """Fill a template; everything is escaped but the pictures that this package drew."""
    require()
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["minus"] = lambda text: _HYPHEN.sub("\N{MINUS SIGN}", str(text))
    return templates.get_template(template).render(context)


def picture(figure: "Figure", description: str) -> Any:
    """A figure as it may stand in a template unescaped; the description is for those who cannot see it."""
    drawn = svg(figure, description)
    from markupsafe import Markup

    return Markup(drawn)


def _sources(release: Release) -> list[dict[str, str]]:
    shares = release.shares()
    return [
        {
            "name": SOURCES[name],
            "colour": _COLOURS[name],
            "share": f"{100 * shares[SOURCES[name]]:.0f} %",
            "words": words,
        }
        for name, words in _WORDS.items()
        if SOURCES[name] in shares
    ]


def bounds_rows(bounds: Bounds) -> list[tuple[str, str]]:
    """Declared bounds, a row each."""
    low, high = bounds.propensity
    rows = [("outcome", _spec(bounds.outcome_range)), ("probability of treatment", f"{low:g} to {high:g}")]
    if bounds.treatment is not None:
        rows.append(("treatment", f"{bounds.treatment[0]} (control), {bounds.treatment[1]} (treated)"))
    return rows + [(f"covariate {name}", _spec(spec)) for name, spec in zip(bounds.names, bounds.columns, strict=True)]


def _spec(spec: Spec) -> str:
    words = f"{spec.low:g} to {spec.high:g}" if isinstance(spec, Range) else ", ".join(map(str, spec.levels))
    other = "" if isinstance(spec, Range) or spec.other is None else f"; anything else counts as {spec.other}"
    return words + other + ("" if spec.fill is None else f"; missing counts as {spec.fill}")
