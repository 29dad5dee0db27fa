"""The score, its clip, and that rows of the last rounds fill the sets that they are asked in and never leave them."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from discreet.data.bounds import Bounds
from discreet.data.records import Chunk
from discreet.estimators.measurements.estimand import EVERYONE
from discreet.estimators.measurements.location import Location
from discreet.estimators.measurements.nuisances import Answers
from discreet.estimators.measurements.score import ScoreRounds, design_strata, prognosis_range
from discreet.postprocessing.tails import SIDES, Clip, Strata, Tails
from discreet.privacy.query import Released
from discreet.privacy.sensitivity.sets import Ball, Cells, MeanSquare

shares = st.floats(0.02, 0.98)
values = st.floats(-1, 1)
arms = st.sampled_from([0.0, 1.0])
levels = st.one_of(st.floats(1e-6, 200), st.sampled_from([1e-12, 1.0, 1e6]))
# Bounds of the probability of treatment, on one side of a half or around it.
overlaps = st.one_of(
    st.tuples(shares, shares).map(lambda both: (min(both), max(both))),
    st.sampled_from([(0.5, 0.5), (0.02, 0.5), (0.5, 0.98), (0.02, 0.04), (0.96, 0.98), (0.3, 0.3), (0.001, 0.999)]),
)
# More than models give: the rounds hold a prognosis to its range.
guesses = st.one_of(st.floats(-3, 3), st.sampled_from([-1e12, 1e12, -1.0, 1.0, 0.0]))
outcomes = st.one_of(values, st.sampled_from([-1.0, 1.0]))
records = st.lists(st.tuples(outcomes, arms, st.floats(0, 1), guesses), min_size=1, max_size=12)


class Listener:
    """In the place of a gate: keeps what it is asked, and answers that nothing was there."""

    n, most_rows, joins_rows = 1_000.0, 1, False

    def __init__(self, noise=0.01):
        self.noise, self.asked = noise * self.n, []

    def noise_sd(self, geometry, share):
        return self.noise

    def ask(self, query):
        self.asked.append(query)
        sd = np.full(2, self.noise) if isinstance(query.geometry, MeanSquare) else self.noise
        return (Released(np.zeros(query.geometry.dimension), sd, query.name),)


def of(*numbers):
    return (np.array([number], dtype=float) for number in numbers)


def rounds_of(chunk, prognosis, overlap, *, effect=0.0, ends=(-1.0, 1.0)):
    answers = Answers(chunk.e, np.asarray(prognosis, dtype=float), np.full(len(chunk.t), effect))
    return ScoreRounds(look_up=lambda c: answers, effect=effect, overlap=Strata.between(*overlap), prognosis=ends)


def chunk_of(rows, overlap):
    """Records, and the prognosis of each; where a probability lies between its bounds is drawn."""
    y, t, place, prognosis = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    low, high = overlap
    return Chunk(y, t, np.empty((len(y), 0)), np.clip(low + place * (high - low), low, high)), prognosis


def whole_score(y, t, e, f, effect=0.0):
    """The score of one record that no clip touches."""
    chunk, gate = Chunk(np.array([y]), np.array([t], dtype=float), np.empty((1, 0)), np.array([e])), Listener()
    rounds = rounds_of(chunk, [f], (e, e), effect=effect)
    told = rounds.measure(gate, 0.5, None)
    # Sums were zero, so that what is told is the middle of the score's range.
    return float(gate.asked[-1].map(chunk)[0]) + told.mean


@given(shares, shares, values, values, values, values)
def test_the_mean_of_the_score_is_the_effect_plus_a_product_of_errors(pi, e, mu0, mu1, f, guess):
    # Equation (1) of docs/proofs/ate.md: the score is linear in y, so its mean given x needs the arms' means only.
    mean = pi * whole_score(mu1, 1, e, f, guess) + (1 - pi) * whole_score(mu0, 0, e, f, guess)
    best = (1 - e) * mu1 + e * mu0
    assert mean == pytest.approx(mu1 - mu0 + (pi - e) * (best - f) / (e * (1 - e)), abs=1e-9)


@given(shares, shares, values, values, values, values)
def test_it_is_doubly_robust(pi, e, mu0, mu1, f, guess):
    right_propensity = pi * whole_score(mu1, 1, pi, f, guess) + (1 - pi) * whole_score(mu0, 0, pi, f, guess)
    assert right_propensity == pytest.approx(mu1 - mu0, abs=1e-9)
    best = (1 - e) * mu1 + e * mu0
    right_outcome = pi * whole_score(mu1, 1, e, best, guess) + (1 - pi) * whole_score(mu0, 0, e, best, guess)
    assert right_outcome == pytest.approx(mu1 - mu0, abs=1e-9)


@given(values, arms, shares, values, values, values)
def test_it_is_the_usual_augmented_score_whatever_the_guessed_effect(y, t, e, mu0, mu1, guess):
    usual = mu1 - mu0 + t * (y - mu1) / e - (1 - t) * (y - mu0) / (1 - e)
    assert whole_score(y, t, e, (1 - e) * mu1 + e * mu0, guess) == pytest.approx(usual, abs=1e-9)


@given(overlaps, st.floats(0, 1), arms, levels, levels, st.floats(-1e3, 1e3))
@example((0.02, 0.3), 1.0, 0.0, 1.0, 5.0, 1e3)
@example((0.7, 0.98), 0.0, 1.0, 1.0, 5.0, 1e3)
def test_the_ends_contain_every_clipped_and_weighted_residual(overlap, place, t, low, high, r):
    # Equation (2) of docs/proofs/ate.md.
    e = float(np.clip(overlap[0] + place * (overlap[1] - overlap[0]), *overlap))
    m = min(e, 1 - e)
    score = min(max(r, -low * m), high * m) * (1 / e if t else -1 / (1 - e))
    bottom, top = Strata.between(*overlap).ends(np.array(low), np.array(high))
    assert bottom * (1 + 1e-12) <= score <= top * (1 + 1e-12)


def check_ends_are_attained(overlap, low, high):
    found = []
    for e in {*overlap, float(np.clip(0.5, *overlap))}:
        m = min(e, 1 - e)
        for weight in (1 / e, -1 / (1 - e)):
            found += [weight * -low * m, weight * high * m]
    bottom, top = Strata.between(*overlap).ends(np.array(low), np.array(high))
    assert (bottom, top) == pytest.approx((min(found), max(found)), rel=1e-12)


@given(overlaps, levels, levels)
@example((0.02, 0.3), 1.0, 5.0)
@example((0.7, 0.98), 5.0, 1.0)
def test_the_ends_are_attained_so_that_no_noise_is_wasted(overlap, low, high):
    check_ends_are_attained(overlap, low, high)


def check_scores(rows, overlap, low, high, effect):
    """Rows of the score lie in its set before the gate clips."""
    chunk, prognosis = chunk_of(rows, overlap)
    gate = Listener()
    rounds_of(chunk, prognosis, overlap, effect=effect).measure(gate, 0.5, Clip(low, high, 0.0, 0.0))
    (query,) = gate.asked
    assert isinstance(query.geometry, MeanSquare)
    assert np.abs(query.map(chunk)).max() <= query.geometry.bound * (1 + 1e-9)


@given(records, overlaps, levels, levels, guesses.filter(lambda number: abs(number) <= 3))
def test_no_score_leaves_the_range_that_its_noise_is_for(rows, overlap, low, high, effect):
    check_scores(rows, overlap, low, high, effect)


def check_scores_fill_their_range(overlap, low, high):
    """Opposite records lie at both ends: this is what noise is for, no more and no less."""
    places = [0.0, 1.0] + ([(0.5 - overlap[0]) / (overlap[1] - overlap[0])] if overlap[0] < 0.5 < overlap[1] else [])
    rows = [(y, t, place, -y) for y in (-1.0, 1.0) for t in (0.0, 1.0) for place in places]
    chunk, prognosis = chunk_of(rows, overlap)
    gate = Listener()
    rounds_of(chunk, prognosis, overlap).measure(gate, 0.5, Clip(low, high, 0.0, 0.0))
    (query,) = gate.asked
    found, half = query.map(chunk), query.geometry.bound
    assert (found.min(), found.max()) == pytest.approx((-half, half), rel=1e-9)


@pytest.mark.parametrize("overlap", [(0.1, 0.9), (0.1, 0.3), (0.7, 0.9), (0.3, 0.3), (0.5, 0.5)])
@pytest.mark.parametrize(("low", "high"), [(2.0, 2.0), (0.5, 3.0), (3.0, 0.5)])
def test_scores_reach_both_ends_of_their_range(overlap, low, high):
    check_scores_fill_their_range(overlap, low, high)


@given(records, overlaps, guesses.filter(lambda number: abs(number) <= 3))
def test_without_a_clip_nothing_is_cut_off(rows, overlap, effect):
    chunk, prognosis = chunk_of(rows, overlap)
    gate = Listener()
    rounds = rounds_of(chunk, prognosis, overlap, effect=effect)
    middle = rounds.measure(gate, 0.5, None).mean - effect
    (query,) = gate.asked
    answers = rounds.look_up(chunk)
    weight = np.where(chunk.t > 0, 1 / chunk.e, -1 / (1 - chunk.e))
    np.testing.assert_allclose(query.map(chunk) + middle, weight * rounds.residual(chunk, answers), atol=1e-9)
    assert np.abs(query.map(chunk)).max() <= query.geometry.bound * (1 + 1e-9)


@given(records, overlaps, guesses.filter(lambda number: abs(number) <= 3), st.tuples(outcomes, outcomes).map(sorted))
def test_no_residual_exceeds_the_reach(rows, overlap, effect, ends):
    chunk, prognosis = chunk_of(rows, overlap)
    rounds = rounds_of(chunk, prognosis, overlap, effect=effect, ends=tuple(ends))
    below, above = rounds.reach
    residual = rounds.residual(chunk, rounds.look_up(chunk))
    assert -below - 1e-12 <= residual.min() <= residual.max() <= above + 1e-12


def tails_of(overlap, far, seed, noise):
    """Tails of any shape."""
    strata, rng = Strata.between(*overlap), np.random.default_rng(seed)
    fractions = rng.dirichlet(np.full(SIDES * strata.count, 0.1)) + rng.normal(0, noise, SIDES * strata.count)
    return Tails.fit(fractions, noise, far, strata, atomic=bool(seed % 2), randomised=True)


def excess(rows, overlap, effect, seed, noise, ends=(-1.0, 1.0)):
    chunk, prognosis = chunk_of(rows, overlap)
    gate, rounds = Listener(noise), rounds_of(chunk, prognosis, overlap, effect=effect, ends=ends)
    clip = rounds.choose_clip(gate, 0.1, tails_of(overlap, max(rounds.reach), seed, noise), 0.5)
    (query,) = gate.asked
    return query, query.map(chunk), max(rounds.reach), clip


def check_excesses(rows, overlap, effect, seed, noise, ends=(-1.0, 1.0)):
    """Rows of the excess lie in their ball before the gate clips."""
    query, found, far, clip = excess(rows, overlap, effect, seed, noise, ends)
    assert isinstance(query.geometry, Ball)
    assert found.shape == (len(rows), query.geometry.dimension)
    assert np.abs(found).max() <= far / 2 * (1 + 1e-9)
    assert np.sqrt((found**2).sum(axis=1)).max() <= query.geometry.radius * (1 + 1e-9)
    assert min(clip.low, clip.high) >= 0 < max(clip.low, clip.high)


noises = st.sampled_from([1e-6, 1e-3, 0.3])
seeds = st.integers(0, 1_000)


@given(
    records,
    overlaps,
    guesses.filter(lambda number: abs(number) <= 3),
    seeds,
    noises,
    st.sampled_from([(-1.0, 1.0), (-1.0, -0.9), (0.8, 1.0)]),
)
def test_no_excess_leaves_the_ball_that_its_noise_is_for(rows, overlap, effect, seed, noise, ends):
    check_excesses(rows, overlap, effect, seed, noise, ends)


def check_excess_fills_its_ball():
    # A residual of zero has no excess, whatever the clip.
    query, found, far, _ = excess([(0.0, 1.0, 0.5, 0.0)], (0.2, 0.8), 0.0, 4, 1e-3)
    assert found == pytest.approx(-far / 2)
    assert np.sqrt((found**2).sum()) == pytest.approx(query.geometry.radius)


def test_a_record_without_an_excess_lies_on_the_edge_of_the_ball():
    check_excess_fills_its_ball()


@given(records, overlaps)
def test_every_record_has_a_bin_of_its_stratum(rows, overlap):
    chunk, prognosis = chunk_of(rows, overlap)
    gate, rounds = Listener(), rounds_of(chunk, prognosis, overlap)
    rounds.measure_tails(gate, 0.1, atomic=False, randomised=True)
    (query,) = gate.asked
    assert query.geometry == Cells((SIDES * rounds.overlap.count,))
    found = query.map(chunk)
    assert found.min() >= 0
    assert found.max() < query.geometry.dimension
    smaller = np.minimum(chunk.e, 1 - chunk.e)
    np.testing.assert_array_equal(found // SIDES, [np.sum(rounds.overlap.edges <= m) for m in smaller])
    np.testing.assert_array_equal(found % SIDES >= SIDES // 2, rounds.residual(chunk, rounds.look_up(chunk)) > 0)


@pytest.mark.parametrize("propensity", [0.3, np.float64(0.3), np.float32(0.5), 0.95])
def test_a_known_number_is_its_own_range(propensity):
    strata = design_strata(propensity, Bounds(outcome=(0, 1), propensity=(0.05, 0.95)))
    assert (strata.low, strata.high, strata.count) == (float(propensity), float(propensity), 1)


@pytest.mark.parametrize("propensity", ["e", np.array([0.3, 0.4]), [0.3, 0.4]])
def test_known_probabilities_of_records_are_bounded_by_what_is_declared(propensity):
    # Their own smallest and largest would tell about records.
    strata = design_strata(propensity, Bounds(outcome=(0, 1), propensity=(0.05, 0.9)))
    assert (strata.low, strata.high) == (0.05, 0.9)


@given(st.floats(-1, 1), st.floats(0, 1))
def test_a_prognosis_is_held_inside_the_range_of_the_outcome(centre, noise):
    tails = tails_of((0.5, 0.5), 2.0, 1, 0.01)
    location = Location(0.5, 0.1, centre, noise, 0.3, tails.magnitudes[0], np.full((2, 3), 1 / 6), 0.1, tails)
    low, high = prognosis_range(location)
    assert -1.0 <= low <= high <= 1.0
    assume(abs(centre) < 0.6)
    assert (low, high) == (-1.0, 1.0)


@given(st.sampled_from([0, 1]), shares, st.floats(1, 50))
def test_balancing_weights_stop_at_their_limit(t, e, most):
    (weight,) = EVERYONE.balancing(*of(t, e), most)  # type: ignore[call-arg]
    odds = e / (1 - e)
    treated, control = min(1 / odds, most), min(odds, most)
    assert weight == pytest.approx((treated if t else control) / max(e * treated + (1 - e) * control, 0.3))


@given(shares, values, values)
def test_balancing_weights_turn_residuals_into_those_of_the_best_prognosis(e, mu0, mu1):
    # With the right propensity, E[weight (y - f)] vanishes at f = (1 - e) mu1 + e mu0.
    (treated,), (control,) = EVERYONE.balancing(*of(1, e), np.inf), EVERYONE.balancing(*of(0, e), np.inf)  # type: ignore[call-arg]
    best = (1 - e) * mu1 + e * mu0
    assert e * treated * (mu1 - best) + (1 - e) * control * (mu0 - best) == pytest.approx(0, abs=1e-9)
