"""One word for what a guarantee rests on, over all papers: the authors' claim, or a proof."""

from __future__ import annotations

import warnings
from typing import Literal, get_args

from discreet.exceptions import InvalidInput

Calibration = Literal["published", "proved"]

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


def warn_of_old_word(old: str, new: str) -> None:
    """Say what an argument is called now."""
    warnings.warn(f"{old} is {new} now, and goes in 0.6: change the argument.", DeprecationWarning, stacklevel=4)
