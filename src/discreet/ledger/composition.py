"""What a request costs, and when the costs of all requests fit under a cap.

Analysts choose what to ask, and with how much budget, after they have seen earlier releases. So a cap is not checked by
composing parameters that were fixed in advance, but by privacy filters, which hold for any such choice. Proof:
docs/proofs/ledger.md.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, Literal, get_args

from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.accountant import RESERVE, SLACK, calibrate_mu, gdp_mu, lattice_delta, sets_slack_aside
from discreet.privacy.budget import Budget

Composition = Literal["either", "gaussian", "plain"]

# Gaussian requests that one cap admits: each may be SLACK away from continuous noise.
MOST_REQUESTS = 10_000
# Stated numbers are good to twelve digits, as in a guarantee: 0.1 + 0.2 must fit into 0.3.
_DIGITS = 1 + 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one request is charged.

    Parameters
    ----------
    epsilon, delta
        What its release will state; a delta of 0 is pure epsilon.
    mu
        Set where everything is released through one gate with Gaussian noise: all rounds together are mu-GDP.

    Examples
    --------
    >>> import discreet as dc
    >>> Cost.of(dc.Budget(epsilon=1))
    Cost(epsilon=1.0, delta=0.0, mu=None)
    >>> round(Cost.of(dc.Budget(epsilon=1, delta=1e-6), one_gate=True).mu, 2)
    0.24
    """

    epsilon: float
    delta: float = 0.0
    mu: float | None = None

    def __post_init__(self) -> None:
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        object.__setattr__(self, "epsilon", budget.epsilon)
        object.__setattr__(self, "delta", budget.delta or 0.0)
        # Written so that NaN is refused too.
        if self.mu is not None and not (0 < self.mu < math.inf and self.delta > 0):
            raise InvalidBudget("mu must be a positive number, and comes with a delta: leave it out otherwise.")

    @classmethod
    def of(cls, budget: Budget, *, one_gate: bool = False) -> "Cost":
        """The cost of a fit with this budget.

        Parameters
        ----------
        budget
            All that the fit may spend.
        one_gate
            Whether it spends it in a single gate; otherwise nothing but epsilon and delta is known of it.
        """
        if one_gate and budget.delta is not None and sets_slack_aside(budget.epsilon, budget.delta):
            mu = calibrate_mu(budget.epsilon, budget.delta)
            return cls(epsilon=budget.epsilon, delta=budget.delta, mu=mu)
        return cls(epsilon=budget.epsilon, delta=budget.delta or 0.0)

    @property
    def budget(self) -> Budget:
        """Epsilon and delta."""
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def gdp_mu(self) -> float:
        """A mu for which the request is mu-GDP; infinite where there is none."""
        if self.mu is not None:
            return self.mu
        return math.inf if self.delta else pure_mu(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Cost":
        """Read a cost back."""
        return cls(**plain)


@lru_cache(maxsize=1024)
def pure_mu(epsilon: float) -> float:
    """A mu for which every epsilon-DP mechanism is mu-GDP, rounded up. Proof: docs/proofs/ledger.md, lemma 2."""
    from scipy.special import log_expit, ndtri_exp

    if epsilon < 1e-4:
        # The tangent at zero lies above, and cancellation would spoil the difference.
        return math.nextafter(epsilon * math.sqrt(math.pi / 2.0) * (1 + 1e-9), math.inf)
    return math.nextafter(-2.0 * float(ndtri_exp(log_expit(-epsilon))) * (1 + 1e-9), math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Costs added up: plainly, and as mu-GDP (infinite where one of them is not).

    Examples
    --------
    >>> total = Total.of([Cost(epsilon=0.5), Cost(epsilon=0.25)])
    >>> total.epsilon, total.requests
    (0.75, 2)
    """

    epsilon: float = 0.0
    delta: float = 0.0
    mu: float = 0.0
    requests: int = 0

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> "Total":
        """Add up."""
        costs = tuple(costs)
        return cls(
            epsilon=math.fsum(cost.epsilon for cost in costs),
            delta=math.fsum(cost.delta for cost in costs),
            mu=math.sqrt(math.fsum(cost.gdp_mu**2 for cost in costs)),
            requests=len(costs),
        )


def check_composition(composition: str, cap: Budget) -> Composition:
    """The filter of a cap: a pure cap has but one."""
    for known in get_args(Composition):
        if composition == known:
            return "plain" if cap.pure and known == "either" else _with_delta(known, cap)
    raise InvalidInput(f"composition must be one of {', '.join(get_args(Composition))}: choose how costs add up.")


def _with_delta(composition: Composition, cap: Budget) -> Composition:
    if composition == "gaussian" and cap.pure:
        raise InvalidBudget("composition='gaussian' needs a delta: a pure cap adds up epsilons.")
    return composition


@lru_cache(maxsize=256)
def gaussian_limit(cap: Budget, composition: Composition) -> float:
    """What the mu of all requests may add up to, in squares; 0 where the filter has no such way."""
    if composition == "plain" or cap.delta is None:
        return 0.0
    delta = (cap.delta if composition == "gaussian" else cap.delta / 2) * (1 - RESERVE)
    slack = MOST_REQUESTS * SLACK
    # What the lattice costs grows with e^epsilon: beyond a quarter of delta a smaller epsilon is held instead.
    epsilon = min(cap.epsilon, math.log(max(delta / (4 * slack), 1.0)))
    return gdp_mu(epsilon, delta - lattice_delta(slack, epsilon)) if epsilon > 0 else 0.0


def plain_limit(cap: Budget, composition: Composition) -> tuple[float, float]:
    """What epsilons and deltas may add up to; zeros where the filter has no such way."""
    if composition == "gaussian":
        return 0.0, 0.0
    delta = cap.delta or 0.0
    return cap.epsilon, delta if composition == "plain" else delta / 2


def admits(cap: Budget, composition: Composition, total: Total) -> bool:
    """Whether costs that add up to this fit under the cap. Proof: docs/proofs/ledger.md, theorem."""
    epsilon, delta = plain_limit(cap, composition)
    if total.epsilon <= epsilon * _DIGITS and total.delta <= delta * _DIGITS:
        return True
    return total.requests <= MOST_REQUESTS and total.mu <= gaussian_limit(cap, composition)


def over(cap: Budget, cost: Cost) -> bool:
    """Whether a single request states a larger epsilon than its cap: with a small delta squares would admit it."""
    return cost.epsilon > cap.epsilon * _DIGITS


def within_quota(cap: Budget, total: Total) -> bool:
    """Whether an analyst's costs fit under the analyst's cap, added up in whichever way is kinder.

    A quota divides what the data set's own cap has to give, and the data set's cap is what protects the records.
    """
    return admits(cap, "plain", total) or (not cap.pure and admits(cap, "gaussian", total))
