"""Random studies are what they say: the same for the same number, within bounds, with the truth that they state."""

import numpy as np
import pytest

from evidence.population import REPORTING, random_study, studies
from evidence.population.surfaces import SHAPES, random_surface

# A small one of each design.
NUMBERS = (2, 9, REPORTING + 1, REPORTING + 4)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(studies, "_TRUTH", 20_000)


def drawn(number, n=2_000):
    return random_study(number, largest=n)


def test_a_number_is_a_study_and_another_number_another_one():
    one, again, other = drawn(2), drawn(2), drawn(3)
    assert one.facts == again.facts != other.facts
    np.testing.assert_array_equal(one.study.Y, again.study.Y)
    np.testing.assert_array_equal(one.study.T, again.study.T)


@pytest.mark.parametrize("number", NUMBERS)
def test_records_lie_within_what_is_declared_and_both_arms_occur(number):
    made = drawn(number)
    study = made.study
    low, high = study.bounds.outcome
    assert low <= study.Y.min() <= study.Y.max() <= high
    assert set(np.unique(study.T)) == {0.0, 1.0}
    assert study.bounds.propensity[0] <= study.propensity.min() <= study.propensity.max() <= study.bounds.propensity[1]
    assert study.bounds.p == made.facts.p == (0 if study.X is None else study.X.shape[1])
    assert made.efficiency > 0.0


@pytest.mark.parametrize("number", NUMBERS)
def test_weighting_by_the_true_propensity_finds_the_stated_effect(number):
    made = drawn(number, 60_000)
    y, t, e = made.study.Y, made.study.T, made.study.propensity
    scores = y * (t - e) / (e * (1 - e))
    assert abs(scores.mean() - made.study.ate) < 5 * scores.std() / np.sqrt(len(y)) + 5 * made.truth_error


@pytest.mark.parametrize("shape", SHAPES)
def test_surfaces_have_mean_zero_and_variance_one(shape):
    rng = np.random.default_rng(1)
    values = random_surface(rng, shape, rng.uniform(-1, 1, (4_000, 5)))(rng.uniform(-1, 1, (4_000, 5)))
    assert abs(values.mean()) < 0.2
    assert 0.7 < values.std() < 1.3
