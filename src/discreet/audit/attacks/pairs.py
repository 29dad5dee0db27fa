"""An estimator of this library as a black box: run on two given neighbours, with real noise."""

from __future__ import annotations

from typing import Any

from discreet.audit._black_box import MIN_TRIALS
from discreet.audit._neighbours import Table
from discreet.audit.attacks.base import Claim, Run, by_black_box
from discreet.audit.mechanism import claimed_budget, fitted, relation_of, with_fixed_parts
from discreet.audit.result import AuditResult
from discreet.exceptions import InvalidInput


def on_pair(estimator: Any, pair: tuple[Table, Table, str], run: Run) -> AuditResult:
    """Fit again and again on two neighbours, which a replay found, and distinguish the releases.

    Parameters
    ----------
    estimator
        What has a proof.
    pair
        Two data sets, and in which record they differ, as text.
    run
        How often and how surely; the noise is real and cannot be seeded.
    """
    if run.trials < MIN_TRIALS:
        raise InvalidInput(f"trials must be at least {MIN_TRIALS} for a black box: fewer runs prove nothing.")
    estimator = with_fixed_parts(estimator)
    one, other, difference = pair
    claim = Claim(
        estimator=estimator,
        attack="the worst neighbours of the replay",
        budget=claimed_budget(estimator),
        neighbours=relation_of(estimator),
        status="proved",
    )
    return by_black_box(
        claim,
        (lambda: fitted(estimator, one), lambda: fitted(estimator, other)),
        run,
        worst=difference,
        seeded=False,
        notes=("seen: every number of the release; the noise is real.",),
    )
