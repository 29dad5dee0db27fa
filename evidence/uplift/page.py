"""The page of `Uplift`, in Markdown."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import platform
from collections import defaultdict
from datetime import date
from typing import Any

import numpy as np

import discreet
from evidence.average.report import grid
from evidence.uplift.coverage import Coverage
from evidence.uplift.runs import (
    ADUM_CELLS,
    ALPHA,
    EPSILONS,
    NOISE_SEED,
    OPEN,
    SHAPE_EPSILONS,
    SHAPES,
    STUDY_SEED,
    TRIALS,
    VARIANTS,
    WANTED,
    WANTED_AUUC,
    Line,
    N,
)


class Found:
    """All lines, by what they measure."""

    def __init__(self, lines: list[Line]) -> None:
        self.by: dict[tuple[str, str, float, str, str], list[float]] = defaultdict(list)
        for line in lines:
            self.by[line.table, line.case, line.epsilon, line.method, line.measure].append(line.value)

    def mean(self, *key: Any) -> float:
        """Mean over replications."""
        return float(np.mean(self.by[key]))

    def text(self, *key: Any) -> str:
        """Mean over replications with its standard error."""
        values = self.by[key]
        return f"{np.mean(values):.4f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


Rows = list[list[str]]


def page(found: Found, coverage: Coverage, runs: dict[str, int], seconds: float) -> str:
    """The page, in Markdown."""
    rows, aims = _errors(found)
    ranks, more = _rankings(found) if runs["ranking"] else ([], [])
    aims += more + coverage.aims()
    reached = sum(aim[-1] == "reached" for aim in aims)
    parts = [
        "# Uplift: effects by segment",
        f"Written by `python -m evidence.uplift` on {date.today().isoformat()} in {seconds:.0f} seconds; do not edit. Studies: "
        f"{runs['generator']} of the generator, {runs['shapes']} of each other shape, {runs['ranking']} splits of each "
        f"trial; seeds from {STUDY_SEED:,} on, noise from {NOISE_SEED:,} on. discreet {discreet.__version__}, Python "
        f"{platform.python_version()}. Every number of every replication is in `uplift.csv`, that of every random trial in "
        "`uplift-population.csv`.",
        "## Aims",
        f"{reached} of {len(aims)} reached.",
        grid(["aim", "wanted", "figure", ""], aims),
        *coverage.sections(),
        *_on_the_generator(found, rows),
        *_on_other_shapes(found),
        *(_in_trials(ranks) if ranks else ()),
    ]
    return "\n\n".join(parts) + "\n"


def _errors(found: Found) -> tuple[Rows, Rows]:
    """Errors on the paper's generator at each epsilon, and which aims they reach."""
    rows: Rows = []
    aims: Rows = []
    for epsilon in EPSILONS:
        cells = min(ADUM_CELLS, key=lambda k: found.mean("generator", "sin(x)", epsilon, f"ADUM {k}", "root-PEHE"))
        rival = found.mean("generator", "sin(x)", epsilon, f"ADUM {cells}", "root-PEHE")
        ours = [found.mean("generator", "sin(x)", epsilon, name, "root-PEHE") for name in VARIANTS]
        compared = [f"{value:.4f} ({value / rival:.2f})" for value in ours]
        segments = found.mean("generator", "sin(x)", epsilon, "auto", "segments")
        rows.append([f"{epsilon:g}", f"{rival:.4f}, {cells}", *compared, f"{segments:.0f}"])
        for name, value in zip(VARIANTS, ours, strict=True):
            if VARIANTS[name]["neighbours"] == "add-remove":
                wanted = WANTED[epsilon]
                aims.append(
                    [
                        f"root-PEHE at ε = {epsilon:g}, of ADUM's with the best number of cells ({name})",
                        f"≤ {wanted:.2f}",
                        f"{value / rival:.3f}",
                        _word(value <= wanted * rival),
                    ]
                )
    return rows, aims


def _rankings(found: Found) -> tuple[Rows, Rows]:
    """Rankings in the trials, and which aims they reach."""
    ranks: Rows = []
    aims: Rows = []
    for name, trial in TRIALS.items():
        methods = [key[3] for key in found.by if key[:2] == ("ranking", name)]
        open_ = {m: found.mean("ranking", name, 1.0, m, "AUUC") for m in methods if m.startswith("T-learner")}
        best = max(open_, key=lambda method: open_[method])
        for method in methods:
            value = found.mean("ranking", name, 1.0, method, "AUUC")
            text, chance = found.text("ranking", name, 1.0, method, "AUUC"), found.mean(*_random(name))
            gain = (value - chance) / (open_[best] - chance)
            ranks.append([trial.title, method, text, f"{value / open_[best]:.3f}", f"{gain:.2f}"])
        for relation in ("add-remove", "replace-one"):
            share = found.mean("ranking", name, 1.0, f"Uplift, {relation}", "AUUC") / open_[best]
            aims.append(
                [
                    f"AUUC of the {trial.title} at ε = 1 ({relation}), of the best T-learner's without privacy",
                    f"≥ {WANTED_AUUC:g}",
                    f"{share:.3f}",
                    _word(share >= WANTED_AUUC),
                ]
            )
    return ranks, aims


def _on_the_generator(found: Found, rows: Rows) -> list[str]:
    covers = [
        [
            f"{epsilon:g}",
            *(f"{found.mean('generator', 'sin(x)', epsilon, name, m):.2f}" for name in VARIANTS for m in _COVER),
        ]
        for epsilon in EPSILONS
    ]
    return [
        "## The paper's generator",
        f"n = {N:,}, σ = 1, effect sin(x), pure ε, probability of treatment known. Mean root-PEHE; in brackets its ratio to "
        "ADUM's, which has the paper's relation (add-remove) and the number of cells that is best over all replications: it "
        'is given the truth in each study. *auto* is `by={0: "auto"}`. **Not unseen:** that rule, the length scales, how '
        "unlikely jumps are and the share of counts were chosen among some twenty variants on this generator, with other seeds. "
        "The seeds of this page were first used after that; since then one thing was changed, on other seeds again: *auto* may "
        "make two cells, where it made three at least. *8 cells* stay 8 whatever the budget.",
        grid(["ε", "ADUM, cells", *VARIANTS, "cells of auto"], rows),
        f"Without noise, 8 cells reach {found.mean('generator', 'sin(x)', OPEN, '8 cells', 'root-PEHE'):.4f}.",
        f"Coverage of {100 * (1 - ALPHA):g} % intervals, of places on the range, of segments, and of the points of the uplift curve "
        "(what treating the segments in their released order is truly worth):",
        grid(["ε", *(f"{name}: {m}" for name in VARIANTS for m in ("places", "segments", "curve"))], covers),
    ]


def _on_other_shapes(found: Found) -> list[str]:
    shaped = [
        [
            name,
            f"{epsilon:g}",
            *(f"{found.mean('shapes', name, epsilon, '8 cells', m):.3g}" for m in ("root-PEHE", *_COVER, "width")),
        ]
        for name in SHAPES
        for epsilon in SHAPE_EPSILONS
    ]
    return [
        "## Other shapes",
        "The same with 8 cells, replace-one, and no known probability: error, coverage of 90 % intervals and their mean width. "
        "An interval for a place cannot know where within a segment an effect jumps.",
        grid(["effect", "ε", "root-PEHE", "places", "segments", "curve", "width"], shaped),
    ]


def _in_trials(ranks: Rows) -> list[str]:
    return [
        "## Ranking in real trials",
        "ε = 1; half of the records train, the others test. *Hillstrom's e-mail trial* (64,000 customers): visits within two weeks, "
        "one e-mail against none; segments: bought men's, bought women's, new customer (8). *The social pressure experiment* "
        "(344,084 voters): turnout in a primary, a letter of any kind, or the one that names neighbours, against none; segments: "
        "voted in each of three earlier primaries, and four equal parts of age (32). All were chosen by what the columns mean, "
        "before any ranking was seen, and never changed. Letters were drawn by household, and samples by voter, which "
        "makes standard errors too small, for all methods alike. AUUC counts the average effect in, of which a "
        "random ranking gets its half: the ratio to the best T-learner's is therefore never small, and the last column is the "
        "ratio of what is gained over a random ranking.",
        grid(["treatment", "method", "AUUC", "ratio", "ratio above random"], ranks),
    ]


_COVER = ("coverage", "coverage of segments", "coverage of the curve")


def _random(trial: str) -> tuple[str, str, float, str, str]:
    return "ranking", trial, 1.0, "random", "AUUC"


def _word(reached: bool) -> str:
    return "reached" if reached else "**not reached**"
