"""Difference in differences from two periods, with a proved (epsilon, delta) and a confidence interval."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.estimators._base import ROWS_ALIKE, ROWS_JOINED, Progress, TableFits, count_first
from discreet.estimators._parameters import Parameters, Role
from discreet.estimators._results import WeightedResult
from discreet.estimators.natural_experiments.views import BEFORE, Change
from discreet.estimators.weighted.att import ATT
from discreet.estimators.weighted.average import AS_GOOD_AS_RANDOM
from discreet.exceptions import InvalidBudget
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Neighbours, audit_of
from discreet.releases.average import Release

_TRENDS = (
    "outcomes of both arms would have changed alike, on average, among people with the same declared covariates, had "
    "nobody been treated"
)


class DifferenceInDifferences(TableFits[Release], WeightedResult, Parameters):
    """Effect on the treated between two periods, by how outcomes changed in either arm; doubly robust.

    The rounds of `ATT` on the change of each record's outcome. What is published is the average effect on the treated,
    if outcomes of both arms would have changed alike, given the covariates, had nobody been treated.

    ``fit(after, T, before=before, X=X)``; ``fit_table(table, outcome="after", before="before", treatment="t")``.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range (of either period), covariates from before, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcomes of both periods, treatment and covariates together, under the stated relation, for
    every data set. Public: the bounds, the number of records under replace-one, a known propensity.
    Proof: docs/proofs/did.md.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> rng = np.random.default_rng(1)
    >>> old, t = rng.uniform(0, 1, 4_000), rng.integers(0, 2, 4_000)
    >>> before = 4.0 + 2.0 * t + old + rng.normal(0, 0.3, 4_000)
    >>> after = before + 1.0 + old + 0.5 * t + rng.normal(0, 0.3, 4_000)
    >>> bounds = dc.Bounds(outcome=(0, 10), covariates={"old": (0, 1)})
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     did = dc.DifferenceInDifferences(epsilon=2.0, delta=1e-6, bounds=bounds)
    ...     _ = did.fit(after, t, before=before, X=old[:, None])
    >>> low, high = did.interval(alpha=0.05)
    >>> bool(low < 0.5 < high)
    True
    """

    method_id: ClassVar[str] = "discreet/difference-in-differences"
    release_types: ClassVar = (Release,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)
    samples: ClassVar[bool] = True
    roles: ClassVar[tuple[Role, ...]] = (BEFORE,)

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure:
            raise InvalidBudget("DifferenceInDifferences needs delta, e.g. delta=1e-6: its rounds add Gaussian noise.")

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        measured = ATT(**self.get_params())._measure(gate.viewed(Change(gate.bounds.binary)))
        self.release_ = _as_change(measured, gate)


def _as_change(measured: Release, gate: Gate) -> Release:
    """What is published of an effect on changes: no effect exceeds the declared range of the outcome itself."""
    width, stated = gate.bounds.outcome_width, measured.guarantee
    proof = (stated.proof or "").replace("att.md", "did.md")
    notes = [note.replace(AS_GOOD_AS_RANDOM, _TRENDS) for note in measured.notes]
    return replace(
        measured,
        kind="difference-in-differences",
        estimate=min(max(measured.estimate, -width), width),
        bounds=gate.bounds,
        guarantee=replace(stated, proof=proof, audit=audit_of(proof, stated.neighbours, pure=False)),
        notes=("What is compared is how outcomes changed: records that lack either period are no records.", *notes),
    )
