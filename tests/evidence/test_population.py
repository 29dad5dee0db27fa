"""Random studies are what they say: the same for the same number, within bounds, with the truth that they state."""

import time
from collections import Counter

import numpy as np
import pytest

from discreet.data.bounds import Levels, Range
from discreet.exceptions import InvalidInput
from evidence.population import REPORTING, available, covariates, random_study, real, source_of, studies
from evidence.population.outcomes import KINDS, random_outcome
from evidence.population.surfaces import SHAPES, random_surface

DRAWN = [number for number in range(REPORTING, REPORTING + 40) if source_of(number) == studies.DRAWN]


@pytest.fixture(autouse=True)
def small_populations(monkeypatch):
    monkeypatch.setattr(covariates, "ROWS", 5_000)
    monkeypatch.setattr(covariates, "ROWS_OF_MANY", 2_000)


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    real.table.cache_clear()
    yield
    real.table.cache_clear()


@pytest.fixture
def made_up_rows(monkeypatch):
    """A data set with a skewed amount, an indicator and a constant, in place of every file."""
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.exponential(size=500), rng.integers(2, size=500), np.zeros(500)])
    specs = (Range(0.0, 20.0), Levels((0, 1)), Range(0.0, 1.0))
    monkeypatch.setattr(real, "table", lambda source: (specs, values))
    monkeypatch.setattr(real, "COLUMNS", dict.fromkeys(real.COLUMNS, 3))
    monkeypatch.setattr(studies, "COLUMNS", dict.fromkeys(real.COLUMNS, 3))
    return values


def drawn(number, n=2_000):
    return random_study(number, largest=n)


def test_a_number_is_a_study_and_another_number_another_one():
    one, again, other = drawn(DRAWN[0]), drawn(DRAWN[0]), drawn(DRAWN[1])
    assert one.facts == again.facts != other.facts
    np.testing.assert_array_equal(one.study.Y, again.study.Y)
    np.testing.assert_array_equal(one.study.T, again.study.T)


@pytest.mark.parametrize("number", DRAWN[:12])
def test_records_lie_within_what_is_declared_and_both_arms_occur(number):
    made = drawn(number)
    study = made.study
    low, high = study.bounds.outcome
    assert low <= study.Y.min() <= study.Y.max() <= high
    assert set(np.unique(study.T)) == {0.0, 1.0}
    assert study.bounds.propensity[0] <= study.propensity.min() <= study.propensity.max() <= study.bounds.propensity[1]
    assert study.bounds.p == made.facts.p == (0 if study.X is None else study.X.shape[1])
    for j, spec in enumerate(study.bounds.columns):
        if isinstance(spec, Range):
            assert spec.low <= study.X[:, j].min() <= study.X[:, j].max() <= spec.high
        else:
            assert set(study.X[:, j]) <= set(spec.levels)
    assert made.efficiency > 0.0


@pytest.mark.parametrize("number", DRAWN[:12])
def test_weighting_by_the_true_propensity_finds_the_stated_effect(number):
    made = drawn(number, 60_000)
    y, t, e = made.study.Y, made.study.T, made.study.propensity
    scores = y * (t - e) / (e * (1 - e))
    assert abs(scores.mean() - made.study.ate) < 5 * scores.std() / np.sqrt(len(y))
    # Weighting is never better than the bound.
    assert made.efficiency < 1.1 * scores.std() / np.sqrt(len(y))


def test_the_efficiency_bound_is_the_error_of_the_score_with_the_true_models():
    rng = np.random.default_rng(5)
    made = drawn(next(number for number in DRAWN if random_study(number, largest=300).facts.p > 1), 60_000)
    rng, facts = studies._facts(made.facts.number, 60_000)
    world = studies._world(rng, facts, covariates.drawn_rows(rng, facts.p))
    of = np.random.default_rng(1).integers(len(world.propensity), size=200_000)
    e, control, treated = world.propensity[of], world.control[of], world.treated[of]
    t = rng.random(len(of)) < e
    y = world.outcome.draw(rng, np.where(t, treated, control))
    m0, m1 = world.outcome.moments(control)[0], world.outcome.moments(treated)[0]
    scores = m1 - m0 + np.where(t, (y - m1) / e, -(y - m0) / (1 - e))
    assert scores.std() / np.sqrt(made.facts.n) == pytest.approx(made.efficiency, rel=0.1)
    assert abs(scores.mean() - made.study.ate) < 5 * scores.std() / np.sqrt(len(of))


@pytest.mark.parametrize("kind", KINDS)
def test_moments_are_those_of_draws(kind):
    rng = np.random.default_rng(8)
    outcome = random_outcome(rng, kind, 0.4, rng.normal(size=20_000), 1.0)
    for eta in (-1.0, 0.0, 1.5):
        y = outcome.draw(rng, np.full(200_000, eta))
        mean, variance = (float(found[0]) for found in outcome.moments(np.array([eta])))
        assert abs(y.mean() - mean) < 5 * y.std() / np.sqrt(len(y)) + 1e-9
        fourth = np.mean((y - y.mean()) ** 4)
        assert abs(y.var() - variance) < 6 * np.sqrt(max(fourth - y.var() ** 2, 0.0) / len(y)) + 1e-6


def test_the_population_spans_what_it_promises():
    facts = [studies._facts(number, 3_000_000)[1] for number in range(3_000)]
    assert min(f.n for f in facts) < 250
    assert max(f.n for f in facts) > 2_500_000
    assert {f.p for f in facts} == set(studies._COVARIATES)
    assert min(f.epsilon for f in facts) < 0.11 < 9 < max(f.epsilon for f in facts)
    assert max(f.explained for f in facts) > 0.94
    assert {f.outcome for f in facts} == set(KINDS)
    assert {f.surface for f in facts} == set(SHAPES)
    fitting = Counter(f.covariates == studies.DRAWN for f in facts if 0 < f.p <= max(real.COLUMNS.values()))
    assert 0.28 < fitting[False] / fitting.total() < 0.39
    assert {f.covariates for f in facts} == {studies.DRAWN, *real.COLUMNS}


def test_studies_have_poor_overlap_rare_events_and_unequal_trials():
    numbers = [number for number in range(100) if source_of(number) == studies.DRAWN]
    made = [random_study(number, largest=3_000) for number in numbers]
    assert min(study.study.propensity.min() for study in made) == pytest.approx(0.01)
    shares = [study.known for study in made if isinstance(study.known, float)]
    assert min(shares) < 0.2 < 0.8 < max(shares)
    assert min(study.study.Y.mean() for study in made if study.facts.outcome == "rare") < 0.02
    # Covariates and treatment explain nearly everything in some study, and little in another.
    smooth = [study for study in made if study.facts.outcome == "continuous"]
    left = [study.efficiency * np.sqrt(study.facts.n) / study.study.Y.std() for study in smooth]
    assert min(left) < 1.2 < 2.0 < max(left)


def test_a_study_of_real_covariates_is_refused_where_the_data_is_absent(no_data):
    numbers = range(REPORTING, REPORTING + 60)
    needs = next(number for number in numbers if source_of(number) != studies.DRAWN)
    with pytest.raises(InvalidInput, match="DISCREET_DATA"):
        random_study(needs, largest=300)
    assert available(numbers) == [number for number in numbers if source_of(number) == studies.DRAWN]


FEW = [n for n in range(200) if source_of(n) != studies.DRAWN and studies._facts(n, 300)[1].p <= 3]


@pytest.mark.parametrize("number", FEW[:5])
def test_real_covariates_are_rows_of_the_data_and_the_truth_is_that_of_all_rows(number, made_up_rows):
    made = random_study(number, largest=40_000)
    assert made.facts.dependence == "real"
    assert {tuple(sorted(row)) for row in made.study.X[:200]} <= {
        tuple(sorted(row)) for row in _subsets(made_up_rows, made.study.X.shape[1])
    }
    y, t, e = made.study.Y, made.study.T, made.study.propensity
    scores = y * (t - e) / (e * (1 - e))
    assert abs(scores.mean() - made.study.ate) < 5 * scores.std() / np.sqrt(len(y))


def _subsets(values, p):
    from itertools import combinations

    return [row for columns in combinations(range(values.shape[1]), p) for row in values[:, columns]]


def test_a_study_is_drawn_quickly():
    large = next(number for number in DRAWN if random_study(number, largest=300).facts.p >= 12)
    before = time.process_time()
    random_study(large, largest=30_000)
    assert time.process_time() - before < 1.0


@pytest.mark.parametrize("shape", SHAPES)
def test_surfaces_have_mean_zero_and_variance_one(shape):
    rng = np.random.default_rng(1)
    values = random_surface(rng, shape, rng.uniform(-1, 1, (4_000, 5)))(rng.uniform(-1, 1, (4_000, 5)))
    assert abs(values.mean()) < 0.2
    assert 0.7 < values.std() < 1.3
