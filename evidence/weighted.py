"""Averages over some of the records, and ratios: ``python -m evidence.weighted`` writes docs/evidence/weighted.md.

Three parts: random studies of at most 20,000 records, no boosted rivals; studies whose overlap goes down to .005; and
the risk ratio of death within 30 days after a right heart catheter, beside an interval without privacy. An interrupted
run of the first part continues.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import time
from dataclasses import replace
from datetime import date
from itertools import product
from math import exp, log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from threadpoolctl import threadpool_limits

import discreet as dc
from discreet.datasets import Study, rhc
from discreet.testing import seeded_noise
from evidence.average.limits import rhc_path
from evidence.average.nonprivate import design_matrix, linear_nuisances
from evidence.average.report import grid
from evidence.average.targets import Verdict
from evidence.cache import ROOT
from evidence.population import REPORTING, available
from evidence.trust.averages import AVERAGES
from evidence.trust.estimands import section
from evidence.trust.figures import EFFICIENT, intervals
from evidence.trust.sections import Found
from evidence.trust.store import Job, Store, fill
from evidence.trust.targets import at_least, at_most

FIRST = REPORTING + 800_000
OVERLAP_SEED, NOISE_SEED = 8_100_000, 8_200_000
# Public: how unlikely either arm may be, and how many records.
LEAST, SIZES, EPSILON, DELTA = 0.005, (20_000, 200_000), 1.0, 1e-6
WIDTH, LARGE_WIDTH, LARGE, OVERLAP_WIDTH, POOR, RATIO_WIDTH = 1.6, 1.25, 5_000.0, 1.3, 3.0, 1.4
_HOME = ROOT / "docs" / "evidence"
_WEIGHTED = [name for name in AVERAGES if name != "ATE"]


def widths(found: Found) -> list[Verdict]:
    """Width over the efficiency bound of the same average: over all studies, and where n mu is large."""
    verdicts = []
    for name in AVERAGES:
        frame = intervals((row for _, row in found), name)
        large = frame[frame["n mu"] >= LARGE] if len(frame) else frame
        for some, limit, words in ((frame, WIDTH, "all"), (large, LARGE_WIDTH, f"n μ ≥ {LARGE:,.0f}")):
            median = float(some["ratio"].median()) if len(some) else None
            verdicts.append(
                at_most(f"{name}: median width over its bound's, {words}", median, limit, f"{len(some)} studies")
            )
    return verdicts


def poor_overlap(seed: int, n: int) -> tuple[Study, dict[str, tuple[float, float]]]:
    """A study whose probabilities of treatment go down to .005 and up to .995; effects, and smallest standard errors."""
    rng = np.random.default_rng([OVERLAP_SEED, seed, n])
    x = rng.uniform(-1.0, 1.0, (n, 3))
    e = np.clip(expit(6.0 * x[:, 0]), LEAST, 1.0 - LEAST)
    t = (rng.random(n) < e).astype(float)
    effect = 1.0 + 0.5 * x[:, 1]
    y = np.clip(x[:, 0] + x[:, 1] + effect * t + rng.normal(0.0, 1.0, n), -6.0, 6.0)
    bounds = dc.Bounds(outcome=(-6, 6), covariates=[(-1, 1)] * 3, propensity=(LEAST, 1.0 - LEAST))
    study = Study(name="poor overlap", X=x, T=t, Y=y, bounds=bounds, ate=1.0, propensity=e, effects=effect)
    h = e * (1.0 - e)
    variance = 1.0 / e + 1.0 / (1.0 - e)
    everyone = float(np.mean(variance + (effect - 1.0) ** 2))
    # Effects do not depend on what moves treatment, so that both averages are the same in the population.
    some = float(np.mean(h**2 * variance + h * ((1.0 - e) ** 3 + e**3) * (effect - 1.0) ** 2) / np.mean(h) ** 2)
    return study, {"ATE": (1.0, sqrt(everyone / n)), "ATO": (1.0, sqrt(some / n))}


def overlap(seeds: int, until: float) -> pd.DataFrame:
    """Intervals of both averages on studies of poor overlap."""
    lines: list[dict[str, Any]] = []
    for seed, n in product(range(seeds), SIZES):
        if time.monotonic() > until:
            break
        study, facts = poor_overlap(seed, n)
        for name in ("ATE", "ATO"):
            with threadpool_limits(1), seeded_noise(NOISE_SEED + seed):
                made = AVERAGES[name](epsilon=EPSILON, delta=DELTA, bounds=study.bounds)
                low, high = made.fit(study.Y, study.T, X=study.X).release_.interval()
            truth, se = facts[name]
            covered = low <= truth <= high
            lines.append({"average": name, "n": n, "covered": covered, "ratio": (high - low) / (EFFICIENT * se)})
    return pd.DataFrame(lines)


def plain_ratio(study: Study) -> tuple[float, float, float]:
    """The ratio of both arms' risks without privacy, doubly robust, and its 95 % interval by the delta method."""
    nuisances, z = linear_nuisances(study), design_matrix(study)
    pi = np.clip(expit(z @ nuisances.propensity), *study.bounds.propensity)
    mu0, mu1, y, t = z @ nuisances.control, z @ nuisances.treated, study.Y, study.T
    of_control, of_treated = mu0 + (1 - t) * (y - mu0) / (1 - pi), mu1 + t * (y - mu1) / pi
    control, treated = float(of_control.mean()), float(of_treated.mean())
    se = float(np.std(of_treated / treated - of_control / control, ddof=1)) / sqrt(len(y))
    middle, half = log(treated / control), 0.5 * EFFICIENT * se
    return exp(middle), exp(middle - half), exp(middle + half)


def catheter(seeds: int, until: float) -> tuple[pd.DataFrame, tuple[float, float, float]] | str:
    """The risk ratio of death within 30 days under many draws of noise, and without; or why it was not estimated."""
    path = rhc_path()
    if not path.exists():
        return "Not estimated: the file of the study is not in the folder that $DISCREET_DATA names."
    study = rhc(path, outcome="dth30")
    labels: Any = [0, 1]
    bounds = replace(study.bounds, outcome=labels)
    lines = []
    for seed in range(seeds):
        if time.monotonic() > until:
            break
        with threadpool_limits(1), seeded_noise(NOISE_SEED + seed):
            release = dc.ATE(epsilon=EPSILON, delta=DELTA, bounds=bounds).fit(study.Y, study.T, X=study.X).release_
        value, low, high = release.risk_ratio()
        lines.append({"seed": seed, "ratio": value, "low": low, "high": high})
    return pd.DataFrame(lines), plain_ratio(study)


def main() -> None:
    """Run, judge and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=240, help="random studies")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first")
    parser.add_argument("--largest", type=int, default=20_000, help="most records of a random study")
    parser.add_argument("--seeds", type=int, default=20, help="studies of poor overlap, and draws of noise")
    parser.add_argument("--minutes", type=float, default=600.0, help="begin nothing new after this")
    parser.add_argument("--processes", type=int, default=1, help="for random studies, one thread each")
    parser.add_argument("--out", type=Path, default=_HOME)
    asked = parser.parse_args()
    if asked.first < REPORTING and asked.out == _HOME:
        parser.error(f"studies below {REPORTING:,} are for choosing and are never reported: name another folder")
    until = time.monotonic() + 60.0 * asked.minutes
    poor, catheters = overlap(asked.seeds, until), catheter(asked.seeds, until)
    store = Store()
    numbers = available(range(asked.first, asked.first + asked.studies))
    jobs = [Job("estimands", (asked.largest,), number) for number in numbers]
    fill(store, jobs, seconds=until - time.monotonic(), processes=asked.processes)
    found = list(store.rows(jobs))
    words = f"python -m evidence.weighted --studies {asked.studies} --first {asked.first} --largest {asked.largest} --seeds {asked.seeds}"
    asked.out.mkdir(parents=True, exist_ok=True)
    text = page(words, found, len(jobs), poor, catheters)
    (asked.out / "weighted.md").write_text(text)
    section(found).table.to_csv(asked.out / "weighted.csv", index=False, float_format="%.6g")
    print(text)


def page(
    command: str,
    found: Found,
    wanted: int,
    poor: pd.DataFrame,
    catheters: tuple[pd.DataFrame, tuple[float, float, float]] | str,
) -> str:
    """The page."""
    verdicts, parts = list(section(found).verdicts), list(section(found).parts)
    verdicts += widths(found)
    lines = []
    for (n, name), some in poor.groupby(["n", "average"]) if len(poor) else ():
        lines.append([f"{n:,}", name, str(len(some)), f"{some['ratio'].median():.2f}", f"{some['covered'].mean():.2f}"])
    if len(poor):
        large = poor[poor["n"] == poor["n"].max()]
        ratios = {name: float(large[large["average"] == name]["ratio"].median()) for name in ("ATE", "ATO")}
        verdicts.append(
            at_most(
                f"ATO: median width over its bound's, overlap down to .005, n = {poor['n'].max():,}",
                ratios["ATO"],
                OVERLAP_WIDTH,
            )
        )
        verdicts.append(at_least("ATE's on the same studies, which says how poor overlap is", ratios["ATE"], POOR))
    if isinstance(catheters, str):
        shown = catheters
    else:
        frame, (value, low, high) = catheters
        private = float((frame["high"] - frame["low"]).mean())
        times = private / (high - low)
        held = float(((frame["low"] <= value) & (value <= frame["high"])).mean())
        verdicts.append(at_most("Risk ratio, catheter: width over that without privacy", times, RATIO_WIDTH))
        shown = (
            f"Death within 30 days in the right-heart-catheter study, ε = {EPSILON:g}, {len(frame)} draws of noise: `ATE(...).release_.risk_ratio()` has a mean width of {private:.3f}; without privacy, by least squares and a logistic propensity, the "
            f"ratio is {value:.3f} ({low:.3f} to {high:.3f}), a width of {high - low:.3f}. The private interval is {times:.2f} times as wide, and holds the other estimate in {held:.2f} of the draws."
        )
    text = [
        "# Averages over some of the records, and ratios",
        "",
        f"Written by `{command}` on {date.today():%d %B %Y}, with discreet {dc.__version__}; {len(found)} of {wanted} random studies were run. One line for each average and study is in weighted.csv.",
        "",
        grid(["target", "wanted", "figure", ""], [[v.target, v.limit, v.figure, v.word] for v in verdicts]),
        "",
        "## Random studies",
        "",
        *(f"{part}\n" for part in parts),
        "## Poor overlap",
        "",
        f"Generated studies with three covariates, one of which decides treatment: probabilities from {LEAST:g} to {1 - LEAST:g}; ε = {EPSILON:g}. Widths are over those of the efficiency bound of each average.",
        "",
        grid(
            ["records", "average", "studies", "median width over the bound's", "intervals that hold the truth"], lines
        ),
        "",
        "## A risk ratio",
        "",
        shown,
        "",
    ]
    return "\n".join(text)


if __name__ == "__main__":
    main()
