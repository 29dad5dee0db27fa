import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from discreet.data.bounds import Range
from discreet.postprocessing.basis import Basis, Size
from discreet.postprocessing.feature_selection import (
    Belief,
    FeatureSelection,
    Moments,
    PriorCorrelation,
    allot,
    weigh,
)
from discreet.postprocessing.kernel_basis import NORM_CAP
from discreet.postprocessing.marginals import BINS
from discreet.postprocessing.reference_population import Reference, reference_points

RNG = np.random.default_rng(0)
P = 5
BASIS = Basis(
    tuple(Range(0, 1) for _ in range(P)),
    tuple(np.full(BINS, 1 / BINS) for _ in range(P)),
    Size(degree=2, pairs=True, curved=False),
)
UNIT = BASIS.weight**2


def exact_gram():
    features, weight = BASIS(reference_points(BASIS.columns, BASIS.marginals, np.eye(P), 20_000))
    return (features * weight[:, None]).T @ features / len(weight)


GRAM = exact_gram()


def linear(truth, sd, rng, size=0.1, cap=1.0):
    """Moments of a linear model with noise of a given size."""
    moments = GRAM @ truth + rng.normal(0, sd, BASIS.m)
    return Moments(moments, lambda b: (GRAM @ b, GRAM), sd**2 * np.eye(BASIS.m), size, cap)


def sparse_truth(*features, value=0.5):
    truth = np.zeros(BASIS.m)
    truth[list(features)] = value / BASIS.weight[list(features)]
    return truth


def test_at_little_noise_coefficients_are_recovered():
    truth = RNG.normal(0, 0.2, BASIS.m)
    for sparse in (True, False):
        (fitted,), _ = weigh([linear(truth, 1e-5, RNG)], BASIS, sparse=sparse)
        np.testing.assert_allclose(fitted.mean, truth, atol=5e-3)


def test_noise_alone_is_shrunk_to_almost_nothing():
    small = 0
    for seed in range(20):
        model = linear(np.zeros(BASIS.m), 0.5, np.random.default_rng(seed))
        (fitted,), _ = weigh([model], BASIS, sparse=True)
        plain = np.linalg.solve(GRAM, model.value)
        small += np.linalg.norm(fitted.mean[1:]) < 0.3 * np.linalg.norm(plain[1:])
    # Noise is taken for a signal now and then, not more often.
    assert small >= 18


def test_what_matters_is_distinguished_from_what_does_not():
    truth = sparse_truth(2, 14)
    plain = weighed = 0.0
    for seed in range(20):
        model = linear(truth, 0.03, np.random.default_rng(seed))
        (fitted,), _ = weigh([model], BASIS, sparse=True)
        weighed += np.sum((fitted.mean - truth) ** 2)
        plain += np.sum((np.linalg.solve(GRAM, model.value) - truth) ** 2)
    assert weighed < 0.65 * plain


def test_faint_evidence_in_one_model_is_weighed_with_that_in_the_other():
    # A product that stands two and a half noise deviations out in either model.
    sd = 0.08
    faint = sparse_truth(13, value=2.5 * sd / np.sqrt(GRAM[13, 13]))
    alone, together = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        first, second = linear(faint, sd, rng), linear(faint, sd, rng)
        (one,), _ = weigh([second], BASIS, sparse=True)
        (_, two), _ = weigh([first, second], BASIS, sparse=True)
        alone.append(one.mean[13])
        together.append(two.mean[13])
    assert np.mean(together) > 1.1 * np.mean(alone)


def test_relevance_to_both_models_exceeds_chance_only_where_it_is_uncertain():
    strong = sparse_truth(2, value=2.0)
    (_, _), joint_inclusion = weigh([linear(strong, 0.02, RNG), linear(strong, 0.02, RNG)], BASIS, sparse=True)
    assert joint_inclusion[2] == pytest.approx(1, abs=0.01)
    assert joint_inclusion[0] == 1
    # Products: what single covariates do is in the outcome's model in any case.
    assert np.all(joint_inclusion[BASIS.m - len(BASIS.products) :] > 1)


@pytest.mark.parametrize("sd", [0.002, 0.02, 0.2])
def test_errors_are_about_as_large_as_their_covariance_says(sd):
    reference = Reference.draw(BASIS, GRAM, 1e-9)
    errors, stated = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        # The law that the prior guesses: some features matter, by about the guessed size.
        matters = rng.random(BASIS.m) < np.where(BASIS.group == 1, 0.5, 0.15)
        truth = np.where(matters, rng.normal(0, 0.5, BASIS.m), 0.0) / BASIS.weight
        moments = reference.response(truth, 0.5)[0] + rng.normal(0, sd, BASIS.m)
        noise = sd**2 * np.eye(BASIS.m)
        model = Moments(moments, lambda theta: reference.response(theta, 0.5), noise, 0.25, 4.0)
        (fitted,), _ = weigh([model], BASIS, sparse=True)
        assert np.linalg.eigvalsh(fitted.covariance).min() > 0
        errors.append(float(np.sum(UNIT * (fitted.mean - truth) ** 2)))
        stated.append(float(np.sum(UNIT * np.diag(fitted.covariance))))
    assert 0.5 < np.mean(errors) / np.mean(stated) < 1.7


def test_a_logistic_model_is_recovered_from_its_moments():
    reference = Reference.draw(BASIS, GRAM, 1e-9)
    truth = sparse_truth(1, 2, 13, value=0.6)
    moments, _ = reference.response(truth, 0.5)
    model = Moments(moments, lambda theta: reference.response(theta, 0.5), 1e-10 * np.eye(BASIS.m), 0.25, 4.0)
    (fitted,), _ = weigh([model], BASIS, sparse=True)
    np.testing.assert_allclose(fitted.mean, truth, atol=0.02)


def test_many_small_confounders_are_not_shrunk_away_in_the_prognosis():
    first = np.flatnonzero(BASIS.group == 1)
    faint, sd = sparse_truth(*first, value=0.1), 0.08
    kept = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        (_, prognosis), joint_inclusion = weigh([linear(faint, sd, rng), linear(faint, sd, rng)], BASIS, sparse=True)
        kept.append(np.mean(prognosis.mean[first] / faint[first]))
        assert np.all(joint_inclusion[first] == 1)
    assert np.mean(kept) > 0.6


@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
def test_the_prior_correlation_says_whether_both_models_follow_features_in_the_same_direction(sign):
    found, sds = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        first = rng.normal(0, 0.3, BASIS.m) / BASIS.weight
        second = sign * first if sign else rng.normal(0, 0.3, BASIS.m) / BASIS.weight
        (one, two), _ = weigh([linear(first, 0.05, rng), linear(second, 0.05, rng)], BASIS, sparse=True)
        shared = PriorCorrelation.of(one, two, BASIS.group)
        found.append(shared.correlation)
        sds.append(shared.sd)
    assert np.mean(found) * sign >= 0.3 * abs(sign)
    assert abs(np.mean(found)) < 0.2 or sign
    # More is known than before anything was seen, and no more than so many features can show.
    assert 1 / np.sqrt(BASIS.m) < np.mean(sds) < 0.4


def test_without_a_signal_nothing_is_known_of_the_prior_correlation():
    rng = np.random.default_rng(1)
    (one, two), _ = weigh([linear(np.zeros(BASIS.m), 2.0, rng) for _ in range(2)], BASIS, sparse=True)
    shared = PriorCorrelation.of(one, two, BASIS.group)
    assert abs(shared.correlation) < 0.4
    assert shared.sd > 0.3


def test_many_small_coefficients_of_treatment_keep_a_variance_even_where_none_is_seen():
    # Each first power stays below its noise; together they are more than nothing.
    first = np.flatnonzero(BASIS.group == 1)
    small = sparse_truth(*first, value=0.1)
    errors = stated = 0.0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        (one, _), _ = weigh([linear(small, 0.1, rng), linear(small, 0.1, rng)], BASIS, sparse=True)
        errors += np.sum((UNIT * (one.mean - small) ** 2)[first])
        stated += np.sum((UNIT * np.diag(one.covariance))[first])
    assert stated > 0.5 * errors


# --- which features the next moments are of, and what these then say ---

DRAWS = np.random.default_rng(0)
positive = st.floats(0, 1e12)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=30), st.floats(1e-12, 1e12))
def test_shares_are_shares(pairs, noise):
    loss_weight, variance = (np.array(column) for column in zip(*pairs, strict=True))
    share = allot(loss_weight, variance, noise)
    assert share.min() >= 0
    assert share.sum() == pytest.approx(1)


def test_no_other_shares_leave_less_loss():
    loss_weight, variance, noise = DRAWS.gamma(1, 1, 6), DRAWS.gamma(1, 1, 6), 0.3

    def left(share):
        return float(np.sum(loss_weight / (1 / variance + share / noise)))

    best = allot(loss_weight, variance, noise)
    softmax = minimize(lambda z: left(np.exp(z) / np.exp(z).sum()), np.zeros(6), method="BFGS")
    assert left(best) <= softmax.fun + 1e-6
    for _ in range(200):
        assert left(best) <= left(DRAWS.dirichlet(np.ones(6))) + 1e-9


def test_what_is_known_or_does_not_matter_gets_nothing():
    share = allot(np.array([1.0, 1.0, 1e-12]), np.array([1.0, 1e-9, 1.0]), 0.01)
    np.testing.assert_allclose(share, [1, 0, 0], atol=1e-6)


def test_some_feature_is_always_selected():
    assert FeatureSelection.of(np.full(5000, 1 / 5000), np.ones(5000)).m == 5000
    share = allot(np.array([1e-40, 1.0, 1.0]), np.array([1e-40, 1.0, 2.0]), 0.1)
    selection = FeatureSelection.of(share, np.array([1e-38, 1.0, 1.0]))
    assert list(selection.kept) == [1, 2]
    assert np.isfinite(selection.scale).all()


def test_selected_features_are_held_to_the_radius_and_do_not_depend_on_their_place():
    features = DRAWS.normal(0, 3, (500, 8))
    features[0] = 0.0
    selection = FeatureSelection.of(np.array([0.5, 0, 0.3, 0, 0, 0.2, 1e-5, 0]), np.full(8, 9.0))
    assert list(selection.kept) == [0, 2, 5]
    narrow, weight = selection(features)
    assert np.all(weight <= 1)
    assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= selection.radius * (1 + 1e-12)
    assert np.mean(np.sum(narrow**2, axis=1)) == pytest.approx(1, rel=0.2)
    assert selection.radius == pytest.approx(NORM_CAP**0.5)
    shuffled = DRAWS.permutation(500)
    again, weight_again = selection(np.ascontiguousarray(features[shuffled]))
    np.testing.assert_array_equal(again, narrow[shuffled])
    np.testing.assert_array_equal(weight_again, weight[shuffled])


def test_the_norm_cap_is_large_where_noise_is_small_and_small_where_it_is_not():
    features = DRAWS.normal(0, 1, (4_000, 6))
    selection = FeatureSelection.of(np.full(6, 1 / 6), np.ones(6))
    noisy, quiet = selection.with_best_norm_cap(features, 1.0, 1e-4), selection.with_best_norm_cap(features, 1e-8, 1.0)
    assert noisy.norm_cap <= 1.0 < quiet.norm_cap
    assert quiet.radius == pytest.approx(quiet.norm_cap**0.5)
    for chosen in (noisy, quiet):
        narrow, weight = chosen(features)
        assert np.linalg.norm(narrow * weight[:, None], axis=1).max() <= chosen.radius * (1 + 1e-12)


def test_weighing_records_down_costs_precision_as_a_regression_would_feel_it():
    rng = np.random.default_rng(3)
    features = rng.normal(0, 1, (200_000, 1)) ** 3
    selection = FeatureSelection.of(np.ones(1), np.array([float(np.mean(features**2))]))
    (efficiency,) = selection.efficiency(features)
    narrow, weight = selection(features)
    # Sampling variance of sum(w z r) / sum(w z z), beside that of least squares.
    weighed = np.mean(weight**2 * narrow[:, 0] ** 2) / np.mean(weight * narrow[:, 0] ** 2) ** 2
    assert efficiency == pytest.approx(1 / np.mean(narrow[:, 0] ** 2) / weighed, rel=1e-9)
    assert efficiency < 0.9


def test_a_release_moves_a_belief_as_bayes_says():
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    slope, noise, seen = np.array([[1.0, -1.0]]), np.array([[0.5]]), np.array([0.7])
    after = Belief(np.array([1.0, 2.0]), covariance).update(seen, slope, noise, np.eye(2), np.inf)
    precision = np.linalg.inv(covariance) + slope.T @ slope / 0.5
    np.testing.assert_allclose(after.covariance, np.linalg.inv(precision))
    np.testing.assert_allclose(after.mean, [1.0, 2.0] + np.linalg.inv(precision) @ slope.T @ (seen / 0.5))


def test_a_surprising_release_is_believed_and_leaves_more_variance():
    before = Belief(np.zeros(3), 0.01 * np.eye(3))
    expected = before.update(np.full(3, 0.1), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    surprised = before.update(np.full(3, 5.0), np.eye(3), 0.01 * np.eye(3), np.eye(3), np.inf)
    assert np.trace(surprised.covariance) > np.trace(expected.covariance)
    assert np.all(surprised.mean > 4.5)


def test_no_step_moves_predictions_beyond_its_limit():
    gram = np.diag([1.0, 4.0])
    after = Belief(np.zeros(2), 100 * np.eye(2)).update(np.full(2, 50.0), np.eye(2), np.eye(2), gram, 1.5)
    assert np.sqrt(after.mean @ gram @ after.mean) == pytest.approx(1.5)
