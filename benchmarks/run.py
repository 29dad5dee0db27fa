"""Time and memory of ATE and CATE, beside a non-private peer in the same run: ``python -m benchmarks.run``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

import discreet
from benchmarks import effects
from benchmarks.data import BOUNDS, COVARIATES, NAMES, arrays, write_parquet
from benchmarks.effects import in_turns
from benchmarks.memory import of_arrays, of_command

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence" / "bench.md"
SPEED_ROWS, MEMORY_ROWS, MANY_ROWS, REPEATS = 100_000, 10_000_000, 30_000, 5
_GB = 2**30


def speed(rows: int, repeats: int) -> dict[str, float]:
    """Best time of each method."""
    Y, T, X = arrays(rows)
    bounds = discreet.Bounds(outcome=BOUNDS.outcome, covariates=list(BOUNDS.columns), propensity=BOUNDS.propensity)

    def ours() -> None:
        discreet.ATE(epsilon=1, delta=1e-6, bounds=bounds).fit(Y, T, X=X)

    def econml() -> None:
        from econml.dr import LinearDRLearner
        from sklearn.linear_model import LinearRegression, LogisticRegression

        learner = LinearDRLearner(
            model_regression=LinearRegression(), model_propensity=LogisticRegression(), random_state=0
        )
        # One average effect, as ATE estimates: every covariate is a control and none a modifier.
        learner.fit(Y, T.astype(int), X=None, W=X)
        learner.ate_interval()

    return in_turns({"discreet": ours, "EconML": econml}, repeats)


def file_memory(rows: int) -> tuple[int, int, float]:
    """Size of a Parquet file, and peak memory and seconds of the command line on it."""
    with tempfile.TemporaryDirectory() as folder:
        table, bounds, release = (Path(folder) / name for name in ("study.parquet", "bounds.toml", "release.json"))
        write_parquet(table, rows)
        BOUNDS.save(bounds)
        options = ["--outcome", "y", "--treatment", "t", "--covariates", ",".join(NAMES), "--bounds", str(bounds)]
        options += ["--epsilon", "1", "--delta", "1e-6", "--out", str(release)]
        peak, seconds = of_command([sys.executable, "-m", "discreet", "ate", str(table), *options])
        return table.stat().st_size, peak, seconds


def page(rows: tuple[int, int, int, int], repeats: int, command: str, console: Console) -> str:
    """Run everything and describe it in Markdown."""
    speed_rows, memory_rows, query_rows, many_rows = rows
    with console.status(f"Speed, {speed_rows:,} records"):
        best = speed(speed_rows, repeats)
    with console.status(f"Effect functions, {speed_rows:,} records"):
        functions = effects.section(speed_rows, query_rows, many_rows, repeats)
    with console.status(f"Memory of arrays, {memory_rows:,} records"):
        held = of_arrays(memory_rows)
    with console.status(f"Memory of a file, {memory_rows:,} records"):
        size, peak, seconds = file_memory(memory_rows)
    python = platform.python_version()
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp", "duckdb", "econml"))
    lines = [
        "# Time and memory",
        "",
        f"Written by `{command}` on {date.today().isoformat()}; do not edit. Seconds depend on the machine: trust the",
        f"ratio. discreet {discreet.__version__}, Python {python}, {packages}; one of {os.cpu_count()} cores.",
        "",
        f"## ATE: time, n = {speed_rows:,}, p = {COVARIATES}",
        "",
        f"Best of {repeats}, in turns, after one that is not counted. The peer is EconML's LinearDRLearner with linear",
        "and logistic nuisances and its default cross-fitting, for one average effect with an interval; not private.",
        "",
        "| method | seconds |",
        "| --- | --- |",
        *(f"| {name} | {value:.2f} |" for name, value in best.items()),
        f"| **ratio** | **{best['discreet'] / best['EconML']:.2f}** |",
        "",
        *functions,
        "",
        f"## ATE: memory, n = {memory_rows:,}, p = {COVARIATES}",
        "",
        "Peak resident memory of a process of its own.",
        "",
        "| input | size of input | peak | seconds |",
        "| --- | --- | --- | --- |",
        f"| arrays, `ATE.fit` | {held['input'] / _GB:.2f} GiB | {held['beyond'] / _GB:.2f} GiB beyond the input, "
        f"libraries included | {held['seconds']:.0f} |",
        f"| Parquet, `discreet ate` | {size / _GB:.2f} GiB | {peak / _GB:.2f} GiB in all | {seconds:.0f} |",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description="Time and memory of ATE and CATE.")
    parser.add_argument("--quick", action="store_true", help="few records, printed and not written")
    options = parser.parse_args(arguments)
    console = Console()
    if options.quick:
        few = (5_000, 200_000, 10_000, 3_000)
        console.print(page(few, 1, "python -m benchmarks.run --quick", console), markup=False, soft_wrap=True)
        return
    rows = (SPEED_ROWS, MEMORY_ROWS, effects.QUERIES, MANY_ROWS)
    text = page(rows, REPEATS, "python -m benchmarks.run", console)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    console.print(text, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
