"""Private propensity scores as an estimator: what it estimates, promises, keeps and refuses."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import Bounds
from discreet.datasets import propensity_scores
from discreet.exceptions import DiscreetError, InvalidBudget, InvalidInput, MissingBounds, NotFitted, UnsupportedRelease
from discreet.papers import PropensityIPTW, UnprovedClaim
from discreet.papers.common.arrays import Rows, into_unit_ball, split
from discreet.papers.propensity import iptw, logistic
from discreet.papers.propensity.release import PointRelease
from discreet.privacy.accountant import gdp_mu
from discreet.privacy.budget import ClaimedEvent, ParallelEvent
from discreet.testing import frozen_noise, seeded_noise

STUDY = propensity_scores(2.0, 0)
GIVEN = {"epsilon": 0.9, "delta": 1e-6, "bounds": STUDY.bounds, "norm_bound": 1.0, "m": 1000, "shuffle": False}
PAPER = GIVEN | {"calibration": "published"}
EVERYONE = GIVEN | {"calibration": "proved", "xi": 0.1}


def fit(given, study=STUDY):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return PropensityIPTW(**given).fit(study.Y, study.T, X=study.X)


def by_hand(xi=None):
    """The estimate without any noise, from the equations."""
    x, t, y = STUDY.X, STUDY.T, STUDY.Y
    w = logistic.minimise(x[:1000], t[:1000], 0.1, 1e-9).w
    return w, iptw.iptw(y[1000:], t[1000:], x[1000:] @ w, xi)


@pytest.mark.parametrize("xi", [None, 0.1, 0.45])
def test_without_noise_the_paper_s_estimate_is_what_its_equations_say(xi):
    w, tau = by_hand(xi)
    with frozen_noise():
        fitted = fit(PAPER | {"xi": xi})
    np.testing.assert_allclose(fitted.release_.weights, w, atol=1e-9)
    assert fitted.ate_ == pytest.approx(tau, abs=1e-8)


@pytest.mark.parametrize("xi", [0.1, 0.45])
def test_without_noise_everyone_s_estimate_is_the_same(xi):
    w, tau = by_hand(xi)
    with frozen_noise():
        fitted = fit(EVERYONE | {"xi": xi})
    np.testing.assert_allclose(fitted.release_.weights, w, atol=1e-9)
    assert fitted.ate_ == pytest.approx(tau, abs=1e-8)


def test_objective_perturbation_without_noise_is_the_same_fit():
    with frozen_noise():
        fitted = fit(PAPER | {"perturbation": "objective"})
    np.testing.assert_allclose(fitted.release_.weights, by_hand()[0], atol=1e-8)


def test_the_noise_on_the_weights_is_that_of_definition_2():
    w, _ = by_hand()
    with seeded_noise(1):
        draws = np.array([fit(PAPER).release_.weights for _ in range(200)]) - w
    # 5,000 draws: their standard deviation is known to about one per cent.
    assert draws.std() == pytest.approx(logistic.output_sd(0.9, 1e-6, 1000, 0.1), rel=0.04)


def test_the_noise_on_the_objective_is_that_of_the_notebooks():
    x, t = STUDY.X[:1000], STUDY.T[:1000]
    with seeded_noise(2):
        weights = [np.array(fit(PAPER | {"perturbation": "objective"}).release_.weights) for _ in range(200)]
    b = np.array([-1000 * logistic.gradient(w, x, t, 0.1) for w in weights])
    assert b.std() == pytest.approx(logistic.objective_sd(0.9, 1e-6), rel=0.04)


def test_the_noise_for_everyone_is_calibrated_exactly():
    mu = gdp_mu(0.9, 1e-6)
    w, tau = by_hand(0.1)
    with seeded_noise(3):
        fits = [fit(EVERYONE).release_ for _ in range(200)]
    noise = np.array([release.weights for release in fits]) - w
    assert noise.std() == pytest.approx(logistic.sensitivity(1000, 0.1, 1e-9) / mu, rel=0.04)
    largest = max(map(abs, STUDY.bounds.outcome))
    assert fits[0].noise_sd == pytest.approx(2 * largest / 0.1 / mu / 200, rel=1e-4)
    effects = np.array([release.estimate for release in fits]) - tau
    # The weights' noise adds a little to the effect's own.
    assert fits[0].noise_sd * 0.8 < effects.std() < fits[0].noise_sd * 1.4


def test_an_ocean_of_budget_drowns_the_noise():
    fitted = PropensityIPTW(**(EVERYONE | {"epsilon": 1e6})).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert fitted.ate_ == pytest.approx(by_hand(0.1)[1], abs=0.02)


def test_everyone_is_proved_and_covered_in_parallel():
    guarantee = PropensityIPTW(**EVERYONE).fit(STUDY.Y, STUDY.T, X=STUDY.X).guarantee_
    assert (guarantee.status, guarantee.proof, guarantee.unit) == ("proved", "propensity.md", "one record")
    assert (guarantee.epsilon, guarantee.delta) == (0.9, 1e-6)
    (event,) = guarantee.events
    assert isinstance(event, ParallelEvent)
    assert [part[0].name for part in event.parts] == ["propensity weights", "weighted outcomes"]
    # Parallel, so the budget is used once and used up.
    assert 0.999 * 1e-6 < guarantee.delta_at(0.9) <= 1e-6


def test_the_paper_is_claimed_for_the_training_records_alone_and_says_so():
    with pytest.warns(UnprovedClaim, match="claimed, not proved. It covers only the m records") as caught:
        fitted = PropensityIPTW(**PAPER).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert caught[0].filename == __file__
    guarantee = fitted.guarantee_
    assert guarantee.status == "claimed"
    assert guarantee.proof is None
    assert guarantee.unit == "one of the 1000 records that trained the propensity score"
    assert "the 200 records that estimated the effect" in guarantee.public[0]
    assert isinstance(guarantee.events[0], ClaimedEvent)
    assert "claimed, not proved" in fitted.summary()
    assert "no interval" in fitted.summary()


def test_everyone_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PropensityIPTW(**EVERYONE).fit(STUDY.Y, STUDY.T, X=STUDY.X)


@pytest.mark.parametrize("given", [PAPER, EVERYONE])
def test_seeded_noise_is_repeated_and_called_a_test(given):
    with seeded_noise(4):
        first = fit(given)
    with seeded_noise(4):
        second = fit(given)
    assert first.guarantee_.status == "test"
    assert first.ate_ == second.ate_


@pytest.mark.parametrize("given", [PAPER, EVERYONE])
def test_real_noise_is_not_repeated(given):
    assert fit(given).ate_ != fit(given).ate_


@pytest.mark.parametrize("given", [PAPER, EVERYONE])
def test_fitting_leaves_nothing_but_the_release(given, tmp_path):
    fitted = fit(given)
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    assert pickle.loads(pickle.dumps(fitted)).ate_ == fitted.ate_
    fitted.release_.save(tmp_path / "effect.json")
    assert PointRelease.load(tmp_path / "effect.json") == fitted.release_


def test_a_random_split_is_seeded_and_a_share_is_rounded():
    rows = Rows.of(STUDY.Y, STUDY.T, STUDY.X, STUDY.bounds)
    first, others = split(rows, 0.25, True, 1)
    again, _ = split(rows, 300, True, 1)
    assert (first.n, others.n) == (300, 900)
    np.testing.assert_array_equal(first.x, again.x)
    together = np.concatenate([first.y, others.y])
    np.testing.assert_array_equal(np.sort(together), np.sort(rows.y))
    assert not np.array_equal(together, rows.y)


def test_covariates_end_inside_the_unit_ball_and_keep_their_direction():
    x = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(into_unit_ball(x, 2.0), [[0.6, 0.8], [0.15, 0.2], [0.0, 0.0]])
    wide = np.random.default_rng(0).normal(0, 5, (2_000, 7))
    assert max(sum(Fraction(v) ** 2 for v in row) for row in into_unit_ball(wide, 1.0).tolist()) < 1


@pytest.mark.parametrize("size", [1.0, 1e-99, 1e-160, 1e-170, 1e-250, 1e-300])
def test_rows_of_any_size_end_up_in_the_unit_ball(size):
    rng = np.random.default_rng(4)
    x = size * rng.uniform(-1, 1, (200, 5)) * 10.0 ** -rng.integers(0, 9, (200, 5))
    for radius in (1e-100, size):
        inside = into_unit_ball(x, radius)
        assert max(sum(Fraction(v) ** 2 for v in row) for row in inside.tolist()) <= 1
    # All of them are larger than this radius, so that they end up on the sphere.
    np.testing.assert_allclose(np.linalg.norm(into_unit_ball(x, 1e-9 * size), axis=1), 1.0, atol=1e-9)


def test_levels_become_indicators_and_names_are_matched():
    bounds = Bounds(outcome=(0, 1), covariates={"age": (20, 60), "ward": ["a", "b", "c"]})
    n = 40
    frame = pd.DataFrame({"ward": ["a", "b", "c", "b"] * 10, "age": [20, 40, 60, 80] * 10})
    rows = Rows.of(np.zeros(n), np.arange(n) % 2, frame, bounds)
    np.testing.assert_array_equal(rows.x[:4], [[-1, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 0]])
    fitted = PropensityIPTW(epsilon=1, delta=1e-6, bounds=bounds, xi=0.2).fit(np.zeros(n), np.arange(n) % 2, X=frame)
    scores = fitted.propensity_score(frame)
    expected = logistic.propensity(np.array(fitted.release_.weights), into_unit_ball(rows.x, 3**0.5))
    np.testing.assert_array_equal(scores, expected)


def test_scaling_by_the_data_s_largest_norm_is_possible_for_the_paper():
    with frozen_noise():
        own = fit(PAPER | {"norm_bound": "data"})
        declared = fit(PAPER)
    # The generator has divided by the largest norm already.
    assert own.release_.settings["norm bound"] == pytest.approx(1.0)
    assert own.ate_ == pytest.approx(declared.ate_)


def test_noise_flips_the_sign_less_often_as_epsilon_and_tau_grow():
    def flips(epsilon, tau, runs=40):
        wrong = 0
        for seed in range(runs):
            study = propensity_scores(tau, seed)
            with frozen_noise():
                right = fit(PAPER, study).ate_
            with seeded_noise(seed):
                wrong += fit(PAPER | {"epsilon": epsilon, "bounds": study.bounds}, study).ate_ * right < 0
        return wrong / runs

    assert flips(0.02, 0.1) > flips(0.2, 0.1) > flips(0.9, 0.1) - 0.02
    assert flips(0.02, 0.1) > flips(0.02, 2.0)


# --- bad input ------------------------------------------------------------------------------------------------------


def refuse(given, message, error=InvalidInput, study=STUDY):
    estimator = PropensityIPTW(**given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        with pytest.raises(error, match=message) as caught:
            estimator.fit(study.Y, study.T, X=study.X)
    text = str(caught.value)
    assert isinstance(caught.value, DiscreetError)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 300
    assert not hasattr(estimator, "release_")


@pytest.mark.parametrize("xi", [0.0, -0.1, 0.5, 0.7, 1.0, np.nan, np.inf, "0.1", True])
@pytest.mark.parametrize("given", [PAPER, EVERYONE])
def test_a_trimming_outside_zero_and_a_half_is_refused(given, xi):
    refuse(given | {"xi": xi}, "xi must lie between 0 and 0.5")


@pytest.mark.parametrize(
    ("changed", "message", "error"),
    [
        ({"bounds": None}, "needs bounds=Bounds", MissingBounds),
        ({"bounds": Bounds(outcome=(0, 1))}, "needs Bounds\\(covariates=", MissingBounds),
        ({"delta": None}, "needs delta", InvalidBudget),
        ({"epsilon": -1.0}, "epsilon must be positive", InvalidBudget),
        ({"xi": None}, "calibration='proved' needs xi", InvalidInput),
        ({"perturbation": "objective"}, "perturbation='output'", InvalidInput),
        ({"norm_bound": "data"}, "declared norm_bound", InvalidInput),
        ({"norm_bound": 0.0}, "norm_bound must be a positive number", InvalidInput),
        ({"norm_bound": 1e-101}, "at least 1e-100", InvalidInput),
        ({"bounds": Bounds(outcome=(0, 1), covariates=[list(range(4098))])}, "more than 4096 features", InvalidInput),
        ({"norm_bound": "wide"}, "norm_bound must be a positive number", InvalidInput),
        ({"calibration": None, "protect": "nobody"}, "protect must be 'everyone' or 'propensity'", InvalidInput),
        ({"perturbation": "input"}, "perturbation 'output' or 'objective'", InvalidInput),
        ({"lam": 0.0}, "separable data have no minimiser", InvalidInput),
        ({"lam": np.nan}, "lam must be a positive number", InvalidInput),
        ({"gradient_norm": 0.0}, "gradient_norm must lie between", InvalidInput),
        ({"gradient_norm": 0.5}, "gradient_norm must lie between", InvalidInput),
        ({"gradient_norm": 1e-16}, "smaller than float64 can certify", InvalidInput),
        ({"m": 0}, "m must be", InvalidInput),
        ({"m": -3}, "m must be", InvalidInput),
        ({"m": 10.5}, "m must be a whole number", InvalidInput),
        ({"m": 1195}, "m must leave at least 10 records on either side", InvalidInput),
        ({"m": True}, "m must be", InvalidInput),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(changed, message, error):
    refuse(EVERYONE | changed, message, error)


def test_definition_2_is_refused_from_an_epsilon_of_one():
    refuse(PAPER | {"epsilon": 1.0}, "Definition 2 needs epsilon below 1", InvalidBudget)


def test_objective_perturbation_needs_a_penalty():
    given = PAPER | {"perturbation": "objective", "epsilon": 0.01, "lam": 1e-3}
    refuse(given, "lam is too small for objective perturbation")


def test_an_arm_that_is_missing_where_the_effect_is_estimated_is_refused():
    order = np.argsort(STUDY.T)
    study = discreet.datasets.Study(
        name="sorted", X=STUDY.X[order], T=STUDY.T[order], Y=STUDY.Y[order], bounds=STUDY.bounds
    )
    refuse(PAPER, "hold one arm only", study=study)


def test_an_arm_that_is_missing_altogether_is_refused():
    study = discreet.datasets.Study(name="all", X=STUDY.X, T=np.ones(1200), Y=STUDY.Y, bounds=STUDY.bounds)
    refuse(EVERYONE, "One arm is empty", study=study)


def test_separable_treatment_is_fitted_because_of_the_penalty():
    study = discreet.datasets.Study(
        name="separable", X=STUDY.X, T=(STUDY.X[:, 0] > 0) * 1.0, Y=STUDY.Y, bounds=STUDY.bounds
    )
    fitted = fit(EVERYONE, study)
    assert abs(fitted.ate_) < 8 / 0.1


def test_an_effect_that_noise_blew_up_is_refused():
    # Weights of the order of thousands: exp overflows.
    refuse(PAPER | {"epsilon": 1e-6, "lam": 1e-3}, "the noise made the weights explode, so set xi")


def test_results_before_fit_are_refused():
    with pytest.raises(NotFitted, match="call fit first"):
        PropensityIPTW(**EVERYONE).ate_  # noqa: B018


def test_files_that_hold_no_such_release_are_refused(tmp_path):
    (tmp_path / "half.json").write_text('{"format": ')
    (tmp_path / "other.json").write_text('{"format": "discreet-release", "version": 1}')
    for name in ("half.json", "other.json"):
        with pytest.raises(UnsupportedRelease):
            PointRelease.load(tmp_path / name)
    with pytest.raises(InvalidInput, match="There is no release file"):
        PointRelease.load(tmp_path / "none.json")


@pytest.mark.parametrize("norm_bound", [1.0, "data"])
def test_a_claimed_release_says_itself_what_was_measured_and_what_it_gives_away(norm_bound, tmp_path):
    fit(PAPER | {"norm_bound": norm_bound}).release_.save(tmp_path / "claimed.json")
    release = PointRelease.load(tmp_path / "claimed.json")
    assert any(
        "a claimed epsilon of 0.5 into at least" in note and "propensity attack" in note for note in release.notes
    )
    by_data = norm_bound == "data"
    assert any("largest norm" in phrase for phrase in release.guarantee.public) == by_data
    assert any("published without noise" in note for note in release.notes) == by_data
    assert "largest norm of the covariates" in release.summary() or not by_data


def test_a_proved_release_has_no_notes_on_claims():
    assert not any("laimed" in note for note in fit(EVERYONE).release_.notes)
