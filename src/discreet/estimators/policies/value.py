"""What a policy gains among records that it was not chosen from, with a proved guarantee and a lower bound."""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar

from discreet.data.bounds import Bounds
from discreet.data.records import Records
from discreet.data.views.within import Region
from discreet.estimators._allocation import COUNT
from discreet.estimators._base import ROWS_ALIKE, ROWS_JOINED, Progress, TableFits, count_first
from discreet.estimators._parameters import Parameters
from discreet.estimators.ate import ATE
from discreet.estimators.difference_in_means import measure_means
from discreet.estimators.measurements.score import with_count
from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_within import gate_within
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.sensitivity.sets import Interval
from discreet.releases.average import Release
from discreet.releases.policies.policy import Policy
from discreet.releases.policies.value import PolicyValueRelease


class PolicyValue(TableFits[PolicyValueRelease], Parameters):
    """What a policy gains per person: E[pi(X) (Y(1) - Y(0) - cost)], pi(X) being 1 for people whom it treats.

    The rounds of `ATE` among the records that the policy would treat, after their number. Fit it to records that the
    policy was not chosen from: half of a trial, or the next one.

    Parameters
    ----------
    policy : Policy
        Whom to treat, and at which cost; its covariates are among those of the bounds.
    epsilon, delta : float
        The budget; without a delta all noise is Laplace noise, and treatment must have been drawn by lot, with a
        ``propensity``.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design. Without it, models of treatment and outcome adjust.
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.

    Attributes
    ----------
    release_ : PolicyValueRelease
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public: the
    bounds, the policy, the number of records under replace-one, a known propensity. How many records the policy would
    treat is released with noise. Proof: docs/proofs/policy.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> first, second = adum(n=4_000, seed=1), adum(n=4_000, seed=2)
    >>> uplift = dc.Uplift(epsilon=2.0, bounds=first.bounds, by={0: 4}, propensity=0.5)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     policy = uplift.fit(first.Y, first.T, X=first.X).policy(cost=0.1)
    ...     value = dc.PolicyValue(policy=policy, epsilon=2.0, bounds=second.bounds, propensity=0.5)
    ...     _ = value.fit(second.Y, second.T, X=second.X)
    >>> round(value.value_, 1), value.value_lower(alpha=0.05) > 0.1
    (0.2, True)
    """

    method_id: ClassVar[str] = "discreet/policy-value"
    release_types: ClassVar = (PolicyValueRelease,)
    one_gate: ClassVar[bool] = True
    unit_notes: ClassVar[tuple[str, str]] = (ROWS_ALIKE, ROWS_JOINED)

    def __init__(
        self,
        *,
        policy: Policy,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        propensity: Any = None,
        neighbours: Neighbours = "replace-one",
    ) -> None:
        self.policy = policy
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.propensity = propensity
        self.neighbours = neighbours

    @property
    def value_(self) -> float:
        """What the policy gains per person of all, its cost taken off."""
        return self._released().estimate

    def value_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Interval of the gain at level ``1 - alpha``: sampling error and privacy noise together. Costs nothing."""
        return self._released().interval(alpha)

    def value_lower(self, alpha: float = 0.05) -> float:
        """What the policy gains at least, with probability ``1 - alpha``: one-sided, so higher than an interval's."""
        return self._released().lower(alpha)

    def _check_budget(self, budget: Budget) -> None:
        if budget.pure and self.propensity is None:
            raise InvalidBudget(
                "PolicyValue needs delta, e.g. delta=1e-6, where no propensity= says how treatment was drawn: its "
                "models have Gaussian noise."
            )
        policy: object = self.policy
        if not isinstance(policy, Policy):
            raise InvalidInput(
                "policy must be a Policy: take that of Uplift or CATE, or one of Policy.of, Policy.declare or "
                "discreet.load."
            )
        if not policy.treats:
            raise InvalidInput("policy treats nobody, which gains exactly nothing: there is nothing to measure.")
        if policy.cost > self.bounds.outcome_width:
            raise InvalidInput(
                "policy has a cost beyond the width of the outcome's range, so that its outcome must be another one: "
                "declare the same outcome."
            )
        self._region()

    def _region(self) -> Region:
        """Records that the policy would treat."""
        own, declared = self.policy.bounds, dict(zip(self.bounds.names, self.bounds.columns, strict=True))
        different = [name for name, spec in zip(own.names, own.columns, strict=True) if declared.get(name) != spec]
        if different:
            raise InvalidInput(
                f"policy looks at covariates that the bounds do not declare as it does: {', '.join(different)}. "
                "Declare them with the same names, ranges and levels, or choose a policy by these covariates."
            )
        return Region(self.policy.rule, tuple(map(self.bounds.names.index, own.names)))

    def _fit(self, records: Records, progress: Progress | None) -> None:
        gate = self._open_gate(records, progress)
        count_first(gate)
        inside = gate_within(gate, self._region(), COUNT)
        share = min(inside.n / gate.n, 1.0)
        noise = with_count(gate, inside.noise_sd(Interval(0.0, 1.0), COUNT) / gate.n, share)
        among = self._measure(inside)
        self.release_ = PolicyValueRelease(
            policy=self.policy,
            effect_among=among.estimate,
            uncertainty=among.uncertainty,
            share=share,
            share_sampling=sqrt(gate.most_rows * share * (1.0 - share) / gate.n),
            share_noise=noise,
            n=gate.n,
            guarantee=gate.guarantee(proof="policy.md, ate.md", public=self._public(gate)),
            bounds=gate.bounds,
            design=among.design,
            adjustment=among.adjustment,
            notes=(_ELSEWHERE, *among.notes),
        )

    def _measure(self, inside: Gate) -> Release:
        """The average effect among the records that the policy would treat."""
        if inside.pure:
            return measure_means(inside, self.propensity, "difference-in-means")
        given = {name: value for name, value in self.get_params().items() if name != "policy"}
        return ATE(**given)._measure(inside)

    def _public(self, gate: Gate) -> tuple[str, ...]:
        known = () if gate.counts_rows else ("the number of records",)
        design = ("the probability of treatment",) if self.propensity is not None else ()
        return ("the declared bounds", "the policy", *known, *design)


_ELSEWHERE = (
    "The value is an honest one if the policy was not chosen from these records, and is that among people like them; "
    "treating some is taken not to change what happens to others."
)
