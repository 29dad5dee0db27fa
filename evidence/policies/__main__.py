"""Numbers behind policies: ``python -m evidence.policies`` writes docs/evidence/policies.md and policies.csv.

What policies gain that were chosen at an epsilon of 1, beside the same without privacy and learners that see every
record; and how often lower bounds of gains hold.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from discreet.exceptions import InvalidInput
from evidence.policies.page import Found, page
from evidence.policies.runs import TRIALS, Bound, Line, bounded, loaded, split


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--functions", type=int, default=5, help="splits on which effect functions are fitted, too")
    parser.add_argument("--bounds", type=int, default=300, help="made-up trials whose bounds are checked")
    parser.add_argument("--seconds", type=float, default=900.0, help="start nothing new after this long")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    for name in list(TRIALS):
        try:
            loaded(name)
        except InvalidInput as missing:
            print(f"Without {name}: {missing}")
            del TRIALS[name]
    start, lines, bounds = time.monotonic(), list[Line](), list[Bound]()
    runs = {"splits": 0, "functions": 0, "bounds": 0}
    while runs["splits"] < wanted.splits and time.monotonic() - start < 0.7 * wanted.seconds:
        functions = runs["splits"] < wanted.functions
        lines += split(runs["splits"], functions)
        runs["splits"] += 1
        runs["functions"] += functions
        print(f"splits: {runs['splits']} of {wanted.splits}, {time.monotonic() - start:.0f} s", flush=True)
    while runs["bounds"] < wanted.bounds and time.monotonic() - start < wanted.seconds:
        bounds += bounded(runs["bounds"])
        runs["bounds"] += 1
    (wanted.out / "policies.md").write_text(page(Found(lines), bounds, runs, time.monotonic() - start))
    with (wanted.out / "policies.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Line._fields)
        out.writerows([*line[:-1], f"{line.value:.6g}"] for line in lines)


if __name__ == "__main__":
    main()
