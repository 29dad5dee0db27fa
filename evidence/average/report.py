"""The run as a page of tables and as one long table for machines."""

from __future__ import annotations

import csv
import platform
from collections.abc import Iterable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path

import discreet
from discreet.datasets.observational import RHC_RANGES
from evidence.average.coverage import (
    ALPHAS,
    BASE_SEED,
    BOOSTED,
    COMPONENTS,
    DELTA,
    LINEAR,
    NOISE_SEED,
    OURS,
    PRIVATE_CI,
    PRIVATE_CI_OBSERVED,
    SIZES,
    UNADJUSTED,
    Cell,
    Summary,
    epsilons,
)
from evidence.average.limits import RHC_EPSILON, Catheter
from evidence.average.targets import Table, Verdict

_ALPHA = 0.05


def provenance(command: str, replications: dict[int, int]) -> str:
    """When, with what and how."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp", "lightgbm"))
    studies = ", ".join(f"{count} at n = {n:,}" for n, count in replications.items())
    return (
        f"Written by `{command}` on {date.today().isoformat()}; do not edit. Studies per cell: {studies}; drawn "
        f"with seeds from {BASE_SEED:,} on; noise with seeds from {NOISE_SEED:,} on. δ = {DELTA:g}, replace-one.\n"
        f"discreet {discreet.__version__}, Python {platform.python_version()}, {packages}."
    )


def page(
    table: Table,
    designs: Sequence[str],
    stress: Sequence[str],
    verdicts: Sequence[Verdict],
    catheter: Catheter | str,
    head: str,
) -> str:
    """The whole page, in Markdown."""
    reached = sum(verdict.reached is True for verdict in verdicts)
    run = sum(verdict.reached is not None for verdict in verdicts)
    parts = [
        "# ATE: coverage, widths and limits",
        head,
        "Every method saw the same studies. *Boosted* and *linear AIPW* and the *difference of means* are not private: "
        "they are what an analyst who need not protect anybody would report. *PrivATE* is the interval of Schröder, "
        "Hartenstein and Feuerriegel (2025), as published, with linear nuisances: once over the declared bounds, as "
        "`discreet` has them, and once over the ranges that the records happened to fill, which is kinder to it and is "
        "what it is judged by here. All numbers are also in `ate.csv`.",
        "## Targets",
        f"{reached} of {run} reached. *Non-private* is the narrower of linear and boosted AIPW among those whose 95 % "
        "intervals cover to within three standard errors, and boosted AIPW where neither does. An interval with exact "
        "coverage falls two standard errors short in about one cell of forty, by chance.",
        grid(["target", "wanted", "figure", ""], ([v.target, v.limit, v.figure, v.word] for v in verdicts)),
        "## Coverage",
        "Share of intervals that contain the true effect, at nominal 80 / 90 / 95 %. One standard error at 95 % is "
        f"{(0.95 * 0.05 / _replications(table)) ** 0.5:.3f} at the smaller size.",
        *_by_size(table, designs, _coverage_rows, _COVERAGE_HEAD),
        "## Widths of 95 % intervals",
        "Mean width, and in brackets the ratio to the non-private yardstick, which the third column names.",
        *_by_size(table, designs, _width_rows, _WIDTH_HEAD),
        "## Errors, and what the interval is made of",
        "Bias and standard deviation of the estimate over studies; the interval's own components, averaged. The last "
        "two columns are biases for comparison.",
        *_by_size(table, designs, _error_rows, _ERROR_HEAD),
        "## Stress",
        "Poor overlap, a binary outcome, few treated, heavy tails: coverage, then widths, then errors. They are judged "
        "by nominal coverage alone, so that boosted AIPW was not run.",
        *_by_size(table, stress, _coverage_rows, _COVERAGE_HEAD),
        *_by_size(table, stress, _width_rows, _WIDTH_HEAD),
        *_by_size(table, stress, _error_rows, _ERROR_HEAD),
        "## A real study",
        _catheter(catheter),
    ]
    return "\n\n".join(parts) + "\n"


def write_csv(path: Path, lines: Iterable[Summary]) -> None:
    """One row per cell, method and budget."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        levels = [f"{1 - alpha:.0%}".rstrip("%") for alpha in ALPHAS]
        head = ["design", "n", "epsilon", "method", "replications", "bias", "sd"]
        out.writerow([*head, *(f"coverage_{x}" for x in levels), *(f"width_{x}" for x in levels), *COMPONENTS])
        for s in lines:
            budget = "" if s.epsilon is None else f"{s.epsilon:g}"
            numbers = [s.bias, s.sd, *s.coverage.values(), *s.width.values()]
            parts = [f"{s.components[name]:.6g}" if s.components else "" for name in COMPONENTS]
            out.writerow([s.design, s.n, budget, s.method, s.replications, *(f"{v:.6g}" for v in numbers), *parts])


_COVERAGE_HEAD = ["design", "ε", "discreet", "boosted AIPW", "linear AIPW", "PrivATE (declared)", "PrivATE (observed)"]
_WIDTH_HEAD = ["design", "ε", "non-private", "discreet", "PrivATE (declared)", "PrivATE (observed)"]
_ERROR_HEAD = ["design", "ε", "bias", "sd", *COMPONENTS, "bias, boosted AIPW", "bias, difference of means"]


def _by_size(table: Table, designs: Sequence[str], rows, head: list[str]) -> Iterable[str]:
    for n in SIZES:
        cells = [Cell(design, n) for design in designs if table.find(design, n, UNADJUSTED)]
        if cells:
            yield f"**n = {n:,}**\n\n" + grid(
                head, (rows(table, cell, epsilon) for cell in cells for epsilon in epsilons(cell))
            )


def _coverage_rows(table: Table, cell: Cell, epsilon: float) -> list[str]:
    found = [
        table.find(*cell, OURS, epsilon),
        table.find(*cell, BOOSTED),
        table.find(*cell, LINEAR),
        table.find(*cell, PRIVATE_CI, epsilon),
        table.find(*cell, PRIVATE_CI_OBSERVED, epsilon),
    ]
    return [
        cell.design,
        f"{epsilon:g}",
        *(" / ".join(f"{s.coverage[alpha]:.2f}" for alpha in ALPHAS) if s else "not run" for s in found),
    ]


def _width_rows(table: Table, cell: Cell, epsilon: float) -> list[str]:
    yardstick = table.non_private(*cell)
    assert yardstick is not None
    unit = yardstick.width[_ALPHA]
    found = [table.find(*cell, method, epsilon) for method in (OURS, PRIVATE_CI, PRIVATE_CI_OBSERVED)]
    widths = [f"{s.width[_ALPHA]:.3g} ({s.width[_ALPHA] / unit:.3g})" for s in found if s]
    return [cell.design, f"{epsilon:g}", f"{unit:.3g}, {yardstick.method}", *widths]


def _error_rows(table: Table, cell: Cell, epsilon: float) -> list[str]:
    ours, boosted, unadjusted = (
        table.find(*cell, OURS, epsilon),
        table.find(*cell, BOOSTED),
        table.find(*cell, UNADJUSTED),
    )
    assert ours is not None
    assert unadjusted is not None
    own = [f"{ours.bias:+.3g}", f"{ours.sd:.3g}", *(f"{ours.components[name]:.3g}" for name in COMPONENTS)]
    beside = f"{boosted.bias:+.3g}" if boosted else "not run"
    return [cell.design, f"{epsilon:g}", *own, beside, f"{unadjusted.bias:+.3g}"]


def _catheter(result: Catheter | str) -> str:
    about = (
        "Right heart catheter and death within 180 days, 5,735 patients, with the confounders and the public ranges "
        + ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in RHC_RANGES.items())
        + f". ε = {RHC_EPSILON:g}, δ = {DELTA:g}."
    )
    if isinstance(result, str):
        return f"{about}\n\n{result}"
    rows = [
        ["linear AIPW, not private (s.e.)", f"{result.linear.estimate:.4f} ({result.linear.se:.4f})"],
        ["boosted AIPW, not private (s.e.)", f"{result.boosted.estimate:.4f} ({result.boosted.se:.4f})"],
        ["private intervals that contain linear AIPW's estimate", f"{result.contains_linear:.0%}"],
        ["private intervals that contain boosted AIPW's estimate", f"{result.contains_boosted:.0%}"],
        ["mean width of private 95 % intervals", f"{result.width:.3f}"],
        ["sd of private estimates over noise", f"{result.estimate_sd:.3f}"],
    ]
    return f"{about} {result.seeds} draws of noise.\n\n" + grid(["", ""], rows)


def _replications(table: Table) -> int:
    return next(summary.replications for lines in table.lines.values() for summary in lines)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [list(head), ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
