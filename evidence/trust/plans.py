"""The part on plans: what they promise beside what is released."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evidence.average.report import grid
from evidence.average.targets import Verdict
from evidence.trust.figures import groups, intervals, of_group, shown
from evidence.trust.sections import Found, Section, joined
from evidence.trust.targets import PLAN_FACTOR, PLAN_MEDIAN, PLAN_SHARE, at_least

_COLUMNS = ["number", "n", "p", "epsilon", "n mu", "outcome", "design", "width", "without", "with"]


def plan(found: Found) -> Section:
    """Planned over released widths of `ATE` on random studies."""
    rows = joined(found, "random", {"plan": "plan"})
    frame = intervals((row for row in rows if "plan" in row), "ATE")
    verdicts = []
    names = {"without": "without a guess", "with": "with the outcome's mean and standard deviation"}
    if len(frame):
        by_number = {row["number"]: row["plan"] for row in rows if "plan" in row}
        for key in names:
            frame[key] = [by_number[number][key] for number in frame["number"]] / frame["width"]
    for key, name in names.items():
        ratios = frame[key] if len(frame) else pd.Series(dtype=float)
        median = float(ratios.median()) if len(ratios) else None
        within = None if median is None else PLAN_MEDIAN[0] <= median <= PLAN_MEDIAN[1]
        figure = "" if median is None else f"{median:.3g}"
        limit = f"{PLAN_MEDIAN[0]:g} to {PLAN_MEDIAN[1]:g}"
        verdicts.append(Verdict(target=f"median, {name}", limit=limit, figure=figure, reached=within))
        close = float((np.abs(np.log(ratios)) <= np.log(PLAN_FACTOR)).mean()) if len(ratios) else None
        verdicts.append(at_least(f"share within a factor of {PLAN_FACTOR:g}, {name}", close, PLAN_SHARE))
    parts = [
        "Width that `discreet.plan` expects for `ATE`, divided by the width that was then released: 1 is a plan that "
        "came true, below 1 is a promise that was not kept. *With* adds what an earlier report would state: the share "
        "of events of a binary outcome, mean and standard deviation of others.",
        grid(["", "group", "studies", *names.values(), "10 % to 90 %"], _plan_lines(frame)),
    ]
    return Section(verdicts=verdicts, parts=parts, table=frame.reindex(columns=_COLUMNS))


def _plan_lines(frame: pd.DataFrame) -> list[list[str]]:
    if frame.empty:
        return []
    chosen = [("**all**", "", frame)]
    chosen += [
        (factor, group, of_group(frame, factor, group))
        for factor in ("outcome", "n mu", "design")
        for group in groups(frame, factor)
    ]
    return [
        [
            factor,
            group,
            f"{len(some):,}",
            shown(some["without"]),
            shown(some["with"]),
            " to ".join(f"{some['with'].quantile(q):.3g}" for q in (0.1, 0.9)),
        ]
        for factor, group, some in chosen
    ]
