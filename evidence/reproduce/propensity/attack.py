"""What private propensity scores give away where their premises fail: scaling by the data, and resampling."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from discreet.audit._lower_bounds import Law, least_epsilon
from discreet.audit.result import rounded_down
from discreet.data._arrays import Float
from discreet.datasets import propensity_scores
from discreet.papers.propensity.logistic import minimise, output_sd, sensitivity
from discreet.releases.plots import MUTED, ORANGE
from evidence.reproduce.pages import Aim, Page, axes
from evidence.reproduce.propensity.runs import DELTA, GRADIENT_NORM, LAMBDA, STUDY_SEED, TABLE_EPSILONS, M
from evidence.reproduce.targets import Results, Row

NORM_EPSILON, RESAMPLED_EPSILON = 0.5, TABLE_EPSILONS[-1]
# By how much the replaced record exceeds the norms of all others; and records that are all alike.
NORMS = ("norm 2", "norm 10", "norm alike")
# Treated records that Table 1 has left to train with, of IHDP and of Lalonde's data: 250 are drawn from them.
RESAMPLED = ("resampled 126", "resampled 85")
DRAWN, TRAINING = 250, 500
CELLS = (*NORMS, *RESAMPLED)
# More copies than anyone will see: a chance of 1e-20.
_MOST_COPIES = 40
_TEXT = {
    "norm 2": "divided by the largest norm; one record twice as long as all others",
    "norm 10": "divided by the largest norm; one record ten times as long",
    "norm alike": "divided by the largest norm; all others alike, one ten times as long",
    "resampled 126": "drawn with replacement, 250 of 126 (IHDP)",
    "resampled 85": "drawn with replacement, 250 of 85 (Lalonde)",
}


def run(cell: str, replication: int) -> Row:
    """Cell "norm 10": how far one record moves the weights. Cell "resampled 85": by how often it was drawn."""
    what, setting = cell.split()
    if what == "norm":
        return {"moved": _moved_by_scaling(setting, replication), "sd": output_sd(NORM_EPSILON, DELTA, M, LAMBDA)}
    copies = _rng(replication).multinomial(DRAWN, np.full(int(setting), 1 / int(setting))).max()
    weights = [_with_copies(times) for times in range(_MOST_COPIES)]
    return {"most": int(copies), "sd": output_sd(RESAMPLED_EPSILON, DELTA, TRAINING, LAMBDA), "weights": weights}


def _moved_by_scaling(setting: str, replication: int) -> float:
    """Distance of the weights on two data sets that differ in one record, each divided by its own largest norm."""
    study = propensity_scores(2.0, STUDY_SEED + replication, n=M)
    x, t = np.asarray(study.X, dtype=np.float64).copy(), study.T.copy()
    if setting == "alike":
        x[:], t[:] = np.eye(x.shape[1])[0], 1.0
    longest = float(np.linalg.norm(x, axis=1).max())
    other = x.copy()
    other[0] *= (10.0 if setting == "alike" else float(setting)) * longest / np.linalg.norm(other[0])
    one, two = (minimise(_scaled(each), t, LAMBDA, GRADIENT_NORM).w for each in (x, other))
    return float(np.linalg.norm(one - two))


def _scaled(x: Float) -> Float:
    return np.asarray(x / (np.linalg.norm(x, axis=1).max() * (1.0 + 1e-12)))


def _with_copies(copies: int) -> float:
    """Second weight if so many of the 250 treated records are copies of one that lies aside.

    All other treated records lie at (1, 0) and all controls at (-1, 0), so that the second weight is this record's
    work alone; mirrored at the first axis it turns the sign, and that is the neighbour.
    """
    x = np.repeat([[1.0, 0.0], [-1.0, 0.0]], DRAWN, axis=0)
    x[:copies] = [-0.5, np.sqrt(0.75)]
    t = np.repeat([1.0, 0.0], DRAWN)
    return float(minimise(_scaled(x), t, LAMBDA, GRADIENT_NORM).w[1])


def _shown(weight: float, sd: float) -> float:
    """Epsilon that is proved where neighbours have this weight and its negative."""
    return least_epsilon(Law.normal(weight, sd), Law.normal(-weight, sd), DELTA)


def _shown_in_secret(row: Row, pool: int) -> float:
    """Epsilon that is proved while nobody knows how often the record was drawn."""
    weights = np.array(row["weights"])
    sds = np.full(len(weights), row["sd"])
    chance = binom.pmf(np.arange(len(weights)), DRAWN, 1 / pool)
    return least_epsilon(Law(chance, weights, sds), Law(chance, -weights, sds), DELTA)


def _proved(results: Results) -> tuple[list[list[str]], list[tuple[str, list[float]]]]:
    """Lines of the table, and the bounds of every study."""
    lines, points = [], []
    for cell in NORMS:
        moves = [row["moved"] for row in results[cell]]
        sd = results[cell][0]["sd"]
        bounds = [_shown(moved / 2, sd) for moved in moves]
        middle = float(np.median(moves))
        lines.append(_line(_TEXT[cell], NORM_EPSILON, middle / sensitivity(M, LAMBDA), middle / sd, bounds))
        points.append((cell, bounds))
    for cell in RESAMPLED:
        rows, pool = results[cell], int(cell.split()[1])
        weights, sd, stated = rows[0]["weights"], rows[0]["sd"], sensitivity(TRAINING, LAMBDA)
        for what, times in (("once", [1]), ("most often", [row["most"] for row in rows])):
            middle = float(np.median([2 * weights[count] for count in times]))
            bounds = [_shown(weights[count], sd) for count in times]
            text = f"{_TEXT[cell]}; a record drawn {what} ({np.median(times):g})"
            lines.append(_line(text, RESAMPLED_EPSILON, middle / stated, middle / sd, bounds))
            points.append((f"{cell}, {what}", bounds))
        secret = _shown_in_secret(rows[0], pool)
        lines.append(
            [f"{_TEXT[cell]}; the draw kept secret", f"{RESAMPLED_EPSILON:g}", "", "", *[rounded_down(secret)] * 2]
        )
        points.append((f"{cell}, secret", [secret]))
    return lines, points


def _figure(points: list[tuple[str, list[float]]]) -> Any:
    figure, (ax,) = axes(width=8.6, height=4.2)
    for place, (_, bounds) in enumerate(points):
        ax.plot(bounds, np.full(len(bounds), place), "o", color=ORANGE, alpha=0.6, markersize=4)
    ax.set_yticks(range(len(points)), [name for name, _ in points])
    ax.invert_yaxis()
    ax.axvline(1.0, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.set(xscale="log", xlabel="ε that is proved (claims are below 1)")
    return figure


def page(results: Results) -> Page:
    """What both attacks prove."""
    lines, points = _proved(results)
    least = dict(zip([name for name, _ in points], [min(bounds) for _, bounds in points], strict=True))
    ten, alike = rounded_down(least["norm 10"]), rounded_down(least["norm alike"])
    drawn = rounded_down(least[f"{RESAMPLED[1]}, most often"])
    return Page(
        lead=f"Output perturbation (Definition 2) as the paper's experiments run it, λ = {LAMBDA:g}, δ = {DELTA:g}, on "
        "two data sets that differ in one record: how far the weights are apart, as a multiple of the sensitivity "
        "2/(mλ) that the noise was made for and of the noise, and the ε that this proves to an attacker who knows "
        "both; median and least over studies, rounded down.",
        head=["training records", "claimed ε", "apart, of 2/(mλ)", "apart, of the noise", "proved ε, median", "least"],
        lines=lines,
        remarks=[
            f"Covariates divided by the largest norm among the records, m = {M:,}: a record that is longer than all "
            f"others shrinks all others. One that is ten times as long turns a claimed epsilon of {NORM_EPSILON:g} "
            f"into at least {ten} on the paper's synthetic data, and into {alike} where all other records are alike. "
            "The text assumes norms of at most 1, and divides by the largest to get there.",
            "Records drawn with replacement: a copy counts like a record of its own. The record of Lalonde's data "
            f"that is drawn most often turns a claimed epsilon of {RESAMPLED_EPSILON:g} into at least {drawn}, if the "
            "draw is known, as it is where its seed is published. One copy stays below the claim, as it should.",
            "While the draw is secret it is part of the mechanism, and a record is drawn often by chance only: what is "
            "proved then is in the lines above.",
            "`PropensityIPTW` takes a declared ball by default and draws nothing with replacement; with "
            "`calibration='proved'` it has a proof.",
        ],
        aims=[
            Aim(
                "scaling by the data breaks the claim in every study",
                least["norm 2"] > NORM_EPSILON,
                f"at least {rounded_down(least['norm 2'])}",
            ),
            Aim(
                "resampling breaks the claim for the most frequent record",
                float(drawn) > RESAMPLED_EPSILON,
                f"at least {drawn}",
            ),
        ],
        seeds=f"studies and resampling from {STUDY_SEED}; no noise is drawn",
        replications=len(results[NORMS[0]]),
        figure=_figure(points),
    )


def _line(text: str, claimed: float, of_stated: float, of_noise: float, bounds: list[float]) -> list[str]:
    least = (rounded_down(float(np.median(bounds))), rounded_down(min(bounds)))
    return [text, f"{claimed:g}", f"{of_stated:.2g}", f"{of_noise:.2g}", *least]


def _rng(replication: int) -> Any:
    from sklearn.utils import check_random_state

    return check_random_state(STUDY_SEED + replication)
