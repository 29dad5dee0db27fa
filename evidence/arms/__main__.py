"""Numbers behind several arms: ``python -m evidence.arms`` writes docs/evidence/arms.md and arms.csv.

How often intervals of contrasts hold the truth in made-up studies of three to five arms, and how wide they are on two
real trials.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import csv
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from datetime import date
from pathlib import Path

import numpy as np

import discreet
from evidence.arms.studies import DESIGNS, KINDS, REPORTING, Line, measure
from evidence.arms.trials import AIMED, TRIALS, TrialLine
from evidence.arms.trials import measure as measure_trial

# Least share of contrasts that hold the truth, and largest width on a real trial, in widths without privacy.
COVERED, WIDTH, OF_MEANS = 0.94, 1.2, 1.1


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=600, help="made-up studies")
    parser.add_argument("--draws", type=int, default=20, help="draws of noise for each real trial")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    start = time.monotonic()
    lines = [measure(REPORTING + number) for number in range(wanted.studies)]
    trials = [line for name in TRIALS for line in measure_trial(name, wanted.draws)]
    command = f"python -m evidence.arms --studies {wanted.studies} --draws {wanted.draws}"
    (wanted.out / "arms.md").write_text(_page(lines, trials, command, time.monotonic() - start))
    with (wanted.out / "arms.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)


def _page(lines: Sequence[Line], trials: Sequence[TrialLine], command: str, seconds: float) -> str:
    covered = float(np.mean([line.covered for line in lines]))
    aimed = [line for line in trials if line.trial in AIMED]
    widest = max(line.most for line in aimed)
    by = {(line.trial, line.estimator): line for line in trials}
    beside = max(by[name, "ATE"].mean / by[name, "DifferenceInMeans"].mean for name in TRIALS)
    aims = [
        ("95 % intervals of contrasts, all studies", f"≥ {COVERED}", f"{covered:.3f}", covered >= COVERED),
        ("largest width on the two trials, of that without privacy", f"≤ {WIDTH}", f"{widest:.3f}", widest <= WIDTH),
        ("`ATE` of a known design, of `DifferenceInMeans`", f"≤ {OF_MEANS}", f"{beside:.3f}", beside <= OF_MEANS),
    ]
    text = ["# Several arms", ""]
    text += [
        f"Written by `{command}` on {date.today()} in {seconds:.0f} seconds; do not edit. Seeds from {REPORTING:,} on. "
        f"discreet {discreet.__version__}, Python {platform.python_version()}. Every study is in `arms.csv`.",
        "",
        *_table(
            ("aim", "wanted", "figure", ""), [(*aim[:3], "reached" if aim[3] else "**not reached**") for aim in aims]
        ),
        "",
        "## Made-up studies",
        "",
        "Three to five arms, one to six covariates, 2,000 to 40,000 records, effects that differ between people, ε of .5, 1 or 2. "
        "*Means* are `DifferenceInMeans` and *trial* is `ATE`, both with known probabilities; *observational* is `ATE` without. "
        "*Contrasts* is the share of differences whose 95 % interval holds the truth, *all at once* that of studies all of whose simultaneous "
        "intervals do, *means* that of the arms' means; *width* is the median over studies, in widths of intervals of the arms' plain means without privacy.",
        "",
        *_table(("design", "outcome", "studies", "contrasts", "all at once", "means", "width"), _groups(lines)),
        "",
        "## Real trials",
        "",
        "At ε = 1, δ = 1e-6, over draws of noise: the mean width over contrasts, and that of the widest one, in widths of the arms' plain means without "
        "privacy; and how often an interval holds the plain difference. Conversions are rare (.9 %), and what is spent has a long tail: without a cap, noise is made for all of it.",
        "",
        *_table(
            ("trial", "estimator", "width", "widest", "holds the plain difference"),
            [
                (line.trial, line.estimator, f"{line.mean:.3f}", f"{line.most:.3f}", f"{line.held:.3f}")
                for line in trials
            ],
        ),
    ]
    return "\n".join(text) + "\n"


def _groups(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    found = []
    for design in DESIGNS:
        for kind in (*KINDS, "all"):
            own = [line for line in lines if line.design == design and kind in ("all", line.kind)]
            if own:
                shares = [np.mean([getattr(line, name) for line in own]) for name in ("covered", "at_once", "means")]
                width = np.median([line.width for line in own])
                found.append((design, kind, str(len(own)), *(f"{share:.3f}" for share in shares), f"{width:.2f}"))
    return found


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    main()
