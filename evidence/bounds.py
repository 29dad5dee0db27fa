"""How good suggested bounds are: ``python -m evidence.bounds`` writes docs/evidence/bounds.md.

Columns of known distributions, drawn anew for each run; rules were chosen on seeds below 1,000,000, and these are others.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator

import discreet
from discreet import suggest_bounds
from discreet.data._arrays import Float
from discreet.testing import seeded_noise
from evidence.cache import ROOT

RUNS, N, EPSILON, SEED = 100, 10_000, 0.1, 81_000_000
# What was to be reached: share of the values outside, width over that from the 1st to the 99th percentile, runs in a hundred.
LOST, TIMES, OFTEN = 0.005, 2.0, 95
TOGETHER = 4


def _or_zero(rng: Generator, zeros: float, values: Float) -> Float:
    return np.where(rng.random(len(values)) < zeros, 0.0, values)


COLUMNS: dict[str, Callable[[Generator, int], Float]] = {
    "normal": lambda rng, n: rng.normal(50.0, 10.0, n),
    "normal, in whole years": lambda rng, n: rng.normal(2015.0, 3.0, n).round(),
    "log-normal, sd of the logarithm 0.5": lambda rng, n: np.exp(rng.normal(3.0, 0.5, n)),
    "log-normal, sd of the logarithm 1": lambda rng, n: np.exp(rng.normal(0.0, 1.0, n)),
    "count, Poisson of mean 4": lambda rng, n: rng.poisson(4.0, n).astype(float),
    "count, negative binomial of mean 5": lambda rng, n: rng.negative_binomial(2, 2 / 7, n).astype(float),
    "count, half of them zero": lambda rng, n: _or_zero(rng, 0.5, rng.poisson(6.0, n).astype(float)),
    "zero-inflated, 30 % zeros, else log-normal": lambda rng, n: _or_zero(rng, 0.3, np.exp(rng.normal(2.0, 0.7, n))),
    "zero-inflated, 70 % zeros, else log-normal": lambda rng, n: _or_zero(rng, 0.7, np.exp(rng.normal(2.0, 0.7, n))),
    "zero-inflated, 90 % zeros, else log-normal": lambda rng, n: _or_zero(rng, 0.9, np.exp(rng.normal(5.0, 1.0, n))),
    "exponential": lambda rng, n: rng.exponential(7.0, n),
    "even": lambda rng, n: rng.uniform(18.0, 90.0, n),
    "t with 3 degrees of freedom": lambda rng, n: rng.standard_t(3, n),
}


@dataclass(frozen=True)
class Line:
    """What became of one column over all runs."""

    name: str
    good: int
    lost: int
    wide: int
    hidden: int
    runs: int
    outside: float
    times: float

    @property
    def row(self) -> list[str]:
        """As the page has it."""
        counts = [str(each) for each in (self.good, self.lost, self.wide, self.hidden)]
        return [self.name, *counts, f"{100 * self.outside:.2f} %", f"{self.times:.2f}"]


def measured(name: str, runs: int, beside: int = 0) -> Line:
    """One column, suggested for by itself or with others beside it that share the budget."""
    outside, times = [], []
    for run in range(runs):
        rng = np.random.default_rng(SEED + run)
        values = COLUMNS[name](rng, N)
        table = {"x": values} | {f"beside{k}": rng.normal(0.0, 1.0, N) for k in range(beside)}
        with seeded_noise(SEED + run):
            found: Any = suggest_bounds(pa.table(table), covariates=list(table), epsilon=EPSILON, delta=1e-6).columns[0]
        if found.low is None:
            outside.append(np.nan)
            times.append(np.nan)
            continue
        first, last = np.quantile(values, [0.01, 0.99])
        outside.append(float(np.mean((values < found.low) | (values > found.high))))
        times.append(float((found.high - found.low) / (last - first)))
    lost, wide = np.array(outside), np.array(times)
    return Line(
        name=name,
        good=int(np.sum((lost <= LOST) & (wide <= TIMES))),
        lost=int(np.sum(lost > LOST)),
        wide=int(np.sum(wide > TIMES)),
        hidden=int(np.sum(np.isnan(lost))),
        runs=runs,
        outside=float(np.nanmedian(lost)) if not np.isnan(lost).all() else np.nan,
        times=float(np.nanmedian(wide)) if not np.isnan(wide).all() else np.nan,
    )


def _table(lines: list[Line]) -> Iterator[str]:
    yield "| column | good | loses too much | too wide | hidden by noise | outside, median | width, median |"
    yield "|---|---|---|---|---|---|---|"
    for line in lines:
        yield f"| {' | '.join(line.row)} |"


def page(alone: list[Line], together: list[Line], runs: int, command: str) -> str:
    """The page."""
    reached = [line for line in alone if 100 * line.good >= OFTEN * line.runs]
    return "\n".join(
        [
            "# Suggested bounds",
            "",
            f"Made by `{command}` with discreet {discreet.__version__} on {date.today():%-d %B %Y}. One column of {N:,} values, ε = {EPSILON:g}, {runs} runs for each line, values and noise drawn anew.",
            f"A range is *good* if at most {100 * LOST:g} % of the values are outside, and it is at most {TIMES:g} times as wide as that from the 1st to the 99th percentile; {OFTEN} good ranges in 100 were wanted.",
            f"That is reached for {len(reached)} of the {len(alone)} columns. Widths are in that unit.",
            "",
            *_table(alone),
            "",
            f"## {TOGETHER} columns for the same budget",
            "",
            f"The same with {TOGETHER - 1} normal columns beside it: each has a quarter of the budget. Ask for few columns, and declare the others.",
            "",
            *_table(together),
            "",
        ]
    )


def main() -> None:
    """Run and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "evidence")
    asked = parser.parse_args()
    alone = [measured(name, asked.runs) for name in COLUMNS]
    some = [name for name in COLUMNS if name in ("normal", "count, Poisson of mean 4")] + [
        name for name in COLUMNS if "0.5" in name or "30 %" in name
    ]
    together = [measured(name, asked.runs, TOGETHER - 1) for name in some]
    command = f"python -m evidence.bounds --runs {asked.runs}"
    (asked.out / "bounds.md").write_text(page(alone, together, asked.runs, command))
    print("\n".join([*_table(alone), *_table(together)]))


if __name__ == "__main__":
    main()
