"""Numbers of figures as templates want them: places on an axis in per cent, and what the plots' script reads."""

from __future__ import annotations

import math
from typing import Any

from discreet.data.bounds import Levels
from discreet.estimators.planning import Plan
from discreet.releases.parts.charts import Forest, Lines, axis_ends, curve
from discreet.releases.parts.labels import with_unit
from discreet.releases.protocol import AnswersCurves
from discreet.releases.report import kind_of
from discreet.serve.domain.plans import HIGH, LOW

# Choice: covariates with a smaller share of the effect's variance are folded away: it reads as 0 %.
_LEAST_SHARE = 0.005
# Rows of a forest that are shown before the rest is folded away.
_MOST_ROWS = 24


def charts_of(release: Any) -> dict[str, Any]:
    """Forests and plots of a release."""
    kind = kind_of(release)
    if kind is None:
        return {"forests": [], "plots": []}
    found = kind.charts(release)
    return {
        "forests": [forest_view(each) for each in found.forests],
        "plots": [plot_view(each) for each in found.lines],
    }


def forest_view(forest: Forest) -> dict[str, Any]:
    """A forest with its places in per cent of the axis."""
    low, high = forest.ends()

    def place(value: float) -> str:
        return f"{100 * min(max((value - low) / (high - low), 0.0), 1.0):.2f}%"

    rows = [
        {
            "label": row.label,
            "text": row.text,
            "total": row.total,
            "marks": [
                {
                    "at": place(mark.at),
                    "low": place(mark.low),
                    "high": place(mark.high),
                    "inner": None if mark.inner is None else [place(end) for end in mark.inner],
                    "colour": mark.colour,
                    "y": 50 if len(row.marks) == 1 else 32 + 36 * k,
                }
                for k, mark in enumerate(row.marks)
            ],
        }
        for row in forest.rows
    ]
    return {
        "caption": forest.caption,
        "axis": forest.axis,
        "rows": rows[:_MOST_ROWS],
        "more": rows[_MOST_ROWS:],
        "zero": place(0.0) if low <= 0.0 <= high else None,
        "ticks": [(place(value), f"{value:.3g}") for value in ticks(low, high)],
        "legend": forest.legend,
    }


def plot_view(lines: Lines, **more: Any) -> dict[str, Any]:
    """Lines as the script reads them."""
    low = [value for series in lines.series for value in series.low]
    high = [value for series in lines.series for value in series.high]
    return lines.to_dict() | {"ends": list(axis_ends(low, high))} | more


def curves(made: Any) -> dict[str, Any] | None:
    """The effect along each covariate, the most important first; those without a share by themselves."""
    if not isinstance(made, AnswersCurves):
        return None
    names = made.bounds.names
    shown: list[dict[str, Any]] = []
    folded: list[dict[str, Any]] = []
    for name in sorted(names, key=lambda name: -made.importance[name]):
        place, share = names.index(name), made.importance[name]
        spec = made.bounds.columns[place]
        levels = [str(level) for level in spec.levels] if isinstance(spec, Levels) else None
        facts = plot_view(curve(made, name), field=f"x-{place}", levels=levels, before="effect ")
        facts["x_name"] = made.bounds.label(name)
        (shown if share >= _LEAST_SHARE or not shown else folded).append(
            {"name": name, "title": with_unit(made.bounds, name), "share": share, "plot": facts, "table": _table(facts)}
        )
    every = [each["plot"]["ends"] for each in (*shown, *folded)]
    ends = [min(low for low, _ in every), max(high for _, high in every)]
    return {"shown": shown, "folded": folded, "ends": ends}


def _table(facts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Every level, or every twelfth value."""
    series, levels = facts["series"][0], facts["levels"]
    at = levels or [f"{value:.3g}" for value in facts["x"]]
    rows = zip(at, series["y"], series["low"], series["high"], strict=True)
    return [
        (where, f"{y:.3g}", f"{low:.3g}", f"{high:.3g}") for where, y, low, high in list(rows)[:: 1 if levels else 12]
    ]


def plan_view(points: list[tuple[float, float]], made: Plan, unit: str) -> dict[str, Any]:
    """Half the expected interval against epsilon: the chosen point, and what it would be without noise."""
    ceiling = max(1.2 * made.width, 1.0 * made.without_privacy)
    inside = [(epsilon, width / 2) for epsilon, width in points if width / 2 <= 1.6 * ceiling] or [
        (epsilon, width / 2) for epsilon, width in points[-2:]
    ]
    steps = [epsilon for epsilon in (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if inside[0][0] <= epsilon <= HIGH]
    return {
        "x": [epsilon for epsilon, _ in inside],
        "series": [{"name": "interval", "y": [half for _, half in inside], "colour": "blue"}],
        "x_label": "privacy budget ε",
        "x_name": "ε =",
        "y_label": f"expected interval, ± {unit}",
        "before": "± ",
        "floor": made.without_privacy / 2,
        "marked": min(max(made.epsilon, inside[0][0]), HIGH),
        "ends": [0.0, ceiling],
        "splits": steps,
        "log": True,
        "sets": "epsilon",
        "height": 280,
        "least": LOW,
    }


def ticks(low: float, high: float) -> list[float]:
    """Round numbers on an axis: at most four, so that they fit a phone."""
    step = 10.0 ** math.floor(math.log10((high - low) / 2))
    step *= next(k for k in (1, 2, 5, 10) if (high - low) / (step * k) <= 4)
    # Adding nothing makes the zero positive.
    return [step * k + 0.0 for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
