"""Corollary 1 of the epsilon-ADUM paper beside what runs find."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from discreet.papers.adum.error_bound import Smooth, failure_probability, pehe_bound
from discreet.releases.plots import BLUE, ORANGE
from evidence.reproduce.adum import runs
from evidence.reproduce.pages import Aim, Page, axes
from evidence.reproduce.targets import Results

# The setting of the paper's own example: p = 20, n = 20,000, Delta = 0.01.
EXAMPLE = (20, 0.04)
# So small a Delta means never, in as many runs as can be made.
_SURE = 1e-5
# What the condition on epsilon keeps a noisy count above, as a part of the true one.
_HALF = 0.5


def corollary1(results: Results) -> Page:
    """How often (7) is violated."""
    study = Smooth(0.0, 1.0, 2.0, runs.FIG1_SIGMA, 1.0 + 4.0 * runs.FIG1_SIGMA)
    lines, counts = [], {}
    low, in_all = 0, 0
    figure, (ax,) = axes(1, width=6.4)
    for place, (p, epsilon) in enumerate(runs.SETTINGS):
        found = np.array([value for row in results[f"{p} {epsilon:g}"] for value in row["pehe"]])
        bound, delta = pehe_bound(study, p, runs.N, epsilon), failure_probability(p, runs.N, epsilon)
        least = np.array([value for row in results[f"{p} {epsilon:g}"] for value in row["least"]])
        above = found > bound.total
        violated = int(above.sum())
        counts[p, epsilon] = violated
        low, in_all = low + int((least[above] < _HALF).sum()), in_all + violated
        lines.append(
            [
                *(f"{p}", f"{epsilon:g}", f"{delta:.2g}", f"{min(p * delta, 1.0):.2g}"),
                *(f"{term:.4g}" for term in (*bound, bound.total)),
                *(f"{np.median(found):.4g}", f"{np.quantile(found, 0.99):.4g}", f"{found.max():.4g}"),
                *(f"{violated} of {len(found):,}", f"{(least < _HALF).mean():.3f}"),
            ]
        )
        ratio = found / bound.total
        ax.plot([place, place], np.quantile(ratio, [0.0, 0.99]), color=BLUE, linewidth=3, solid_capstyle="butt")
        ax.plot(place, ratio.max(), "x", color=ORANGE)
    ax.axhline(1.0, color=ORANGE, linewidth=1.0, linestyle=(0, (4, 3)))
    ax.set_xticks(range(len(runs.SETTINGS)), [f"p = {p}\nε = {epsilon:g}" for p, epsilon in runs.SETTINGS])
    ax.set(yscale="log", ylabel="PEHE / bound")
    runs_each = len(results[f"{EXAMPLE[0]} {EXAMPLE[1]:g}"]) * runs.RUNS_A_ROW
    return Page(
        lead=f"The bound (7) with its three terms, and the PEHE of ε-ADUM in {runs_each:,} runs each, every one on a "
        f"study of its own: {runs.N:,} records, effect sin(x), σ = {runs.FIG1_SIGMA:g}. Δ is the smallest for which "
        "ε ≥ 8 p log(1/Δ)/n: (7) is claimed to hold with probability 1 − Δ. In the figure: PEHE over the bound, from "
        "the smallest to the 99 % quantile, and the largest (crosses).",
        head=[
            *("p", "ε", "Δ", "pΔ", "bias", "variance", "privacy", "bound (7)"),
            *("PEHE, median", "PEHE, 99 %", "PEHE, largest", "violated", "runs with a count below half"),
        ],
        lines=lines,
        remarks=[
            "Corollary 1 assumes cells with as many treated as control records; here treatment is drawn by lot.",
            "Why it is violated. The paper's proof could not be had. The condition on ε keeps one noisy count above "
            "half of the true one with probability 1 − Δ/2; there are 2p of them, so that all of them are with "
            "probability 1 − pΔ only, and one that comes close to zero is enough to make the PEHE large. "
            f"In {low} of the {in_all} violations a noisy count was below half of the true one.",
            f"Each replication stands for {runs.RUNS_A_ROW} runs.",
        ],
        aims=_aims(counts, runs_each),
        seeds=f"studies from {runs.STUDY_SEED + 500_000}, noise from {runs.NOISE_SEED}, one stream for each cell",
        replications=runs_each,
        figure=figure,
    )


def _aims(counts: Mapping[tuple[int, float], int], n: int) -> list[Aim]:
    """Whether violations are as rare as they are claimed to be, from their counts among n runs each."""
    delta = {setting: failure_probability(setting[0], runs.N, setting[1]) for setting in counts}
    allowed = {setting: _allowed(d, n) for setting, d in delta.items()}
    sure = [setting for setting in counts if delta[setting] < _SURE]
    return [
        Aim(
            "in the paper's own example the bound is violated no more often than Δ (plus three standard errors)",
            counts[EXAMPLE] / n <= allowed[EXAMPLE],
            f"{counts[EXAMPLE]} of {n:,} runs, Δ = {delta[EXAMPLE]:.2g}",
        ),
        Aim(
            f"the bound is never violated where Δ is below {_SURE:g}",
            not any(counts[setting] for setting in sure),
            f"{sum(counts[setting] for setting in sure)} of {n * len(sure):,} runs",
        ),
        Aim(
            "the bound is violated no more often than Δ (plus three standard errors) in any setting",
            all(counts[setting] / n <= allowed[setting] for setting in counts),
            _said(
                {setting: f"{count / n:.3f} of {allowed[setting]:.3f}" for setting, count in counts.items() if count}
            ),
        ),
        Aim(
            "the bound is violated no more often than pΔ (plus three standard errors) in any setting: all counts, and "
            "not one, have to stay above half",
            all(counts[setting] / n <= _allowed(min(setting[0] * d, 1.0), n) for setting, d in delta.items()),
            _said({s: f"{c / n:.3f} of {_allowed(min(s[0] * delta[s], 1.0), n):.3f}" for s, c in counts.items() if c}),
        ),
        Aim(
            "the bound is never violated in any setting",
            not any(counts.values()),
            _said({setting: str(count) for setting, count in counts.items() if count}),
        ),
    ]


def _allowed(probability: float, n: int) -> float:
    return probability + 3 * math.sqrt(probability * (1 - probability) / n)


def _said(found: Mapping[tuple[int, float], str]) -> str:
    return "; ".join(f"p = {p}, ε = {epsilon:g}: {words}" for (p, epsilon), words in found.items()) or "never"
