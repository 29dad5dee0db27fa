"""What is to be reached, and whether it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import binom

from evidence.average.targets import Verdict
from evidence.trust.figures import banded, bands, groups, of_group

# Coverage of 95 % intervals: over all studies, and in every group of so many.
COVERAGE, GROUP_COVERAGE, GROUP = 0.945, 0.92, 200
# Median width over that of the efficiency bound, by bands of n mu.
WIDTHS = (2.5, 1.5, 1.2, 1.1)
# No honest interval is narrower than the bound's: so many may be, by chance.
TOO_NARROW, TOO_NARROW_SHARE = 0.8, 0.005
# Median width of CATE's average over ATE's.
FUNCTION_WIDTH = 1.25
# The same of averages over some of the records, of the arms' means and of ratios.
ESTIMAND_COVERAGE, ESTIMAND_GROUP = 0.94, 0.91
# By which studies are counted.
FACTORS = ("outcome", "n", "p", "epsilon", "n mu", "surface", "design", "dependence", "covariates")

# Trials, shapes: coverage in every cell; ATE's width over that of DifferenceInMeans; widths of large studies.
CELL_COVERAGE, ADJUSTED_WIDTH = 0.93, 1.1
LARGE_SHAPE, LARGE_SHAPE_WIDTH = 300_000, 1.15

# Effect functions: median error over ATE's as a constant, by bands of n mu, and its 95th percentile. Pointwise 90 %
# intervals: mean coverage, the share of studies with enough, and the median width in standard deviations of the effect.
FUNCTION_ERRORS, FUNCTION_WORST = (1.0, 0.93, 0.85, 0.65), 1.3
POINTWISE_COVERAGE, POINTWISE_ENOUGH, POINTWISE_SHARE, POINTWISE_WIDTH = 0.9, 0.88, 0.9, 4.5

# Plans: the factor by which planned and released widths may differ, without a guess at the outcome and with one, and
# the share of studies in which they do not differ more. Advice: the same for expected and released changes of widths.
PLAN_FACTORS, PLAN_SHARE = {"without": 3.0, "with": 1.5}, 0.9
ADVICE_FACTOR, ADVICE_SHARE = 1.5, 0.8


def at_least(target: str, value: float | None, limit: float, more: str = "") -> Verdict:
    """A figure that should be large."""
    return _compared(target, value, f"≥ {limit:g}", None if value is None else value >= limit, more)


def at_most(target: str, value: float | None, limit: float, more: str = "") -> Verdict:
    """A figure that should be small."""
    return _compared(target, value, f"≤ {limit:g}", None if value is None else value <= limit, more)


def population_verdicts(frames: Mapping[str, pd.DataFrame], refusals: int) -> Iterator[Verdict]:
    """Verdicts on intervals over random studies."""
    for method in ("ATE", "CATE"):
        frame = frames[method]
        covered = float(frame["covered"].mean()) if len(frame) else None
        yield at_least(f"{method}: coverage over all", covered, COVERAGE, f"{len(frame):,} studies")
        yield _in_groups(method, frame)
        yield from _widths(method, frame)
        narrow = float((frame["ratio"] < TOO_NARROW).mean()) if len(frame) else None
        yield at_most(f"{method}: share of intervals below {TOO_NARROW:g} of the bound's", narrow, TOO_NARROW_SHARE)
    both = frames["ATE"].merge(frames["CATE"], on="number") if len(frames["CATE"]) else frames["CATE"]
    ratio = float((both["width_y"] / both["width_x"]).median()) if len(both) else None
    yield at_most("CATE: median width of the average's interval over ATE's", ratio, FUNCTION_WIDTH)
    yield at_most("studies that a fit refused", float(refusals) if len(frames["ATE"]) else None, 0.0)


def _in_groups(method: str, frame: pd.DataFrame) -> Verdict:
    judged = {
        f"{factor} {group}": float(some["covered"].mean())
        for factor in FACTORS
        if len(frame)
        for group in groups(frame, factor)
        if len(some := of_group(frame, factor, group)) >= GROUP
    }
    worst = min(judged, key=lambda name: judged[name], default="")
    below = sum(value < GROUP_COVERAGE for value in judged.values())
    return at_least(
        f"{method}: coverage in every group of {GROUP} studies or more",
        judged.get(worst),
        GROUP_COVERAGE,
        f"lowest, {worst}; {below} of {len(judged)} groups are below",
    )


def _widths(method: str, frame: pd.DataFrame) -> Iterator[Verdict]:
    placed = banded(frame, "n mu") if len(frame) else None
    for band, limit in zip(bands("n mu"), WIDTHS, strict=True):
        some = frame[placed == band]["ratio"] if placed is not None else []
        value = float(np.median(some)) if len(some) else None
        yield at_most(f"{method}: median width over the bound's, n μ {band}", value, limit, f"{len(some):,} studies")


def cells_cover(target: str, cells: Mapping[str, Sequence[bool]], limit: float = CELL_COVERAGE) -> Verdict:
    """Coverage in every cell; with the number of cells that would be below by chance alone."""
    shares = {name: float(np.mean(hits)) for name, hits in cells.items()}
    below = sorted((name for name, share in shares.items() if share < limit), key=lambda name: shares[name])
    chance = sum(float(binom.cdf(np.ceil(limit * len(hits)) - 1, len(hits), 0.95)) for hits in cells.values())
    named = "; ".join(f"{name}: {shares[name]:.2f}" for name in below[:6]) + (" ..." if len(below) > 6 else "")
    figure = f"{len(cells) - len(below)} of {len(cells)} cells ({chance:.1f} would be below by chance); {named}"
    reached = not below if cells else None
    return Verdict(target=target, limit=f"≥ {limit:g} in each", figure=figure if cells else "", reached=reached)


def cells_narrow(target: str, ratios: Mapping[str, float], limit: float) -> Verdict:
    """Widths in every cell."""
    worst = max(ratios, key=lambda name: ratios[name], default="")
    above = sum(ratio > limit for ratio in ratios.values())
    return at_most(target, ratios.get(worst), limit, f"largest, {worst}; {above} of {len(ratios)} cells are above")


def _compared(target: str, value: float | None, limit: str, reached: bool | None, more: str) -> Verdict:
    figure = "" if value is None else f"{value:.4g}" + (f" ({more})" if more else "")
    return Verdict(target=target, limit=limit, figure=figure, reached=reached)
