"""DP-CATE for functions as an estimator: what it promises, what it keeps secret, and what it refuses."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from discreet import Bounds, InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import dp_cate
from discreet.papers import DPCATEFunction
from discreet.papers.common.arrays import gather
from discreet.papers.common.claims import UnprovedClaim
from discreet.papers.common.losses import Loss, huber, loss_of, squares
from discreet.papers.dp_cate.equations import Weight
from discreet.papers.dp_cate.kernel_regression import GaussianKernel, Span, _Problem, regress
from discreet.papers.dp_cate.kernel_settings import settings_of
from discreet.papers.dp_cate.kernel_stage import kernel_of, noise_scale, second_stage
from discreet.papers.dp_cate.release import AnswersRelease, FunctionRelease
from discreet.testing import frozen_noise, seeded_noise

STUDY = dp_cate(1, 600, 5)
QUERIES = np.random.default_rng(0).random((30, 2))
LINEAR = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
PROVED = {"calibration": "proved", "split": "private", "loss": "huber", "lam": 0.01, "scaling": "unit"}


def make(**given):
    usual = {"epsilon": 1.0, "delta": 1e-5, "bounds": STUDY.bounds, "random_state": 0}
    models = {} if given.get("split") == "private" else LINEAR
    return DPCATEFunction(**(usual | models | given))


def fit(model, study=STUDY):
    """Fit, without the warning that other tests are about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return model.fit(study.Y, study.T, X=study.X)


def rmse(found, truth):
    return float(np.sqrt(np.mean((found - truth) ** 2)))


def test_the_papers_calibration_is_claimed_and_warns_that_it_is_secret():
    with pytest.warns(UnprovedClaim, match="epsilon of 1 is at least.*keep both secret") as caught:
        f = make().fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert caught[0].filename == __file__
    f.effect(QUERIES)
    guarantee = f.guarantee_
    assert (guarantee.status, guarantee.epsilon, guarantee.delta, guarantee.proof) == ("claimed", 1.0, 1e-5, None)
    assert "keep both secret" in f.summary()


def test_it_remembers_what_it_answered():
    f = fit(make())
    first = f.effect(QUERIES[:10])
    f.effect(QUERIES[10:])
    np.testing.assert_array_equal(f.effect(QUERIES[:10]), first)
    release = f.release_
    assert isinstance(release, AnswersRelease)
    np.testing.assert_array_equal(release.effect()[:10], first)
    assert len(release.effects) == 30


def test_it_refuses_to_be_pickled_or_copied_and_shows_nothing(tmp_path):
    f = fit(make())
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InvalidInput, match="cannot be pickled or copied"):
            attempt(f)
    assert "SECRET" in repr(f.secret_)
    assert not hasattr(clone(f), "secret_")
    f.effect(QUERIES)
    f.release_.save(tmp_path / "answers.json")
    loaded = AnswersRelease.load(tmp_path / "answers.json")
    assert loaded == f.release_
    assert "weights" not in (tmp_path / "answers.json").read_text()


def test_nothing_answered_is_nothing_to_publish():
    with pytest.raises(NotFitted, match="nothing has been answered"):
        fit(make()).release_  # noqa: B018
    for ask in (lambda f: f.effect(QUERIES), lambda f: f.release_, lambda f: f.save("x")):
        with pytest.raises(NotFitted, match="call fit first"):
            ask(make())


def test_a_state_file_goes_on_in_another_object(tmp_path):
    f = fit(make(state=tmp_path / "state"))
    first = f.effect(QUERIES[:5])
    f.close()
    again = DPCATEFunction.load(tmp_path / "state")
    np.testing.assert_array_equal(again.effect(QUERIES[:5]), first)
    assert again.effect(QUERIES).shape == (30,)
    assert (again.guarantee_.epsilon, again.guarantee_.status) == (1.0, "claimed")
    assert again.bounds == STUDY.bounds
    again.close()
    with pytest.raises(InvalidInput, match="state names a file that exists"):
        fit(make(state=tmp_path / "state"))


def test_a_second_fit_forgets_the_first_and_lets_go_of_its_file(tmp_path):
    f = fit(make(state=tmp_path / "one"))
    f.set_params(state=None)
    fit(f)
    DPCATEFunction.load(tmp_path / "one").close()
    f.set_params(**PROVED, model_regression=None, model_propensity=None)
    fit(f)
    assert set(vars(f)) - set(f.get_params()) == {"_public_release"}


def test_seeded_noise_makes_every_release_a_test():
    with seeded_noise(0):
        f = fit(make())
        f.effect(QUERIES)
        assert f.guarantee_.status == "test"
        assert fit(make(**PROVED)).guarantee_.status == "test"
    assert f.guarantee_.status == "test"


@pytest.mark.parametrize("split", ["public", "private"])
def test_the_proved_calibration_is_proved_and_can_be_published(split, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = make(**PROVED | {"split": split}).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    guarantee = f.guarantee_
    assert (guarantee.status, guarantee.proof) == ("proved", "dp_cate.md")
    assert guarantee.unit == ("one record of the second half" if split == "public" else "one record")
    assert ("all records of the first half, which trained the models" in guarantee.public) == (split == "public")
    assert set(vars(f)) - set(f.get_params()) == {"_public_release"}
    f.release_.save(tmp_path / "function.json")
    loaded = FunctionRelease.load(tmp_path / "function.json")
    np.testing.assert_array_equal(loaded.effect(QUERIES), f.effect(QUERIES))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f)).effect(QUERIES), f.effect(QUERIES))
    assert "noise (sd)" in f.summary()


def test_the_proved_noise_is_public_and_falls_with_epsilon_and_n():
    def sd(study=STUDY, **given):
        with seeded_noise(0):
            return fit(make(**PROVED | given), study).release_.noise_sd

    shuffled = dp_cate(1, 600, 99)
    assert sd() == sd(shuffled)
    assert sd(epsilon=2.0) < sd() < sd(epsilon=0.5)
    assert sd(dp_cate(1, 1_200, 1)) == pytest.approx(sd() / 2, rel=1e-3)


def test_the_proved_noise_in_the_function_is_the_noise_that_is_stated():
    draws = []
    for seed in range(60):
        with seeded_noise(seed):
            f = fit(make(**PROVED, propensity=0.6))
        draws.append(f.effect(QUERIES))
    sd = np.std(draws, axis=0, ddof=1)
    # The first stage has noise of its own, which moves effects a little.
    assert np.all(sd < 1.6 * f.release_.noise_sd)
    assert sd.mean() > 0.5 * f.release_.noise_sd


@pytest.mark.parametrize("loss", ["l2", "huber", "truncated-l2", "l1"])
@pytest.mark.parametrize("learner", ["R", "DR"])
def test_without_noise_every_loss_finds_the_effects(loss, learner):
    study = dp_cate(1, 2_000, 3)
    with frozen_noise():
        f = fit(make(loss=loss, learner=learner, lam=1e-4, scaling="unit", bandwidth=0.5), study)
        found = f.effect(study.X[:300])
    assert rmse(found, study.effects[:300]) < 0.6 * study.effects[:300].std()


def test_lambda_of_the_sum_is_lambda_over_n_of_the_mean():
    with frozen_noise():
        total = fit(make(lam=0.6, penalty="sum", scaling="unit")).effect(QUERIES)
        mean = fit(make(lam=0.001, penalty="mean", scaling="unit")).effect(QUERIES)
        collapsed = fit(make(penalty="mean", scaling="lemma 3")).effect(QUERIES)
    np.testing.assert_allclose(total, mean, atol=1e-6)
    assert np.abs(collapsed).max() < 0.2 * np.abs(mean).max()


@pytest.mark.parametrize(("scaling", "power"), [("lemma 3", 2), ("theorem 2", 1), ("unit", 0)])
def test_the_kernel_is_divided_by_what_the_text_says(scaling, power):
    kernel = kernel_of(settings_of(make(scaling=scaling, bandwidth=0.7)), 2)
    assert kernel.height == pytest.approx((np.sqrt(2 * np.pi) * 0.7) ** -power)
    eight = Bounds(outcome=(0, 1), covariates=[(0, 1)] * 8, propensity=(0.1, 0.9))
    assert (settings_of(make(bounds=eight)).bandwidth, settings_of(make(bounds=eight, **PROVED)).bandwidth) == (
        2.0,
        1.0,
    )


def test_the_published_scale_is_that_of_equation_18():
    f = fit(make(loss="huber", knee=2.0, lam=0.3, bandwidth=0.8))
    assert f.secret_._r == pytest.approx(noise_scale(2.0, 0.8, 2, 0.3, 600, 1.0, 1e-5))


def test_l2_on_a_bounded_domain_has_the_minimiser_of_squares():
    rows = gather(ArrayRecords.of(STUDY.Y, STUDY.T, STUDY.X, bounds=STUDY.bounds))
    model = make(loss="l2", lam=0.01, scaling="unit")
    nuisances = model._first_stage(rows, None)[0]
    bounded = second_stage(model, rows, nuisances, clipped=True)
    free = second_stage(model, rows, nuisances, clipped=False)
    np.testing.assert_allclose(bounded.stable.coefficients, free.stable.coefficients, atol=1e-7)


@pytest.mark.parametrize("loss", [huber(0.5), huber(1.0, 2.0), squares(), loss_of("l1", knee=1, reach=3, domain=9)])
def test_losses_and_their_slopes_belong_together(loss):
    u = np.linspace(-4, 4, 801) + 1e-4
    step = 1e-7
    numeric = (loss.value(u + step) - loss.value(u - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(u), numeric, atol=1e-5)
    if loss.lipschitz is not None:
        assert np.abs(loss.slope(u)).max() <= loss.lipschitz


def test_the_regression_is_ridge_regression_for_squares():
    rng = np.random.default_rng(2)
    psi, rho, target = rng.random((80, 4)) / 2, rng.random(80), rng.normal(0, 1, 80)
    found = regress(psi, target, rho, squares(), 0.1, slope=10.0, reach=5.0).coefficients
    weighted = psi * rho[:, None]
    expected = np.linalg.solve(weighted.T @ weighted / 80 + 0.1 * np.eye(4), weighted.T @ target / 80)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    with pytest.raises(InvalidInput, match="lam is so small"):
        regress(psi, target, rho, huber(1.0), 1e-20, slope=1.0, reach=5.0)


def test_a_span_leaves_out_what_its_centres_repeat():
    centres = np.vstack([np.random.default_rng(0).random((5, 2))] * 2)
    assert Span.of(GaussianKernel(0.5, 1.0), centres).dimension == 5


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"delta": None}, InvalidBudget, "needs delta"),
        ({"bounds": None}, MissingBounds, "needs bounds"),
        ({"bounds": Bounds(outcome=(0, 1))}, InvalidInput, "needs covariates"),
        ({"loss": "quadratic"}, InvalidInput, "loss must be"),
        ({"loss": squares()}, InvalidInput, "no Lipschitz constant"),
        ({"loss": Loss(name="a", value=abs, slope=abs, curvature=abs, lipschitz=np.inf)}, InvalidInput, "no Lipschitz"),
        ({"knee": 0}, InvalidInput, "knee"),
        ({"lam": -1.0}, InvalidInput, "lam"),
        ({"bandwidth": np.inf}, InvalidInput, "bandwidth"),
        ({"basis": 0}, InvalidInput, "basis"),
        ({"scaling": "x"}, InvalidInput, "scaling"),
        ({"penalty": "x"}, InvalidInput, "penalty"),
        ({"calibration": "x"}, InvalidInput, "calibration"),
        ({"split": "x"}, InvalidInput, "split"),
        ({"as_printed": "x"}, InvalidInput, "as_printed"),
        ({"model_regression": object()}, InvalidInput, "model_regression needs fit and predict"),
        ({"model_propensity": SVC()}, InvalidInput, "predict_proba"),
        ({"split": "private", "model_regression": LinearRegression()}, InvalidInput, "its own models"),
        (PROVED | {"split": None} | LINEAR, InvalidInput, "its own models"),
        (PROVED | {"penalty": "sum"}, InvalidInput, "belong to calibration='published'"),
        (PROVED | {"state": "x"}, InvalidInput, "belong to calibration='published'"),
        (PROVED | {"as_printed": True}, InvalidInput, "belong to calibration='published'"),
        (PROVED | {"loss": huber(1.0)}, InvalidInput, "by name only"),
        (PROVED | {"learner": Weight("x", np.ones_like, np.zeros_like)}, InvalidInput, "by name only"),
    ],
)
@pytest.mark.filterwarnings("ignore::discreet.papers.UnprovedClaim")
def test_parameters_that_make_no_sense_are_refused(given, error, words):
    with pytest.raises(error, match=words):
        make(**given).fit(STUDY.Y, STUDY.T, X=STUDY.X)


@pytest.mark.parametrize("given", [{}, PROVED])
@pytest.mark.parametrize(
    ("queries", "words"),
    [(None, "X are missing"), ([[2.0, 0.5]], "leaves the declared domain"), (np.empty((0, 2)), "at least one row")],
)
def test_queries_that_cannot_be_answered_are_refused(given, queries, words):
    with pytest.raises(InvalidInput, match=words):
        fit(make(**given)).effect(queries)


@pytest.mark.filterwarnings("ignore::discreet.papers.UnprovedClaim")
def test_records_that_cannot_be_used_are_refused():
    with pytest.raises(InvalidInput, match="One arm is empty"):
        make().fit(STUDY.Y, np.zeros(600), X=STUDY.X)
    with pytest.raises(InvalidInput, match="fewer than 10 records"):
        make().fit(STUDY.Y[:9], STUDY.T[:9], X=STUDY.X[:9])
    with pytest.raises(InvalidInput, match="split needs at least 20"):
        make(**PROVED).fit(STUDY.Y[:15], STUDY.T[:15], X=STUDY.X[:15])
    order = np.argsort(-STUDY.T, kind="stable")
    with pytest.raises(InvalidInput, match="One arm is empty in the half"):
        make(**PROVED | {"split": "public"}).fit(STUDY.Y[order], STUDY.T[order], X=STUDY.X[order])


class Batchwise(LinearRegression):
    """A model that depends on all rows that it is asked about."""

    def predict(self, X):
        return super().predict(StandardScaler().fit_transform(X))


def test_models_that_compare_rows_cannot_be_proved():
    with pytest.raises(InvalidInput, match="rows one by one"):
        fit(make(**PROVED | {"split": "public", "model_regression": Batchwise()}))


def test_levels_are_answered_too():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.random(300).astype(object), rng.choice(["a", "b"], 300)])
    bounds = Bounds(outcome=(-1, 3), covariates={"u": (0, 1), "v": ["a", "b"]}, propensity=(0.2, 0.8))
    t = rng.integers(0, 2, 300)
    y = t * (x[:, 1] == "a") + rng.normal(0, 0.1, 300)
    with frozen_noise():
        f = make(bounds=bounds, scaling="unit", lam=1e-4)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnprovedClaim)
            f.fit(y, t, X=x)
        a, b = f.effect(np.array([[0.5, "a"], [0.5, "b"]], dtype=object))
    assert a > 0.7
    assert b < 0.3
    with pytest.raises(InvalidInput, match="outside its declared levels"):
        f.effect(np.array([[0.5, "c"]], dtype=object))


@pytest.mark.parametrize(("seed", "lam"), [(7, 1e-6), (11, 3e-6)])
def test_minima_that_newtons_steps_miss_are_approached_through_smoother_losses(seed, lam):
    """A nearly flat loss with a kink, and hardly any penalty: these do not settle at once."""
    rng, n = np.random.default_rng(seed), 40
    span = Span.of(GaussianKernel(0.1, 1.0), rng.random((30, 2)))
    psi = span.coordinates(rng.random((n, 2)))
    target = rng.choice([-3.0, 3.0], n) + 0.3 * rng.standard_normal(n)
    loss, rho = loss_of("l1", knee=1.0, reach=4.0, domain=10.0), np.ones(n)
    assert _Problem(psi, target, rho, lam).descend(np.zeros(span.dimension), loss, 1e-9) is None
    found = regress(psi, target, rho, loss, lam, slope=1.0, reach=4.0).coefficients
    assert np.linalg.norm(2 * lam * found - loss.slope(target - psi @ found) @ psi / n) <= 1e-6


WIDE = Bounds(outcome=(-1, 1), covariates=[(-1, 1)] * 250, propensity=(0.1, 0.9))
WIDE_RECORDS = {"Y": np.arange(200) % 2 / 2.0, "T": np.arange(200) % 2, "X": np.zeros((200, 250))}


@pytest.mark.parametrize("given", [{}, {"scaling": "lemma 3"}, {"calibration": "proved", "scaling": "lemma 3"}])
def test_kernels_that_no_number_holds_are_refused_before_anything_is_charged(given):
    function = DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=WIDE, **given)
    with pytest.raises(InvalidInput, match="height of a Gaussian kernel over 250 features"):
        function.fit(**WIDE_RECORDS)
    assert "secret_" not in vars(function)
    assert "_public_release" not in vars(function)


def test_many_covariates_are_no_trouble_where_nothing_is_divided_by_a_power_of_them():
    with seeded_noise(0):
        function = DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=WIDE, calibration="proved").fit(**WIDE_RECORDS)
    assert np.isfinite(function.effect(WIDE_RECORDS["X"][:2])).all()


@pytest.mark.parametrize("dataset", [1, 2])
def test_all_defaults_are_the_settings_of_the_figures(dataset):
    study = dp_cate(dataset, 700, 9)
    fitted = {}
    for name, given in {
        "defaults": {},
        "figures": {"penalty": "sum", "scaling": "unit", "loss": "l2", "lam": 1.0},
    }.items():
        with seeded_noise(1):
            model = DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=study.bounds, random_state=0, **LINEAR, **given)
            fitted[name] = fit(model, study).effect(study.X[:50])
    np.testing.assert_array_equal(fitted["defaults"], fitted["figures"])
    # Not zero, which is what the penalty on the mean loss gives.
    assert fitted["defaults"].mean() > 0.5 * study.ate


@pytest.mark.parametrize(("dataset", "seed"), [(1, 3), (2, 4)])
def test_proved_defaults_are_better_than_the_constant_that_they_are_pulled_towards(dataset, seed):
    study, error = dp_cate(dataset, 3_000, seed), {}
    rows = slice(0, 2_700)
    with seeded_noise(seed):
        model = DPCATEFunction(epsilon=1.0, delta=1e-5, bounds=study.bounds, calibration="proved", random_state=0)
        model.fit(study.Y[rows], study.T[rows], X=study.X[rows])
    truth = study.effects[2_700:]
    error = rmse(model.effect(study.X[2_700:]), truth)
    assert model.guarantee_.status == "test"
    assert error < rmse(model.release_.function["constant"], truth)


def test_the_constant_of_a_function_is_written_and_read(tmp_path):
    with seeded_noise(2):
        model = fit(make(**PROVED))
    model.release_.save(tmp_path / "function.json")
    loaded = FunctionRelease.load(tmp_path / "function.json")
    assert loaded.function["constant"] == model.release_.function["constant"] != 0.0
    np.testing.assert_array_equal(loaded.effect(QUERIES), model.effect(QUERIES))


def test_the_old_word_for_published_is_understood_with_a_warning():
    with warnings.catch_warnings(record=True, action="always") as seen:
        old = make(calibration="paper").fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert "calibration='paper' is calibration='published' now" in str(seen[0].message)
    old.effect(QUERIES[:1])
    assert old.release_.settings["calibration"] == "published"
