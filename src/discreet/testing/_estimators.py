"""The contract of estimators, as a function that anyone who writes one can run."""

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from discreet.data.columns import Levels, Range
from discreet.datasets._placeholder import dummy
from discreet.exceptions import DiscreetError
from discreet.papers import require_learners
from discreet.releases.io import load
from discreet.testing._noise import frozen_noise, seeded_noise

_RECORDS = 800


@runtime_checkable
class _Average(Protocol):
    """A release of one number."""

    estimate: float


def check_estimator(estimator: Any, **given: Any) -> None:
    """Check that an estimator keeps the contract of the library, or say what it breaks.

    It follows scikit-learn's rules for parameters; bad bounds and budgets are refused before anything is kept; a seed
    decides what is released; fitting leaves parameters and publishable attributes behind, and no record; the release
    is the same after it was saved and read; and without noise no effect is found where there is none.

    Parameters
    ----------
    estimator
        Not fitted, with usable parameters; it is fitted to made-up records that its bounds allow.
    **given
        What ``fit`` needs beside records.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.testing import check_estimator
    >>> bounds = dc.Bounds(outcome=(0, 1), covariates={"age": (18, 90)}, propensity=(0.1, 0.9))
    >>> check_estimator(dc.ATE(epsilon=1.0, delta=1e-6, bounds=bounds))
    """
    require_learners("check_estimator")
    from sklearn.base import clone

    made = dummy(estimator.bounds, _RECORDS, seed=1)
    outcome, treatment = np.array(made.pop("Y")), np.array(made.pop("T"))
    covariates = pa.table(made) if made else None

    roles = estimator.roles if "roles" in dir(estimator) else ()
    for number, role in enumerate(role for role in roles if role.needed):
        given = {role.argument: _further(role.declared(estimator.bounds), treatment, number)} | given

    def fit(each: Any) -> Any:
        return each.fit(outcome, treatment, X=covariates, **given)

    def fitted(**changed: Any) -> Any:
        seed = {"random_state": 0} if "random_state" in estimator.get_params() else {}
        return fit(clone(estimator).set_params(**seed, **changed))

    twin = clone(estimator)
    assert repr(twin.get_params()) == repr(estimator.get_params()), "A clone has other parameters."
    assert not hasattr(twin, "release_"), "An estimator has a release before it is fitted."
    for bad in ({"bounds": None}, {"epsilon": 0.0}, {"epsilon": math.nan}):
        _assert_unfit(clone(estimator).set_params(**bad), fit)
    with seeded_noise(0):
        first = fitted()
    with seeded_noise(0):
        again = fitted()
    left = set(vars(first)) - set(first.get_params())
    assert "release_" in left, "Fitting leaves no release_ behind."
    assert all(name.endswith("_") and not name.startswith("_") for name in left), f"Fitting leaves {left} behind."
    assert first.release_.guarantee.status == "test", "Seeded noise has to be said in the guarantee."
    assert _as_saved(first.release_) == _as_saved(again.release_), "The same seed releases something else."
    _check_file(first.release_)
    _check_pickle(first, [outcome, *(np.array(column) for column in made.values())])
    with frozen_noise():
        exact = fitted(epsilon=100.0)
    if isinstance(exact.release_, _Average):
        low, high = estimator.bounds.outcome
        assert abs(exact.release_.estimate) < 0.2 * (high - low), "Without noise, an effect is found that is not there."


def _further(spec: Range | Levels, treatment: Any, number: int) -> Any:
    """A made-up column: numbers over its range, or levels that mostly go with the arm."""
    u = (np.arange(len(treatment)) * 0.6180339887 * (number + 1)) % 1.0
    if isinstance(spec, Range):
        return spec.low + u * (spec.high - spec.low)
    arms = np.unique(treatment, return_inverse=True)[1]
    return np.array(spec.levels)[np.where(u < 0.2, 1 - arms, arms)]


def _assert_unfit(estimator: Any, fit: Callable[[Any], Any]) -> None:
    refused = False
    try:
        fit(estimator)
    except DiscreetError:
        refused = True
    assert refused, "Bounds or a budget that are none are not refused."
    assert not hasattr(estimator, "release_"), "A fit that was refused leaves a release behind."


def _as_saved(release: Any) -> str:
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release.json")
        return (Path(folder) / "release.json").read_text()


def _check_file(release: Any) -> None:
    with TemporaryDirectory() as folder:
        release.save(Path(folder) / "release.json")
        again = load(Path(folder) / "release.json")
    assert type(again) is type(release), "A release that is read is of another kind."
    assert again.guarantee == release.guarantee, "A release that is read has another guarantee."
    assert _as_saved(again) == _as_saved(release), "A release that is read is not what was saved."


def _check_pickle(estimator: Any, columns: list[Any]) -> None:
    packed = pickle.dumps(estimator)
    for column in columns:
        assert column.tobytes() not in packed, "A fitted estimator keeps a column of the records."
        if column.dtype.kind == "f":
            # A run of values in order, should they have been clipped, encoded or sliced no further.
            assert column[:16].tobytes() not in packed, "A fitted estimator keeps some of the records."
