"""Models from a sample by place: ``python -m evidence.samples`` writes docs/evidence/samples.md, in some minutes.

Two questions: how often intervals hold the truth where `ATE` fits its models to a sample of a long table, and how much
wider they are than where all records are read in every round.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

import discreet as dc
from discreet.datasets import Design
from discreet.estimators import _allocation
from evidence.cache import ROOT
from evidence.reproduce.pages import grid

# Those from 76,000,000 on were looked at while the page was made.
SEED, QUICK_SEED = 87_000_000, 76_000_000
EPSILON, DELTA, ALPHA = 1.0, 1e-6, 0.05
# Records of each study, studies of each design, and how many of them are fitted without a sample as well.
ROWS, RUNS, WHOLE = 1_000_000, 40, 4
WIDER = 1.1
_HOME = ROOT / "docs" / "evidence"


class Run(NamedTuple):
    """One study."""

    design: str
    seed: int
    models_from: str
    estimate: float
    low: float
    high: float
    truth: float

    @property
    def covers(self) -> bool:
        """Whether the interval holds the truth."""
        return self.low <= self.truth <= self.high


def designs() -> tuple[Design, Design]:
    """A confounded study of a number, and of an event that few have; effects differ between people."""

    def covariates(n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-1.0, 1.0, (n, 4))

    def number(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        e = 1.0 / (1.0 + np.exp(-(x[:, 0] - 0.7 * x[:, 1] + 0.5 * x[:, 0] * x[:, 2])))
        return e, np.sin(2.0 * x[:, 0]) + x[:, 1] ** 2 + 0.5 * x[:, 0] * x[:, 2], 1.0 + 0.5 * x[:, 1]

    def event(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        e = 1.0 / (1.0 + np.exp(-0.8 * (x[:, 0] + x[:, 3])))
        return e, 0.03 + 0.02 * np.maximum(x[:, 0], x[:, 3]), 0.01 + 0.01 * x[:, 1]

    def bounds(outcome: tuple[float, float]) -> dc.Bounds:
        return dc.Bounds(outcome=outcome, covariates=[(-1.0, 1.0)] * 4, propensity=(0.05, 0.95))

    return (
        Design(name="number", bounds=bounds((-8.0, 9.0)), covariates=covariates, surface=number, known_ate=1.0),
        Design(
            name="rare event",
            bounds=bounds((0.0, 1.0)),
            covariates=covariates,
            surface=event,
            noise=None,
            known_ate=0.01,
        ),
    )


@contextmanager
def without_sample() -> Iterator[None]:
    """All rows in every round, however many there are."""
    kept = _allocation.SAMPLE
    _allocation.SAMPLE = replace(kept, by_place=math.inf)
    try:
        yield
    finally:
        _allocation.SAMPLE = kept


def studies(rows: int, runs: int, whole: int, first: int = SEED) -> Iterator[Run]:
    """Every study with models from a sample, and some with models from all records too."""
    for place, design in enumerate(designs()):
        for run in range(runs):
            seed = first + 10_000 * place + run
            study = design.draw(n=rows, seed=seed)
            yield _fitted(design, study, seed, "a sample")
            if run < whole:
                with without_sample():
                    yield _fitted(design, study, seed, "all records")


def _fitted(design: Design, study: object, seed: int, models_from: str) -> Run:
    with dc.testing.seeded_noise(seed):
        ate = dc.ATE(epsilon=EPSILON, delta=DELTA, bounds=design.bounds).fit(study.Y, study.T, X=study.X)  # type: ignore[attr-defined]
    sampled = any("sample" in note for note in ate.release_.notes)
    if sampled != (models_from == "a sample"):
        raise SystemExit(f"{design.name}: models were {'' if sampled else 'not '}fitted to a sample.")
    truth = design.known_ate
    assert truth is not None
    return Run(design.name, seed, models_from, ate.ate_, *ate.ate_interval(ALPHA), truth)


def page(found: Sequence[Run], rows: int) -> str:
    """Coverage and widths in Markdown."""
    lines = []
    for name in dict.fromkeys(run.design for run in found):
        own = [run for run in found if run.design == name and run.models_from == "a sample"]
        covered, chance = float(np.mean([run.covers for run in own])), 2.0 * math.sqrt(ALPHA * (1.0 - ALPHA) / len(own))
        wanted = 1.0 - ALPHA - chance
        lines.append([name, "coverage", str(len(own)), f"≥ {wanted:.3f}", f"{covered:.3f}", _word(covered >= wanted)])
        errors = np.array([run.estimate - run.truth for run in own])
        lines.append(
            [
                name,
                "root mean square error over mean half width / 1.96",
                str(len(own)),
                "≤ 1",
                *_ratio(
                    float(np.sqrt(np.mean(errors**2)))
                    / float(np.mean([run.high - run.low for run in own]))
                    * 2.0
                    * 1.96,
                    1.0,
                ),
            ]
        )
        both = {run.seed: run for run in found if run.design == name and run.models_from == "all records"}
        pairs = [(run, both[run.seed]) for run in own if run.seed in both]
        if pairs:
            wider = float(np.mean([(one.high - one.low) / (all_.high - all_.low) for one, all_ in pairs]))
            lines.append(
                [
                    name,
                    "width over that of models from all records",
                    str(len(pairs)),
                    f"≤ {WIDER:g}",
                    *_ratio(wider, WIDER),
                ]
            )
    return "\n\n".join(
        [
            "# Models from a sample",
            f"Written by `python -m evidence.samples` on {date.today().isoformat()} (`--runs` says how many studies); do not edit. Every study: [samples.csv](samples.csv).",
            f"Two confounded designs with four covariates and effects that differ between people; {rows:,} records, ε = {EPSILON:g}, δ = {DELTA:g}, nothing known of treatment, "
            f"`ATE` with all defaults, so that models are fitted to a sample by place (docs/proofs/gate.md, lemma 15) and the effect is estimated from all records. Seeds from {SEED:,} "
            "on: no study of these designs had them before. The coverage that is wanted is that of the level less two standard errors of so many studies.",
            grid(["design", "what", "studies", "wanted", "figure", ""], lines),
        ]
    ) + "\n"  # fmt: skip


def _ratio(value: float, most: float) -> tuple[str, str]:
    return f"{value:.2f}", _word(value <= most)


def _word(reached: bool) -> str:
    return "reached" if reached else "**not reached**"


def write(found: Sequence[Run], rows: int, folder: Path) -> None:
    """The page and its table."""
    with (folder / "samples.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Run._fields)
        table.writerows(
            [run.design, run.seed, run.models_from, *(f"{value:.6g}" for value in run[3:])] for run in found
        )
    (folder / "samples.md").write_text(page(found, rows), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(
        prog="python -m evidence.samples", description="Coverage with models from a sample."
    )
    parser.add_argument("--quick", action="store_true", help="two studies of each design, printed and not written")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"studies of each design; {RUNS} by default")
    options = parser.parse_args(arguments)
    runs, whole, first = (2, 1, QUICK_SEED) if options.quick else (options.runs, min(WHOLE, options.runs), SEED)
    found = list(studies(ROWS, runs, whole, first))
    if not options.quick:
        write(found, ROWS, _HOME)
    print(page(found, ROWS))


if __name__ == "__main__":
    main()
