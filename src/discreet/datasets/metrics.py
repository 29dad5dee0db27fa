"""How good an effect function is: its error where the truth is known, and its ranking where it is not.

Nothing here is private. These are for simulations and for public data: numbers computed from records that must be
protected have to go through an estimator.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.data._arrays import Float
from discreet.exceptions import InvalidInput


class Area(NamedTuple):
    """An area under a curve, and that of a ranking by chance.

    Examples
    --------
    >>> round(Area(value=0.75, chance=0.5).gain, 2)
    0.25
    """

    value: float
    chance: float

    @property
    def gain(self) -> float:
        """How much better than by chance."""
        return self.value - self.chance


class Curve(NamedTuple):
    """A curve over the share of records that are treated first.

    Examples
    --------
    >>> import numpy as np
    >>> Curve(share=np.array([0.0, 0.5, 1.0]), value=np.array([0.0, 1.0, 1.0])).area
    Area(value=0.75, chance=0.5)
    """

    share: Float
    value: Float

    @property
    def area(self) -> Area:
        """Area under the curve, and under the straight line between its ends."""
        return Area(float(np.trapezoid(self.value, self.share)), float(self.value[-1]) / 2)


def pehe(truth: Any, estimate: Any) -> float:
    """Precision in estimation of heterogeneous effects: the mean squared error of effects. Not private.

    Parameters
    ----------
    truth, estimate : array-like of shape (n,)
        True and estimated effects of the same records. Some papers report the square root.

    Examples
    --------
    >>> pehe(truth=[1.0, 2.0], estimate=[1.0, 4.0])
    2.0
    """
    true, found = _column(truth, "truth"), _column(estimate, "estimate")
    if len(true) != len(found):
        raise InvalidInput("truth and estimate must have one entry per record each: align their lengths.")
    return float(np.mean((true - found) ** 2))


def uplift_curve(Y: Any, T: Any, score: Any) -> Curve:
    """What treating the highest scores first is worth, per record of all. Not private.

    At a share s of the records, those with the highest scores, it is s times the difference of their arms' mean
    outcomes. Equal scores are taken at once, and the curve is a straight line between; where an arm is still empty it
    is zero. The last value is the average effect.

    Parameters
    ----------
    Y, T : array-like of shape (n,)
        Outcome and treatment (0 or 1) in a randomised trial.
    score : array-like of shape (n,)
        Estimated effects, or anything else that ranks.

    Examples
    --------
    >>> uplift_curve(Y=[1, 0, 1, 1], T=[1, 0, 1, 0], score=[2, 2, 1, 1]).value.tolist()
    [0.0, 0.5, 0.5]
    """
    seen = _ranked(Y, T, score)
    known = (seen.treated > 0) & (seen.control > 0)
    treated, control = np.maximum(seen.treated, 1.0), np.maximum(seen.control, 1.0)
    difference = np.where(known, seen.treated_sum / treated - seen.control_sum / control, 0.0)
    return _from_zero(seen.share, seen.share * difference)


def qini_curve(Y: Any, T: Any, score: Any) -> Curve:
    """Radcliffe's curve: outcomes gained in the treated arm by treating the highest scores first. Not private.

    At every share, the sum of treated outcomes minus that of control outcomes scaled to as many treated records, over
    the number of treated records. Equal scores are taken at once; while no control record is seen, nothing is
    subtracted.

    Parameters
    ----------
    Y, T, score : array-like of shape (n,)
        As for `uplift_curve`.

    Examples
    --------
    >>> qini_curve(Y=[1, 0, 1, 1], T=[1, 0, 1, 0], score=[2, 2, 1, 1]).value.tolist()
    [0.0, 0.5, 0.5]
    """
    seen = _ranked(Y, T, score)
    scale = np.where(seen.control > 0, seen.treated / np.maximum(seen.control, 1.0), 0.0)
    return _from_zero(seen.share, (seen.treated_sum - seen.control_sum * scale) / seen.treated[-1])


def auuc(Y: Any, T: Any, score: Any) -> Area:
    """Area under the uplift curve, with that of a ranking at random: half of the average effect. Not private.

    Parameters
    ----------
    Y, T, score : array-like of shape (n,)
        As for `uplift_curve`.

    Examples
    --------
    >>> auuc(Y=[1, 0, 1, 1], T=[1, 0, 1, 0], score=[2, 2, 1, 1])
    Area(value=0.375, chance=0.25)
    """
    return uplift_curve(Y, T, score).area


def qini(Y: Any, T: Any, score: Any) -> Area:
    """Area under Radcliffe's curve, with that of a ranking at random; their difference is Qini's coefficient.

    Not private.

    Parameters
    ----------
    Y, T, score : array-like of shape (n,)
        As for `uplift_curve`.

    Examples
    --------
    >>> qini(Y=[1, 0, 1, 1], T=[1, 0, 1, 0], score=[2, 2, 1, 1])
    Area(value=0.375, chance=0.25)
    """
    return qini_curve(Y, T, score).area


class _Seen(NamedTuple):
    """Running totals at the end of each group of equal scores, the highest first."""

    share: Float
    treated: Float
    control: Float
    treated_sum: Float
    control_sum: Float


def _ranked(Y: Any, T: Any, score: Any) -> _Seen:
    y, t, s = _column(Y, "Y"), _column(T, "T"), _column(score, "score")
    if not len(y) == len(t) == len(s):
        raise InvalidInput("Y, T and score must have one entry per record each: align their lengths.")
    if not np.isin(t, (0.0, 1.0)).all() or t.min() == t.max():
        raise InvalidInput("T must hold 0 and 1, and both of them: an effect needs treated and control records.")
    order = np.argsort(-s, kind="stable")
    y, t, s = y[order], t[order], s[order]
    ends = np.flatnonzero(np.append(s[1:] != s[:-1], True))
    totals = [np.cumsum(part)[ends] for part in (t, 1.0 - t, y * t, y * (1.0 - t))]
    return _Seen((ends + 1) / len(y), *totals)


def _from_zero(share: Float, value: Float) -> Curve:
    return Curve(np.append(0.0, share), np.append(0.0, value))


def _column(values: Any, name: str) -> Float:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not len(column) or not np.isfinite(column).all():
        raise InvalidInput(f"{name} must be a column of finite numbers: check it.")
    return column
