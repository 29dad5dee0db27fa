"""Two private regressions: what they estimate, promise, keep and refuse."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from discreet import Bounds
from discreet.data.frames import encoded
from discreet.datasets import adum, criteo_shaped
from discreet.exceptions import InvalidBudget, InvalidInput, MissingBounds, NotFitted
from discreet.papers import TwoModel, UnprovedClaim
from discreet.papers.adum import functional_mechanism as functional
from discreet.papers.adum.two_model import joint_sensitivity, objective_budget
from discreet.papers.adum.two_model_release import TwoModelRelease, unit_features
from discreet.papers.propensity import logistic
from discreet.privacy.budget import ClaimedEvent
from discreet.testing import frozen_noise, seeded_noise

STUDY = adum(3_000, 0, frequency=np.pi)
BINARY = criteo_shaped(4_000, 0)
GIVEN = {"epsilon": 1.0, "bounds": STUDY.bounds, "degree": 3}
LOGISTIC = {"epsilon": 1.0, "bounds": BINARY.bounds, "model": "logistic"}


def fit(study=STUDY, **given):
    return TwoModel(**((GIVEN if study is STUDY else LOGISTIC) | given)).fit(study.Y, study.T, X=study.X)


@pytest.mark.parametrize("degree", [1, 3])
def test_without_noise_effects_are_those_of_two_ridge_regressions(degree):
    with frozen_noise():
        fitted = TwoModel(**(GIVEN | {"degree": degree})).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    # Section 6.1: four standard deviations of the noise on the diagonal.
    ridge = 4 * np.sqrt(2) * fitted.release_.noise_scale * np.eye(degree + 1)
    powers = np.vander(STUDY.X[:, 0], degree + 1, increasing=True)
    w = []
    for arm in (0, 1):
        mine = arm == STUDY.T
        w.append(np.linalg.solve(powers[mine].T @ powers[mine] + ridge, powers[mine].T @ STUDY.Y[mine]))
    np.testing.assert_allclose(fitted.effect(STUDY.X), powers @ (w[1] - w[0]), atol=1e-6)


def test_an_ocean_of_budget_gives_the_effect():
    fitted = TwoModel(**(GIVEN | {"degree": 5, "epsilon": 1e4})).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    # Six weights an arm, 1,500 records each, noise of the outcome 1: a mean squared error of 2 * 6 / 1,500.
    assert np.mean((fitted.effect(STUDY.X) - STUDY.effects) ** 2) < 4 * 2 * 6 / 1_500


@given(st.floats(-1, 1), st.lists(st.floats(-1, 1), min_size=1, max_size=6))
def test_absolute_coefficients_add_up_to_the_square_that_lemma_4_names(y, phi):
    row = functional.coefficients(np.array([y]), np.array([phi]))
    assert np.abs(row).sum() == pytest.approx((abs(y) + np.abs(phi).sum()) ** 2, abs=1e-12)
    assert np.abs(row).sum() <= functional.coefficient_bound(len(phi)) * (1 + 1e-12)
    assert row.shape[1] == functional.coefficient_count(len(phi))


def test_coefficients_are_those_of_the_squared_error():
    rng = np.random.default_rng(0)
    y, phi, w = rng.uniform(-1, 1, 5), rng.uniform(-1, 1, (5, 3)), rng.normal(0, 1, 3)
    pairs = np.array([w[j] * w[k] for j, k in zip(*np.triu_indices(3), strict=True)])
    np.testing.assert_allclose(functional.coefficients(y, phi) @ np.concatenate([[1], w, pairs]), (y - phi @ w) ** 2)


def test_directions_that_noise_turned_downwards_are_left_out():
    total = functional.coefficients(np.array([1.0]), np.array([[1.0, 1.0]]))[0] * 100
    total[-1] = -1e6
    w = functional.minimiser(total, 2, 0.0)
    assert np.isfinite(w).all()
    assert abs(w[1]) < 1e-3


def test_monomials_are_powers_of_ranges_and_indicators_of_levels():
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 2), ["a", "b", "c"]])
    x = encoded(np.array([[0.5, "b"], [2.0, "a"]], dtype=object), bounds)
    np.testing.assert_allclose(functional.monomials(x, bounds, 2), [[1, -0.5, 0.25, 1, 0], [1, 1, 1, 0, 0]])
    assert functional.monomial_count(bounds, 2) == 5


def test_the_functional_mechanism_s_noise_is_the_published_one():
    with seeded_noise(0):
        replace, add = (fit(neighbours=relation).release_.noise_scale for relation in ("replace-one", "add-remove"))
    # d = 4 features with the constant: 2 (d + 1)^2 / epsilon for a replaced record.
    assert (replace, add) == pytest.approx((50.0, 25.0))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_functional_mechanism_is_proved(relation):
    guarantee = fit(neighbours=relation).guarantee_
    assert (guarantee.status, guarantee.proof, guarantee.neighbours) == ("proved", "adum.md", relation)
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 0.0)
    assert ("the number of records" in guarantee.public) == (relation == "replace-one")


def test_without_noise_logistic_effects_are_those_of_two_penalised_fits():
    with frozen_noise():
        fitted = fit(BINARY, lam=0.001)
    x = unit_features(encoded(BINARY.X, BINARY.bounds), BINARY.bounds)
    w = []
    for arm in (0, 1):
        mine = arm == BINARY.T
        # Dividing by all records instead of an arm's is a larger penalty.
        w.append(logistic.minimise(x[mine], BINARY.Y[mine], 0.001 / mine.mean(), 1e-9).w)  # type: ignore[attr-defined]
    np.testing.assert_allclose(fitted.effect(BINARY.X), expit(x @ w[1]) - expit(x @ w[0]), atol=1e-5)


def test_output_perturbation_is_proved_with_the_stated_noise():
    fitted = fit(BINARY, lam=0.01)
    assert (fitted.guarantee_.status, fitted.guarantee_.proof) == ("proved", "adum.md")
    (event,) = fitted.guarantee_.events
    assert event.diameter / event.scale == pytest.approx(1.0)
    # 26 numbers, each with an L1 diameter of sqrt(26) times the L2 one.
    assert fitted.release_.noise_scale == pytest.approx(np.sqrt(26) * joint_sensitivity(4_000, 0.01, 1e-9), rel=1e-6)
    assert joint_sensitivity(4_000, 0.01, 0.0) == pytest.approx(2 / 40)


def test_objective_perturbation_is_claimed_and_says_why():
    with pytest.warns(UnprovedClaim, match="sizes of the arms enter without noise") as caught:
        fitted = fit(BINARY, calibration="published")
    assert "two_model" in caught[0].filename
    assert fitted.guarantee_.status == "claimed"
    assert isinstance(fitted.guarantee_.events[0], ClaimedEvent)
    assert "the sizes of the arms" in fitted.guarantee_.public
    with pytest.warns(UnprovedClaim), frozen_noise():
        exact = fit(BINARY, calibration="published", lam=0.01, epsilon=100.0)
    x = unit_features(encoded(BINARY.X, BINARY.bounds), BINARY.bounds)
    treated = BINARY.T == 1
    w = logistic.minimise(x[treated], BINARY.Y[treated], 0.01, 1e-9).w
    np.testing.assert_allclose(exact.release_.weights[1], w, atol=1e-6)


def test_the_budget_of_objective_perturbation_is_the_published_one():
    n, lam = 1_000, 0.01
    left, extra = objective_budget(1.0, n, lam)
    assert left == pytest.approx(1.0 - np.log(1 + 2 * 0.25 / (n * lam) + 0.25**2 / (n * lam) ** 2))
    assert extra == 0.0
    left, extra = objective_budget(0.01, 100, 1e-6)
    assert left == 0.005
    assert extra == pytest.approx(0.25 / (100 * (np.exp(0.0025) - 1)) - 1e-6)


@pytest.mark.parametrize("study", [STUDY, BINARY])
def test_a_release_is_written_and_read_back_and_all_that_is_kept(study, tmp_path):
    with seeded_noise(2):
        fitted = fit(study)
    fitted.release_.save(tmp_path / "model.json")
    again = TwoModelRelease.load(tmp_path / "model.json")
    assert again.to_dict() == fitted.release_.to_dict()
    np.testing.assert_array_equal(again.effect(study.X), fitted.effect(study.X))
    assert "weights, treated" in str(again)
    assert fitted.summary() == str(again)
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    assert pickle.loads(pickle.dumps(fitted)).release_.to_dict() == again.to_dict()
    with pytest.raises(InvalidInput, match="row of finite numbers per arm"):
        TwoModelRelease.from_dict(again.to_dict() | {"weights": [[1.0]]})


@pytest.mark.parametrize(
    ("base", "given", "error", "words"),
    [
        (GIVEN, {"epsilon": 0.0}, InvalidBudget, "epsilon must be positive"),
        (GIVEN, {"bounds": None}, MissingBounds, "TwoModel needs bounds"),
        (GIVEN, {"bounds": Bounds(outcome=(0, 1))}, MissingBounds, "needs Bounds"),
        (GIVEN, {"degree": 0}, InvalidInput, "degree must be a positive integer"),
        (GIVEN, {"degree": True}, InvalidInput, "degree must be a positive integer"),
        (GIVEN, {"degree": 200}, InvalidInput, "too many coefficients"),
        (GIVEN, {"model": "forest"}, InvalidInput, "model must be"),
        (GIVEN, {"neighbours": "x"}, InvalidInput, "neighbours must be"),
        (LOGISTIC, {"perturbation": "x"}, InvalidInput, "perturbation must be"),
        (LOGISTIC, {"neighbours": "add-remove"}, InvalidInput, "no add-remove noise"),
        (LOGISTIC, {"bounds": STUDY.bounds}, InvalidInput, "binary outcomes"),
        (LOGISTIC, {"lam": 0.0}, InvalidInput, "lam must be a positive number"),
        (LOGISTIC, {"lam": "a"}, InvalidInput, "lam must be a positive number"),
        (LOGISTIC, {"gradient_norm": 0.5}, InvalidInput, "gradient_norm must lie"),
    ],
)
def test_bad_parameters_are_refused_before_records_are_read(base, given, error, words):
    with pytest.raises(error, match=words):
        TwoModel(**(base | given)).fit(None, None, X=None)


def test_outcomes_between_0_and_1_are_no_binary_ones():
    with pytest.raises(InvalidInput, match="Y must hold 0 or 1"):
        TwoModel(**LOGISTIC).fit(np.full(4_000, 0.5), BINARY.T, X=BINARY.X)


def test_results_before_fit_are_refused():
    with pytest.raises(NotFitted, match="call fit first"):
        TwoModel(**GIVEN).effect(STUDY.X)
