"""A billion rows on a cluster, on paper: from the measured time of a row and of a job's fixed parts."""

# ruff: noqa: E501 (the page's sentences)

from __future__ import annotations

from typing import NamedTuple

from benchmarks.scale.data import table
from benchmarks.scale.measure import CORES, Plan
from benchmarks.scale.targets import Found, seconds
from evidence.reproduce.pages import grid

BILLION = 1_000_000_000
CLUSTERS = (16, 64, 256, 1024)


class Cost(NamedTuple):
    """Seconds that do not depend on the rows, and core-seconds of a row."""

    fixed: float
    row: float

    def __call__(self, rows: int, cores: int) -> float:
        return self.fixed + rows * self.row / cores

    @property
    def throughput(self) -> float:
        """Rows that a core gets through in a second."""
        return 1.0 / self.row


def cost(few: tuple[int, float | None], many: tuple[int, float | None]) -> Cost | None:
    """From the times of two sizes on all cores of one machine; None where the larger took no longer."""
    (small, quick), (large, slow) = few, many
    if quick is None or slow is None or slow <= quick:
        return None
    row = (slow - quick) / (large - small)
    return Cost(max(0.0, quick - small * row), row * CORES)


def costs(found: Found, plan: Plan) -> dict[str, Cost]:
    """What was measured on Spark."""
    cluster, small = found.get("cluster", {}), plan.cluster[0]
    many = plan.uplift, seconds(found.get("uplift", {}), "spark, ours")
    large = plan.cluster[1]
    wanted = {
        "`Uplift`": cost((small, seconds(cluster, f"uplift, {small}")), many),
        "`ATE`": cost((small, seconds(cluster, f"ate, {small}")), (large, seconds(cluster, f"ate, {large}"))),
    }
    return {name: each for name, each in wanted.items() if each is not None}


def on_paper(found: Found, plan: Plan) -> list[str]:
    """The section of the page."""
    known = costs(found, plan)
    if not known:
        return []
    size = table(plan.uplift).stat().st_size / plan.uplift
    lines = [
        [name, f"{each.throughput:,.0f}", f"{each.fixed:.1f}", *(_words(each(BILLION, cores)) for cores in CLUSTERS)]
        for name, each in known.items()
    ]
    fastest = max(each.throughput for each in known.values())
    return [
        "## A billion rows on a cluster, on paper",
        f"Nobody has run this. From the two sizes that Spark was timed at on this machine's {CORES} cores follow the time of a row on a core and what does not depend on "
        "the rows (planning, starting Python, combining sums, smoothing). The table adds them up for a billion rows of the same shape. It assumes that "
        "cores are as fast as these and do not slow each other down further, that rows are distributed evenly, and that storage keeps up: a row has "
        f"{size:.0f} bytes in Parquet, so that {CLUSTERS[-1]:,} cores would read up to {size * fastest * CLUSTERS[-1] / 1e9:.0f} GB a second, which has to come from many disks. "
        "Only sums leave the workers, a few thousand integers a round, so that the network does not matter. A cluster's own start is not counted.",
        grid(
            ["estimator", "rows a second and core", "fixed, s", *(f"{cores:,} cores" for cores in CLUSTERS)],
            lines,
        ),
    ]


def _words(took: float) -> str:
    return f"{took:.0f} s" if took < 120 else f"{took / 60:.0f} min" if took < 7200 else f"{took / 3600:.1f} h"
