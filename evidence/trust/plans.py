"""The parts on plans and on advice: what they promise beside what is released."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evidence.average.report import grid
from evidence.trust.figures import groups, intervals, of_group, shown
from evidence.trust.sections import Found, Section, joined
from evidence.trust.targets import ADVICE_FACTOR, ADVICE_SHARE, PLAN_FACTORS, PLAN_SHARE, at_least

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
        close = float((np.abs(np.log(ratios)) <= np.log(PLAN_FACTORS[key])).mean()) if len(ratios) else None
        verdicts.append(at_least(f"share within a factor of {PLAN_FACTORS[key]:g}, {name}", close, PLAN_SHARE))
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


def advice(found: Found) -> Section:
    """How widths change with records, budget and covariates, beside what a release says that they would."""
    frame = pd.DataFrame([row for job, row in found if job.kind == "again"])
    changes = {"half n": "half the records", "twice epsilon": "twice the epsilon", "half p": "half the covariates"}
    verdicts, lines = [], []
    for key, name in changes.items():
        some = frame.dropna(subset=[key]) if key in frame else frame[:0]
        off = np.abs(np.log(some[key] / some[f"{key} expected"])) if len(some) else pd.Series(dtype=float)
        close = float((off <= np.log(ADVICE_FACTOR)).mean()) if len(off) else None
        verdicts.append(at_least(f"{name}: share within a factor of {ADVICE_FACTOR:g}", close, ADVICE_SHARE))
        if len(some):
            lines.append([name, f"{len(some):,}", shown(some[f"{key} expected"]), shown(some[key]), f"{close:.3g}"])
    parts = [
        "Width of `ATE`'s interval after a change, over the width before: as `Uncertainty.scaled` expects it from the "
        "first release alone, and as a second fit released it. Medians, and the share of studies in which both agree "
        f"within a factor of {ADVICE_FACTOR:g}. Covariates are halved in observational studies, by leaving out the "
        "last ones.",
        grid(["change", "studies", "expected", "released", "share"], lines),
    ]
    return Section(verdicts=verdicts, parts=parts, table=frame)
