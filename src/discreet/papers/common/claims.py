"""A published claim of privacy: a warning, and a guarantee that says "claimed"."""

import sys
import warnings

from discreet.privacy.budget import Budget, ClaimedEvent
from discreet.privacy.guarantee import Guarantee, Neighbours
from discreet.privacy.noise import drawing_is_seeded


class UnprovedClaim(UserWarning):
    """A method was fitted whose privacy rests on its authors' claim.

    Examples
    --------
    >>> import warnings
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=200, seed=1)
    >>> cells = dc.papers.ADUM(epsilon=1.0, bounds=study.bounds, by={0: 2}, outcome_bound="range")
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     _ = cells.fit(study.Y, study.T, X=study.X)
    >>> issubclass(seen[0].category, dc.papers.UnprovedClaim)
    True
    """


def warn_of_claim(method: str, measured: str) -> None:
    """Warn that the guarantee of a method is its authors' alone; ``measured`` says what is known about it.

    The warning points at the line outside of the library that fits.
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "discreet":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{method}: the guarantee is claimed, not proved. {measured}", UnprovedClaim, stacklevel=level)


def claimed_guarantee(
    name: str,
    budget: Budget,
    *,
    unit: str = "one record",
    public: tuple[str, ...] = (),
    neighbours: Neighbours = "replace-one",
) -> Guarantee:
    """The authors' (epsilon, delta), as one event of which nothing but the claim is known."""
    event = ClaimedEvent(name=name, epsilon=budget.epsilon, delta=budget.delta or 0.0)
    return Guarantee(
        epsilon=budget.epsilon,
        delta=budget.delta or 0.0,
        neighbours=neighbours,
        unit=unit,
        status="test" if drawing_is_seeded() else "claimed",
        public=public,
        events=(event,),
    )
