"""Points at which a published method is asked for effects, checked and encoded."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds, Range
from discreet.data.columns import numbers
from discreet.data.frames import table
from discreet.exceptions import InvalidInput


def encode_queries(queries: Any, bounds: Bounds, name: str = "queries") -> Float:
    """Covariates of queries, encoded as `Bounds` does. Nothing is clipped: a query outside the domain is refused.

    Parameters
    ----------
    queries : array-like or frame of shape (d, p)
        Covariates, matched to the bounds by name where both have names.
    bounds : Bounds
        The declared domain.
    name : str
        What errors call them.
    """
    if queries is None:
        raise InvalidInput(f"{name} are missing: give the covariates at which effects are wanted.")
    try:
        columns = table(queries, bounds)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None
    if not columns or not len(columns[0]):
        raise InvalidInput(f"{name} must hold at least one row of covariates: give the points of interest.")
    encoded = []
    for column, spec, label in zip(columns, bounds.columns, bounds.names, strict=True):
        what = f"column {label!r} of {name}"
        if isinstance(spec, Range):
            values = numbers(column, what)
            # Written so that NaN is refused too, except where being missing is a covariate of its own.
            inside = (values >= spec.low) & (values <= spec.high)
            if not np.all(inside | np.isnan(values) if spec.missing else inside):
                raise InvalidInput(f"{what} leaves the declared domain: ask inside the bounds, or declare wider ones.")
        encoded.append(spec.encode(column, what))
    return np.column_stack(encoded)
