"""Missing outcomes: ``python -m evidence.missing`` writes docs/evidence/missing.md, in a few minutes.

How often intervals hold the truth where outcomes of random studies are missing at random, how wide they are beside those
of the same records with all outcomes, and what leaving out records without an outcome does.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import csv
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

import discreet as dc
from discreet.testing import seeded_noise
from evidence.cache import ROOT
from evidence.population import REPORTING, RandomStudy, available, random_study

# Public: how many outcomes are missing, in turn.
SHARES = (0.0, 0.05, 0.15, 0.3)
ALPHA, COVER = 0.05, 0.94
_HOME = ROOT / "docs" / "evidence"
Float = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was found in one study."""

    study: int
    n: int
    p: int
    epsilon: float
    design: str
    share: float
    """of outcomes that are missing"""
    covered: bool
    width: float
    """of the interval, where missing outcomes are adjusted for"""
    whole: float
    """the same, without the option, of the records before any outcome was lost"""
    dropped: bool
    """whether the interval of those records holds the truth that have an outcome, without adjustment for the others"""


def observed(rng: np.random.Generator, made: RandomStudy, share: float) -> NDArray[np.bool_]:
    """Which outcomes are there: by covariates that move treatment and effect, and by the arm."""
    study = made.study
    assert study.effects is not None
    assert study.propensity is not None
    assert study.T is not None
    parts = [logit(np.asarray(study.propensity)), np.asarray(study.effects)]
    moved = sum((rng.normal() * _standard(part) for part in parts), np.zeros(len(study.Y)))
    moved = _standard(moved) * rng.uniform(0.0, 1.0) + rng.normal() * 0.5 * np.asarray(study.T)
    if not share:
        return np.ones(len(moved), dtype=np.bool_)
    low, high = -20.0, 20.0
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if expit(middle + moved).mean() < 1.0 - share else (low, middle)
    there = rng.random(len(moved)) < expit(low + moved)
    # Both arms in every study.
    there[:2] = True
    return there


def _standard(values: Float) -> Float:
    sd = float(values.std())
    return (values - values.mean()) / sd if sd > 1e-9 else np.zeros(len(values))


def measured(number: int, largest: int) -> Line:
    """One study."""
    made = random_study(number, largest=largest)
    rng = np.random.default_rng([number, 19])
    share = SHARES[number % len(SHARES)]
    study, there = made.study, observed(rng, made, share)
    lost = np.where(there, study.Y, np.nan)
    given: dict[str, Any] = {"epsilon": made.facts.epsilon, "delta": made.facts.delta, "bounds": study.bounds}
    x, truth = study.X, study.ate
    assert truth is not None
    with threadpool_limits(1):
        with seeded_noise(number):
            adjusted = dc.ATE(**given, missing_outcome="adjust").fit(lost, study.T, X=x).release_
        with seeded_noise(number):
            whole = dc.ATE(**given).fit(study.Y, study.T, X=x).release_
        with seeded_noise(number):
            some = dc.ATE(**given).fit(study.Y[there], study.T[there], X=None if x is None else x[there]).release_
    (low, high), (first, last) = adjusted.interval(ALPHA), some.interval(ALPHA)
    of_whole = whole.interval(ALPHA)
    return Line(
        study=number,
        n=made.facts.n,
        p=made.facts.p,
        epsilon=made.facts.epsilon,
        design=made.facts.design,
        share=share,
        covered=bool(low <= truth <= high),
        width=high - low,
        whole=of_whole[1] - of_whole[0],
        dropped=bool(first <= truth <= last),
    )


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=400, help="random studies")
    parser.add_argument("--first", type=int, default=REPORTING + 700_000, help="number of the first")
    parser.add_argument("--largest", type=int, default=10_000, help="most records of a study")
    parser.add_argument("--out", type=Path, default=_HOME)
    asked = parser.parse_args()
    numbers = available(range(asked.first, asked.first + asked.studies))
    lines = [measured(number, asked.largest) for number in numbers]
    command = f"python -m evidence.missing --studies {asked.studies} --first {asked.first} --largest {asked.largest}"
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "missing.md").write_text(_page(lines, command))
    with (asked.out / "missing.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def _page(lines: list[Line], command: str) -> str:
    covered = float(np.mean([line.covered for line in lines]))
    text = [
        "# Missing outcomes",
        "",
        f"Written by `{command}` on {date.today():%d %B %Y}, with discreet {dc.__version__}; one line for each study is in missing.csv.",
        "",
        f"{len(lines)} studies of the [population](trust.md), none of which anything was chosen by, of at most {max(line.n for line in lines):,} records each; their outcomes are lost at random given treatment and covariates: by",
        'what moves treatment, by what moves the effect, and by the arm. `ATE(missing_outcome="adjust")` is told nothing of it. No study\'s known probabilities of treatment are used.',
        "",
        f"95 % intervals hold the truth in {covered:.3f} of the studies (aim: {COVER}: {'reached' if covered >= COVER else 'missed'}).",
        "",
        "| outcomes that are missing | studies | intervals that hold the truth | median width, over that with all outcomes and without the option | records without an outcome left out: intervals that hold the truth |",
        "|---|---|---|---|---|",
    ]
    for share in SHARES:
        some = [line for line in lines if line.share == share]
        if some:
            wider = float(np.median([line.width / line.whole for line in some]))
            held, dropped = (
                float(np.mean(each)) for each in zip(*((line.covered, line.dropped) for line in some), strict=True)
            )
            text.append(f"| {share:.0%} | {len(some)} | {held:.3f} | {wider:.3f} | {dropped:.3f} |")
    return "\n".join([*text, ""])


if __name__ == "__main__":
    main()
