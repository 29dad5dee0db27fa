"""The parts of the page: which measurements each needs, and what it shows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evidence.population import REPORTING, available
from evidence.trust import cells, designs, effects, estimands, plans, sections
from evidence.trust.acic import RESPONSES, is_there
from evidence.trust.runs import ACIC_SEED, SHAPE_SEED, TRIAL_SEED
from evidence.trust.sections import Found, Section
from evidence.trust.store import Job

LARGEST = 3_000_000
_ACIC_BUDGETS = (1.0, 2.0, 5.0)
# Of the usual replications, studies of so many records have so small a part.
_FEWER = {300_000: 2, 3_000_000: 10}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How many studies, of what size at most, and which is the first."""

    studies: int
    largest: int = LARGEST
    first: int = REPORTING


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the page.

    Parameters
    ----------
    title
        Its heading.
    studies
        Random studies, or replications of every cell, unless another number is asked for.
    jobs, section
        Measurements that it needs, in the order in which they are taken; and what it shows.
    seeds
        Where its seeds come from.
    """

    title: str
    studies: int
    jobs: Callable[[Asked], list[Job]]
    section: Callable[[Found], Section]
    seeds: str


def _on_random_studies(*kinds: str) -> Callable[[Asked], list[Job]]:
    def jobs(asked: Asked) -> list[Job]:
        numbers = available(range(asked.first, asked.first + asked.studies))
        return [Job(kind, (asked.largest,), number) for number in numbers for kind in kinds]

    return jobs


def _trials(asked: Asked) -> list[Job]:
    # All cells advance together, so that an interrupted run has seen equally many of each.
    places = [(outcome, share, n) for outcome in designs.OUTCOMES for share in designs.SHARES for n in designs.SIZES]
    places += [(outcome, 0.5, n) for outcome in designs.OUTCOMES for n in designs.SMALL_SIZES]
    return [Job("trial", place, number) for number in range(asked.studies) for place in places]


def _shapes(asked: Asked) -> list[Job]:
    return [
        Job("shape", (shape, n), number)
        for number in range(asked.studies)
        for n in designs.SHAPE_SIZES
        if n <= asked.largest and number < max(1, asked.studies // _FEWER.get(n, 1))
        for shape in designs.SHAPES
    ]


def _acic(asked: Asked) -> list[Job]:
    if not is_there():
        return []
    jobs = []
    for number in range(asked.studies):
        jobs += [Job("response", (which, e), number) for which in range(1, RESPONSES + 1) for e in _ACIC_BUDGETS]
        # Folds matter little beside noise.
        if number < max(1, asked.studies // 5):
            jobs += [Job("response boosted", (which,), number) for which in range(1, RESPONSES + 1)]
    return jobs


def seeds_of(part: Part, asked: Asked) -> str:
    """Where seeds come from, in words, with the studies that were left out because data is absent."""
    if part.seeds:
        return part.seeds
    absent = asked.studies - len(available(range(asked.first, asked.first + asked.studies)))
    left_out = f", {absent} of them left out because their data is absent" if absent else ""
    last = asked.first + asked.studies - 1
    return f"studies {asked.first:,} to {last:,}{left_out}; a study's number is its seed and that of its noise"


PARTS: dict[str, Part] = {
    "population": Part(
        title="Random studies",
        studies=2_000,
        jobs=_on_random_studies("random", "boosted"),
        section=sections.population,
        seeds="",
    ),
    "trials": Part(
        title="Trials", studies=100, jobs=_trials, section=cells.trials, seeds=f"seeds from {TRIAL_SEED:,} on"
    ),
    "shapes": Part(
        title="Shapes", studies=100, jobs=_shapes, section=cells.shapes, seeds=f"seeds from {SHAPE_SEED:,} on"
    ),
    "acic": Part(
        title="ACIC 2016", studies=20, jobs=_acic, section=cells.acic, seeds=f"seeds of noise from {ACIC_SEED:,} on"
    ),
    "effects": Part(
        title="Effect functions",
        studies=2_000,
        jobs=_on_random_studies("random", "learner"),
        section=effects.effects,
        seeds="",
    ),
    "estimands": Part(
        title="Other averages and ratios",
        studies=2_000,
        jobs=_on_random_studies("estimands"),
        section=estimands.section,
        seeds="",
    ),
    "plan": Part(title="Plans", studies=2_000, jobs=_on_random_studies("random", "plan"), section=plans.plan, seeds=""),
    "advice": Part(title="Advice", studies=400, jobs=_on_random_studies("again"), section=plans.advice, seeds=""),
}


def names() -> Sequence[str]:
    """Names of all parts, in the order of the page."""
    return tuple(PARTS)
