"""Records that cannot be used, given to every method of the two papers on average effects."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from discreet import Bounds
from discreet.exceptions import DiscreetError
from discreet.papers import PrivATE, PropensityIPTW
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.private_ate import equations as private_ci_formulas
from discreet.papers.private_ate.baselines import SubsampledDifference
from discreet.papers.propensity import estimator as propensity
from discreet.privacy import gate

LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
PUBLISHED = "published_gaussian"


def record_input():
    """Records that no method may take, by what is wrong with them; the telltale values must not be shown."""
    rng = np.random.default_rng(0)
    y, t, x = rng.uniform(0, 1, 60), np.arange(60) % 2.0, rng.uniform(0, 1, (60, 2))
    y[7], x[9, 0] = 123456.789, 987654.0

    def changed(array, place, value):
        copy = array.copy()
        copy[place] = value
        return copy

    return {
        "missing outcome": (changed(y, 3, np.nan), t, x),
        "infinite outcome": (changed(y, 3, np.inf), t, x),
        "missing treatment": (y, changed(t, 3, np.nan), x),
        "third arm": (y, changed(t, 3, 2.0), x),
        "one arm": (y, 0.0 * t, x),
        "missing covariate": (y, t, changed(x, (3, 0), np.nan)),
        "infinite covariate": (y, t, changed(x, (3, 0), -np.inf)),
        "short outcome": (y[:-1], t, x),
        "short treatment": (y, t[:-1], x),
        "short covariates": (y, t, x[:-1]),
        "no covariates": (y, t, None),
        "a column too few": (y, t, x[:, :1]),
        "a column too many": (y, t, np.hstack([x, x])),
        "text": (np.array(["a"] * 60), t, x),
        "two outcomes": (np.column_stack([y, y]), t, x),
        "few records": (y[:5], t[:5], x[:5]),
        "nothing": (None, t, x),
    }


UNIT = Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)], propensity=(0.1, 0.9))
METHODS = {
    "published": lambda **given: PrivATE(starts=1, **given),
    "proved, private half": lambda **given: PrivATE(calibration="proved", split="private", **given),
    "proved, public half": lambda **given: PrivATE(calibration="proved", split="public", **LINEAR, **given),
    "propensity": lambda **given: PropensityIPTW(calibration="published", **given),
    "everyone": lambda **given: PropensityIPTW(xi=0.1, **given),
    "difference": lambda **given: SubsampledDifference(groups=5, **given),
}


@pytest.mark.filterwarnings(f"ignore::{UnprovedClaim.__module__}.{UnprovedClaim.__name__}")
@pytest.mark.parametrize("what", record_input())
@pytest.mark.parametrize("method", METHODS)
def test_records_that_the_foundation_refuses_are_refused_by_every_method_of_these_papers(method, what, monkeypatch):
    for module, name in ((gate, "discrete_gaussian"), (private_ci_formulas, PUBLISHED), (propensity, PUBLISHED)):
        monkeypatch.setattr(module, name, lambda *_: pytest.fail("noise was drawn"))
    estimator = METHODS[method](epsilon=0.5, delta=1e-6, bounds=UNIT)
    y, t, x = record_input()[what]
    with pytest.raises(DiscreetError) as caught:
        estimator.fit(y, t, X=x)  # type: ignore[attr-defined]
    text = str(caught.value)
    assert text.endswith(".")
    assert not any(telltale in text for telltale in ("123456", "987654", "\n"))
    assert not hasattr(estimator, "release_")
