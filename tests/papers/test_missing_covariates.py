"""Methods of papers take covariates that may be missing, with an indicator beside the fill, and answer for them."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import Bounds, InvalidInput, Levels, Range, papers
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.common.queries import encode_queries
from discreet.testing import seeded_noise

BOUNDS = Bounds(
    outcome=(-4, 8),
    covariates={
        "age": Range(18, 90, fill=54, missing="indicator"),
        "ward": Levels(("a", "b"), fill="a", missing="indicator"),
        "dose": (0, 10),
    },
    propensity=(0.1, 0.9),
)
QUERIES = pd.DataFrame({"age": [np.nan, 54.0, 20.0], "ward": ["a", None, "b"], "dose": [1.0, 2.0, 3.0]})
DELTA = {"delta": 1e-6}
GIVEN: dict[str, dict[str, Any]] = {
    "ADUM": {"by": {"age missing": "levels"}},
    "DPCATE": DELTA,
    "DPCATEFunction": DELTA,
    "DRLearner": DELTA,
    "PrivATE": DELTA | {"calibration": "proved", "split": "private"},
    "PropensityIPTW": DELTA | {"xi": 0.1},
    "RLearner": DELTA,
    "SLearner": DELTA,
    "TLearner": DELTA,
    "TwoModel": {},
    "XLearner": DELTA,
}


def study(n: int = 1_500) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    lost, t = rng.random(n) < 0.3, rng.integers(0, 2, n)
    ward = pd.Series(rng.choice(np.array(["a", "b"]), n), dtype=object).where(rng.random(n) > 0.2, None)
    age = np.where(lost, np.nan, rng.uniform(18, 90, n))
    y = 1.0 * t + 2.0 * lost + rng.normal(0, 0.5, n)
    return pd.DataFrame({"y": y, "t": t, "age": age, "ward": ward, "dose": rng.uniform(0, 10, n)})


def test_every_method_that_is_fitted_is_tried() -> None:
    fitted = {
        name
        for name in papers.__all__
        if hasattr(getattr(papers, name), "fit") and hasattr(getattr(papers, name), "get_params")
    }
    assert fitted - set(GIVEN) == set()


@pytest.mark.filterwarnings(f"ignore::{UnprovedClaim.__module__}.{UnprovedClaim.__name__}")
@pytest.mark.parametrize("name", GIVEN)
def test_a_method_is_fitted_to_covariates_that_may_be_missing_and_asked_about_them(name: str) -> None:
    frame, columns = study(), ["age", "ward", "dose"]
    estimator = getattr(papers, name)(**({"epsilon": 1.0, "bounds": BOUNDS} | GIVEN[name]))
    more = {"queries": QUERIES} if name == "DPCATE" else {}
    with seeded_noise(2):
        estimator.fit(frame["y"], frame["t"], X=frame[columns], **more)
        if hasattr(estimator, "effect") and not more:
            effects = estimator.effect(QUERIES)
            assert effects.shape == (3,)
            assert np.isfinite(effects).all()
    assert estimator.release_.bounds == BOUNDS


def test_queries_may_be_missing_where_that_is_a_covariate_of_its_own_and_nowhere_else() -> None:
    asked = encode_queries(QUERIES, BOUNDS)
    np.testing.assert_array_equal(asked[:, 3:], [[1, 0], [0, 1], [0, 0]])
    np.testing.assert_array_equal(asked[:2, 0], [0.0, 0.0])
    with pytest.raises(InvalidInput, match="'dose' of queries leaves the declared domain"):
        encode_queries(QUERIES.assign(dose=[1.0, np.nan, 2.0]), BOUNDS)
