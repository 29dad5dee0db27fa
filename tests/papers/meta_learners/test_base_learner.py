"""Base learners: what they learn, what they make of weights, and what they refuse."""

import numpy as np
import pytest

from discreet import Bounds, Budget, InvalidInput
from discreet.data.columns import Levels, Range
from discreet.papers.meta_learners import additive
from discreet.papers.meta_learners.additive import AdditiveLearner
from discreet.papers.meta_learners.base_learner import Task
from discreet.papers.meta_learners.bin_smoothing import smooth
from discreet.papers.meta_learners.ebm import EBMLearner
from discreet.papers.meta_learners.linear import LinearLearner, LogisticLearner, feature_norm, features, solve
from discreet.testing import frozen_noise, seeded_noise

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), [0, 1, 2]])
COLUMNS = (Range(-3, 3), Levels((0, 1, 2)))
LEVELS = np.array([0.0, 2.0, -1.0])


def task(target=(-4, 10), weight_bound=None, epsilon=8.0):
    budget = Budget(epsilon=epsilon, delta=1e-6)
    return Task(name="m", columns=COLUMNS, target=target, bounds=BOUNDS, budget=budget, weight_bound=weight_bound)


def data(n=6_000, seed=0):
    """Encoded covariates, and something that bends in the first one."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.uniform(-1, 1, n), rng.integers(0, 3, n)])
    truth = 3.0 * np.abs(x[:, 0]) + LEVELS[x[:, 1].astype(int)]
    return x, truth + 0.3 * rng.standard_normal(n), truth


def test_an_additive_model_bends_and_a_linear_one_does_not():
    x, y, truth = data()
    with frozen_noise():
        additive, linear = AdditiveLearner(task()).fit(x, y), LinearLearner(task()).fit(x, y)
    assert np.sqrt(np.mean((additive.predict(x) - truth) ** 2)) < 0.15
    # The best line through 3 |x| is a constant, 0.87 away on average.
    assert np.sqrt(np.mean((linear.predict(x) - truth) ** 2)) == pytest.approx(0.87, abs=0.05)


def test_an_additive_classifier_learns_probabilities():
    x, _, _ = data(20_000)
    p = 1 / (1 + np.exp(-(2.0 * x[:, 0] - 0.5 * (x[:, 1] == 2))))
    t = (np.random.default_rng(1).random(len(p)) < p) * 1.0
    with frozen_noise():
        models = [AdditiveLearner(task((0, 1)), classify=True), LogisticLearner(task((0, 1)))]
        errors = [np.sqrt(np.mean((model.fit(x, t).predict(x) - p) ** 2)) for model in models]  # type: ignore[attr-defined]
    # The logistic one is shrunk by its penalty.
    assert errors[0] < 0.03
    assert errors[1] < 0.12


@pytest.mark.parametrize("classify", [False, True])
def test_what_is_kept_beside_bins_is_what_the_released_model_predicts(classify, monkeypatch):
    kept = []

    def keeping(fit, *given):
        made(fit, *given)
        kept.append(fit)

    made = additive._Fit.__init__
    monkeypatch.setattr(additive._Fit, "__init__", keeping)
    rng = np.random.default_rng(5)
    x = np.column_stack([rng.uniform(-1, 1, (600, 3)), rng.integers(0, 3, 600)])
    y = (x[:, 0] > 0) * 1.0 if classify else np.clip(x[:, 0] ** 2 + 0.1 * x[:, 3], -1, 1)
    columns = [*(Range(-1, 1) for _ in range(3)), Levels(levels=(0, 1, 2))]
    bounds = Bounds(outcome=(0, 1) if classify else (-1, 1), covariates=columns)
    budget = Budget(epsilon=4.0, delta=1e-6)
    task = Task(name="outcome", columns=bounds.columns, target=bounds.outcome, bounds=bounds, budget=budget)
    with seeded_noise(0):
        model = AdditiveLearner(task, classify=classify).fit(x, y).model_
    (fit,) = kept
    score = model.intercept + fit.binned[:, -1]
    # Twelve numbers of size one are added up in another order.
    assert model.predict(x) == pytest.approx(1 / (1 + np.exp(-score)) if classify else score, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("learner", [AdditiveLearner, LinearLearner, EBMLearner])
def test_records_of_weight_zero_do_not_count(learner):
    x, y, _ = data()
    w = (x[:, 1] < 2) * 1.0
    spoilt = np.where(w > 0, y, 10.0)
    with seeded_noise(0):
        model = learner(task(weight_bound=1.0, epsilon=50.0)).fit(x, spoilt, sample_weight=w)
    kept = w > 0
    error = np.mean(model.predict(x[kept])) - np.mean(y[kept])
    assert abs(error) < 0.1


def test_weights_beyond_their_bound_count_as_the_bound():
    x, y, _ = data(500)
    with seeded_noise(0):
        first = AdditiveLearner(task(weight_bound=0.5)).fit(x, y, sample_weight=np.full(500, 0.5)).model_
    with seeded_noise(0):
        second = AdditiveLearner(task(weight_bound=0.5)).fit(x, y, sample_weight=np.full(500, 1e9)).model_
    assert first == second


@pytest.mark.parametrize("learner", [AdditiveLearner, LinearLearner, EBMLearner])
def test_weights_without_a_bound_are_refused(learner):
    x, y, _ = data(50)
    with pytest.raises(InvalidInput, match="sample_weight needs weight_bound"):
        learner(task()).fit(x, y, sample_weight=np.ones(50))


@pytest.mark.parametrize("maker", [lambda t: AdditiveLearner(t, classify=True), LogisticLearner])
def test_classifiers_take_no_weights(maker):
    x, _, _ = data(50)
    with pytest.raises(InvalidInput, match="for regressions"):
        maker(task((0, 1), 1.0)).fit(x, np.zeros(50), sample_weight=np.ones(50))


def test_records_and_ranges_that_make_no_sense_are_refused():
    x, y, _ = data(50)
    with pytest.raises(InvalidInput, match="fewer than 10"):
        LinearLearner(task()).fit(x[:9], y[:9])
    with pytest.raises(InvalidInput, match="one row per record"):
        LinearLearner(task()).fit(x[:, :1], y)
    with pytest.raises(InvalidInput, match="one entry per record"):
        LinearLearner(task(weight_bound=1.0)).fit(x, y, sample_weight=np.ones(3))
    with pytest.raises(InvalidInput, match="low < high"):
        task((1.0, 1.0))
    with pytest.raises(InvalidInput, match="weight_bound must be positive"):
        task(weight_bound=0.0)


@pytest.mark.parametrize("learner", [AdditiveLearner, LinearLearner])
def test_noise_that_hides_everything_is_no_obstacle(learner):
    x, y, _ = data(12)
    for seed in range(20):
        with seeded_noise(seed):
            model = learner(task(weight_bound=1.0, epsilon=0.01)).fit(x, y, sample_weight=np.zeros(12))
        assert np.isfinite(model.predict(x)).all()


def test_a_released_ebm_predicts_what_interpret_predicts(monkeypatch):
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    kept = []
    for cls in (DPExplainableBoostingClassifier, DPExplainableBoostingRegressor):
        fit = cls.fit
        monkeypatch.setattr(cls, "fit", lambda self, *a, _fit=fit, **k: kept.append(_fit(self, *a, **k)) or kept[-1])
    x, y, _ = data(2_000)
    t = (y > 1.0) * 1.0
    with seeded_noise(0):
        regression, classifier = EBMLearner(task()).fit(x, y), EBMLearner(task((0, 1)), classify=True).fit(x, t)
    # Targets are centred at the middle of their range, 3.
    assert regression.predict(x) == pytest.approx(kept[0].predict(x) + 3.0)
    assert classifier.predict(x) == pytest.approx(kept[1].predict_proba(x)[:, 1])
    assert (kept[0].privacy_target_min, kept[0].privacy_target_max) == (-7.0, 7.0)
    assert kept[0].privacy_bounds == {0: (-1.0, 1.0), 1: (0.0, 2.0)}


def test_the_noise_of_dp_ebm_is_that_of_the_declared_weight(monkeypatch):
    from interpret.privacy import DPExplainableBoostingRegressor

    kept, fit = [], DPExplainableBoostingRegressor.fit
    monkeypatch.setattr(
        DPExplainableBoostingRegressor, "fit", lambda self, *a, **k: kept.append(fit(self, *a, **k)) or kept[-1]
    )
    x, y, _ = data(500)
    with seeded_noise(0):
        for heaviest in (1.0, 0.25):
            EBMLearner(task(weight_bound=1.0)).fit(x, y, sample_weight=np.full(500, heaviest))
    assert kept[0].noise_scale_boosting_ == pytest.approx(kept[1].noise_scale_boosting_)


def test_without_seeded_noise_dp_ebm_gets_no_seed():
    from discreet.papers.meta_learners import ebm as learners_ebm

    assert learners_ebm._seed() is None
    seeds = []
    for _ in range(2):
        with seeded_noise(0):
            seeds.append([learners_ebm._seed(), learners_ebm._seed()])
    assert seeds[0] == seeds[1]
    assert seeds[0][0] != seeds[0][1]
    x, y, _ = data(200)
    first, second = (EBMLearner(task()).fit(x, y).predict(x) for _ in range(2))
    assert not np.array_equal(first, second)


def test_smoothing_keeps_evidence_and_drops_noise():
    rng = np.random.default_rng(0)
    weight, shape = np.full(32, 500.0), np.sin(np.linspace(-2, 2, 32))
    noise = 50.0
    seen = smooth(weight * shape + noise * rng.standard_normal(32), weight, noise, 1.0, 1.0, ordered=True)
    nothing = smooth(noise * rng.standard_normal(32), weight, noise, 1.0, 1.0, ordered=True)
    assert np.sqrt(np.mean((seen - shape) ** 2)) < 0.6 * noise / 500
    assert np.sqrt(np.mean(nothing**2)) < 0.5 * noise / 500


def test_without_noise_smoothing_is_the_mean_of_each_bin():
    weight, heights = np.array([100.0, 200.0, 50.0]), np.array([1.0, -0.5, 0.3])
    assert smooth(weight * heights, weight, 1e-6, 1e-9, 1.0, ordered=False) == pytest.approx(heights, abs=1e-6)


def test_features_stay_inside_their_norm():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.uniform(-5, 5, 200), rng.integers(0, 3, 200)])
    norms = np.linalg.norm(features(x, task()), axis=1)
    assert norms.max() <= feature_norm(task())
    assert norms.max() == pytest.approx(feature_norm(task()))


def test_moments_without_noise_are_solved_like_a_ridge():
    rng = np.random.default_rng(0)
    z, beta = rng.standard_normal((5_000, 3)), np.array([1.0, -2.0, 0.5])
    assert solve(z.T @ z, 1e-9, z.T @ (z @ beta), 1e-9, 1.0) == pytest.approx(beta, rel=1e-3)
