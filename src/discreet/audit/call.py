"""One call for three instruments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet.audit.attacks import ATTACKS, Run, find_attack
from discreet.audit.attacks.base import Progress, by_black_box, strongest
from discreet.audit.mechanism import Mechanism, bounds_of, claimed_budget, fitted, name_of
from discreet.audit.neighbours import PLACE, base, extremes
from discreet.audit.pairs import on_pair
from discreet.audit.replaying import is_proved, replay, study_of
from discreet.audit.result import AuditResult, check_confidence
from discreet.budget import Budget
from discreet.errors import InvalidInput
from discreet.guarantee import Neighbours

# Runs on each data set, where none are asked for.
TRIALS = 100
# What has a proof is accused at a higher level than what only claims.
PROVED_CONFIDENCE, CLAIMED_CONFIDENCE = 0.999, 0.95


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
        Told (what, done, all).

    Returns
    -------
    AuditResult
        The strongest finding, with those of single instruments in ``parts``.
    """
    if trials is not None and (isinstance(trials, bool) or not isinstance(trials, int) or trials < 2):
        raise InvalidInput("trials must be an integer of at least 2: an attack runs on both of two data sets.")
    if confidence is not None:
        check_confidence(confidence)
    if attack is not None:
        found = find_attack(attack)
        level = CLAIMED_CONFIDENCE if confidence is None else confidence
        return found.run(estimator, Run(trials or found.trials, level, random_state, progress))
    if isinstance(estimator, Mechanism):
        return _foreign(estimator, Run(trials or TRIALS, confidence or CLAIMED_CONFIDENCE, random_state, progress))
    bounds_of(estimator)
    if is_proved(estimator):
        run = Run(trials or TRIALS, confidence or PROVED_CONFIDENCE, random_state, progress)
        return _proved(estimator, run)
    run = Run(trials or TRIALS, confidence or CLAIMED_CONFIDENCE, random_state, progress)
    known = [each for each in ATTACKS.values() if each.mechanism == name_of(estimator)]
    if known:
        results = [each.run(estimator, run._replace(trials=trials or each.trials)) for each in known]
        return _all(results)
    return _extremes(estimator, run)


def _proved(estimator: Any, run: Run) -> AuditResult:
    replayed, worst = replay(estimator, random_state=run.random_state, progress=run.progress)
    if worst is None:
        return replayed
    return _all([replayed, on_pair(estimator, worst, run)])


def _foreign(mechanism: Mechanism, run: Run) -> AuditResult:
    one, other = mechanism.pair
    return by_black_box(
        mechanism,
        "black box",
        (lambda: mechanism.run(one), lambda: mechanism.run(other)),
        run,
        claimed=Budget(epsilon=mechanism.epsilon, delta=mechanism.delta),
        worst="the given pair",
        neighbours=mechanism.neighbours,
        seeded=False,
    )


def _extremes(estimator: Any, run: Run) -> AuditResult:
    """A claim without known attacks: a record in the middle against the extreme one that moves most in a few fits."""
    bounds = bounds_of(estimator)
    relation: Neighbours = getattr(estimator, "neighbours", "replace-one")
    table = base(bounds, 240, "ordinary", study_of(run.random_state))
    records = extremes(bounds)
    low, high = records[2], records[3]
    one, other = (table.neighbour(relation, PLACE, record) for record in (low, high))
    result = by_black_box(
        estimator,
        "extreme records",
        (lambda: fitted(estimator, table if relation == "add-remove" else one), lambda: fitted(estimator, other)),
        run,
        claimed=claimed_budget(estimator),
        worst=high.label if relation == "add-remove" else f"{low.label} / {high.label}",
        neighbours=relation,
        seeded=False,
    )
    return replace(result, notes=(*result.notes, "no attack is known on it: one pair of neighbours was tried."))


def _all(results: list[AuditResult]) -> AuditResult:
    """The strongest result, with all single ones beside it."""
    best = strongest(results)
    parts = tuple(part for result in results for part in (result.parts or (result,)))
    return replace(best, violated=any(result.violated for result in results), parts=parts)
