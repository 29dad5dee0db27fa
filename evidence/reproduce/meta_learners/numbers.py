"""The authors' numbers of the sample-splitting paper, and what is computed from theirs and ours."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.datasets.paper_designs import SETUPS
from evidence.reproduce.meta_learners.runs import (
    ADDITIVE,
    AS_IN_2022,
    EBM,
    EPSILONS,
    FEW_EPSILONS,
    FOLDED,
    PRINTED,
    UNBOUNDED,
    VOTING,
    WIDE,
    epsilons_of,
)
from evidence.reproduce.pages import Aim, falls
from evidence.reproduce.targets import FLAGSHIP_CELL, Results, Row

# Figure 3's sizes, of the voters and of setups A to E.
FIGURE_SIZES = {VOTING: 16_000, "A": 16_000, "B": 16_000, "C": 4_000, "D": 4_000, "E": 4_000}
NAMES = {
    EBM: "DP-EBM, claimed",
    WIDE: "DP-EBM, claimed, default clip",
    UNBOUNDED: "DP-EBM without bounds, not private",
    AS_IN_2022: "DP-EBM without bounds, steps as in 2022, not private",
    FOLDED: "DP-EBM, claimed, weights folded in",
    ADDITIVE: "additive, proved",
    FLAGSHIP_CELL: "discreet, proved",
}
# What is still called a factor of a thousand.
THOUSAND = 300.0
# How near the published MSE is near enough.
FACTOR = 1.5
# Estimates of a squared bias may be below zero: they count as this.
LEAST_BIAS = 1e-4
# How near the effect's variance an S-learner's MSE is called steady.
STEADY = 0.15
_FILE = Path(__file__).with_name("published.csv")


@cache
def published() -> dict[tuple[str, int, str, float], tuple[float, float, float]]:
    """The authors' means by data set, n, learner and epsilon: MSE, squared bias, variance."""
    with _FILE.open(encoding="utf-8") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {
            (row["data"], int(row["n"]), row["learner"], float(row["epsilon"])): (
                *(float(row[name]) for name in ("mse", "bias", "variance")),
            )  # type: ignore[misc]
            for row in rows
        }


def voter_aims(found: dict[tuple[int, str, str], Float], sizes: Sequence[int], variance: float) -> Iterator[Aim]:
    """What Figure 2 should show."""
    # With the most records and the least noise the published S-learner has little more than the effect's variance.
    limit = published()[VOTING, 32_000, "S", EPSILONS[-1]][0]
    steady, off = 0, []
    for n in sizes:
        for epsilon, own in zip(EPSILONS, found[n, "S", EBM].T / variance, strict=True):
            there = published()[VOTING, n, "S", epsilon][0] / limit
            if there > 1.0 + STEADY:
                continue
            steady += 1
            if own.mean() > 1.0 + STEADY:
                off.append(f"n = {n:,}, ε = {epsilon:g}: {with_error(own)} times it, published {there:.2f}")
    yield Aim(
        f"the S-learner's MSE is within {100 * STEADY:.0f} % of the effect's variance where the published one is",
        not off,
        "; ".join([f"{steady - len(off)} of {steady} cells", *off]),
    )
    for learner in ("DR", "R"):
        by_epsilon = [means_fall(found[n, learner, EBM].T) for n in sizes]
        by_size = [means_fall([found[n, learner, EBM][:, k] for n in sizes]) for k in range(len(EPSILONS))]
        hits = [*by_epsilon, *by_size]
        what = f"the {learner}-learner's MSE falls with ε and with n"
        yield Aim(what, all(hits), f"{sum(hits)} of {len(hits)} curves")
        yield _growth_aim(found, sizes, learner)
    yield from _crossing_aims(found, sizes)
    small, large = (
        [float(found[n, learner, EBM][:, k].mean()) for learner in ("DR", "S")]
        for n, k in ((sizes[0], 0), (sizes[-1], -1))
    )
    yield Aim(
        f"the S-learner is better at n = {sizes[0]:,} and ε = {EPSILONS[0]:g}, the DR-learner at n = {sizes[-1]:,} and "
        f"ε = {EPSILONS[-1]:g}",
        small[1] < small[0] and large[0] < large[1],
        f"DR {small[0]:.3g}, S {small[1]:.3g}; DR {large[0]:.3g}, S {large[1]:.3g}",
    )


def _growth_aim(found: dict[tuple[int, str, str], Float], sizes: Sequence[int], learner: str) -> Aim:
    """How much privacy costs a flexible learner with few records, and with many."""
    grown = {}
    for n in (sizes[0], sizes[-1]):
        weak, strong = (float(found[n, learner, EBM][:, k].mean()) for k in (-1, 0))
        there = [published()[VOTING, n, learner, epsilon][0] for epsilon in (EPSILONS[-1], EPSILONS[0])]
        grown[n] = strong / weak, there[1] / there[0]
    few, many = grown[sizes[0]], grown[sizes[-1]]
    return Aim(
        f"the {learner}-learner's MSE grows by a factor of 10³ from ε = {EPSILONS[-1]:g} to {EPSILONS[0]:g} at "
        f"n = {sizes[0]:,}, and by less than 10 at n = {sizes[-1]:,}",
        few[0] >= THOUSAND and many[0] < 10.0,
        f"{few[0]:.3g} (published {few[1]:.3g}) and {many[0]:.3g} (published {many[1]:.3g}) times: here what the last "
        "stage learns from is clipped, which bounds its noise",
    )


def _crossing_aims(found: dict[tuple[int, str, str], Float], sizes: Sequence[int]) -> Iterator[Aim]:
    """From how many records on a flexible learner is better than a constant."""
    for k, epsilon in ((-1, EPSILONS[-1]), (0, EPSILONS[0])):
        here = [n for n in sizes if found[n, "DR", EBM][:, k].mean() < found[n, "S", EBM][:, k].mean()]
        there = [n for n in sizes if published()[VOTING, n, "DR", epsilon][0] < published()[VOTING, n, "S", epsilon][0]]
        first, wanted = (min(each) if each else None for each in (here, there))
        near = first is not None and wanted is not None and abs(sizes.index(first) - sizes.index(wanted)) <= 1
        yield Aim(
            f"at ε = {epsilon:g} the DR-learner is better than the S-learner from the published number of voters on, "
            "or from the next of those that were run",
            near,
            f"from {_number(first)} on, published {_number(wanted)}",
        )


def _number(n: int | None) -> str:
    return "no n" if n is None else f"n = {n:,}"


def setup_aims(results: Results) -> Iterator[Aim]:
    """What Figure 3 should show."""
    cells = meanings(results)
    ratios = {}
    for cell, (data, n, learner, base) in cells.items():
        if data in ("A", "C") and (learner, base) == ("DR", EBM):
            for epsilon in FEW_EPSILONS:
                there = published()[data, n, learner, epsilon][0]
                ratios[f"{data}, n = {n:,}, ε = {epsilon:g}"] = mean_mse(results[cell], epsilon) / there
    far = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR <= ratio <= FACTOR}
    listed = "".join(f"; {name}: {ratio:.2f}" for name, ratio in far.items())
    yield Aim(
        f"DR-learner with DP-EBM on setups A and C within a factor of {FACTOR:g} of the published MSE",
        not far,
        f"{len(ratios) - len(far)} of {len(ratios)} cells, ratios {min(ratios.values()):.2f} to "
        f"{max(ratios.values()):.2f}{listed}",
    )
    n = max(n for _, n, _, _ in cells.values())
    for epsilon in (1.0, 4.0):
        proved, claimed = (
            float(np.mean([mean_mse(results[f"{data} {n} DR {base}"], epsilon) for data in SETUPS]))
            for base in (ADDITIVE, EBM)
        )
        yield Aim(
            f"the proved base learner beats DP-EBM in mean MSE over setups A to E, DR-learner, n = {n:,}, "
            f"ε = {epsilon:g}",
            proved < claimed,
            f"{proved:.3g} against {claimed:.3g}",
        )
    yield _parts_aim(results)
    growth = growths(results, EBM)
    hits = sum(variance > bias for variance, bias in growth.values())
    yield Aim(
        f"variance grows faster than squared bias from ε = {EPSILONS[-1]:g} to {EPSILONS[0]:g} in at least five of six "
        "data sets, DR-learner with DP-EBM",
        hits >= 5,
        f"{hits} of {len(growth)}: "
        + ", ".join(f"{data} {variance:.3g} against {bias:.3g} times" for data, (variance, bias) in growth.items()),
    )


def _parts_aim(results: Results) -> Aim:
    """What the text says of Figure 3, and what the authors' own numbers say of it."""
    words, held = [], []
    for data, (variance, bias) in growths(results, EBM).items():
        n = next(n for d, n, _, base in meanings(results).values() if d == data and base == EBM)
        n = FIGURE_SIZES[data] if (data, FIGURE_SIZES[data], "DR", EPSILONS[0]) in published() else n
        ends = [published()[data, n, "DR", epsilon] for epsilon in (EPSILONS[0], EPSILONS[-1])]
        there = ends[0][2] / ends[1][2], ends[0][1] / ends[1][1]
        held.append(variance >= 10.0 and 0.5 <= bias <= 2.0)
        words.append(f"{data} {variance:.3g} and {bias:.3g} times (published {there[0]:.3g} and {there[1]:.3g})")
    return Aim(
        f"from ε = {EPSILONS[-1]:g} to {EPSILONS[0]:g} variance grows by a factor of 10 or more and squared bias "
        "changes by at most 2 on all data sets, DR-learner with DP-EBM",
        all(held),
        f"on {sum(held)} of {len(held)}: {', '.join(words)}",
    )


def growths(results: Results, base: str) -> dict[str, tuple[float, float]]:
    """How many times larger variance and squared bias are at the smallest epsilon than at the largest."""
    grown = {}
    for data in FIGURE_SIZES:
        rows = results[figure_cell(results, data, base)]
        (_, bias1, var1), (_, bias16, var16) = (
            np.mean([row[key] for row in rows], axis=0) for key in (f"{EPSILONS[0]:g}", f"{EPSILONS[-1]:g}")
        )
        grown[data] = float(var1 / var16), float(max(bias1, LEAST_BIAS) / max(bias16, LEAST_BIAS))
    return grown


def shrinkage_remark(results: Results) -> str:
    """One sentence on the proved base learner's bias."""
    hits = sum(variance > bias for variance, bias in growths(results, ADDITIVE).values())
    return (
        "The proved base learner shrinks what it has no evidence for, so that its squared bias may grow as fast as its "
        f"variance: variance grew faster on {hits} of {len(FIGURE_SIZES)} data sets."
    )


def ratio_remark(results: Results, learner: str, reason: str) -> Iterator[str]:
    """One sentence on how far a learner is from the published numbers, with bounds and without."""
    declared, free = (ratios_of(results, learner, base) for base in (EBM, UNBOUNDED))
    if declared:
        beside = f" (without bounds {ratio_text(free)})" if free else ""
        yield f"{learner}-learner with DP-EBM: {ratio_text(declared)} times the published MSE{beside}; {reason}."


def bounds_remark(results: Results) -> Iterator[str]:
    """One sentence on what declared bounds cost, learner by learner, from the same studies.

    Not the R-learner's: it also takes its weights in another way.
    """
    costs = []
    for learner in ("DR", "S"):
        ratios = [
            mean_mse(results[f"{data} {n} {learner} {EBM}"], epsilon) / mean_mse(results[cell], epsilon)
            for cell, (data, n, which, base) in meanings(results).items()
            for epsilon in FEW_EPSILONS
            if (which, base) == (learner, UNBOUNDED)
        ]
        if ratios:
            costs.append(f"{learner}-learner {ratio_text(ratios)}")
    if costs:
        yield (
            "What bounds cost: MSE with all bounds declared over that of the same learner, records and partition when "
            f"interpret takes ranges from the records (not private), by setup, n and ε: {'; '.join(costs)}."
        )


def ratios_of(results: Results, learner: str, base: str) -> list[float]:
    """MSE over the published one, in every cell of a learner and a base on setups A to E, where there is one."""
    return [
        mean_mse(results[cell], epsilon) / published()[data, n, learner, epsilon][0]
        for cell, (data, n, which, own) in meanings(results).items()
        for epsilon in epsilons_of(base)
        if (which, own) == (learner, base) and (data, n, learner, epsilon) in published() and data != VOTING
    ]


def ratio_text(ratios: Sequence[float]) -> str:
    """Smallest, largest and median ratio, as text."""
    return f"{min(ratios):.2f} to {max(ratios):.2f}, median {np.median(ratios):.2f}"


def meanings(results: Results) -> dict[str, tuple[str, int, str, str]]:
    """What the cells mean: data set, n, learner and base."""
    made = {}
    for cell in results:
        data, n, learner, base = cell.split()
        made[cell] = data, int(n), learner, base
    return made


def figure_cell(results: Results, data: str, base: str) -> str:
    """The figure's size where it was run, and the only one otherwise."""
    wanted = f"{data} {FIGURE_SIZES[data]} DR {base}"
    return wanted if wanted in results else next(c for c in results if c.startswith(data) and c.endswith(f"DR {base}"))


def printed(data: str, n: int, learner: str, epsilon: float) -> tuple[str, str, str]:
    """Published numbers as text, empty where there are none."""
    # What the text prints was not run by its authors: beside it stand the numbers of the code.
    numbers = published().get((PRINTED.get(data, data), n, learner, epsilon))
    if numbers is None:
        return "", "", ""
    mse, bias, variance = (f"{number:.3g}" for number in numbers)
    return mse, bias, variance


def errors_of(rows: Sequence[Row], base: str) -> Float:
    """One row for each replication, one column for each epsilon of the base learner."""
    return np.array([[row[f"{epsilon:g}"][0] for epsilon in epsilons_of(base)] for row in rows])


def mean_mse(rows: Sequence[Row], epsilon: float) -> float:
    """Mean over replications."""
    return float(np.mean([row[f"{epsilon:g}"][0] for row in rows]))


def means_fall(columns: Any) -> bool:
    """Whether means fall from column to column, up to their errors."""
    return falls([float(np.mean(column)) for column in columns], [standard_error(column) for column in columns])


def standard_error(values: Any) -> float:
    """Standard error of a mean; 0 if there is one number only."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def with_error(values: Any) -> str:
    """A mean with its standard error, if there is more than one number."""
    if len(values) == 1:
        return f"{np.mean(values):.3g}"
    return f"{np.mean(values):.3g} ± {standard_error(values):.2g}"
