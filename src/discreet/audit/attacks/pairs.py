"""An estimator of this library as a black box: run on two given neighbours, with real noise."""

from __future__ import annotations

from typing import Any

from discreet.audit.attacks.base import Run, by_black_box
from discreet.audit.black_box import MIN_TRIALS
from discreet.audit.mechanism import claimed_budget, fitted, fresh
from discreet.audit.neighbours import Table
from discreet.audit.result import AuditResult
from discreet.exceptions import InvalidInput


def on_pair(estimator: Any, pair: tuple[Table, Table, str], run: Run) -> AuditResult:
    """Fit again and again on two neighbours, which a replay found, and tell the releases apart.

    Parameters
    ----------
    estimator
        What has a proof.
    pair
        Two data sets, and in which record they differ, in words.
    run
        How often and how surely; the noise is real and cannot be seeded.
    """
    if run.trials < MIN_TRIALS:
        raise InvalidInput(f"trials must be at least {MIN_TRIALS} for a black box: fewer runs prove nothing.")
    if getattr(estimator, "random_state", 0) is None:
        # Which record is in which part is public.
        estimator = fresh(estimator, random_state=0)
    one, other, words = pair
    return by_black_box(
        estimator,
        "the worst neighbours of the replay",
        (lambda: fitted(estimator, one), lambda: fitted(estimator, other)),
        run,
        claimed=claimed_budget(estimator),
        worst=words,
        neighbours=getattr(estimator, "neighbours", "replace-one"),
        status="proved",
        seeded=False,
        notes=("seen: every number of the release; the noise is real.",),
    )
