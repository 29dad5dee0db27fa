"""Numbers behind the audit: ``python -m evidence.audit`` writes docs/evidence/audit.md, audit.csv and its figures.

Known failures of published mechanisms, at the settings of their papers; every proved estimator, replayed on adversarial
neighbours and run as a black box; and eight bugs planted in the library, which the audit must catch.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

from evidence.audit import runs
from evidence.audit.page import Found, page, table
from evidence.audit.quotes import stale


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few runs and configurations; proves nothing")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    parser.add_argument("--cache", type=Path, default=Path(".evidence-cache/audit"))
    parser.add_argument("--processes", type=int, default=2, help="processes, one thread each (default 2)")
    given = parser.parse_args()
    attacked, proved = runs.results(given.cache, quick=given.quick, processes=given.processes)
    start = time.monotonic()
    bugs = list(runs.planted())
    seconds = time.monotonic() - start + sum(kept.seconds for kept in attacked.values())
    seconds += sum(kept.seconds for _, kept in proved)
    results = {name: kept.result for name, kept in attacked.items()}
    configurations = [(configuration, kept.result) for configuration, kept in proved]
    stem = "audit-quick" if given.quick else "audit"
    given.out.mkdir(parents=True, exist_ok=True)
    text = page(Found(results, configurations), bugs, given.out / stem, seconds)
    (given.out / f"{stem}.md").write_bytes(text.replace("](audit/", f"]({stem}/").encode())
    with (given.out / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(table(results, configurations))
    print(f"Written: {given.out / stem}.md")
    if not given.quick:
        for phrase in stale(text):
            print(f"A warning quotes what the page no longer prints: {phrase}. Change it.")


if __name__ == "__main__":
    main()
