"""A published claim of privacy: the word for it, a warning, and a guarantee that says "claimed"."""

import sys
import warnings
from typing import Literal, get_args

from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget, ClaimedEvent
from discreet.privacy.guarantee import Guarantee, Neighbours
from discreet.privacy.noise import drawing_is_seeded

Calibration = Literal["published", "proved"]
"""What a guarantee rests on, over all papers: the authors' claim, or a proof."""


class UnprovedClaim(UserWarning):
    """A method was fitted whose privacy rests on its authors' claim.

    Examples
    --------
    >>> import warnings
    >>> import discreet as dc
    >>> from discreet.datasets import adum
    >>> study = adum(n=200, seed=1)
    >>> cells = dc.papers.ADUM(epsilon=1.0, bounds=study.bounds, by={0: 2}, calibration="published")
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


# What was said instead, before there was one word.
_OLD = {"paper": "published"}


def calibration_of(given: object) -> Calibration:
    """The calibration by its word; an old word is understood, with a warning.

    Examples
    --------
    >>> calibration_of("proved")
    'proved'
    """
    if isinstance(given, str) and given in _OLD:
        warn_of_old_word(f"calibration={given!r}", f"calibration={_OLD[given]!r}")
        given = _OLD[given]
    for known in get_args(Calibration):
        if given == known:
            word: Calibration = known
            return word
    raise InvalidInput("calibration must be one of 'published', 'proved': the authors' claim, or what has a proof.")


def by_calibration(calibration: object, name: str, given: str, published: str, proved: str) -> str:
    """What an older argument stands for, where one word chooses now.

    Parameters
    ----------
    calibration
        The word, or None where the older argument says it.
    name, given
        The older argument and its value; ``proved`` is its default.
    published, proved
        Its values.
    """
    if calibration is None:
        if given == published:
            warn_of_old_word(f"{name}={given!r}", "calibration='published'")
        return given
    word = calibration_of(calibration)
    if word == "proved" and given == published:
        raise InvalidInput(f"calibration='proved' contradicts {name}={given!r}: leave {name} out.")
    return published if word == "published" else given


def warn_of_old_word(old: str, new: str) -> None:
    """Say what an argument is called now."""
    warnings.warn(f"{old} is {new} now, and goes in 0.6: change the argument.", DeprecationWarning, stacklevel=4)
