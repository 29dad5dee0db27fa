"""Numbers behind `Uplift`: ``python -m evidence.uplift`` writes docs/evidence/uplift.md and uplift.csv.

On the epsilon-ADUM paper's generator beside ADUM with the number of cells that turns out best; coverage on effects of
other shapes; and ranking of Hillstrom's customers and of voters beside learners without privacy.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from discreet.exceptions import InvalidInput
from evidence.uplift.page import Found, page
from evidence.uplift.runs import TRIALS, Line, generator, loaded, ranking, shapes


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=40)
    parser.add_argument("--splits", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=1_800.0, help="start nothing new after this long")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    try:
        for name in TRIALS:
            loaded(name)
    except InvalidInput as missing:
        print(f"No ranking: {missing}")
        wanted.splits = 0
    lines: list[Line] = []
    start = time.monotonic()
    runs = {"generator": wanted.replications, "ranking": wanted.splits, "shapes": wanted.replications}
    for (name, one), until in zip(
        {"generator": generator, "ranking": ranking, "shapes": shapes}.items(), (0.45, 0.8, 1.0), strict=True
    ):
        for replication in range(runs[name]):
            lines += one(replication)
            print(f"{name}: {replication + 1} of {runs[name]}, {time.monotonic() - start:.0f} s", flush=True)
            if time.monotonic() - start > until * wanted.seconds:
                runs[name] = replication + 1
                break
    (wanted.out / "uplift.md").write_text(page(Found(lines), runs, time.monotonic() - start))
    with (wanted.out / "uplift.csv").open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Line._fields)
        out.writerows([*line[:-1], f"{line.value:.6g}"] for line in lines)


if __name__ == "__main__":
    main()
