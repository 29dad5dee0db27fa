"""What an attack is, and what attacks share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from discreet.audit._black_box import Counts, distinguish, most_epsilon
from discreet.audit.mechanism import fresh, name_of, names_of, numbers_of, rows_of
from discreet.audit.result import AuditResult, Instrument, refuted, rounded_down
from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.guarantee import Neighbours, Status
from discreet.privacy.public_draws import public_draws
from discreet.testing import seeded_noise

Progress = Callable[[str, int, int], None]
_BINS = 40


class Run(NamedTuple):
    """How an attack is to be run."""

    trials: int
    confidence: float = 0.95
    random_state: int = 0
    progress: Progress | None = None

    def report(self, what: str, done: int) -> None:
        """Say how far it is."""
        if self.progress is not None:
            self.progress(what, done, self.trials)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A known failure of a published mechanism, as something that can be run.

    Parameters
    ----------
    name
        As in ``audit(..., attack=name)``.
    mechanism
        What it attacks, under the name that the command line knows.
    title
        What it shows, in one sentence.
    setting
        Which settings are the paper's, and what was inferred.
    budget
        The claim that it is run against, unless another is given.
    trials
        How many runs it takes by default, on each data set (or with fresh secrets).
    chosen
        Which settings were chosen after results of the attack had been seen, with seeds of its own; empty if none.
    make
        The mechanism in the paper's setting, at a budget.
    run_
        From such a mechanism to a result.

    Examples
    --------
    >>> from discreet.audit import ATTACKS
    >>> attack = ATTACKS["adum_range_for_max"]
    >>> attack.mechanism, attack.budget.epsilon
    ('papers.ADUM', 1.0)
    """

    name: str
    mechanism: str
    title: str
    setting: str
    budget: Budget
    trials: int
    chosen: str = ""
    make: Callable[[Budget], Any]
    run_: Callable[[Any, Run], AuditResult]

    def run(self, estimator: Any, run: Run) -> AuditResult:
        """Attack an estimator of the right kind; the attack brings its own records and their bounds."""
        if estimator is None:
            estimator = self.make(self.budget)
        if name_of(estimator) != name_of(self.make(self.budget)):
            raise InvalidInput(
                f"attack {self.name!r} is on {self.mechanism}, not on {name_of(estimator)}: choose another."
            )
        return self.run_(estimator, run)


def with_bounds(estimator: Any, bounds: Any, **given: Any) -> Any:
    """A fresh estimator for the attack's own records."""
    return fresh(estimator, bounds=bounds, **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an attack is run against.

    Parameters
    ----------
    estimator, attack
        The mechanism, and the name of the attack on it.
    budget, neighbours
        What it claims, and under which relation.
    status
        Whether it has a proof.
    """

    estimator: Any
    attack: str
    budget: Budget
    neighbours: Neighbours = "replace-one"
    status: Status = "claimed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LowerBounds:
    """What an attack proves: by default exactly, from one run on either data set.

    Parameters
    ----------
    epsilon, delta
        Lower bounds at the claimed delta and at the claimed epsilon.
    confidence
        With which both hold together.
    trials
        How often the mechanism ran.
    """

    epsilon: float
    delta: float = 0.0
    confidence: float = 1.0
    trials: int = 2


def judged(
    claim: Claim,
    instrument: Instrument,
    bounds: LowerBounds,
    *,
    worst: str,
    notes: tuple[str, ...] = (),
    picture: dict[str, Any] | None = None,
) -> AuditResult:
    """A result, with its verdict."""
    return AuditResult(
        mechanism=name_of(claim.estimator),
        attack=claim.attack,
        claimed=claim.budget,
        status=claim.status,
        epsilon_lower=bounds.epsilon,
        delta_lower=bounds.delta,
        confidence=bounds.confidence,
        violated=refuted(claim.budget, bounds.epsilon, bounds.delta),
        instrument=instrument,
        neighbours=claim.neighbours,
        trials=bounds.trials,
        worst=worst,
        notes=notes,
        picture=picture or {},
    )


def by_black_box(
    claim: Claim,
    worlds: tuple[Callable[[], Any], Callable[[], Any]],
    run: Run,
    *,
    worst: str,
    seeded: bool = True,
    notes: tuple[str, ...] = (),
) -> AuditResult:
    """Run a mechanism on two data sets, again and again, and distinguish them.

    With ``seeded`` each run has a seed of its own, so that the whole can be repeated; the mechanism cannot know.
    """
    outputs: list[list[dict[str, float]]] = [[], []]
    for trial in range(run.trials):
        run.report(claim.attack, trial)
        for world in (0, 1):
            if seeded:
                with seeded_noise(_seed(run.random_state, trial, world)):
                    outputs[world].append(numbers_of(worlds[world]()))
            else:
                outputs[world].append(numbers_of(worlds[world]()))
    rows, names = rows_of(outputs[0] + outputs[1]), names_of(outputs[0] + outputs[1])
    epsilon, delta = claim.budget.epsilon, claim.budget.delta or 0.0
    test = distinguish(rows[: run.trials], rows[run.trials :], epsilon, delta, run.confidence, names)
    most = most_epsilon(run.trials, delta, run.confidence)
    return judged(
        claim,
        "black box",
        LowerBounds(
            epsilon=test.epsilon_lower, delta=test.delta_lower, confidence=test.confidence, trials=2 * run.trials
        ),
        worst=worst,
        notes=(
            f"counted: {test.event}; {_counts(test.counts)}.",
            f"so many runs can show an epsilon of {rounded_down(most)} at most."
            if most
            else "so few runs show nothing.",
            *notes,
        ),
        picture=histograms(*test.scores),
    )


def _seed(start: int, trial: int, world: int) -> int:
    return 1_000_003 * (start + 1) + 2 * trial + world


def _counts(counts: Counts) -> str:
    (p, n), (q, m) = counts
    return f"{p:,} of {n:,} runs on one data set, {q:,} of {m:,} on the other"


def histograms(one: Float, other: Float) -> dict[str, Any]:
    """Two histograms on the same bins, for figures."""
    both = np.concatenate([one, other])
    both = both[np.isfinite(both)]
    low, high = (float(end) for end in np.quantile(both, [0.002, 0.998]))
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    counts = [np.histogram(np.clip(values, low, high), edges)[0].tolist() for values in (one, other)]
    return {"kind": "histograms", "edges": edges.tolist(), "one": counts[0], "other": counts[1]}


def two_normals(shift: float, one: float, other: float) -> dict[str, Any]:
    """Two normal densities, in units of the first one's noise, for figures."""
    return {"kind": "normals", "shift": shift / one, "sds": [1.0, other / one]}


def strongest(results: list[AuditResult]) -> AuditResult:
    """The result that says most: refuted before not, then the larger excess over the claim."""

    def worth(result: AuditResult) -> tuple[bool, float, float]:
        least = result.epsilon_lower if math.isfinite(result.epsilon_lower) else 1e300
        return result.violated, least / result.claimed.epsilon, result.delta_lower

    return max(results, key=worth)


def with_parts(first: AuditResult, *others: AuditResult) -> AuditResult:
    """A result with others beside it: what was simulated stands in front, as nothing in it is held fixed."""
    violated = first.violated or any(other.violated for other in others)
    return replace(first, violated=violated, parts=(first, *others))


def rng_of(seed: int) -> Any:
    """A generator for data, secrets and seeds of models, never for noise."""
    return public_draws(seed)
