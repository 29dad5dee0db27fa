"""DP-CATE for finite queries as an estimator: what it claims, what it leaves behind, and what it refuses."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVC

from discreet import Bounds, InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import dp_cate
from discreet.papers import DPCATE
from discreet.papers.common.arrays import gather
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.common.influence import noise_factor
from discreet.papers.dp_cate.equations import Weight
from discreet.papers.dp_cate.presets import first_stage, predictor, second_stage
from discreet.papers.dp_cate.release import AnswersRelease
from discreet.testing import frozen_noise, seeded_noise

STUDY = dp_cate(1, 500, 5)
QUERIES = np.random.default_rng(0).random((40, 2))
LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def make(**given):
    usual = {"epsilon": 1.0, "delta": 1e-5, "bounds": STUDY.bounds, "stage2": "linear", "starts": 2, "random_state": 0}
    return DPCATE(**(usual | LINEAR | given))


def fit(model, queries=QUERIES, study=STUDY):
    """Fit, without the warning that other tests are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return model.fit(study.Y, study.T, X=study.X, queries=queries)


def test_it_is_claimed_and_warns_of_what_was_measured():
    with pytest.warns(UnprovedClaim, match="epsilon of 1 is at least") as caught:
        fitted = make().fit(STUDY.Y, STUDY.T, X=STUDY.X, queries=QUERIES)
    assert caught[0].filename == __file__
    guarantee = fitted.guarantee_
    assert (guarantee.status, guarantee.epsilon, guarantee.delta, guarantee.proof) == ("claimed", 1.0, 1e-5, None)
    assert "the queries" in guarantee.public
    assert "Claimed, not private" in fitted.summary()


def test_fitting_leaves_a_release_and_nothing_else():
    fitted = fit(make())
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    assert not hasattr(fitted.model_regression, "coef_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).effect(), fitted.effect())
    # The scale of the noise follows the records: it is published nowhere.
    assert "noise" not in str(fitted.release_.to_dict()["settings"])


def test_a_release_survives_its_file(tmp_path):
    release = fit(make()).release_
    release.save(tmp_path / "effects.json")
    assert AnswersRelease.load(tmp_path / "effects.json") == release
    assert len(release.effects) == len(QUERIES)
    with pytest.raises(InvalidInput, match="no release file"):
        AnswersRelease.load(tmp_path / "nothing.json")


def test_seeded_noise_makes_a_release_a_test():
    with seeded_noise(0):
        assert fit(make()).guarantee_.status == "test"


@pytest.mark.parametrize("learner", ["R", "DR"])
@pytest.mark.parametrize("stage2", ["linear", RandomForestRegressor(20, min_samples_leaf=15)])
def test_without_noise_it_finds_the_effects(learner, stage2):
    study = dp_cate(1, 2_000, 3)
    with frozen_noise():
        found = fit(make(learner=learner, stage2=stage2, supremum="closed-form"), study.X[:300], study).effect()
    error = np.sqrt(np.mean((found - study.effects[:300]) ** 2))
    sd = study.effects[:300].std()
    assert error < (0.5 if stage2 != "linear" else 1.0) * sd


def test_the_presets_are_those_of_the_supplement():
    for model, layers in [*zip(first_stage(None, None), [(32,)] * 2, strict=True), (second_stage("nn"), (32, 32))]:
        assert model.hidden_layer_sizes == layers
        assert (model.activation, model.solver, model.learning_rate_init, model.batch_size) == (
            "relu",
            "adam",
            0.01,
            128,
        )
    assert second_stage("forest").get_params() == RandomForestRegressor().get_params()
    assert second_stage("linear").get_params() == LinearRegression().get_params()


@pytest.mark.parametrize("stage2", ["forest", "nn"])
def test_the_papers_own_learners_run_on_few_records(stage2):
    study = dp_cate(1, 60, 4)
    with seeded_noise(0):
        fitted = fit(
            DPCATE(epsilon=1, delta=1e-5, bounds=study.bounds, stage2=stage2, starts=1, random_state=0),
            QUERIES,
            study,
        )
    assert fitted.effect().shape == (40,)


def test_a_forest_predicts_the_same_without_threads():
    forest = RandomForestRegressor(10, random_state=0).fit(STUDY.X, STUDY.Y)
    np.testing.assert_allclose(predictor(forest)(QUERIES), forest.predict(QUERIES), rtol=1e-12)


@pytest.mark.parametrize("supremum", ["l-bfgs-b", "dense", "closed-form"])
def test_noise_is_the_sensitivity_times_the_factor_of_theorem_1(supremum):
    model = make(supremum=supremum, points=2_000)
    many = np.tile(QUERIES[:1], (4_000, 1))
    with frozen_noise():
        exact = fit(model, many).effect()[0]
    rows = gather(ArrayRecords.of(STUDY.Y, STUDY.T, STUDY.X, bounds=STUDY.bounds))
    _, gamma = model._exact(rows, model._first_stage(rows), np.zeros((1, 2)))
    with seeded_noise(1):
        drawn = fit(model, many).effect() - exact
    # 4,000 draws: the standard deviation is known to 1.1 %.
    assert drawn.std() == pytest.approx(gamma * noise_factor(500, 1.0, 1e-5), rel=0.05)
    if supremum == "closed-form":
        assert gamma == pytest.approx((0.9 + 0.81) * 9.5 / 0.09)


def test_theorem_1_as_printed_lacks_the_mean_of_the_weight():
    rows = gather(ArrayRecords.of(STUDY.Y, STUDY.T, STUDY.X, bounds=STUDY.bounds))
    divided, plain = (
        model._exact(rows, model._first_stage(rows), np.zeros((1, 2)))[1] for model in (make(), make(normalised=False))
    )
    assert 0.15 < plain / divided < 0.25  # the mean of pi (1 - pi)


def test_the_dr_learners_noise_exceeds_the_r_learners():
    study = dp_cate(1, 1_000, 6)
    rows = gather(ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds))
    sizes = {}
    for learner in ("R", "DR"):
        model = make(learner=learner, bounds=study.bounds, starts=5)
        _, sizes[learner] = model._exact(rows, model._first_stage(rows), np.zeros((1, 2)))
    assert sizes["DR"] > sizes["R"]


def test_a_known_propensity_needs_no_classifier():
    with frozen_noise():
        known = fit(make(propensity=0.6, model_propensity=LogisticRegression()))
    assert known.effect().shape == (40,)


def test_any_weight_function_will_do():
    overlap = Weight(
        "overlap", lambda pi: (pi * (1 - pi)) ** 0.5, lambda pi: (1 - 2 * pi) / (2 * (pi * (1 - pi)) ** 0.5)
    )
    with frozen_noise():
        found = fit(make(learner=overlap)).effect()
        usual = fit(make()).effect()
    assert np.abs(found - usual).max() < 1.0


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"delta": None}, InvalidBudget, "needs delta"),
        ({"bounds": None}, MissingBounds, "needs bounds"),
        ({"bounds": Bounds(outcome=(0, 1))}, InvalidInput, "needs covariates"),
        ({"stage2": "boosting"}, InvalidInput, "'forest', 'nn' or 'linear'"),
        ({"stage2": object()}, InvalidInput, "stage2 needs fit and predict"),
        ({"stage2": KNeighborsRegressor()}, InvalidInput, "must take sample_weight"),
        ({"model_regression": object()}, InvalidInput, "model_regression needs fit and predict"),
        ({"model_propensity": SVC()}, InvalidInput, "predict_proba"),
        ({"learner": "X"}, InvalidInput, "learner"),
        ({"supremum": "guess"}, InvalidInput, "supremum"),
        ({"starts": 0}, InvalidInput, "starts"),
        ({"points": 2.5}, InvalidInput, "points"),
        ({"propensity": [0.5]}, InvalidInput, "propensity must be one number"),
    ],
)
@pytest.mark.filterwarnings("ignore::discreet.papers.UnprovedClaim")
def test_parameters_that_make_no_sense_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        make(**given).fit(STUDY.Y, STUDY.T, X=STUDY.X, queries=QUERIES)


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (None, "queries are missing"),
        (np.empty((0, 2)), "at least one row"),
        ([[0.5, 1.5]], "leaves the declared domain"),
        ([[0.5, np.nan]], "leaves the declared domain"),
        ([[0.5, 0.5, 0.5]], "queries: X has 3 columns"),
    ],
)
def test_queries_that_cannot_be_answered_are_refused_before_the_records_are_looked_at(queries, words):
    with pytest.raises(InvalidInput, match=words):
        make().fit(None, None, X=None, queries=queries)


@pytest.mark.filterwarnings("ignore::discreet.papers.UnprovedClaim")
def test_records_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidInput, match="One arm is empty"):
        make().fit(STUDY.Y, np.ones(500), X=STUDY.X, queries=QUERIES)
    with pytest.raises(InvalidInput, match="fewer than 10 records"):
        make().fit(STUDY.Y[:9], STUDY.T[:9], X=STUDY.X[:9], queries=QUERIES)


def test_before_fit_there_is_nothing():
    for ask in (lambda m: m.effect(), lambda m: m.summary(), lambda m: m.guarantee_):
        with pytest.raises(NotFitted, match="call fit first"):
            ask(make())
