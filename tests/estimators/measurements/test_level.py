"""The level beside the effect: rows stay in their window, which follows from public numbers, and reach its ends."""

from types import SimpleNamespace

import numpy as np
import pytest

from discreet.data.records import Chunk
from discreet.estimators._allocation import CROSS, LEVEL
from discreet.estimators.measurements.estimand import CONTROLS, EVERYONE, OVERLAP, TREATED
from discreet.estimators.measurements.level import LevelRounds
from discreet.estimators.measurements.nuisances import Answers
from discreet.estimators.measurements.score import Score, ScoreRounds, Total
from discreet.postprocessing.tails import Clip, Strata
from discreet.privacy.query import Released

CENTRE, EFFECT = -0.2, 0.3
SHARES = {LEVEL: 0.05, CROSS: 0.01}
GATE = SimpleNamespace(joins_rows=False, most_rows=1)


def chunk(ends, n=4_000, seed=1):
    """Records of both arms, outcomes at the ends and between, probabilities anywhere between their ends."""
    rng = np.random.default_rng(seed)
    e = rng.choice([*ends, *rng.uniform(*ends, 20)], n)
    y = rng.choice([-1.0, 1.0, *rng.uniform(-1, 1, 5)], n)
    return Chunk(y=y, t=rng.integers(0, 2, n).astype(float), x=np.zeros((n, 0)), e=e)


def rounds(estimand, ends, part, clip, c, prognosis=(-1.0, 1.0)):
    rng = np.random.default_rng(2)
    answers = Answers(c.e, rng.choice([-3.0, 3.0, *rng.uniform(*prognosis, 5)], len(c.e)), np.full(len(c.e), EFFECT))
    low, high = ends
    overlap = Strata.between(low, high, estimand.clip_unit, estimand.largest_unit)
    score = ScoreRounds(
        look_up=lambda _: answers, effect=EFFECT, overlap=overlap, prognosis=prognosis, estimand=estimand
    )
    location = SimpleNamespace(centre=CENTRE, scale=1.0)
    return LevelRounds(score=score, location=location, part=part, clip=clip, bias_of_excess=1.0)


CASES = [
    (EVERYONE, (0.1, 0.9), 0.4),
    (EVERYONE, (0.3, 0.3), 0.3),
    (EVERYONE, (0.02, 0.2), 0.1),
    (TREATED, (0.1, 0.95), 1.0),
    (CONTROLS, (0.1, 0.95), 0.0),
    (OVERLAP, (0.01, 0.99), 0.5),
]


def unclipped(level, c):
    """Levels before the window."""
    answers, q, own = level.score.look_up(c), level.part, level.score.estimand
    f = np.clip(answers.prognosis, *level.score.prognosis)
    d = 1.0 if own.counted is None else own.counted(c.t, c.e)
    u = np.where(c.t > 0, 1 / c.e, 1 / (1 - c.e))
    weight = np.where(c.t > 0, q, 1 - q) * own.weigh(c.e) * u
    return d * (f - CENTRE + (q - 1 + c.e) * EFFECT) + weight * level.score.clipped(c, answers, level.clip)


@pytest.mark.parametrize("clip", [Clip(0.3, 0.9, 0.0, 0.0), Clip(100.0, 100.0, 0.0, 0.0), Clip(0.01, 0.02, 0.0, 0.0)])
@pytest.mark.parametrize(("estimand", "ends", "part"), CASES)
def test_levels_are_those_of_the_proof_and_none_is_cut_off(estimand, ends, part, clip):
    c = chunk(ends)
    level = rounds(estimand, ends, part, clip, c)
    np.testing.assert_allclose(level.rows(c), unclipped(level, c), rtol=1e-12, atol=1e-12)


def check_rows_fill_their_sets(estimand, ends, part):
    """Level and product stay in their sets, and come near the end of the first."""
    c = chunk(ends)
    level = rounds(estimand, ends, part, Clip(0.8, 0.8, 0.0, 0.0), c)
    asked, crossed = level.queries(GATE, SHARES)
    rows, half = np.asarray(asked.map(c)), asked.geometry.bound
    assert np.abs(rows).max() <= half * (1 + 1e-12)
    assert np.abs(rows).max() > 0.5 * half
    assert np.abs(crossed.map(c)).max() <= crossed.geometry.high * (1 + 1e-12)


@pytest.mark.parametrize(("estimand", "ends", "part"), CASES)
def test_rows_fill_their_sets(estimand, ends, part):
    check_rows_fill_their_sets(estimand, ends, part)


def test_of_joined_rows_the_level_alone_is_asked_for():
    c = chunk((0.3, 0.6))
    level = rounds(EVERYONE, (0.3, 0.6), 0.4, Clip(1.0, 1.0, 0.0, 0.0), c)
    (asked,) = level.queries(SimpleNamespace(joins_rows=True, most_rows=3), {LEVEL: 0.06})
    assert asked.of_units
    assert asked.geometry.bound == pytest.approx(3 * max(level.window[1], -level.window[0]))


def test_outcomes_of_a_trial_are_levels_themselves():
    c = chunk((0.3, 0.3))
    level = rounds(EVERYONE, (0.3, 0.3), 0.3, Clip(1e3, 1e3, 0.0, 0.0), c)
    np.testing.assert_allclose(level.rows(c), c.y - CENTRE + (0.3 - c.t) * EFFECT)
    assert level.window == pytest.approx((-1 - CENTRE - EFFECT, 1 - CENTRE + EFFECT))


@pytest.mark.parametrize(("estimand", "ends", "part"), [CASES[1], CASES[3]])
def test_a_released_number_of_records_is_off_in_levels_that_are_counted_from_elsewhere(estimand, ends, part):
    c = chunk(ends)
    level = rounds(estimand, ends, part, Clip(0.3, 0.9, 0.0, 0.0), c)
    gate = SimpleNamespace(joins_rows=False, most_rows=1, n=1_000.0, counts_rows=True, noise_sd=lambda *_: 30.0)
    middle = sum(level.window) / 2.0
    asked = Released(np.array([-1_000.0 * middle, 1_000.0]), np.array([5.0, 5.0]), "level")
    found = level.read(gate, (asked,), Score(0.0, 1.0, 0.0, 0.0, 0.0), Total(1.0, 0.0, 0.0))
    # The mean is at the centre, so that sums are all of what was taken from every record.
    assert found.noise == pytest.approx(np.hypot(0.005, 0.03 * middle))
    gate.counts_rows = False
    assert level.read(gate, (asked,), Score(0.0, 1.0, 0.0, 0.0, 0.0), Total(1.0, 0.0, 0.0)).noise == 0.005
