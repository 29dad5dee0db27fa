"""Coverage and widths of intervals over repeated studies: `discreet.ATE` beside what others would have reported.

Every method sees the same studies. Seeds start at `BASE_SEED`, which nothing else in the project uses.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.special import ndtri

import discreet
from discreet.datasets import Study, draw
from discreet.datasets.study import Float
from discreet.testing import seeded_noise
from evidence.average.nonprivate import Estimate, boosted_aipw, difference_of_means, linear_aipw
from evidence.average.private_ci_formula import observed_domain, private_ci
from evidence.cache import CACHE, Results, comparator_code, estimator_code

BASE_SEED = 58_000_000
NOISE_SEED = 92_000_000
DELTA = 1e-5
ALPHAS = (0.2, 0.1, 0.05)
SIZES = (3_000, 30_000)
EPSILONS = (0.5, 1.0, 2.0)
DESIGNS = (
    "private-ci-1",
    "private-ci-2",
    "correlated",
    "setup-a",
    "setup-b",
    "setup-c",
    "setup-d",
    "kang-schafer",
    "interactions",
    "clinic",
    "guideline",
)
STRESS = ("poor-overlap", "binary-outcome", "few-treated", "heavy-tailed")
COMPONENTS = ("sampling", "privacy", "nuisance", "clipping")

OURS = "discreet"
BOOSTED, LINEAR, UNADJUSTED = "boosted AIPW", "linear AIPW", "difference of means"
PRIVATE_CI, PRIVATE_CI_OBSERVED = "PrivATE, declared bounds", "PrivATE, observed ranges"
_NOT_PRIVATE = (BOOSTED, LINEAR, UNADJUSTED)


class Cell(NamedTuple):
    """One design at one size."""

    design: str
    n: int


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What one method did in one cell; ``epsilon`` is None where there is no privacy."""

    design: str
    n: int
    method: str
    epsilon: float | None
    replications: int
    coverage: dict[float, float]
    width: dict[float, float]
    bias: float
    sd: float
    components: dict[str, float]


def epsilons(cell: Cell) -> tuple[float, ...]:
    """Budgets at which a cell is run; the largest only where a target asks for it."""
    return EPSILONS if cell.design.startswith("private-ci") and cell.n == SIZES[0] else EPSILONS[:2]


def yardsticks(cell: Cell) -> tuple[str, ...]:
    """Methods without privacy that a cell is compared with; boosted AIPW, the slowest, where a target asks for it."""
    return _NOT_PRIVATE[1:] if cell.design in STRESS else _NOT_PRIVATE


def run(cells: Sequence[Cell], *, replications: dict[int, int], processes: int) -> dict[Cell, list[Summary]]:
    """Compute what the cache lacks, then summarise the first studies of every cell: ``replications`` by its size."""
    caches = fill(cells, replications=replications, processes=processes)
    return {cell: summarise(cell, caches[cell]["ours"], caches[cell]["others"], replications[cell.n]) for cell in cells}


def fill(
    cells: Sequence[Cell],
    *,
    replications: dict[int, int],
    processes: int,
    kinds: Sequence[str] = ("ours", "others"),
) -> dict[Cell, dict[str, Results]]:
    """Compute what the cache lacks of these kinds of methods; "others" do not depend on the estimator's code."""
    settings = (BASE_SEED, NOISE_SEED, DELTA, ALPHAS, EPSILONS, SIZES)
    names = {"ours": f"discreet-{estimator_code(settings)}", "others": f"others-{comparator_code(settings)}"}
    folders = {kind: names[kind] for kind in kinds}
    caches = {
        cell: {kind: Results(CACHE / folder / f"{cell.design}-{cell.n}.jsonl") for kind, folder in folders.items()}
        for cell in cells
    }
    jobs = [
        (cell, replication, missing)
        for n in dict.fromkeys(cell.n for cell in cells)
        # All designs advance together, so that an interrupted run has seen equally many studies of each.
        for replication in range(replications[n])
        for cell in cells
        if cell.n == n
        if (missing := tuple(kind for kind, cache in caches[cell].items() if replication not in cache.rows))
    ]
    for cell, rows in _progress(jobs, processes, total=sum(replications[cell.n] for cell in cells)):
        for kind, row in rows.items():
            caches[cell][kind].add(row)
    return caches


def one_study(job: tuple[Cell, int, tuple[str, ...]]) -> tuple[Cell, dict[str, dict[str, Any]]]:
    """Draw one study and run what is missing on it. Each estimate is stored with its interval for each alpha."""
    cell, replication, missing = job
    study = draw(cell.design, cell.n, BASE_SEED + replication)
    methods: dict[str, Callable[[Study, Cell, int], dict[str, Any]]] = {"ours": _ours, "others": _others}
    head = {"replication": replication, "ate": study.ate}
    return cell, {kind: head | methods[kind](study, cell, replication) for kind in missing}


def summarise(cell: Cell, ours: Results, others: Results, replications: int) -> list[Summary]:
    """A line per method and budget."""
    lines = []
    for epsilon in epsilons(cell):
        for method, results in ((OURS, ours), (PRIVATE_CI, others), (PRIVATE_CI_OBSERVED, others)):
            rows = [results.rows[r] for r in range(replications)]
            lines.append(_summary(cell, method, epsilon, rows, key=_key(method, epsilon)))
    rows = [others.rows[r] for r in range(replications)]
    return lines + [_summary(cell, method, None, rows, key=method) for method in yardsticks(cell)]


def _ours(study: Study, cell: Cell, replication: int) -> dict[str, Any]:
    row = {}
    for i, epsilon in enumerate(epsilons(cell)):
        with seeded_noise(NOISE_SEED + len(EPSILONS) * replication + i):
            fitted = discreet.ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
        uncertainty = fitted.release_.uncertainty
        row[_key(OURS, epsilon)] = {
            "estimate": fitted.ate_,
            "intervals": [fitted.ate_interval(alpha=alpha) for alpha in ALPHAS],
            "components": {name: getattr(uncertainty, name) for name in COMPONENTS},
        }
    return row


def _others(study: Study, cell: Cell, replication: int) -> dict[str, Any]:
    row = {}
    methods: dict[str, Callable[[], Estimate]] = {
        BOOSTED: lambda: boosted_aipw(study, BASE_SEED + replication),
        LINEAR: lambda: linear_aipw(study),
        UNADJUSTED: lambda: difference_of_means(study),
    }
    for method in yardsticks(cell):
        estimate, se = methods[method]()
        row[method] = _symmetric(estimate, [ndtri(1 - alpha / 2) * se for alpha in ALPHAS])
    for method, domain in ((PRIVATE_CI, study), (PRIVATE_CI_OBSERVED, observed_domain(study))):
        rng = np.random.default_rng([NOISE_SEED, replication])
        points, half_widths = private_ci(domain, epsilon=epsilons(cell), delta=DELTA, alpha=ALPHAS, rng=rng)
        for epsilon, point, half in zip(epsilons(cell), points, half_widths, strict=True):
            row[_key(method, epsilon)] = _symmetric(float(point), half)
    return row


def _symmetric(estimate: float, half_widths: Sequence[float] | Float) -> dict[str, Any]:
    return {
        "estimate": estimate,
        "intervals": [(float(estimate - half), float(estimate + half)) for half in half_widths],
    }


def _key(method: str, epsilon: float) -> str:
    return f"{method} @ {epsilon:g}"


def _summary(cell: Cell, method: str, epsilon: float | None, rows: list[dict[str, Any]], key: str) -> Summary:
    truth = np.array([row["ate"] for row in rows])
    errors = np.array([row[key]["estimate"] for row in rows]) - truth
    intervals = np.array([row[key]["intervals"] for row in rows])
    covered = (intervals[:, :, 0] <= truth[:, None]) & (truth[:, None] <= intervals[:, :, 1])
    widths = intervals[:, :, 1] - intervals[:, :, 0]
    parts = [row[key].get("components", {}) for row in rows]
    return Summary(
        design=cell.design,
        n=cell.n,
        method=method,
        epsilon=epsilon,
        replications=len(rows),
        coverage=dict(zip(ALPHAS, covered.mean(axis=0).tolist(), strict=True)),
        width=dict(zip(ALPHAS, widths.mean(axis=0).tolist(), strict=True)),
        bias=float(errors.mean()),
        sd=float(errors.std(ddof=1)) if len(rows) > 1 else float("nan"),
        components={name: float(np.mean([part[name] for part in parts])) for name in COMPONENTS if parts[0]},
    )


def _progress(
    jobs: list[tuple[Cell, int, tuple[str, ...]]], processes: int, total: int
) -> Iterator[tuple[Cell, dict[str, dict[str, Any]]]]:
    columns = (TextColumn("{task.description:24}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task("studies", total=total, completed=total - len(jobs))
        for cell, rows in _map(jobs, processes):
            progress.update(task, advance=1, description=f"{cell.design}, n = {cell.n:,}")
            yield cell, rows


def _map(jobs: list[Any], processes: int) -> Iterator[tuple[Cell, dict[str, dict[str, Any]]]]:
    if processes == 1 or not jobs:
        yield from map(one_study, jobs)
        return
    # The processes read these when they start: one thread each, because there are as many of them as are wanted.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap_unordered(one_study, jobs)
