"""Supplement D of the DP-CATE paper: with more records the noise vanishes, and effects become the true ones."""

from __future__ import annotations

from math import sqrt

import numpy as np
from sklearn.base import clone

from discreet.data._arrays import Float
from discreet.datasets.paper_designs import dp_cate
from discreet.papers.common.influence import noise_factor
from discreet.papers.common.queries import encode_queries
from discreet.privacy.noise import published_gaussian
from discreet.releases.plots import GREEN, MUTED, ORANGE, PURPLE
from discreet.testing import seeded_noise
from evidence.reproduce.dp_cate.runs import DELTA, NOISE_SEED, STUDY_SEED, Split, model_of, records_of, rms
from evidence.reproduce.pages import Aim, Page, axes, falls
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import Results, Row, Target

SIZES = (300, 1_000, 3_000, 10_000)
QUICK_SIZES = SIZES[:3]
EPSILON = 1.0
QUERIES = 300
# The straight line is not consistent here, and is there to show what that means.
STAGES = {"forest": "RF", "nn": "NN", "linear": "LR"}
CONSISTENT = ("forest", "nn")
_COLOURS = {"forest": ORANGE, "nn": PURPLE, "linear": GREEN}


def consistency(cell: str, replication: int) -> Row:
    """Cell "3000": Dataset 1 with so many records, and 300 further ones as queries, at epsilon = 1."""
    n = int(cell)
    study = dp_cate(1, n + QUERIES, STUDY_SEED + replication)
    assert study.effects is not None
    split = Split(study.Y[:n], study.T[:n], study.X[:n], study.X[n:], study.effects[n:], study.X[n:, 0], study.bounds)
    rows, asked = records_of(split), encode_queries(split.queries, split.bounds)
    base = model_of(split, "R", replication)
    nuisances = base._first_stage(rows)
    row: Row = {}
    with seeded_noise(noise_seed(NOISE_SEED, f"consistency {cell}", replication)):
        for stage in STAGES:
            exact, gamma = clone(base).set_params(stage2=stage)._exact(rows, nuisances, asked)
            sd = gamma * noise_factor(n, EPSILON, DELTA)
            private = exact + published_gaussian(len(exact), sd)
            row[stage] = {"sd": sd, "exact": rms(exact, split.truth), "private": rms(private, split.truth)}
    return row


def page(results: Results) -> Page:
    """Noise and errors by n."""
    sizes = sorted(int(cell) for cell in results)
    lines: list[list[str]] = []
    aims: list[Aim] = []
    figure, (ax,) = axes(width=6.4, height=4.0)
    for stage, name in STAGES.items():
        curves = {
            what: [np.array([row[stage][what] for row in results[f"{n}"]]) for n in sizes]
            for what in ("sd", "exact", "private")
        }
        for n, sd, exact, private in zip(sizes, *curves.values(), strict=True):
            lines.append([name, f"{n:,}", f"{sd.mean():.3g}", _text(exact), _text(private)])
        for what, words in (
            ("sd", "(23): the noise vanishes"),
            ("exact", "(22): the error without noise falls"),
            ("private", "(24): the private error falls"),
        ):
            if what == "exact" and stage not in CONSISTENT:
                continue
            means = [float(found.mean()) for found in curves[what]]
            aims.append(
                Aim(
                    f"{words} with n ({name})",
                    falls(means, [_error(found) for found in curves[what]]),
                    f"{means[0]:.3g} at n = {sizes[0]:,}, {means[-1]:.3g} at {sizes[-1]:,}",
                )
            )
        ax.plot(sizes, [found.mean() for found in curves["private"]], "o-", color=_COLOURS[stage], label=name)
        ax.plot(sizes, [found.mean() for found in curves["exact"]], ":", color=_COLOURS[stage])
    rate = [noise_factor(n, EPSILON, DELTA) for n in sizes]
    ax.plot(sizes, [10 * value for value in rate], "--", color=MUTED, label="√ln n / n, scaled")
    ax.set(xscale="log", yscale="log", xlabel="n", ylabel="PEHE (dotted: without noise)")
    ax.legend(frameon=False)
    return Page(
        lead=f"R-learner on Dataset 1, finite queries, ε = {EPSILON:g}, δ = {DELTA:g}: standard deviation of the "
        "noise, and root of the mean squared error of effects (PEHE) without noise and with it, ± one standard error.",
        head=["learner", "n", "sd of the noise", "PEHE, not private", "PEHE"],
        lines=lines,
        remarks=[
            "The paper has no such table: its supplement D argues that a consistent learner stays one, because the "
            "noise falls like √(ln n)/n times the gross-error sensitivity, which is taken to be bounded.",
            "A straight line is no consistent learner of this effect: its error without noise stays, and the noise on "
            "it vanishes all the same.",
            "What is said of functions holds for a λ that is fixed in the sum of losses; with λ fixed on their mean "
            "the minimiser is shrunk at any n, and what the noise vanishes to is not the effect.",
            "ε is what the paper claims, and the claim is known to fail, the more so with n: see "
            "`discreet.papers.DPCATE`.",
        ],
        aims=aims,
        seeds=f"studies from {STUDY_SEED}, noise from {NOISE_SEED}, one each",
        replications=min(len(rows) for rows in results.values()),
        figure=figure,
    )


def _error(values: Float) -> float:
    return float(values.std(ddof=1) / sqrt(len(values))) if len(values) > 1 else 0.0


def _text(values: Float) -> str:
    return f"{values.mean():.3g} ± {_error(values):.2g}"


TARGET = Target(
    name="consistency",
    title="DP-CATE, supplement D: consistency",
    experiment="consistency",
    run=consistency,
    cells=lambda full: tuple(f"{n}" for n in (SIZES if full else QUICK_SIZES)),
    replications=lambda full: 20 if full else 2,
    page=page,
)
