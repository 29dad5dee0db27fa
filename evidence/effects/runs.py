"""One replication of one cell behind `CATE`'s page: a design, a size, a budget, and everybody who is asked about it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from discreet import ATE, CATE
from discreet.datasets import ihdp
from discreet.papers import DPCATE, DRLearner, UnprovedClaim
from discreet.testing import seeded_noise
from evidence.effects.designs import PUBLISHED, WRITTEN, Sample, draw
from evidence.reproduce.private_ate.noise_runs import noise_seed

STUDY_SEED, NOISE_SEED, TEST_SEED = 76_000_000, 77_000_000, 78_000_000
DELTA, ALPHA = 1e-5, 0.1
# Effects are judged on so many records of a study of the same design that nobody was fitted to.
TEST = 5_000
# So much is as good as no noise.
OPEN = 1e6
WIDE = ", wide bounds"
# Records of the studies in which intervals are judged.
COVERED = 10_000
IHDP = "ihdp"
_SETUPS = tuple(name for name in PUBLISHED if name.startswith("setup-"))


class Cell(NamedTuple):
    """Where a function is asked for, and who answers."""

    design: str
    n: int
    epsilon: float
    method: str = "CATE"

    @property
    def name(self) -> str:
        """For files."""
        return f"{self.design} {self.n} {self.epsilon:g} {self.method}".replace(",", "").replace(" ", "_")


def cells() -> Iterator[tuple[Cell, int]]:
    """Every cell, and the number of replications that it should have beside 40: all, half or a quarter of them."""
    for design in ("dataset-1", "dataset-2"):
        yield from ((Cell(design, 2_700, epsilon), 1) for epsilon in (0.5, 1.0, 2.0, 5.0))
        yield from ((Cell(design, 30_000, epsilon), 1) for epsilon in (0.5, 1.0))
        yield Cell(design + WIDE, 2_700, 2.0), 1
        yield from ((Cell(design, 2_700, epsilon), 2) for epsilon in (0.05, 0.2, 10.0))
        yield Cell(design, 2_700, OPEN), 4
        for method in ("DP-EBM", "additive", "forest"):
            yield from ((Cell(design, 2_700, epsilon, method), 4) for epsilon in (0.5, 1.0, 2.0, 5.0))
    for design in _SETUPS:
        yield from ((Cell(design, n, epsilon), 1) for n in (4_000, 16_000) for epsilon in (1.0, 2.0, 4.0))
        yield from ((Cell(design, 4_000, epsilon), 2) for epsilon in (0.05, 0.2, 0.5, 10.0))
        yield Cell(design, 16_000, OPEN), 4
    for design in WRITTEN:
        yield Cell(design, 30_000, 2.0), 1
        yield Cell(design, 30_000, 2.0, "CATE, DR"), 4
        yield Cell(design, 30_000, OPEN), 4
        if design != "hundred":
            yield Cell(design + WIDE, 30_000, 2.0), 1
        yield from ((Cell(design, 10_000, epsilon), 2) for epsilon in (0.05, 0.2, 0.5, 10.0))
    for design in (*PUBLISHED, *WRITTEN):
        yield from ((Cell(design, 10_000, epsilon), 1) for epsilon in (1.0, 2.0))
    for epsilon in (2.0, 5.0):
        yield from ((Cell(design, 747, epsilon), 2) for design in (IHDP, IHDP + WIDE))


def run(cell: Cell, replication: int) -> dict[str, float]:
    """Errors of one fit, and of a constant beside it; coverage and widths of intervals."""
    from threadpoolctl import threadpool_limits

    sample, test = _studies(cell, replication)
    given: dict[str, Any] = {"epsilon": cell.epsilon, "delta": DELTA, "bounds": sample.bounds}
    records: dict[str, Any] = {"Y": sample.y, "T": sample.t, "X": sample.x}
    with threadpool_limits(1), seeded_noise(noise_seed(NOISE_SEED, cell.name, replication)), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        if not cell.method.startswith("CATE"):
            return {"mse": _rival_error(cell, given, records, test, replication)}
        fitted = CATE(**given, correction="DR" if cell.method.endswith("DR") else "R").fit(**records)
        row = {"mse": float(np.mean((fitted.effect(test.x) - test.tau) ** 2)), "variance": float(np.var(sample.y))}
        row |= {"varies": float(fitted.release_.varies), "effect_variance": float(np.var(test.tau))}
        if cell.n == COVERED:
            row |= _intervals(fitted, test)
        if cell.method == "CATE" and cell.epsilon <= 10.0 and not cell.design.endswith(WIDE):
            # A constant release is the average effect's own.
            average = ATE(**given).fit(**records).ate_ if fitted.release_.varies else fitted.ate()
            row["constant"] = float(np.mean((average - test.tau) ** 2))
        return row


def _studies(cell: Cell, replication: int) -> tuple[Sample, Sample]:
    """Records to fit, and records to judge by."""
    if cell.design.startswith(IHDP):
        study = Sample.of(ihdp(replication + 1))
        sample = study.with_wide_bounds() if cell.design.endswith(WIDE) else study
        return sample, sample
    sample = draw(cell.design, cell.n, STUDY_SEED + replication)
    # Coefficients of the first two designs are drawn with a study: they are judged by records of the same one.
    if cell.design.startswith("dataset-"):
        part = slice(None, TEST)
        return sample, sample._replace(x=sample.x[part], t=sample.t[part], y=sample.y[part], tau=sample.tau[part])
    return sample, draw(cell.design, TEST, TEST_SEED + replication)


def _intervals(fitted: CATE, test: Sample) -> dict[str, float]:
    """Coverage of the best approximation in the release's own basis; widths, and those of the shrunk posterior."""
    low, high = fitted.effect_interval(test.x, alpha=ALPHA)
    features = np.concatenate(list(fitted.release_._features(test.x)))
    gram = features.T @ features + 1e-6 * len(features) * np.eye(features.shape[1])
    best = features @ np.linalg.solve(gram, features.T @ test.tau) if fitted.release_.varies else np.mean(test.tau)
    row = {"inside": float(np.mean((low <= best) & (best <= high))), "width": float(np.mean(high - low))}
    posterior = fitted.release_.reference.get("mean_posterior_sd")
    return row | ({} if posterior is None else {"posterior": posterior})


def _rival_error(cell: Cell, given: dict[str, Any], records: dict[str, Any], test: Sample, seed: int) -> float:
    """Mean squared error of a published system's effects."""
    if cell.method == "forest":
        # As the paper has it: its 300 queries are asked together.
        x, tau = test.x[:300], test.tau[:300]
        model = DPCATE(**given, learner="R", stage2="forest", random_state=seed)
        found = model.fit(**records, queries=x).effect()
    else:
        x, tau = test.x, test.tau
        base = {"DP-EBM": "ebm", "additive": "additive"}[cell.method]
        found = DRLearner(**given, base=base, random_state=seed).fit(**records).effect(x)
    return float(np.mean((np.asarray(found) - tau) ** 2))
