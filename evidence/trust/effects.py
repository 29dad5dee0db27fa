"""The part on effect functions: errors beside a constant, pointwise intervals, and a ceiling without privacy."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evidence.average.report import grid
from evidence.trust.figures import Row, banded, bands, of_group, shown
from evidence.trust.sections import Found, Section, joined
from evidence.trust.targets import (
    FUNCTION_ERRORS,
    FUNCTION_WORST,
    POINTWISE_COVERAGE,
    POINTWISE_ENOUGH,
    POINTWISE_SHARE,
    POINTWISE_WIDTH,
    at_least,
    at_most,
)

_COLUMNS = [
    "number",
    "n",
    "p",
    "epsilon",
    "outcome",
    "effect",
    "design",
    "released function",
    "error",
    "constant",
    "sd",
]
_COLUMNS += ["boosted", "ratio", "boosted ratio", "inside", "groups", "width"]


def effects(found: Found) -> Section:
    """Effect functions on random studies whose effects vary."""
    frame = _functions(joined(found, "random", {"learner": "learner"}))
    has = len(frame) > 0
    verdicts = []
    for band, limit in zip(bands("n mu of functions"), FUNCTION_ERRORS, strict=True):
        some = of_group(frame, "n mu of functions", band)
        value = float(some["ratio"].median()) if len(some) else None
        verdicts.append(at_most(f"median error over ATE's as a constant, n μ {band}", value, limit, f"{len(some):,}"))
    worst = float(frame["ratio"].quantile(0.95)) if has else None
    verdicts.append(at_most("95th percentile of the same, over all", worst, FUNCTION_WORST))
    inside = float(frame["inside"].mean()) if has else None
    verdicts.append(at_least("pointwise 90 % intervals: mean coverage", inside, POINTWISE_COVERAGE))
    share = float((frame["inside"] >= POINTWISE_ENOUGH).mean()) if has else None
    target = f"pointwise 90 % intervals: share of studies with {POINTWISE_ENOUGH:g} or more"
    verdicts.append(at_least(target, share, POINTWISE_SHARE))
    groups = float(frame["groups"].mean()) if has else None
    verdicts.append(at_least("90 % intervals of groups: mean coverage", groups, POINTWISE_COVERAGE))
    width = float(frame["relative width"].median()) if has else None
    verdicts.append(at_most("pointwise 90 % intervals: median width over sd of the effect", width, POINTWISE_WIDTH))
    head = ["n μ", "studies", "CATE", "95th percentile", "boosted DR", "that vary", "coverage", "groups", "width / sd"]
    parts = [
        "Root mean square error over a study's own covariates, divided by that of `ATE` as a constant at the same "
        "budget: below 1 the function is worth more than one number. *Boosted DR* is a learner without privacy (on "
        "30,000 records at most), the ceiling; *coverage* is that of pointwise 90 % intervals, *groups* that of 90 % "
        "intervals of average effects on either side of the middles of three covariates; *width / sd* is the median "
        "width of pointwise intervals over the standard deviation of the effect.",
        grid(head, _function_lines(frame)) if has else "Nothing was run.",
    ]
    return Section(verdicts=verdicts, parts=parts, table=frame.reindex(columns=_COLUMNS))


def _functions(rows: list[Row]) -> pd.DataFrame:
    lines = []
    for row in rows:
        if "function" not in row:
            continue
        facts = {name: value for name, value in row.items() if not isinstance(value, dict)}
        rival = row.get("learner", {}).get("error", np.nan)
        lines.append(facts | row["function"] | {"released function": row["function"]["varies"], "boosted": rival})
    frame = pd.DataFrame(lines)
    if len(frame):
        frame["n mu of functions"] = frame["n"] * frame["mu"]
        frame["ratio"] = frame["error"] / frame["constant"]
        frame["boosted ratio"] = frame["boosted"] / frame["constant"]
        frame["relative width"] = frame["width"] / frame["sd"]
    return frame


def _function_lines(frame: pd.DataFrame) -> list[list[str]]:
    placed = banded(frame, "n mu of functions")
    chosen = [(band, frame[placed == band]) for band in bands("n mu of functions")]
    return [
        [
            band,
            f"{len(some):,}",
            shown(some["ratio"]),
            shown(some["ratio"], lambda values: np.quantile(values, 0.95)),
            shown(some["boosted ratio"]),
            shown(some["released function"], np.mean),
            shown(some["inside"], np.mean),
            shown(some["groups"], np.mean),
            shown(some["relative width"]),
        ]
        for band, some in [*chosen, ("**all**", frame)]
    ]
