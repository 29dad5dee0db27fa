"""Numbers behind `Uplift`: ``python -m evidence.uplift`` writes docs/evidence/uplift.md and uplift.csv.

How often intervals of segments hold the truth, with rare events and over random trials; errors on the epsilon-ADUM
paper's generator beside ADUM with the number of cells that turns out best; coverage on effects of
other shapes; and ranking of Hillstrom's customers and of voters beside learners without privacy.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path

from discreet.exceptions import InvalidInput
from evidence.uplift.coverage import Coverage, Trial
from evidence.uplift.designs import DESIGNS, drawn
from evidence.uplift.page import Found, page
from evidence.uplift.population import REPORTING, fitted, measured, random_trial
from evidence.uplift.runs import TRIALS, Line, generator, loaded, ranking, shapes


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--designs", type=int, default=400, help="replications of each design of rare events")
    parser.add_argument("--trials", type=int, default=1_000, help="random trials")
    parser.add_argument("--seconds", type=float, default=2_400.0, help="start nothing new after this long")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    try:
        for name in TRIALS:
            loaded(name)
    except InvalidInput as missing:
        print(f"No ranking: {missing}")
        wanted.splits = 0
    start = time.monotonic()
    coverage = Coverage({name: [] for name in DESIGNS}, [])
    lines: list[Line] = []
    # Each with how often it runs at most, and until which part of the time new ones start.
    steps: dict[str, tuple[Callable[[int], None], int, float]] = {
        "designs": (lambda k: _draw(coverage, k), wanted.designs, 0.2),
        "random trials": (lambda k: coverage.trials.append(_trial(k)), wanted.trials, 0.5),
        "generator": (lambda k: lines.extend(generator(k)), wanted.replications, 0.7),
        "ranking": (lambda k: lines.extend(ranking(k)), wanted.splits, 0.9),
        "shapes": (lambda k: lines.extend(shapes(k)), wanted.replications, 1.0),
    }
    runs = dict.fromkeys(steps, 0)
    for name, (one, most, until) in steps.items():
        while runs[name] < most and (runs[name] < 2 or time.monotonic() - start < until * wanted.seconds):
            one(runs[name])
            runs[name] += 1
            if runs[name] % 20 == 0:
                print(f"{name}: {runs[name]} of {most}, {time.monotonic() - start:.0f} s", flush=True)
    (wanted.out / "uplift.md").write_text(page(Found(lines), coverage, runs, time.monotonic() - start))
    coverage.write(wanted.out / "uplift-population.csv")
    with (wanted.out / "uplift.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Line._fields)
        out.writerows([*line[:-1], f"{line.value:.6g}"] for line in lines)


def _draw(coverage: Coverage, replication: int) -> None:
    for name, found in coverage.designs.items():
        found.append(drawn(name, replication))


def _trial(number: int) -> Trial:
    trial = random_trial(REPORTING + number)
    return Trial(trial.facts, measured(fitted(trial), trial.truth, trial.open_sd))


if __name__ == "__main__":
    main()
