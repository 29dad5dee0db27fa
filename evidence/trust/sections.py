"""What a part of the page shows; and the part on random studies: coverage by groups, widths by information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from evidence.average.report import grid
from evidence.average.targets import Verdict
from evidence.trust.figures import Row, bands, groups, intervals, of_group, proportion, refused, shown
from evidence.trust.store import Job
from evidence.trust.targets import COVERAGE, FACTORS, GROUP, TOO_NARROW, population_verdicts

Found = Sequence[tuple[Job, Row]]
METHODS = ("ATE", "CATE", "DifferenceInMeans", "boosted AIPW")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of the page.

    Parameters
    ----------
    verdicts
        Targets with their figures.
    parts
        Paragraphs and tables, in Markdown.
    table
        Everything that was measured, for the part's file.
    """

    verdicts: Sequence[Verdict]
    parts: Sequence[str]
    table: pd.DataFrame


def joined(found: Found, chief: str, others: dict[str, str]) -> list[Row]:
    """Rows of a chief measurement, with those that other kinds have of the same study under names of their own."""
    aside = {(job.kind, job.number): row for job, row in found if job.kind != chief}
    return [
        row | {name: aside[kind, job.number] for kind, name in others.items() if (kind, job.number) in aside}
        for job, row in found
        if job.kind == chief
    ]


def population(found: Found) -> Section:
    """Random studies."""
    rows = joined(found, "random", {"boosted": "boosted AIPW"})
    frames = {method: intervals(rows, method) for method in METHODS}
    reasons = [reason for method in METHODS[:3] for reason in refused(rows, method)]
    parts = [
        "A random study is drawn with its truth, and every method gives one interval at the study's own budget. "
        f"Groups with fewer than {GROUP} studies are in italics: their shares are too uncertain to judge by.",
        "### Coverage of 95 % intervals",
        grid(["", "group", "studies", *METHODS], _coverage(frames)),
        "### Widths",
        "Median width over that of the efficiency bound, which is 2 × 1.96 standard errors of the doubly robust score "
        "with the true models; boosted AIPW is compared with the bound at its own number of records.",
        grid(["n μ", "studies", *METHODS], _widths(frames)),
        "### At equal coverage",
        f"Intervals that hold more often may be wider. By how much those of a method have to be stretched around their "
        f"estimates, in studies of each design, to hold the truth in {COVERAGE:g} of them: below 1 they are too wide, "
        "above 1 too narrow. Behind it the median width over the bound's that they have then.",
        grid(["design", *METHODS], _stretched(frames)),
        "### Honesty and time",
        "*Too narrow* is below "
        f"{TOO_NARROW:g} of the bound's width, *wrong sign* is an interval on the other side of zero than the truth.",
        grid(["method", "studies", "coverage", "too narrow", "wrong sign", "seconds, median"], _honesty(frames)),
    ]
    if reasons:
        parts.append(f"Fits that gave no interval: {len(reasons)}. " + "; ".join(sorted(set(reasons))[:5]))
    verdicts = list(population_verdicts(frames, len(reasons)))
    return Section(verdicts=verdicts, parts=parts, table=_long(frames))


def _coverage(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    chief = frames["ATE"]
    if chief.empty:
        return []
    lines = [["**all**", "", f"{len(chief):,}", *(_covered(frames[method]) for method in METHODS)]]
    for factor in FACTORS:
        for group in groups(chief, factor):
            some = {method: of_group(frames[method], factor, group) for method in METHODS}
            line = [factor, group, f"{len(some['ATE']):,}", *(_covered(some[method]) for method in METHODS)]
            lines.append(line if len(some["ATE"]) >= GROUP else [f"*{word}*" if word else "" for word in line])
    return lines


def _covered(frame: pd.DataFrame) -> str:
    return "" if frame.empty else proportion(frame["covered"])


def _widths(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    lines = []
    for band in bands("n mu"):
        some = {method: of_group(frame, "n mu", band) for method, frame in frames.items()}
        figures = [shown(some[method]["ratio"]) if len(some[method]) else "" for method in METHODS]
        lines.append([band, f"{len(some['ATE']):,}", *figures])
    return lines


def _stretched(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    """For every design and method the factor that gives nominal coverage, and the width that it leads to."""
    lines = []
    for design in groups(frames["ATE"], "design") if len(frames["ATE"]) else []:
        line = [design]
        for method in METHODS:
            some = of_group(frames[method], "design", design)
            off = (some["estimate"] - some["truth"]).abs() / (some["width"] / 2.0) if len(some) else some
            factor = float(off.quantile(COVERAGE)) if len(some) else 0.0
            line.append(f"{factor:.2g}; {factor * some['ratio'].median():.3g}" if len(some) else "")
        lines.append(line)
    return lines


def _honesty(frames: dict[str, pd.DataFrame]) -> list[list[str]]:
    return [
        [
            method,
            f"{len(frame):,}",
            _covered(frame),
            proportion(frame["ratio"] < TOO_NARROW),
            proportion(frame["wrong sign"]),
            shown(frame["seconds"]) if "seconds" in frame else "",
        ]
        for method, frame in frames.items()
        if len(frame)
    ]


def _long(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One line for each study and method."""
    columns = ["number", "covariates", "n", "p", "epsilon", "n mu", "outcome", "surface", "design", "dependence"]
    columns += ["explained", "overlap", "confounding", "truth", "efficiency", "estimate", "low", "high"]
    filled = [frame.reindex(columns=columns).assign(method=method) for method, frame in frames.items() if len(frame)]
    return pd.concat(filled, ignore_index=True) if filled else pd.DataFrame()
