"""Every estimator of the registry keeps the contract that `discreet.testing.check_estimator` states."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

from discreet import Bounds, DifferenceInMeans
from discreet.estimators.registry import REGISTRY
from discreet.testing import check_estimator

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (18, 90)}, propensity=(0.1, 0.9))
# It answers queries from a function that it keeps to itself, and so publishes nothing at once.
INTERACTIVE = {"papers.DPCATEFunction"}
# A shorter search, so that the test takes less time.
QUICK: dict[str, dict[str, Any]] = {"papers.DPCATE": {"points": 500, "starts": 1}}
GIVEN: dict[str, dict[str, Any]] = {
    "papers.DPCATE": {"queries": np.array([[30.0], [60.0]])},
}


@pytest.mark.parametrize("name", sorted(set(REGISTRY) - INTERACTIVE))
def test_an_estimator_keeps_the_contract(name: str) -> None:
    entry = REGISTRY[name]
    with warnings.catch_warnings():
        # What is published as claimed warns of it.
        warnings.simplefilter("ignore")
        made = entry.load()(epsilon=1.0, bounds=BOUNDS, **(entry.audited or {}), **QUICK.get(name, {}))
        check_estimator(made, **GIVEN.get(name, {}))


class Keeps(DifferenceInMeans):
    """Keeps the outcomes."""

    outcomes_: Any

    def fit(self, Y: Any, T: Any, **given: Any) -> Any:
        """Fit, and keep what must not be kept."""
        found = super().fit(Y, T, **given)
        found.outcomes_ = Y
        return found


class Leaves(DifferenceInMeans):
    """Leaves something private behind."""

    _means: float

    def fit(self, Y: Any, T: Any, **given: Any) -> Any:
        """Fit, and set an attribute that nobody may publish."""
        found = super().fit(Y, T, **given)
        found._means = 0.0
        return found


@pytest.mark.parametrize(("broken", "reason"), [(Keeps, "keeps a column"), (Leaves, "Fitting leaves")])
def test_an_estimator_that_breaks_the_contract_is_found(broken: Any, reason: str) -> None:
    estimator = broken(epsilon=1.0, bounds=BOUNDS)
    assert pickle.loads(pickle.dumps(estimator)).epsilon == 1.0
    with pytest.raises(AssertionError, match=reason):
        check_estimator(estimator)
