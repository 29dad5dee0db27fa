"""PrivATE as an estimator: what it promises, what it leaves behind, and what it refuses."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import SVC

from discreet import ATE, Bounds, InvalidBudget, InvalidInput, MissingBounds, NotFitted, Release
from discreet.datasets import private_ci, private_ci_rct
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.private_ate.estimator import PrivATE
from discreet.papers.private_ate.presets import preset
from discreet.testing import frozen_noise, seeded_noise
from evidence.reproduce.private_ate.runs import exact_statistics

STUDY = private_ci(1, 400, 5)
TRIAL = private_ci_rct(600, 6)
PROVED = {"calibration": "proved", "split": "public"}
LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}


def make(study=STUDY, **given):
    return PrivATE(**({"epsilon": 1.0, "delta": 1e-5, "bounds": study.bounds, "starts": 2, "random_state": 0} | given))


def fit(model, study=STUDY):
    """Fit, without the warning that other tests are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return model.fit(study.Y, study.T, X=study.X)


def test_the_published_calibration_is_claimed_and_warns_of_what_was_measured():
    with pytest.warns(UnprovedClaim, match="discreet reproduce private-ci attack.*delta of at least"):
        fitted = make(**LINEAR).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    guarantee = fitted.guarantee_
    assert (guarantee.status, guarantee.epsilon, guarantee.delta, guarantee.proof) == ("claimed", 1.0, 1e-5, None)
    assert guarantee.neighbours == "replace-one"
    assert any("Claimed, not private" in note for note in fitted.release_.notes)
    assert "clipped to a fixed set" not in fitted.release_.methods()


@pytest.mark.parametrize("split", [None, "public", "private"])
def test_a_claim_protects_no_record_that_was_declared_public(split):
    guarantee = fit(make(split=split, **({} if split == "private" else LINEAR))).guarantee_
    assert guarantee.status == "claimed"
    assert guarantee.unit == ("one record of the second half" if split == "public" else "one record")
    assert any("first half" in phrase for phrase in guarantee.public) == (split == "public")


def test_the_warning_points_at_the_line_that_fits():
    with pytest.warns(UnprovedClaim) as caught:
        make(**LINEAR).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert caught[0].filename == __file__


class Untouched:
    """Data that nobody may read."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} of the records was looked at")


@pytest.mark.filterwarnings("error")
def test_the_warning_comes_before_the_records():
    with pytest.raises(UnprovedClaim):
        make().fit(Untouched(), Untouched(), X=Untouched())
    with pytest.raises(UnprovedClaim):
        make().fit_table(Untouched(), outcome="y", treatment="t")
    with pytest.raises(InvalidBudget):
        make(delta=None).fit(Untouched(), Untouched(), X=Untouched())


def test_progress_gets_how_many_rows_were_read():
    steps = []
    make(calibration="proved", split="private").fit(
        STUDY.Y, STUDY.T, X=STUDY.X, progress=lambda *given: steps.append(given)
    )
    assert steps[-1] == ("reading", 400, 400)


@pytest.mark.parametrize("split", ["public", "private"])
def test_the_proved_calibration_is_proved_and_does_not_warn(split):
    models = LINEAR if split == "public" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = make(calibration="proved", split=split, **models).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    guarantee = fitted.guarantee_
    assert (guarantee.status, guarantee.proof) == ("proved", "private_ci.md")
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-5)
    assert ("all records of the first half, which trained the models" in guarantee.public) == (split == "public")
    assert guarantee.unit == ("one record of the second half" if split == "public" else "one record")


@pytest.mark.parametrize("given", [{}, {"split": "private"}, {"calibration": "proved", "split": "private"}])
def test_seeded_noise_makes_every_release_a_test(given):
    with seeded_noise(0):
        assert fit(make(**given)).guarantee_.status == "test"


@pytest.mark.parametrize("given", [LINEAR, {"calibration": "proved", "split": "public"} | LINEAR])
def test_fitting_leaves_a_release_and_nothing_else(given):
    fitted = fit(make(**given))
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    # The models that were given are not the ones that were fitted: those know the records.
    assert not hasattr(fitted.model_regression, "coef_")
    assert pickle.loads(pickle.dumps(fitted)).ate_ == fitted.ate_


def test_no_public_name_returns_statistics_without_noise():
    # What `ATE` offers returns releases or parts of one.
    assert {name for name in set(dir(PrivATE)) - set(dir(ATE)) if not name.startswith("_")} == {"neighbours"}


def test_statistics_for_simulations_leave_a_fitted_model_alone_and_refuse_the_proved_calibration():
    fitted = fit(make(**LINEAR))
    release = fitted.release_
    assert exact_statistics(fitted, STUDY).n == 400
    assert fitted.release_ is release
    with pytest.raises(InvalidInput, match="'published' only"):
        exact_statistics(make(calibration="proved", split="private"), STUDY)


def test_a_release_survives_its_file(tmp_path):
    release = fit(make(**LINEAR)).release_
    release.save(tmp_path / "ate.json")
    assert Release.load(tmp_path / "ate.json") == release


def test_the_presets_are_those_of_the_supplement():
    regression, classifier = preset("kernel")
    assert (regression.kernel, regression.alpha) == ("rbf", 0.1)
    assert isinstance(classifier, LogisticRegression)
    for model in preset("nn"):
        assert (model.hidden_layer_sizes, model.activation, model.solver, model.alpha) == ((32,), "tanh", "sgd", 0.1)


@pytest.mark.parametrize("given", [{}, {"nuisance": "nn"}, LINEAR])
def test_without_noise_it_is_aipw_and_finds_the_effect(given):
    study = private_ci(1, 1_500, 7)
    with frozen_noise():
        fitted = fit(make(study, **given), study)
    assert abs(fitted.ate_ - study.ate) < 4 * fitted.release_.uncertainty.sampling


def test_any_regressor_and_classifier_will_do():
    forest = {"model_regression": RandomForestRegressor(5), "model_propensity": RandomForestClassifier(5)}
    with frozen_noise():
        first, second = (fit(make(**forest)).ate_ for _ in range(2))
    assert first == second  # random_state seeds models that have no seed of their own


def test_a_known_propensity_needs_no_classifier_and_bounds_the_score_better():
    with frozen_noise():
        known = fit(make(TRIAL, propensity=0.5, supremum="closed-form"), TRIAL)
        estimated = fit(make(TRIAL, supremum="closed-form"), TRIAL)
    assert known.release_.design == "known propensity"
    assert "the probability of treatment" in known.guarantee_.public
    assert known.release_.uncertainty.privacy < 0.3 * estimated.release_.uncertainty.privacy
    assert abs(known.ate_ - 1.0) < 4 * known.release_.uncertainty.sampling


def test_the_remark_trains_on_one_half_and_averages_over_the_other():
    spoilt = STUDY.Y.copy()
    spoilt[:200] = STUDY.bounds.outcome[0]
    with frozen_noise():
        usual = exact_statistics(make(split="private"), STUDY)
        other = exact_statistics(make(split="private"), replace(STUDY, Y=spoilt))
    assert usual.n == other.n == 200
    # Spoilt outcomes reach the estimate through the models alone, which it resists: double robustness.
    assert abs(other.tau - usual.tau) < 0.5
    assert abs(STUDY.Y[:200].mean() - spoilt[:200].mean()) > 1.0


def test_the_remark_halves_what_the_estimate_may_spend():
    with frozen_noise():
        fitted, exact = fit(make(split="private")), exact_statistics(make(split="private"), STUDY)
    assert fitted.release_.uncertainty.privacy == pytest.approx(exact.estimate_noise(0.25, 2.5e-6))


@pytest.mark.parametrize("split", ["public", "private"])
def test_proved_intervals_cover_in_a_trial(split):
    covered, models = 0, LINEAR if split == "public" else {}
    for seed in range(60):
        study = private_ci_rct(400, seed)
        with seeded_noise(seed):
            model = make(study, calibration="proved", split=split, propensity=0.5, epsilon=2.0, **models)
            low, high = fit(model, study).ate_interval(alpha=0.2)
        covered += low <= 1.0 <= high
    # 48 expected; four standard errors below.
    assert covered >= 48 - 4 * np.sqrt(60 * 0.8 * 0.2)
    assert covered < 60


def test_the_proved_variance_is_that_of_the_scores_and_a_little_more_for_its_noise():
    def sampling(epsilon):
        with frozen_noise():
            model = make(calibration="proved", split="public", epsilon=epsilon, **LINEAR)
            return fit(model).release_.uncertainty.sampling

    exact = exact_statistics(make(split="public", supremum="closed-form", **LINEAR), STUDY)
    standard = np.sqrt(exact.sigma2 / exact.n)
    assert sampling(1e6) == pytest.approx(standard, rel=0.01)
    assert sampling(1.0) > 1.5 * standard


def test_a_clip_narrows_the_proved_interval_and_says_so():
    given = {"calibration": "proved", "split": "private"}
    with frozen_noise():
        whole, clipped = fit(make(**given)).release_, fit(make(clip=5.0, **given)).release_
    assert clipped.uncertainty.privacy == pytest.approx(whole.uncertainty.privacy / 10, rel=1e-3)  # 5 of R_y/kappa = 50
    assert any("clipped" in note for note in clipped.notes)
    assert not any("clipped" in note for note in whole.notes)


def test_the_published_width_tells_neighbours_apart():
    """The known failure: r enters the width without noise, so that one record shows in it."""
    y = STUDY.Y.copy()
    y[0] = STUDY.bounds.outcome[1]
    with seeded_noise(1):
        one = fit(make(**LINEAR)).release_.uncertainty.privacy
    with seeded_noise(2):
        same = fit(make(**LINEAR)).release_.uncertainty.privacy
        other = make(**LINEAR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovedClaim)
            other = other.fit(y, STUDY.T, X=STUDY.X).release_.uncertainty.privacy
    assert one == same
    assert one != other


def test_the_proved_width_does_not_depend_on_the_records_but_through_the_gate():
    given = {"calibration": "proved", "split": "private"}
    y = np.random.default_rng(0).permutation(STUDY.Y)
    with seeded_noise(1):
        one = fit(make(**given)).release_.uncertainty.privacy
    with seeded_noise(2):
        other = make(**given).fit(y, STUDY.T, X=STUDY.X).release_.uncertainty.privacy
    assert one == other


def test_tables_and_arrays_give_the_same():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    bounds = Bounds(outcome=(-1, 4), covariates={"u": (0, 1), "v": (0, 1)}, propensity=(0.1, 0.9))
    frame = pandas.DataFrame({"u": STUDY.X[:, 0], "v": STUDY.X[:, 1], "t": STUDY.T, "y": STUDY.Y})
    with frozen_noise(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        table = make(bounds=bounds, **LINEAR).fit_table(frame, outcome="y", treatment="t")
        arrays = make(bounds=bounds, **LINEAR).fit(frame["y"], frame["t"], X=frame[["u", "v"]])
    assert table.release_ == arrays.release_


def test_it_can_be_cloned_and_is_not_fitted_by_that():
    model = make(calibration="proved", split="private", clip=3.0)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFitted, match="call fit first"):
        copy.ate_  # noqa: B018


class Peeking(RegressorMixin, BaseEstimator):
    """Predicts from the batch that it is asked about."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.full(len(X), X.mean())


class Hard(ClassifierMixin, BaseEstimator):
    """Has no probabilities."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Shaped(RegressorMixin, ClassifierMixin, BaseEstimator):
    """Returns what it is given, for every record."""

    def __init__(self, row=0.5, fails=False):
        self.row = row
        self.fails = fails

    def fit(self, X, y):
        if self.fails:
            raise ValueError(f"the first outcome is {y[0]}")
        return self

    def predict(self, X):
        return np.array([self.row] * len(X))

    predict_proba = predict


class Uncopied:
    """Has no parameters that a copy could be made from."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))

    predict_proba = predict


BAD = [
    ({"model_regression": LinearRegression}, InvalidInput, "model_regression is a class"),
    ({"model_propensity": LogisticRegression}, InvalidInput, "model_propensity is a class"),
    ({"model_regression": Uncopied()}, InvalidInput, "model_regression cannot be copied"),
    ({"model_propensity": Uncopied()}, InvalidInput, "model_propensity cannot be copied"),
    ({"model_regression": Shaped([1.0, 2.0])}, InvalidInput, "one number for each record"),
    ({"model_regression": Shaped(float("nan"))}, InvalidInput, "missing or infinite values"),
    ({"model_regression": Shaped(np.nan), **PROVED}, InvalidInput, "missing or infinite values"),
    ({"model_propensity": Shaped(0.5)}, InvalidInput, "two probabilities for each record"),
    ({"model_propensity": Shaped([0.2, 0.3, 0.5])}, InvalidInput, "two probabilities for each record"),
    ({"model_propensity": Shaped([np.nan, np.nan])}, InvalidInput, "missing or infinite values"),
    ({"model_regression": Shaped(fails=True)}, InvalidInput, r"model_regression could not be fitted \(ValueError\)"),
    ({"model_regression": LogisticRegression()}, InvalidInput, "model_regression could not be fitted"),
    ({"model_propensity": Shaped(fails=True)}, InvalidInput, "model_propensity could not be fitted"),
    ({"delta": None}, InvalidBudget, "needs delta"),
    ({"epsilon": 0.0}, InvalidBudget, "epsilon must be positive"),
    ({"bounds": None}, MissingBounds, "needs bounds"),
    ({"bounds": Bounds(outcome=(0, 1))}, InvalidInput, "needs covariates"),
    ({"epsilon1": 0.4, "epsilon2": 0.5}, InvalidBudget, "epsilon1 \\+ epsilon2 must be epsilon"),
    ({"delta1": 1e-6, "delta2": 1e-6}, InvalidBudget, "delta1 \\+ delta2 must be delta"),
    ({"epsilon1": 1.0}, InvalidBudget, "smaller than epsilon"),
    ({"epsilon2": -0.1}, InvalidBudget, "must be positive"),
    ({"epsilon1": float("nan")}, InvalidBudget, "must be positive"),
    ({"nuisance": "magic"}, InvalidInput, "nuisance must be"),
    ({"model_propensity": Hard()}, InvalidInput, "predict_proba"),
    ({"model_propensity": SVC(probability=False)}, InvalidInput, "predict_proba"),
    ({"model_regression": object()}, InvalidInput, "needs fit and predict"),
    ({"propensity": [0.5, 0.5]}, InvalidInput, "one number"),
    ({"propensity": 0.99}, InvalidInput, "inside the declared"),
    ({"supremum": "grid"}, InvalidInput, "supremum must be one of"),
    ({"calibration": "hoped"}, InvalidInput, "calibration must be one of"),
    ({"split": "thirds"}, InvalidInput, "split must be one of"),
    ({"starts": 0}, InvalidInput, "starts must be"),
    ({"clip": 3.0}, InvalidInput, "clip belongs to"),
    ({"calibration": "proved"}, InvalidInput, "needs split"),
    ({"calibration": "proved", "split": "private", "clip": -1.0}, InvalidInput, "clip must be"),
    ({"calibration": "proved", "split": "private", "clip": True}, InvalidInput, "clip must be"),
    ({"propensity": True}, InvalidInput, "one number"),
    ({"epsilon": 2.0, "epsilon1": True}, InvalidBudget, "must be positive"),
    ({"calibration": "proved", "split": "private", "epsilon1": 0.5}, InvalidBudget, "published calibration"),
    ({"split": "private", "model_regression": LinearRegression()}, InvalidInput, "its own models"),
    ({"calibration": "proved", "split": "public", "model_regression": Peeking()}, InvalidInput, "one by one"),
]


@pytest.mark.parametrize(("given", "error", "words"), BAD, ids=[str(i) for i in range(len(BAD))])
def test_bad_input_is_refused_in_a_sentence(given, error, words):
    model = make(**given)
    with pytest.raises(error, match=words) as caught:
        fit(model)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert not hasattr(model, "release_")


def test_a_model_that_predicts_a_column_will_do():
    with frozen_noise():
        vector, column = (fit(make(model_regression=Shaped(row), starts=1)).ate_ for row in (1.0, [1.0]))
    assert vector == column


@pytest.mark.parametrize("number", [np.float32, np.float64, float])
def test_numbers_of_any_kind_will_do(number):
    given = {"propensity": number(0.5), "calibration": "proved", "split": "private", "clip": number(4)}
    with frozen_noise():
        assert fit(make(TRIAL, **given), TRIAL).release_.estimate == pytest.approx(1.0, abs=0.5)


def test_a_half_without_an_arm_is_refused():
    late = np.arange(400) >= 200
    with pytest.raises(InvalidInput, match="One arm is empty in the half"):
        make(split="public", calibration="proved", **LINEAR).fit(STUDY.Y, late, X=STUDY.X)


def test_too_few_records_to_split_are_refused():
    with pytest.raises(InvalidInput, match="at least 20 records"):
        fit(make(split="private"), replace(STUDY, Y=STUDY.Y[:15], T=STUDY.T[:15], X=STUDY.X[:15]))


def test_the_methods_paragraph_tells_what_was_summed_and_what_was_not():
    public = fit(make(calibration="proved", split="public", **LINEAR)).release_.methods()
    assert "trained on the first half of the records, which was declared public, without noise" in public
    assert "sums over the records of the second half" in public
    assert "All that was computed from the records are sums" not in public
    private = fit(make(calibration="proved", split="private")).release_.methods()
    assert "divided into disjoint parts" in private
    for words in ("part 1, treatment moments (", ", 33 %)", "part 2, score (2, 100 %)", "discrete Gaussian noise"):
        assert words in private
    assert "noise in the adjustment" not in private  # for which this interval does not allow


def test_the_interval_of_equation_15_is_not_cut_at_the_outcomes_width():
    with frozen_noise():
        model = fit(make(epsilon=0.01))
    width = STUDY.bounds.outcome_width
    inside, whole = model.ate_interval(), model.ate_interval(truncated=False)
    assert -width <= inside[0] <= inside[1] <= width
    assert whole[1] - whole[0] > 2 * width
    assert whole[0] + whole[1] == pytest.approx(2 * model.ate_)
    with pytest.raises(InvalidInput, match="alpha"):
        model.ate_interval(2.0, truncated=False)
