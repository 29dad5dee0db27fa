"""What ``_TOGETHER`` was chosen by: ``python -m evidence.tuning`` writes docs/evidence/tuning.md, in about ten minutes.

The number says by how much errors of both models may go together, and nothing released identifies it. It only widens
intervals: two fits of a study, with none of it and with one, give the interval of every other value.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import date
from functools import partial
from math import sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.progress import track

import discreet
from discreet.estimators.measurements import nuisances
from evidence.cache import ROOT
from evidence.population import REPORTING, available, random_study
from evidence.trust.fits import average, mu_of

CANDIDATES = (0.25, 0.35, 0.5, 0.7, 1.0)
COVER, COVER_IN_GROUPS, ENOUGH = 0.945, 0.92, 200
PAGE = ROOT / "docs" / "evidence" / "tuning.md"
_ALPHA = 0.05

Row = dict[str, Any]
GROUPS: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "observational": lambda row: row["design"] == "observational",
    "trials": lambda row: row["design"] != "observational",
    "n μ below 1,000": lambda row: row["information"] < 1_000,
    "n μ 1,000 to 5,000": lambda row: 1_000 <= row["information"] < 5_000,
    "n μ 5,000 and more": lambda row: row["information"] >= 5_000,
    "fewer than 13 covariates": lambda row: row["p"] < 13,
    "13 covariates and more": lambda row: row["p"] >= 13,
    "rare or spend": lambda row: row["outcome"] in ("rare", "spend"),
    "other outcomes": lambda row: row["outcome"] not in ("rare", "spend"),
}


def measured(largest: int, number: int) -> Row:
    """For every candidate, whether the interval holds the truth, and its width over the efficiency bound's."""
    made = random_study(number, largest=largest)
    facts, study = made.facts, made.study
    parts = []
    # A known design leaves nothing: one fit says all.
    for value in (0.0, 1.0) if made.known is None else (0.0,):
        with patch.object(nuisances, "_TOGETHER", value):
            fitted, row = average(study, number, epsilon=facts.epsilon, delta=facts.delta, propensity=made.known)
        if fitted is None:
            raise RuntimeError(f"study {number}: {row}")
        parts.append(fitted.release_.uncertainty)
    apart, together = parts[0].nuisance ** 2, parts[-1].nuisance ** 2 - parts[0].nuisance ** 2
    held, widths = [], []
    for value in CANDIDATES:
        uncertainty = replace(parts[0], nuisance=sqrt(apart + value**2 * max(together, 0.0)))
        low, high = uncertainty.interval(fitted.ate_, _ALPHA)
        held.append(low <= study.ate <= high)
        widths.append((high - low) / (2.0 * 1.96 * made.efficiency))
    facts_of = {"p": facts.p, "outcome": facts.outcome, "design": facts.design}
    information = facts.n * mu_of(facts.epsilon, facts.delta)
    return facts_of | {"information": information, "held": held, "widths": widths}


def chosen(rows: Sequence[Row]) -> float:
    """The least candidate that reaches what the page on trust asks for; the largest if none does."""
    for k, value in enumerate(CANDIDATES):
        groups = [[row["held"][k] for row in rows if inside(row)] for inside in GROUPS.values()]
        enough = all(np.mean(group) >= COVER_IN_GROUPS for group in groups if len(group) >= ENOUGH)
        if enough and np.mean(groups[0]) >= COVER:
            return value
    return CANDIDATES[-1]


def page(rows: Sequence[Row], command: str, first: int, studies: int) -> str:
    """The comparison in Markdown."""
    lines = [
        "# What both models may leave together",
        "",
        f"Written by `{command}` on {date.today().isoformat()}; do not edit. Studies {first:,} to {first + studies - 1:,} of `evidence/population/`, all of them for choosing: {len(rows)} can be drawn here. A study's number is its seed and that of its noise. discreet {discreet.__version__}, numpy {np.__version__}.",
        "",
        f"Coverage of `ATE`'s 95 % intervals, and their median width over the efficiency bound's, by the number `_TOGETHER` (docs/proofs/ate.md, remainder). The rule takes the least of these that reaches what the page on trust asks for, {COVER} of all studies and {COVER_IN_GROUPS} of every group of {ENOUGH} or more: **{chosen(rows):g}**. The code has {nuisances._TOGETHER:g}. Groups of fewer than {ENOUGH} are in italics.",
        "",
        "| group | studies | " + " | ".join(f"{value:g}" for value in CANDIDATES) + " |",
        "| --- | --- |" + " --- |" * len(CANDIDATES),
    ]
    for name, inside in GROUPS.items():
        group = [row for row in rows if inside(row)]
        if not group:
            continue
        held, width = (
            np.mean([row["held"] for row in group], axis=0),
            np.median([row["widths"] for row in group], axis=0),
        )
        cells = [name, str(len(group)), *(f"{share:.3f}; {wide:.3g}" for share, wide in zip(held, width, strict=True))]
        lines.append("| " + " | ".join(cells if len(group) >= ENOUGH else [f"*{cell}*" for cell in cells]) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=230_000)
    parser.add_argument("--studies", type=int, default=1_500)
    parser.add_argument("--largest", type=int, default=30_000)
    options = parser.parse_args()
    if options.first + options.studies > REPORTING:
        parser.error("studies from a million on are for reporting: choose by others.")
    numbers = available(range(options.first, options.first + options.studies))
    with ProcessPoolExecutor(2) as pool:
        found = pool.map(partial(measured, options.largest), numbers, chunksize=4)
        rows = list(track(found, "Studies", len(numbers)))
    command = (
        f"python -m evidence.tuning --first {options.first} --studies {options.studies} --largest {options.largest}"
    )
    PAGE.write_text(page(rows, command, options.first, options.studies), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(rows)} studies, {chosen(rows):g}.")


if __name__ == "__main__":
    main()
