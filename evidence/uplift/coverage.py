"""How often intervals of `Uplift` hold the truth: on designs that are drawn often, and over random trials."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from evidence.average.report import grid
from evidence.uplift.designs import DESIGNS, Drawn
from evidence.uplift.population import REPORTING, Facts, Measured

Rows = list[list[str]]
# Wanted of 95 % intervals: of segments on average, and of all at once.
WANTED = 0.93
# Of the segment that is covered least often; the least of many shares is low by chance too.
WANTED_OF_WORST = 0.9


class Trial(NamedTuple):
    """One random trial: what kind it is, and what intervals did."""

    facts: Facts
    measured: Measured


class Coverage(NamedTuple):
    """Replications of designs, by name, and random trials."""

    designs: dict[str, list[Drawn]]
    trials: list[Trial]

    def aims(self) -> Rows:
        """What is wanted, and whether it is reached."""
        rows: Rows = []
        if self.designs:
            each = [np.mean([one.held for one in drawn], axis=0) for drawn in self.designs.values()]
            at_once = [float(np.mean([one.all_held for one in drawn])) for drawn in self.designs.values()]
            of = f"least of {len(each)} designs"
            rows.append(_aim(f"95 % intervals of segments, {of}", min(float(shares.mean()) for shares in each)))
            rows.append(_aim("the same, worst single segment of all designs", float(np.min(each)), WANTED_OF_WORST))
            rows.append(_aim(f"95 % intervals of all segments at once, {of}", min(at_once)))
        if self.trials:
            rows.append(_aim("95 % intervals of segments, random trials", _mean(self.trials, "held")))
            rows.append(_aim("95 % intervals of all segments at once, random trials", _mean(self.trials, "all_held")))
        return rows

    def sections(self) -> list[str]:
        """Parts of the page."""
        return [*(self._on_designs() if self.designs else ()), *(self._on_trials() if self.trials else ())]

    def _on_designs(self) -> list[str]:
        rows = []
        for name, drawn in self.designs.items():
            each = np.mean([one.held for one in drawn], axis=0)
            once, average = (np.mean([getattr(one, part) for one in drawn]) for part in ("all_held", "average_held"))
            width, error = (np.mean([getattr(one, part) for one in drawn]) for part in ("width", "error"))
            shares = [f"{value:.3f}" for value in (each.mean(), each.min(), once, average)]
            rows.append([name, *shares, f"{width:.2f}", f"{error:.4f}"])
        first = DESIGNS[next(iter(DESIGNS))]
        least = min(map(len, self.designs.values()))
        return [
            "## Rare events and segments that differ",
            f"Eight segments, a binary outcome, {first.n:,} records, half of them treated by a known design and pure ε = {first.epsilon:g} unless "
            "said. *Worst* is the segment that is covered least often; *all at once* are the intervals of "
            "`table(simultaneous=True)`; *width* is in widths of the interval of a segment's own arms without privacy; "
            f"the last column is the root mean square error of smoothed effects. {least} replications, so that one share of a "
            f"single segment has a standard error of about {np.sqrt(0.95 * 0.05 / least):.3f}. Ways to make intervals were compared on other replications "
            "of the same designs.",
            grid(["design", "segments", "worst", "all at once", "average effect", "width", "error"], rows),
        ]

    def _on_trials(self) -> list[str]:
        first, last = self.trials[0].facts.number, self.trials[-1].facts.number
        return [
            "## Random trials",
            f"{len(self.trials)} trials of `evidence.uplift.population`, numbers {first:,} to {last:,}, one fit each; those below {REPORTING:,} "
            "were for choosing. 1 to 32 segments of a range, of levels, or crossed; 500 to 300,000 records; outcomes of eight kinds; ε from 0.1 to 10, "
            "pure or with a δ; arms from 1 : 9 to 9 : 1. Shares of trials' 95 % intervals that hold the truth: over segments, of the segment whose effect is farthest "
            "from the others', of all segments at once, and of the average effect. Widths are in widths of the "
            "interval of a segment's own arms without privacy; where noise drowns a segment there is no telling how wide that is.",
            grid(["trials", "number", *_MEASURES, "median width"], _groups(self.trials)),
        ]

    def write(self, path: Path) -> None:
        """Everything about every random trial, as CSV."""
        with path.open("w", newline="") as file:
            out = csv.writer(file, lineterminator="\n")
            out.writerow([*(part.name for part in fields(Facts)), *Measured._fields])
            for one in self.trials:
                facts = [f"{value:.6g}" if isinstance(value, float) else value for value in asdict(one.facts).values()]
                out.writerow([*facts, *(f"{value:.6g}" for value in one.measured)])


_MEASURES = {"segments": "held", "farthest": "farthest_held", "all at once": "all_held", "average": "average_held"}
_CUTS: dict[str, tuple[Callable[[Facts], float], tuple[float, ...]]] = {
    "mean outcome in its range": (lambda facts: facts.events, (0, 0.01, 0.05, 0.2, 0.8, 1.1)),
    "records": (lambda facts: facts.n, (500, 2_000, 10_000, 50_000, 300_001)),
    "ε": (lambda facts: facts.epsilon, (0.1, 0.3, 1, 3, 10.1)),
    "segments": (lambda facts: facts.segments, (1, 2, 5, 9, 17, 33)),
}


def _groups(trials: Sequence[Trial]) -> Rows:
    rows = [_row("all", trials)]
    for name in ("outcome", "effect", "cut", "design", "neighbours"):
        values = sorted({getattr(one.facts, name) for one in trials})
        rows += [_row(f"{name}: {v}", [one for one in trials if getattr(one.facts, name) == v]) for v in values]
    for words, pure in (("pure ε", True), ("with a δ", False)):
        rows.append(_row(words, [one for one in trials if (one.facts.delta is None) == pure]))
    for name, (of, edges) in _CUTS.items():
        for low, high in pairwise(edges):
            inside = [one for one in trials if low <= of(one.facts) < high]
            rows.append(_row(f"{low:,} ≤ {name} < {high:,}", inside))
    return [row for row in rows if row[1] != "0"]


def _row(words: str, trials: Sequence[Trial]) -> list[str]:
    if not trials:
        return [words, "0"]
    shares = [f"{_mean(trials, name):.3f}" for name in _MEASURES.values()]
    return [words, f"{len(trials)}", *shares, f"{np.median([one.measured.width for one in trials]):.2f}"]


def _mean(trials: Sequence[Trial], name: str) -> float:
    return float(np.mean([getattr(one.measured, name) for one in trials]))


def _aim(words: str, share: float, wanted: float = WANTED) -> list[str]:
    return [words, f"≥ {wanted:g}", f"{share:.3f}", "reached" if share >= wanted else "**not reached**"]
