"""Average effects on the treated with a proved (epsilon, delta) and a confidence interval."""

from __future__ import annotations

from typing import ClassVar

from discreet.estimators._results import WeightedResult
from discreet.estimators.measurements.estimand import TREATED, Estimand
from discreet.estimators.weighted.average import AverageEffect


class ATT(WeightedResult, AverageEffect):
    """Average effect on the treated: what treatment did to those who received it.

    Their outcomes are compared with those of controls who are like them. Only controls are weighted: it does not
    matter whether everyone had a chance of being treated.

    The rounds are those of `ATE`, with the score weighted, and one more for the sum of the weights.

    Parameters
    ----------
    epsilon, delta : float
        The budget. A delta is needed: the rounds are Gaussian.
    bounds : Bounds
        Public facts: outcome range, covariates, overlap.
    propensity : float, array or column name, optional
        Probability of treatment where it is known by design (a randomised trial).
    neighbours : {"replace-one", "add-remove"}
        Which data sets must look alike. Under add-remove the number of records is private too.
    cap : float or "auto", optional
        Larger outcomes count as this number, as in `ATE`.

    Attributes
    ----------
    release_ : Release
        The only thing that fitting leaves behind; it may be published.

    Privacy
    -------
    Protects every record's outcome, treatment and covariates under the stated relation, for every data set. Public:
    the bounds, the number of records under replace-one, a known propensity. Proof: docs/proofs/att.md.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import draw
    >>> study = draw("private-ci-1", n=4_000, seed=1)
    >>> with dc.testing.seeded_noise(0):  # leave this line out to publish
    ...     att = dc.ATT(epsilon=1.0, delta=1e-6, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    >>> round(att.estimate_, 1)
    1.0
    >>> low, high = att.interval(alpha=0.05)
    >>> low < 1.0 < high
    True
    """

    method_id: ClassVar[str] = "discreet/att"
    estimand: ClassVar[Estimand] = TREATED
