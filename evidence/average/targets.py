"""What was to be reached, judged by the run's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from evidence.average.coverage import (
    ALPHAS,
    BOOSTED,
    DESIGNS,
    LINEAR,
    OURS,
    PRIVATE_CI,
    PRIVATE_CI_OBSERVED,
    SIZES,
    STRESS,
    Cell,
    Summary,
    epsilons,
)

SMALL, LARGE = SIZES
_ALPHA = 0.05

# Widths of 95 % intervals, at most so many times the non-private one: (design, n, epsilon, ratio).
NON_PRIVATE_RATIOS = (
    ("private-ci-1", SMALL, 0.5, 1.6),
    ("private-ci-1", SMALL, 1.0, 1.2),
    ("private-ci-1", SMALL, 2.0, 1.1),
    ("private-ci-2", SMALL, 0.5, 4.2),
    ("private-ci-2", SMALL, 1.0, 2.0),
    ("private-ci-2", SMALL, 2.0, 1.4),
    ("private-ci-1", LARGE, 0.5, 1.1),
    ("private-ci-2", LARGE, 0.5, 1.2),
    ("setup-a", LARGE, 1.0, 1.3),
    ("setup-b", LARGE, 1.0, 1.3),
    ("setup-d", LARGE, 1.0, 1.3),
)
# And at most so many times PrivATE's, in its kinder reading (observed ranges).
PRIVATE_CI_RATIOS = (
    ("private-ci-1", SMALL, 0.5, 0.10),
    ("private-ci-2", SMALL, 0.5, 0.065),
    *((design, SMALL, 0.5, 1.0) for design in DESIGNS[2:]),
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One target with its figure; ``reached`` is None where the run did not include it."""

    target: str
    limit: str
    figure: str
    reached: bool | None

    @property
    def word(self) -> str:
        """The verdict as it is printed."""
        return {True: "reached", False: "**not reached**", None: "not run"}[self.reached]


@dataclass(frozen=True, kw_only=True)
class Table:
    """Summaries of a run, found by cell, method and budget."""

    lines: Mapping[Cell, Sequence[Summary]]

    def find(self, design: str, n: int, method: str, epsilon: float | None = None) -> Summary | None:
        """The summary, or None if the run left it out."""
        found = (s for s in self.lines.get(Cell(design, n), ()) if s.method == method and s.epsilon == epsilon)
        return next(found, None)

    def non_private(self, design: str, n: int) -> Summary | None:
        """The yardstick for widths: the narrower of linear and boosted AIPW among those that cover, else the boosted.

        Where no boosted AIPW was run, linear AIPW is all there is.

        To cover is to reach 95 % at nominal 95 % up to three standard errors.
        """
        boosted, linear = (self.find(design, n, method) for method in (BOOSTED, LINEAR))
        covering = [s for s in (boosted, linear) if s and s.coverage[_ALPHA] >= 1 - _ALPHA - 3 * _error(0.95, s)]
        return min(covering, key=lambda s: s.width[_ALPHA], default=boosted or linear)


def judge(table: Table) -> list[Verdict]:
    """All verdicts of the coverage run."""
    return [
        _covers("Coverage at 80, 90 and 95 %", table, DESIGNS, errors=2, beside_boosted=True),
        *(_ratio(table, *target, against=None) for target in NON_PRIVATE_RATIOS),
        *(_ratio(table, *target, against=PRIVATE_CI_OBSERVED) for target in PRIVATE_CI_RATIOS),
        _covers("Coverage under stress", table, STRESS, errors=3, beside_boosted=False),
    ]


def judged_coverage(
    table: Table, designs: Sequence[str], *, errors: float, beside_boosted: bool
) -> Iterator[tuple[Summary, float, float, bool]]:
    """Every interval judged for coverage: (summary, alpha, smallest coverage that passes, whether it failed)."""
    for cell in (Cell(design, n) for design in designs for n in SIZES):
        for epsilon in epsilons(cell):
            ours, boosted = table.find(*cell, OURS, epsilon), table.find(*cell, BOOSTED)
            if ours is None or (beside_boosted and boosted is None):
                continue
            for alpha in ALPHAS:
                level = min(1 - alpha, boosted.coverage[alpha]) if beside_boosted and boosted else 1 - alpha
                floor = level - errors * _error(level, ours)
                yield ours, alpha, floor, ours.coverage[alpha] < floor - 1e-12


def _covers(target: str, table: Table, designs: Sequence[str], *, errors: int, beside_boosted: bool) -> Verdict:
    judged = list(judged_coverage(table, designs, errors=errors, beside_boosted=beside_boosted))
    failed = [
        f"{s.design}, n = {s.n:,}, ε = {s.epsilon:g}: {s.coverage[alpha]:.3f} at {1 - alpha:.0%}"
        for s, alpha, _, fails in judged
        if fails
    ]
    floor = "the smaller of nominal and boosted AIPW's coverage" if beside_boosted else "nominal"
    return Verdict(
        target=f"{target}, {len(judged)} intervals",
        limit=f"≥ {floor}, less {errors} s.e.",
        figure="; ".join([f"{len(judged) - len(failed)} of {len(judged)}", *failed]),
        reached=not failed if judged else None,
    )


def _ratio(table: Table, design: str, n: int, epsilon: float, limit: float, *, against: str | None) -> Verdict:
    ours = table.find(design, n, OURS, epsilon)
    other = table.non_private(design, n) if against is None else table.find(design, n, against, epsilon)
    name = "non-private" if against is None else "PrivATE"
    target, wanted = f"Width, {design}, n = {n:,}, ε = {epsilon:g}", f"≤ {limit:g} × {name}"
    if ours is None or other is None:
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    ratio = ours.width[_ALPHA] / other.width[_ALPHA]
    figure = f"{ratio:.3g} × ({ours.width[_ALPHA]:.3g} against {other.width[_ALPHA]:.3g}, {other.method})"
    if against and (declared := table.find(design, n, PRIVATE_CI, epsilon)):
        figure += f"; {ours.width[_ALPHA] / declared.width[_ALPHA]:.3g} × {declared.method}"
    return Verdict(target=target, limit=wanted, figure=figure, reached=ratio <= limit)


def _error(level: float, summary: Summary) -> float:
    return sqrt(level * (1 - level) / summary.replications)
