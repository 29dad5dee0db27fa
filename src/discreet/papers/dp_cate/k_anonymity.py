"""k-anonymity by Mondrian, then any learner: the naive baseline of the DP-CATE paper (supplement E.2).

The paper does not say how it anonymises. Here records are cut at the median of the widest covariate, as long as both
sides keep k records, and the covariates of a group become its means (of levels: the most frequent one). The paper
expects aggregation to break the consistency of outcome and treatment, which means of covariates cannot do, but means of
outcomes over both arms can: ``aggregate="outcomes"`` replaces outcomes by their group's means, too.
**Nothing here is differentially private**: k-anonymity protects against none of the attacks that epsilon bounds.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from discreet.data._arrays import Float, IntArray
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import gather
from discreet.papers.common.influence import level_counts
from discreet.papers.common.nuisances import design
from discreet.papers.common.queries import encode_queries
from discreet.papers.dp_cate.pointwise import DPCATE

Aggregate = Literal["covariates", "outcomes"]


def anonymised_effects(
    model: DPCATE, Y: Any, T: Any, *, X: Any, queries: Any, k: int, aggregate: Aggregate = "covariates"
) -> Float:
    """Effects that the learner of a DP-CATE finds in anonymised records, without noise. Not private.

    Parameters
    ----------
    model : DPCATE
        Its learner, models and bounds are used; it is neither fitted nor changed.
    Y, T, X, queries
        As in `DPCATE.fit`.
    k : int
        Smallest group of records that share their covariates.
    aggregate : {"covariates", "outcomes"}
        Whether only covariates become those of their group, or outcomes, too, over both arms.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression, LogisticRegression
    >>> import discreet as dc
    >>> from discreet.datasets import dp_cate
    >>> study = dp_cate(1, n=400, seed=1)
    >>> models = {"stage2": "linear", "model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    >>> model = dc.papers.DPCATE(epsilon=1.0, delta=1e-5, bounds=study.bounds, **models)
    >>> dc.papers.anonymised_effects(model, study.Y, study.T, X=study.X, queries=[[0.5, 0.5]], k=10).shape
    (1,)
    """
    if aggregate not in get_args(Aggregate):
        raise InvalidInput("aggregate must be 'covariates' or 'outcomes': choose one of them.")
    asked = encode_queries(queries, model.bounds)
    rows = gather(ArrayRecords.of(Y, T, X, bounds=model.bounds, propensity=model.propensity))
    coarse = rows._replace(x=anonymised(rows.x, model.bounds, k))
    if aggregate == "outcomes":
        y = rows.y.copy()
        for group in groups(design(rows.x, model.bounds), k):
            y[group] = rows.y[group].mean()
        coarse = coarse._replace(y=y)
    return model._predicted(coarse, model._first_stage(coarse))(asked)


def anonymised(x: Float, bounds: Bounds, k: int) -> Float:
    """Encoded covariates of records, with those of at least k records made equal each.

    Examples
    --------
    >>> import numpy as np
    >>> import discreet as dc
    >>> anonymised(np.array([[-1.0], [0.0], [0.5], [1.0]]), dc.Bounds(outcome=(0, 1), covariates=[(0, 1)]), k=2).ravel()
    array([-0.5 , -0.5 ,  0.75,  0.75])
    """
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= len(x):
        raise InvalidInput("k must be an integer between 1 and the number of records: choose another.")
    coarse, levels = x.copy(), np.array(level_counts(bounds))
    for group in groups(design(x, bounds), k):
        coarse[group] = x[group].mean(axis=0)
        for place in np.flatnonzero(levels):
            coarse[group, place] = np.bincount(x[group, place].astype(np.int64)).argmax()
    return coarse


def groups(features: Float, k: int) -> list[IntArray]:
    """Mondrian: cut at medians while both sides keep k records; places of the records of each group.

    Examples
    --------
    >>> import numpy as np
    >>> sorted(group.tolist() for group in groups(np.array([[-1.0], [1.0], [0.5], [0.0]]), k=2))
    [[0, 3], [1, 2]]
    """
    whole: list[IntArray] = []
    waiting: list[IntArray] = [np.arange(len(features))]
    while waiting:
        group = waiting.pop()
        for column in np.argsort(-np.ptp(features[group], axis=0), kind="stable"):
            values = features[group, column]
            left = values <= np.median(values)
            if left.all():
                # More than half of them share the largest value: cut below it.
                left = values < values.max()
            if k <= left.sum() <= len(group) - k:
                waiting += [group[left], group[~left]]
                break
        else:
            whole.append(group)
    return whole
