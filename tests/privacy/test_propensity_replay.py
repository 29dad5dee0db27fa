"""Private propensity scores on neighbours, released values held fixed: neither part outruns its noise."""

import numpy as np
import pytest

from discreet import Bounds
from discreet.audit._tape import Tape
from discreet.papers import PropensityIPTW
from discreet.papers.propensity import estimator as propensity

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), ["a", "b", "c"]], propensity=(0.1, 0.9))
BASES, NEIGHBOURS = 50, 20
N = 60
LAYOUTS = [
    {"lam": 0.1, "xi": 0.1, "m": 0.5, "norm_bound": None},
    {"lam": 1.0, "xi": 0.02, "m": 30, "norm_bound": 0.5},
    {"lam": 0.01, "xi": 0.4, "m": 0.8, "norm_bound": 1.0},
]


def estimator(layout):
    return PropensityIPTW(epsilon=1.0, delta=1e-6, bounds=BOUNDS, random_state=3, **layout)


def records(rng):
    kind = rng.integers(0, 3)
    x = np.column_stack([rng.normal(0, [0.01, 1.0, 9.0][kind], N), rng.random(N)]).astype(object)
    level = rng.choice(["a", "b", "c"], N)
    y, t = rng.normal(3, [0.1, 3.0, 50.0][kind], N), (np.arange(N) % rng.integers(2, 9) == 0) * 1.0
    return y, t, np.column_stack([x, level])


def replaced(data, rng, place):
    """One record replaced by an extreme or an ordinary one."""
    y, t, x = (part.copy() for part in data)
    y[place] = rng.choice([-4.0, 10.0, 1e12, -1e12, rng.normal(3, 3)])
    t[place] = rng.integers(0, 2)
    x[place] = [rng.choice([-3.0, 3.0, -1e9, 1e9, 0.0]), rng.choice([0.0, 1.0, 0.5]), rng.choice(["a", "b", "c"])]
    return y, t, x


def taped(data, layout):
    """A first fit."""

    def fit(data):
        y, t, x = data
        return estimator(layout).fit(y, t, X=x)

    return Tape(fit, data)


def search(seed=0, bases=BASES, neighbours=NEIGHBOURS):
    """Moves of both rounds over random pairs of neighbours."""
    rng = np.random.default_rng(seed)
    moves = []
    for base in range(bases):
        # From one extreme to another is furthest: half of the time the record that is replaced is extreme already.
        extreme = rng.integers(0, N)
        data = replaced(records(rng), rng, extreme)
        tape = taped(data, LAYOUTS[base % len(LAYOUTS)])
        places = np.where(np.arange(neighbours) % 2, extreme, rng.integers(0, N, neighbours))
        moves += [tape.moves(replaced(data, rng, place)) for place in places]
    return np.array(moves)


def test_over_a_thousand_pairs_no_round_exceeds_its_diameter_and_only_one_part_moves():
    moves = search()
    assert moves.shape == (1000, 2)
    assert moves.max() <= 1
    # A record is in one part. (Refitting the same training records gives the same weights, to the last bit.)
    assert np.all(moves.min(axis=1) == 0)
    weights, effect = moves.max(axis=0)
    assert weights > 0.3
    assert effect > 0.75


@pytest.mark.parametrize("radius", [1e-100, 1e-200])
def test_records_whose_squares_vanish_move_the_weights_within_the_diameter(radius, monkeypatch):
    # So small a radius as the second is refused; even so no row may leave the ball.
    monkeypatch.setattr(propensity, "LEAST_RADIUS", 0.0)
    rng = np.random.default_rng(1)
    y, t, x = records(rng)
    x[:, 0], x[:, 1], x[:, 2] = radius * rng.normal(0, 1, N), 0.5, "a"
    layout = {"lam": 0.1, "xi": 0.1, "m": 30, "norm_bound": radius, "shuffle": False}
    tape, moves = taped((y, t, x), layout), []
    for value in (3e-164, -3e-164, 1e-99, 1e-180, -1.0):
        for arm in (0.0, 1.0):
            other_t, other_x = t.copy(), x.copy()
            other_t[0], other_x[0, 0] = arm, value
            moves.append(tape.moves((y, other_t, other_x)))
    weights, effect = np.array(moves).max(axis=0)
    assert 0.1 < weights <= 1
    assert effect == 0


@pytest.mark.parametrize(("name", "factor"), [("sensitivity", 0.2), ("iptw_bound", 0.2)])
def test_a_sensitivity_stated_too_small_is_found(name, factor, monkeypatch):
    # A negative control. A bound of the weighted outcome is enforced by the gate, so it is only too small for the
    # outcome that the gate no longer clips.
    if name == "iptw_bound":
        interval = propensity.Interval  # type: ignore[attr-defined]
        monkeypatch.setattr(propensity, "Interval", lambda low, high: _Wide(interval(low, high), factor))
    else:
        right = propensity.sensitivity  # type: ignore[attr-defined]
        monkeypatch.setattr(propensity, "sensitivity", lambda *given: factor * right(*given))
    assert search(bases=6).max() > 1


class _Wide:
    """An interval that states less than it lets through."""

    def __init__(self, interval, factor):
        self.right, self.factor = interval, factor
        self.columns, self.dimension = None, 1

    def __hash__(self):
        return hash((self.right, self.factor))

    def __eq__(self, other):
        return (self.right, self.factor) == (other.right, other.factor)

    def grid(self, grid_bits, neighbours):
        grid = self.right.grid(grid_bits, neighbours)
        parts = {name: getattr(grid, name) for name in ("units", "shift", "numbers", "full", "grid_bits", "add")}
        return type(grid)(l2=self.factor * grid.l2, l1=self.factor * grid.l1, **parts)

    def natural(self, noisy):
        return self.right.natural(noisy)
