"""What published intervals are compared with: intervals that are not private, and a private difference of means.

The first five are those of the comparison in "PrivATE: Differentially Private Confidence Intervals for Average
Treatment Effects" (section 5, supplement D). They take exact statistics of the records, and four of them are not
private at all. Of the bootstrap the paper says only that it runs on the private estimate and that each query has a
budget of its own: in `private_bootstrap` every replicate is a private estimate (Theorem 4.3) with an equal part of the
budget, which makes it a claim, and scores are resampled with their nuisances held fixed.

Nor does the paper say how it ran the private difference of means of Guha and Reiter (2024), which was written for
binary outcomes. `SubsampledDifference` is the idea behind it, subsample and aggregate, for any bounded outcome, with
noise through the gate instead of Laplace noise.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtri

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.estimators._parameters import Parameters
from discreet.estimators._results import AverageResult
from discreet.exceptions import InvalidInput, MissingBounds
from discreet.ledger.charging import on_ledger
from discreet.papers.common.arrays import Rows
from discreet.papers.common.averages import average
from discreet.papers.common.claims import claimed_guarantee, warn_of_claim
from discreet.papers.common.influence import noise_factor
from discreet.papers.private_ate.equations import Exact
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee, Neighbours
from discreet.privacy.noise import published_gaussian
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import MeanSquare
from discreet.releases.average import Release


class Interval(NamedTuple):
    """The two ends of a confidence interval."""

    low: float
    high: float


class ClaimedInterval(NamedTuple):
    """An interval, and what its authors claim for it."""

    interval: Interval
    guarantee: Guarantee


def standard(exact: Exact, alpha: float) -> Interval:
    """Without any privacy: the AIPW estimate and its own standard error.

    Examples
    --------
    >>> exact = Exact(n=400, tau=1.0, sigma2=4.0, gamma=8.0)
    >>> [round(end, 2) for end in standard(exact, alpha=0.05)]
    [0.8, 1.2]
    """
    return _normal(exact.tau, exact.sigma2 / exact.n, alpha)


def naive(exact: Exact, tau_dp: float, alpha: float) -> Interval:
    """Around a private estimate, as if it had no noise: the variance is neither private nor large enough.

    Examples
    --------
    >>> exact = Exact(n=400, tau=1.0, sigma2=4.0, gamma=8.0)
    >>> [round(end, 2) for end in naive(exact, tau_dp=1.1, alpha=0.05)]
    [0.9, 1.3]
    """
    return _normal(tau_dp, exact.sigma2 / exact.n, alpha)


def valid_naive(exact: Exact, tau_dp: float, epsilon1: float, delta1: float, alpha: float) -> Interval:
    """Around a private estimate, with the variance of its noise added to a variance that is not private (Table 2).

    Examples
    --------
    >>> exact = Exact(n=400, tau=1.0, sigma2=4.0, gamma=8.0)
    >>> [round(end, 2) for end in valid_naive(exact, tau_dp=1.1, epsilon1=1.0, delta1=1e-5, alpha=0.05)]
    [-1.28, 3.48]
    """
    return _normal(tau_dp, exact.sigma2 / exact.n + exact.estimate_noise(epsilon1, delta1) ** 2, alpha)


def bootstrap(scores: Float, alpha: float, *, replicates: int = 100, random_state: Any = None) -> Interval:
    """Percentiles of resampled means, without any privacy.

    Parameters
    ----------
    scores : array of shape (n,)
        AIPW scores.
    alpha : float
        One minus the level of confidence.
    replicates : int
        How often the scores are resampled.
    random_state : int or None
        Seeds the resampling.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = bootstrap(np.linspace(0.0, 2.0, 400), alpha=0.05, random_state=0)
    >>> round(low, 1), round(high, 1)
    (0.9, 1.1)
    """
    return _percentiles(_resampled_means(scores, alpha, replicates, random_state), alpha)


def private_bootstrap(
    scores: Float, alpha: float, *, gamma: float, budget: Budget, replicates: int = 100, random_state: Any = None
) -> ClaimedInterval:
    """Percentiles of resampled means, each of them a private estimate; warns, because that is a claim.

    Parameters
    ----------
    scores, alpha, replicates
        As in `bootstrap`.
    gamma : float
        Gross-error sensitivity of the estimate, which scales the noise.
    budget : Budget
        What all replicates together are claimed to spend.
    random_state : int or None
        Seeds the resampling, never the noise.

    Privacy
    -------
    Claimed, as the sum of what Theorem 4.3 claims for each replicate: that is known to fail, and a resampled record
    counts more than once.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import discreet as dc
    >>> scores, budget = np.linspace(0.0, 2.0, 400), dc.Budget(epsilon=1.0, delta=1e-5)
    >>> with dc.testing.seeded_noise(0), warnings.catch_warnings(action="ignore"):
    ...     claimed = private_bootstrap(scores, 0.05, gamma=1.0, budget=budget, random_state=0)
    >>> claimed.interval.low < 1.0 < claimed.interval.high
    True
    """
    means = _resampled_means(scores, alpha, replicates, random_state)
    if budget.delta is None:
        raise InvalidInput("budget needs a delta for Theorem 4.3: add delta=1e-5 or the like.")
    warn_of_claim(
        "private_bootstrap", "It rests on the claim of PrivATE, which fails, and counts resampled records once."
    )
    sd = gamma * noise_factor(len(scores), budget.epsilon / replicates, budget.delta / replicates)
    noisy = means + published_gaussian(replicates, sd)
    guarantee = claimed_guarantee(
        f"{replicates} resampled estimates", budget, public=("the number of records", "the gross-error sensitivity")
    )
    return ClaimedInterval(_percentiles(noisy, alpha), guarantee)


class SubsampledDifference(AverageResult, Parameters):
    """Difference of the arms' means in a randomised trial, by subsample and aggregate.

    Records are dealt into groups; each group's difference of means is one bounded number, and their mean is released
    with the variance between groups. `discreet.DifferenceInMeans` needs far less noise: this is a yardstick.

    Parameters
    ----------
    epsilon, delta : float
        The budget; without a delta the noise is Laplace noise.
    bounds : Bounds
        Public facts; only outcome and treatment are used.
    groups : int, default 25
        Number of groups. More of them mean less noise, and more groups without treated or without control records,
        which count as a difference of 0.
    random_state : int or None
        Seeds the dealing, never the noise.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record under replace-one. Public: the bounds, the number of records, the groups. Proof:
    docs/proofs/propensity.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=2_000, seed=1)
    >>> means = dc.papers.baselines.SubsampledDifference(epsilon=4.0, bounds=trial.bounds, random_state=0)
    >>> with dc.testing.seeded_noise(0):
    ...     _ = means.fit(trial.Y, trial.T, X=trial.X)
    >>> low, high = means.ate_interval()
    >>> low < 1.0 < high
    True
    """

    method_id: ClassVar[str] = "discreet/papers/subsampled-difference"
    neighbours: ClassVar[Neighbours] = "replace-one"

    def __init__(
        self,
        *,
        epsilon: float,
        bounds: Bounds,
        delta: float | None = None,
        groups: int = 25,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.delta = delta
        self.groups = groups
        self.random_state = random_state

    @on_ledger(Release)
    def fit(self, Y: Any, T: Any, *, X: Any = None) -> SubsampledDifference:
        """Estimate from arrays or frames; covariates are checked against the bounds and ignored."""
        if not isinstance(self.bounds, Bounds):
            raise MissingBounds(
                "SubsampledDifference needs bounds=Bounds(outcome=(low, high)). "
                "Declare them; do not compute them from the data."
            )
        self.__dict__.pop("release_", None)
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        rows = Rows.of(Y, T, X, self.bounds)
        if isinstance(self.groups, bool) or not isinstance(self.groups, int) or not 2 <= self.groups <= rows.n // 2:
            raise InvalidInput("groups must be an integer between 2 and half of the number of records: choose another.")
        differences = group_differences(rows, self.groups, self.random_state)
        # One group is one record of the derived data set (docs/proofs/propensity.md, lemma 4).
        derived = Rows(y=differences, t=np.zeros(self.groups), x=np.empty((self.groups, 0)), bounds=self.bounds)
        gate = Gate(derived, budget=budget)
        (sums,) = gate.ask(Query("differences between arms", 1.0, MeanSquare(2.0), lambda chunk: chunk.y))
        widest = self.bounds.outcome_width
        estimate, uncertainty = average(sums, self.groups, unit=widest / 2)
        self.release_ = Release(
            kind="difference-in-means",
            estimate=min(max(estimate, -widest), widest),
            uncertainty=uncertainty,
            n=rows.n,
            guarantee=gate.guarantee(
                proof="propensity.md", public=("the declared bounds", "the number of records", "the groups")
            ),
            bounds=self.bounds,
            design="known propensity",
            adjustment={
                "covariates": [],
                "basis": "none",
                "groups": self.groups,
                "before": f"Records were dealt by lot into {self.groups} groups, and each group gave one number, the "
                "difference of its arms' means",
                "sums_over": "the groups",
            },
            notes=("Treatment is taken to be randomised: no covariate is adjusted for.",),
        )
        return self


def group_differences(rows: Rows, groups: int, random_state: Any = None) -> Float:
    """Each group's difference of means, of outcomes on [-1, 1]; 0 for a group that lacks an arm."""
    from sklearn.utils import check_random_state

    group = check_random_state(random_state).permutation(np.arange(rows.n) % groups)
    treated, control = (np.bincount(group, weights=arm, minlength=groups) for arm in (rows.t, 1 - rows.t))
    sums = (np.bincount(group, weights=arm * rows.y, minlength=groups) for arm in (rows.t, 1 - rows.t))
    mean1, mean0 = (total / np.maximum(count, 1) for total, count in zip(sums, (treated, control), strict=True))
    return np.where((treated > 0) & (control > 0), mean1 - mean0, 0.0)


def _resampled_means(scores: Float, alpha: float, replicates: int, random_state: Any) -> Float:
    from sklearn.utils import check_random_state

    _check_alpha(alpha)
    if isinstance(replicates, bool) or not isinstance(replicates, int) or replicates < 2:
        raise InvalidInput("replicates must be an integer of at least 2; 100 is common.")
    n = len(scores)
    counts = check_random_state(random_state).multinomial(n, np.full(n, 1 / n), size=replicates)
    return np.asarray(counts @ scores / n)


def _percentiles(means: Float, alpha: float) -> Interval:
    low, high = np.quantile(means, [alpha / 2, 1 - alpha / 2])
    return Interval(float(low), float(high))


def _normal(centre: float, variance: float, alpha: float) -> Interval:
    _check_alpha(alpha)
    half = float(ndtri(1 - alpha / 2)) * sqrt(variance)
    return Interval(centre - half, centre + half)


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InvalidInput("alpha must lie between 0 and 1; 0.05 asks for a 95 % interval.")
