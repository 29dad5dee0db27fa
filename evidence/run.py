"""Run the simulations and write their page: ``python -m evidence.run``.

An interrupted run continues where it stopped; code that has changed since is run again.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table as Printed

from evidence.average import limits, report
from evidence.average.coverage import DESIGNS, SIZES, STRESS, Cell, fill, run
from evidence.average.targets import Table, Verdict, judge
from evidence.cache import CACHE, ROOT

REPLICATIONS = 500
QUICK_REPLICATIONS = 4
QUICK_DESIGNS = ("private-ci-1", "clinic", "binary-outcome")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    options = _parser().parse_args(arguments)
    chosen = options.designs or (QUICK_DESIGNS if options.quick else (*DESIGNS, *STRESS))
    replications = options.replications or (QUICK_REPLICATIONS if options.quick else REPLICATIONS)
    sizes = SIZES[:1] if options.quick else SIZES
    whole = not options.quick and not options.designs
    folder = options.out or (ROOT / "docs" / "evidence" if whole else CACHE / "partial")

    cells = [Cell(design, n) for n in sizes for design in chosen]
    by_size = {n: replications if n == SIZES[0] else options.large or replications for n in sizes}
    if options.comparators:
        fill(cells, replications=by_size, processes=options.processes, kinds=("others",))
        return
    table = Table(lines=run(cells, replications=by_size, processes=options.processes))
    verdicts = [*judge(table), *limits.without_noise()]
    catheter = limits.catheter(seeds=5 if options.quick else limits.RHC_SEEDS)
    verdicts.append(limits.catheter_verdict(catheter))

    folder.mkdir(parents=True, exist_ok=True)
    head = report.provenance(_command(options, replications), by_size)
    designs, stress = ([d for d in chosen if d in group] for group in (DESIGNS, STRESS))
    (folder / "ate.md").write_text(report.page(table, designs, stress, verdicts, catheter, head))
    report.write_csv(folder / "ate.csv", (line for lines in table.lines.values() for line in lines))
    _print(verdicts, folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m evidence.run", description="Coverage, widths and limits of ATE.")
    parser.add_argument("--replications", type=int, help=f"studies per design and size (default {REPLICATIONS})")
    parser.add_argument("--large", type=int, help="studies per design of the larger size, if fewer are wanted there")
    parser.add_argument("--designs", nargs="+", choices=(*DESIGNS, *STRESS), help="only these (default: all)")
    parser.add_argument("--quick", action="store_true", help="a minute's check that everything runs; proves nothing")
    parser.add_argument("--comparators", action="store_true", help="only prepare the other methods; write no page")
    parser.add_argument("--processes", type=int, default=2, help="processes, one thread each (default 2)")
    parser.add_argument("--out", type=Path, help="folder of the page (default docs/evidence for a whole run)")
    return parser


def _command(options: argparse.Namespace, replications: int) -> str:
    words = ["python -m evidence.run"]
    if options.quick:
        words.append("--quick")
    if options.designs:
        words.append("--designs " + " ".join(options.designs))
    words.append(f"--replications {replications}")
    if options.large:
        words.append(f"--large {options.large}")
    return " ".join(words)


def _print(verdicts: list[Verdict], folder: Path) -> None:
    console = Console()
    printed = Printed("target", "wanted", "figure", "", title="Targets")
    for verdict in (verdict for verdict in verdicts if verdict.reached is not None):
        printed.add_row(verdict.target, verdict.limit, verdict.figure, verdict.word.strip("*"))
    console.print(printed)
    console.print(
        f"Written: ate.md and ate.csv in {folder.relative_to(ROOT) if folder.is_relative_to(ROOT) else folder}"
    )


if __name__ == "__main__":
    main()
