"""Algorithm 2 of the DP-CATE paper, corrected: answers one at a time against one batch, and what they cost."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from discreet.data._arrays import Float
from discreet.papers.dp_cate.interactive import SecretFunction
from discreet.papers.dp_cate.kernel_regression import Function, GaussianKernel
from discreet.releases.plots import BLUE, MUTED, ORANGE
from discreet.testing import seeded_noise
from evidence.reproduce.dp_cate.runs import NOISE_SEED, STUDY_SEED
from evidence.reproduce.pages import Aim, Page, axes
from evidence.reproduce.private_ate.noise_runs import noise_seed
from evidence.reproduce.targets import Results, Row

POINTS = 20
FIRST, ALL = 500, 2_000
LEVEL, MOST_RATIO = 0.01, 20.0
_SCALE = 0.5
# Directions in which the process has less than this share of its variance are settled by rounding.
_LEAST = 1e-6


def iterative(cell: str, replication: int) -> Row:
    """Cell "law 5000": so many draws both ways; "time 2": 2,000 single queries with so many covariates."""
    what, number = cell.split()
    with seeded_noise(noise_seed(NOISE_SEED, cell, replication)):
        return _law(int(number), replication) if what == "law" else _times(int(number), replication)


def _law(draws: int, replication: int) -> Row:
    from scipy.stats import ks_2samp

    function, points = _made_up(2, POINTS, replication)
    batch = np.array([SecretFunction(function, _SCALE).ask(points) for _ in range(draws)])
    directions = _directions(function.kernel(points, points))
    row: Row = {"directions": directions.shape[1]}
    # A tenth of the draws is plenty to distinguish the printed algorithm.
    for name, printed, some in (("corrected", False, draws), ("printed", True, draws // 10)):
        single = np.empty((some, POINTS))
        for draw in range(some):
            asked = SecretFunction(function, _SCALE, as_printed=printed)
            single[draw] = [asked.ask(points[k : k + 1])[0] for k in range(POINTS)]
        # By Cramér and Wold, laws are equal if all their projections are; Bonferroni for the ones that are tried.
        tests = [ks_2samp(single @ way, batch @ way).pvalue for way in directions.T]
        row[name] = min(1.0, len(tests) * float(min(tests)))
    return row


def _directions(matrix: Float) -> Float:
    """Each point by itself, and the principal directions of the process, each with variance one."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > _LEAST * values.max()
    return np.hstack([np.eye(len(matrix)), vectors[:, kept] / np.sqrt(values[kept])])


def _times(q: int, replication: int) -> Row:
    function, points = _made_up(q, ALL, replication)
    row: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("memory", "file"):
            asked = SecretFunction(function, _SCALE)
            if name == "file":
                asked.save(Path(folder) / "state", {})
            start = time.perf_counter()
            for k in range(ALL):
                asked.ask(points[k : k + 1])
                if k + 1 == FIRST:
                    row[f"{name}, first"] = time.perf_counter() - start
            row[f"{name}, all"] = time.perf_counter() - start
            row["numbers"] = asked._path.size
            asked.close()
    return row


def _made_up(q: int, count: int, replication: int) -> tuple[Function, Float]:
    """A function with the paper's 50 basis functions, and queries."""
    rng = check_random_state(STUDY_SEED + replication)
    kernel = GaussianKernel(float(np.sqrt(q / 2.0)), 1.0)
    centres, weights = rng.uniform(0.0, 1.0, (50, q)), rng.normal(0.0, 1.0, 50)
    return Function(kernel=kernel, centres=centres, weights=weights), rng.uniform(0.0, 1.0, (count, q))


def _times_figure(ratios: dict[str, float]) -> Any:
    figure, (ax,) = axes(width=6.4, height=2.8)
    ax.barh(list(ratios), list(ratios.values()), color=[BLUE if "memory" in name else ORANGE for name in ratios])
    ax.axvline(MOST_RATIO, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    ax.set_xlabel(f"time of {ALL:,} single queries over that of the first {FIRST}")
    return figure


_REMARKS = (
    "The paper has no such table.",
    "A query whose answer earlier ones fix, up to a ten-thousandth of the noise, gets no random number of its "
    "own: that is why a smooth kernel with few covariates needs few of them, and later queries cost little "
    "more than earlier ones.",
    "With a state file every answer is forced to disk before it is given, which takes longer than the algebra.",
)


def page(results: Results) -> Page:
    """Both findings."""
    (law,) = [cell for cell in results if cell.startswith("law")]
    draws = int(law.split()[1])
    lines, ratios = [], {}
    corrected = [row["corrected"] for row in results[law]]
    printed = [row["printed"] for row in results[law]]
    for name, values in (("corrected", corrected), ("as printed", printed)):
        found = f"{np.min(values):.3g} to {np.max(values):.3g}" if len(values) > 1 else f"{values[0]:.3g}"
        lines.append(
            [f"law of {POINTS} answers, {name} against one batch", f"p = {found}", f"{draws:,} draws each way"]
        )
    for cell in sorted(set(results) - {law}):
        q = cell.split()[1]
        for name in ("memory", "file"):
            first, whole = (np.array([row[f"{name}, {part}"] for row in results[cell]]) for part in ("first", "all"))
            ratios[q, name] = float(np.median(whole / first))
            lines.append(
                [
                    f"{ALL:,} single queries over the first {FIRST}, {q} covariates, state in {name}",
                    f"{ratios[q, name]:.3g} times",
                    f"{np.median(first):.3g} s and {np.median(whole):.3g} s; "
                    f"{int(np.median([row['numbers'] for row in results[cell]])):,} random numbers",
                ]
            )
    names = [f"{q} covariates, {name}" for q, name in ratios]
    return Page(
        lead="Algorithm 2 as it is printed draws every answer after the first from the process given earlier "
        "*outputs*, and never evaluates the fitted function again. Corrected, each answer is the function plus noise "
        "that is drawn given the *noise* at earlier queries; then single answers must have the law of one batch "
        "(Algorithm 1). Two-sample Kolmogorov-Smirnov tests along each point and along the principal directions of the "
        "process, with Bonferroni's correction; times of this run.",
        head=["what", "found", "from"],
        lines=lines,
        remarks=[
            *_REMARKS,
        ],
        aims=[
            Aim(
                f"single answers have the law of a batch (p above {LEVEL:g})",
                float(np.median(corrected)) > LEVEL,
                f"median p = {np.median(corrected):.3g}",
            ),
            Aim(
                f"the printed algorithm is distinguished from it (p below {LEVEL:g})",
                max(printed) < LEVEL,
                f"p of at most {max(printed):.3g}",
            ),
            Aim(
                f"{ALL:,} queries one at a time take less than {MOST_RATIO:g} times as long as the first {FIRST}",
                max(ratios.values()) < MOST_RATIO,
                ", ".join(f"{name}: {ratio:.3g}" for name, ratio in zip(names, ratios.values(), strict=True)),
            ),
        ],
        seeds=f"functions and queries from {STUDY_SEED}, noise from {NOISE_SEED}",
        replications=len(results[law]),
        figure=_times_figure(dict(zip(names, ratios.values(), strict=True))),
    )
