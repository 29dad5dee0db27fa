"""Input that cannot be used for an effect function: one sentence, nothing spent, no data shown."""

import numpy as np
import pandas as pd
import pytest

from discreet import CATE, Bounds
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds
from tests.estimators.test_bad_input import BOUNDS, N, T, X, Y, changed, no_noise_is_drawn, refuse, refuse_table  # noqa: F401

FRAME = pd.DataFrame({"age": X[:, 0], "y": Y, "t": T})


def cate(**given):
    return CATE(**({"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS} | given))


@pytest.mark.parametrize("bounds", [None, (0, 1), {"outcome": (0, 1)}])
def test_missing_bounds_are_refused(bounds):
    refuse(cate(bounds=bounds), "CATE needs bounds=Bounds", MissingBounds)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"delta": None}, "CATE needs delta"),
        ({"epsilon": 0}, "epsilon must be positive"),
        ({"epsilon": np.nan}, "epsilon must be"),
        ({"delta": 2.0}, "delta must"),
    ],
)
def test_budgets_that_are_none_are_refused(given, message):
    refuse(cate(**given), message, InvalidBudget)


@pytest.mark.parametrize("correction", ["r", None, "AIPW", ["R"]])
def test_a_correction_that_does_not_exist_is_refused(correction):
    refuse(cate(correction=correction), 'correction must be "R" or "DR"', InvalidInput)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"y": Y[:-1]}, "one entry per record"),
        ({"y": changed(Y, 3, np.nan)}, "Y has missing values"),
        ({"y": changed(Y, 3, np.inf)}, "Y has infinite values"),
        ({"t": np.zeros(N)}, "One arm is empty"),
        ({"t": changed(T, 0, 2)}, "T must hold 0 or 1"),
        ({"x": X[:, :1]}, "X has 1 columns, but the bounds declare 2"),
        ({"x": None}, "X is missing"),
        ({"x": changed(X, (2, 1), np.nan)}, "column 'x1' of X has missing values"),
        ({"y": Y[:5], "t": T[:5], "x": X[:5]}, "fewer than 10 records"),
    ],
)
def test_records_that_cannot_be_used_are_refused(parts, message):
    refuse(cate(), message, **parts)


@pytest.mark.parametrize("propensity", [0.99, np.full(N, 0.01), np.full(3, 0.5), "column"])
def test_propensities_that_cannot_be_are_refused(propensity):
    refuse(cate(propensity=propensity), "propensity")


def test_an_array_of_propensities_would_tell_the_number_of_records():
    refuse(cate(propensity=np.full(N, 0.5), neighbours="add-remove"), "propensity must be a number or a column")
    refuse(cate(neighbours="replace-two"), "neighbours must be")


def test_columns_that_a_table_lacks_are_refused():
    named = Bounds(outcome=(0, 1), covariates={"age": (0, 1), "sex": ["f", "m"]})
    refuse_table(cate(bounds=named), FRAME, "table has no column 'sex'")
    refuse_table(cate(bounds=named), "nothing.csv", "There is no file")


def test_a_refused_fit_leaves_no_earlier_release():
    estimator = cate()
    estimator.release_ = object()
    with pytest.raises(InvalidInput):
        estimator.fit(Y, T, X=None)
    assert not hasattr(estimator, "release_")
