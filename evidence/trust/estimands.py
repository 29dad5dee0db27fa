"""The part on estimands: averages over some of the records, means of both arms and their ratios, on random studies."""

from __future__ import annotations

import pandas as pd

from evidence.average.report import grid
from evidence.trust.averages import AVERAGES, RATIOS
from evidence.trust.figures import bands, groups, intervals, of_group, proportion, refused, shown
from evidence.trust.sections import Found, Section
from evidence.trust.targets import ESTIMAND_COVERAGE, ESTIMAND_GROUP, GROUP, at_least

METHODS = (*AVERAGES, *RATIOS)
_FACTORS = ("outcome", "n mu", "design", "p")
_COLUMNS = ["number", "n", "p", "epsilon", "n mu", "outcome", "design", "overlap"]
_COLUMNS += ["truth", "efficiency", "estimate", "low", "high"]


def section(found: Found) -> Section:
    """Coverage by groups, and widths beside the efficiency bounds."""
    rows = [row for _, row in found]
    frames = {method: intervals(rows, method) for method in METHODS}
    reasons = [reason for method in AVERAGES for reason in refused(rows, method)]
    verdicts = []
    for method, frame in frames.items():
        covered = float(frame["covered"].mean()) if len(frame) else None
        verdicts.append(at_least(f"{method}: coverage over all", covered, ESTIMAND_COVERAGE, f"{len(frame):,} studies"))
        large = [
            float(some["covered"].mean())
            for factor in _FACTORS
            for group in (groups(frame, factor) if len(frame) else [])
            if len(some := of_group(frame, factor, group)) >= GROUP
        ]
        verdicts.append(at_least(f"{method}: least coverage of a group", min(large, default=None), ESTIMAND_GROUP))
    parts = [
        "Averages over all records, the treated, the untreated and the overlap, each with a fit of its own at the "
        "study's budget; means of both arms and ratios follow from the release of `ATE`. Truths are sums over the "
        "population. Ratios are asked for where the outcome cannot be negative, odds where it has two values.",
        grid(["", "group", "studies", *METHODS], _coverage(frames)),
        "Median width over that of the efficiency bound of the same average:",
        grid(["n μ", "studies", *AVERAGES], _widths(frames)),
    ]
    if reasons:
        parts.append(f"Fits that gave no interval: {len(reasons)}. " + "; ".join(sorted(set(reasons))[:5]))
    filled = [frame.reindex(columns=_COLUMNS).assign(method=name) for name, frame in frames.items() if len(frame)]
    return Section(verdicts=verdicts, parts=parts, table=pd.concat(filled) if filled else pd.DataFrame())


def _coverage(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    chief = frames["ATE"]
    if chief.empty:
        return []
    lines = [
        [
            "**all**",
            "",
            f"{len(chief):,}",
            *(proportion(frame["covered"]) if len(frame) else "" for frame in frames.values()),
        ]
    ]
    for factor in _FACTORS:
        for group in groups(chief, factor):
            some = {name: of_group(frame, factor, group) for name, frame in frames.items()}
            figures = [proportion(frame["covered"]) if len(frame) else "" for frame in some.values()]
            lines.append([factor, group, f"{len(some['ATE']):,}", *figures])
    return lines


def _widths(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    lines = []
    for band in bands("n mu"):
        some = {name: of_group(frames[name], "n mu", band) for name in AVERAGES}
        figures = [shown(frame["ratio"]) if len(frame) else "" for frame in some.values()]
        lines.append([band, f"{len(some['ATE']):,}", *figures])
    return lines
