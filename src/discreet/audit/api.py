"""One call for three instruments."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from discreet.audit._neighbours import PLACE, Table, base, extremes
from discreet.audit._replay import is_proved, replay, study_of
from discreet.audit.attacks import ATTACKS, Run, find_attack
from discreet.audit.attacks.base import Claim, Progress, by_black_box, strongest
from discreet.audit.attacks.pairs import on_pair
from discreet.audit.mechanism import (
    Mechanism,
    bounds_of,
    claimed_budget,
    fitted,
    in_last_columns,
    name_of,
    numbers_of,
    relation_of,
    rows_of,
)
from discreet.audit.result import AuditResult, check_confidence
from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget
from discreet.testing import seeded_noise

# Runs on each data set, where none are asked for.
TRIALS = 100
# What has a proof is accused at a higher level than what only claims.
PROVED_CONFIDENCE, CLAIMED_CONFIDENCE = 0.999, 0.95
# Extreme records among which a claim without known attacks has its neighbours chosen, and fits that show the noise.
_CANDIDATES, _USUAL = 8, 4
_LARGEST = 10**9


def audit(
    estimator: Any,
    attack: str | None = None,
    trials: int | None = None,
    *,
    confidence: float | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> AuditResult:
    """Find out what a mechanism really spends: lower bounds on its epsilon and delta, and the worst neighbours found.

    Parameters
    ----------
    estimator
        An estimator of this library, anything else with ``fit``, ``bounds`` and a guarantee, or a `Mechanism`. It is
        not fitted itself; the audit brings its own records. None stands for the paper's setting of an attack.
    attack : str, optional
        A known failure by its name (``discreet audit list``). Without one, what has a proof is replayed on adversarial
        neighbours and then run as a black box on the worst of them; what only claims meets all attacks on it.
    trials : int, optional
        Runs on each of two data sets; an attack has its own default.
    confidence : float, optional
        By default 0.95, and 0.999 for what has a proof.
    random_state : int
        Seeds made-up data, search, and the noise of attacks; the black-box runs of an estimator draw real noise.
    progress : callable, optional
        Called with (what, done, all).

    Returns
    -------
    AuditResult
        The strongest finding, with those of single instruments in ``parts``.

    Examples
    --------
    >>> import discreet as dc
    >>> leaky = dc.audit.Mechanism(run=sum, epsilon=1.0, pair=([0, 1], [1, 1]), name="an exact sum")
    >>> dc.audit(leaky, trials=200).verdict
    'the claim is refuted'
    """
    if trials is not None:
        trials = _whole(trials, 2, "trials must be an integer of at least 2: an attack runs on both of two data sets.")
    random_state = _whole(random_state, 0, "random_state must be an integer from 0 to 10**9: it seeds made-up data.")
    if confidence is not None:
        check_confidence(confidence)
    level = CLAIMED_CONFIDENCE if confidence is None else confidence
    run = Run(trials or TRIALS, level, random_state, progress)
    if attack is not None:
        known = find_attack(attack)
        return known.run(estimator, run._replace(trials=trials or known.trials))
    if isinstance(estimator, Mechanism):
        return _foreign(estimator, run)
    bounds_of(estimator)
    estimator = in_last_columns(estimator)
    if is_proved(estimator):
        return _proved(estimator, run._replace(confidence=confidence or PROVED_CONFIDENCE))
    attacks = [each for each in ATTACKS.values() if each.mechanism == name_of(estimator)]
    if attacks:
        return _all([each.run(estimator, run._replace(trials=trials or each.trials)) for each in attacks])
    return _extremes(estimator, run)


def _whole(value: Any, least: int, refusal: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= _LARGEST:
        raise InvalidInput(refusal)
    return int(value)


def _proved(estimator: Any, run: Run) -> AuditResult:
    replayed, worst = replay(estimator, random_state=run.random_state, progress=run.progress)
    if worst is None:
        return replayed
    return _all([replayed, on_pair(estimator, worst, run)])


def _foreign(mechanism: Mechanism, run: Run) -> AuditResult:
    one, other = mechanism.pair
    claim = Claim(
        estimator=mechanism,
        attack="black box",
        budget=Budget(epsilon=mechanism.epsilon, delta=mechanism.delta),
        neighbours=mechanism.neighbours,
    )
    return by_black_box(
        claim,
        (lambda: mechanism.run(one), lambda: mechanism.run(other)),
        run,
        worst="the given pair",
        seeded=False,
    )


def _extremes(estimator: Any, run: Run) -> AuditResult:
    """A claim without known attacks: of a few extreme records, those whose releases are furthest apart in one fit."""
    bounds, claimed = bounds_of(estimator), claimed_budget(estimator)
    relation = relation_of(estimator)
    table = base(bounds, 240, "ordinary", study_of(run.random_state))
    records = extremes(bounds, binary=True)[-_CANDIDATES:]
    worlds = [table.neighbour(relation, PLACE, record) for record in records]
    labels = [record.label for record in records]
    if relation == "add-remove":
        worlds, labels = [table, *worlds], ["no record more", *labels]

    def seen(world: Table, seed: int) -> dict[str, float]:
        # The same noise for all, where it can be had: then only records differ.
        with seeded_noise(seed):
            return numbers_of(fitted(estimator, world))

    usual = [seen(table, run.random_state + 1 + number) for number in range(_USUAL)]
    rows = rows_of([*(seen(world, run.random_state) for world in worlds), *usual])
    noise = np.std(rows[len(worlds) :], axis=0)
    first, second = _furthest(rows[: len(worlds)], noise, from_first=relation == "add-remove")
    claim = Claim(estimator=estimator, attack="extreme records", budget=claimed, neighbours=relation)
    result = by_black_box(
        claim,
        (lambda: fitted(estimator, worlds[first]), lambda: fitted(estimator, worlds[second])),
        run,
        worst=f"{labels[first]} / {labels[second]}",
        seeded=False,
    )
    return replace(result, notes=(*result.notes, "no attack is known on it: one pair of neighbours was tried."))


def _furthest(rows: Float, noise: Float, from_first: bool) -> tuple[int, int]:
    """Which two rows are furthest apart, in units of the noise; under add-remove one of them is the first."""
    standardised = np.clip(rows / np.where(noise > 0, noise, 1.0), -1e100, 1e100)
    apart = np.array(
        [np.abs(standardised - row).max(axis=1) for row in (standardised[:1] if from_first else standardised)]
    )
    first, second = np.unravel_index(int(np.argmax(apart)), apart.shape)
    return int(first), int(second)


def _all(results: list[AuditResult]) -> AuditResult:
    """The strongest result, with all single ones beside it."""
    best = strongest(results)
    parts = tuple(part for result in results for part in (result.parts or (result,)))
    return replace(best, violated=any(result.violated for result in results), parts=parts)
