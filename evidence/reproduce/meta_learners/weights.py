"""The R-learner's risk: as its paper writes it, folded into the outcome, and in the steps that its authors ran."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from discreet.datasets.paper_designs import SETUPS
from discreet.releases.plots import BLUE, GREEN, INK, ORANGE
from evidence.reproduce.meta_learners import runs
from evidence.reproduce.meta_learners.numbers import (
    FACTOR,
    NAMES,
    mean_mse,
    meanings,
    printed,
    published,
    ratio_text,
    ratios_of,
    with_error,
)
from evidence.reproduce.meta_learners.runs import (
    AS_IN_2022,
    DELTA,
    EBM,
    FEW_EPSILONS,
    FOLDED,
    R_CLIPS,
    UNBOUNDED,
    epsilons_of,
)
from evidence.reproduce.pages import Aim, Page, axes
from evidence.reproduce.targets import Results, Target

SIZES = (4_000, 16_000)
# In how many cells the R-learner has to be near the published one.
MOST = 0.8
_COLOURS = {EBM: BLUE, AS_IN_2022: ORANGE, FOLDED: GREEN, UNBOUNDED: INK}


def r_aims(results: Results) -> Iterator[Aim]:
    """How near the R-learner is: with all bounds declared, and without any, as its authors ran it."""
    words = {
        EBM: "R-learner with DP-EBM, all bounds declared",
        AS_IN_2022: "R-learner with DP-EBM as its authors ran it (no bounds, steps divided by records; not private)",
    }
    for base, what in words.items():
        ratios = np.array(ratios_of(results, "R", base))
        if not ratios.size:
            continue
        near = (ratios >= 1 / FACTOR) & (ratios <= FACTOR)
        yield Aim(
            f"{what}, setups A to E, within a factor of {FACTOR:g} of the published MSE in {MOST:.0%} of cells",
            bool(near.mean() >= MOST),
            f"{int(near.sum())} of {ratios.size} cells, ratios {ratio_text(ratios.tolist())}; at most {FACTOR:g} times "
            f"it in {int((ratios <= FACTOR).sum())}",
        )


def r_remark(results: Results) -> Iterator[str]:
    """Why the R-learner's numbers differ between releases of interpret, and what folding weights in changes."""
    ran, now = ratios_of(results, "R", AS_IN_2022), ratios_of(results, "R", UNBOUNDED)
    if not ran or not now:
        return
    yield (
        "R-learner: what made the published numbers is how far a step of boosting goes. The releases of interpret that "
        "the authors can have run (0.2) divide the noisy sum of weighted residuals in a bin by the number of records "
        "there, interpret 0.7 by their weights, which are a quarter or less on average: steps, and the noise in them, "
        f"are four times as long now. Without bounds, MSE is {ratio_text(ran)} times the published one with the former "
        f"(setups A to E), and {ratio_text(now)} times with the latter (A and C). `papers.RLearner` takes the former's "
        "steps, a quarter of interpret's; they stop long before shapes have been learnt, which is the bias in the "
        "published numbers."
    )
    pairs = [
        (mean_mse(results[cell], epsilon), mean_mse(results[f"{data} {n} R {EBM}"], epsilon))
        for cell, (data, n, learner, base) in meanings(results).items()
        for epsilon in FEW_EPSILONS
        if (learner, base) == ("R", FOLDED)
    ]
    if pairs:
        better = sum(folded < weighted for folded, weighted in pairs)
        yield (
            f'R-learner with `risk="folded"`, which is another risk with the same target and the form that earlier '
            f"versions of this page had: a smaller MSE in {better} of {len(pairs)} cells, "
            f"{ratio_text([folded / weighted for folded, weighted in pairs])} times that of the risk as written."
        )


def page(results: Results) -> Page:
    """MSE of the R-learner by setup, n and epsilon, beside the published one."""
    lines: list[list[str]] = []
    points: dict[str, list[tuple[float, float]]] = {base: [] for base in _COLOURS}
    for cell, (data, n, learner, base) in meanings(results).items():
        for epsilon in epsilons_of(base):
            there = published()[data, n, learner, epsilon][0]
            here = np.array([row[f"{epsilon:g}"] for row in results[cell]])
            mse, bias, _ = here.mean(axis=0)
            texts = printed(data, n, learner, epsilon)
            lines.append(
                [
                    *(data, f"{n:,}", NAMES[base], f"{epsilon:g}", texts[0], with_error(here[:, 0])),
                    *(f"{mse / there:.2f}", texts[1], f"{bias:.3g}"),
                ]
            )
            points[base].append((there, float(mse)))
    figure, (ax,) = axes(width=6.4, height=4.2)
    for base, found in points.items():
        if found:
            ax.plot(*zip(*found, strict=True), "o", color=_COLOURS[base], label=NAMES[base], markersize=4, alpha=0.7)
    ends = [
        min(x for found in points.values() for x, _ in found),
        max(x for found in points.values() for x, _ in found),
    ]
    ax.plot(ends, ends, color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
    ax.set(xscale="log", yscale="log", xlabel="published MSE of the R-learner", ylabel="MSE here")
    ax.legend(frameon=False, fontsize=7)
    clips = ", ".join(f"±{R_CLIPS[data]:g} ({data})" for data in SETUPS)
    return Page(
        lead=f"Mean squared error of effects by the R-learner with DP-EBM on setups A to E, δ = {DELTA:g}: with all "
        'bounds declared, which is `papers.RLearner(base="ebm")`; as its authors ran it, without bounds and with steps '
        'of boosting divided by records; with weights folded into the outcome (`risk="folded"`); and without bounds in '
        "the steps of interpret 0.7. Means ± one standard error over replications of two fits each.",
        head=[
            *("data", "n", "base learner", "ε", "MSE, published", "MSE", "ratio"),
            *("squared bias, published", "squared bias"),
        ],
        lines=lines,
        remarks=[
            *r_remark(results),
            "Without bounds nothing is private: interpret takes ranges from the records. That column is there to say "
            "what made the published numbers.",
            f"With bounds, quotients are clipped to {clips}, so that their range times the largest declared weight is "
            "about what the authors' code had, which took both from the data. DP-EBM's noise grows with that product.",
            "The authors' code stratifies the partition by treatment; here it does not depend on the records.",
            f"Test sets have {runs.TEST:,} records; the paper's have 250,000.",
        ],
        aims=list(r_aims(results)),
        seeds=f"studies from {runs.STUDY_SEED}, test sets from {runs.TEST_SEED}, noise from {runs.NOISE_SEED}, one "
        "stream for each cell",
        replications=min(len(rows) for rows in results.values()),
        figure=figure,
    )


def _cells(full: bool) -> tuple[str, ...]:
    sizes = SIZES if full else SIZES[:1]
    declared = [f"{data} {n} R {EBM}" for data, n in product(SETUPS if full else "AC", sizes)]
    others = [f"{data} {n} R {AS_IN_2022}" for data, n in product(SETUPS if full else "AC", sizes)]
    others += [f"{data} {SIZES[0]} R {FOLDED}" for data in (SETUPS if full else "AC")]
    return (*declared, *others, *(f"{data} {SIZES[0]} R {UNBOUNDED}" for data in "AC"))


TARGET = Target(
    name="rlearner",
    title="Sample-splitting learners: the R-learner's risk",
    experiment="effects",
    run=runs.effects,
    cells=_cells,
    replications=lambda full: 25 if full else 1,
    page=page,
)
