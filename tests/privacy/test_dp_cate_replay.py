"""DP-CATE's proved calibration on neighbours: no refit moves further than stated, in the norm of the kernel's space."""

import math

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from discreet import Bounds
from discreet.audit._tape import Tape
from discreet.data.in_memory import ArrayRecords
from discreet.papers.common.arrays import gather
from discreet.papers.common.nuisances import train
from discreet.papers.dp_cate import kernel_regression as rkhs
from discreet.papers.dp_cate import kernel_stage as dp_cate_kernel
from discreet.papers.dp_cate.function import DPCATEFunction
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), (0, 1), ["a", "b", "c"]], propensity=(0.1, 0.8))
N, BASES, NEIGHBOURS = 40, 50, 20
LAYOUTS = [
    {"learner": "R", "loss": "huber", "knee": 1.0, "lam": 0.05, "scaling": "unit"},
    {"learner": "DR", "loss": "truncated-l2", "knee": 3.0, "lam": 0.5, "scaling": "lemma 3", "bandwidth": 0.5},
    {"learner": "R", "loss": "l1", "lam": 0.02, "scaling": "theorem 2"},
    {"learner": "DR", "loss": "l2", "lam": 1.0, "scaling": "unit", "bandwidth": 0.7},
    {"learner": "DR", "loss": "huber", "knee": 0.2, "lam": 0.001, "scaling": "unit", "bandwidth": 0.3},
]


def estimator(layout, **given):
    usual = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, "basis": 12, "random_state": 3, "calibration": "proved"}
    return DPCATEFunction(**(usual | {"split": "public"} | layout | given))


def records(rng, count=N):
    x = np.column_stack([rng.normal(0, [0.01, 1.0, 9.0][rng.integers(0, 3)], count), rng.random(count)]).astype(object)
    y, t = (
        rng.normal(3, [0.1, 3.0, 50.0][rng.integers(0, 3)], count),
        (np.arange(count) % rng.integers(2, 5) == 0) * 1.0,
    )
    return y, t, np.column_stack([x, rng.choice(["a", "b", "c"], count)])


def replaced(data, rng, place):
    """One record replaced by an extreme or an ordinary one."""
    y, t, x = (part.copy() for part in data)
    y[place] = rng.choice([-4.0, 10.0, 1e12, -1e12, rng.normal(3, 3)])
    t[place] = rng.integers(0, 2)
    x[place] = [rng.choice([-3.0, 3.0, -1e9, 0.0]), rng.choice([0.0, 1.0, 0.5]), rng.choice(["a", "b", "c"])]
    return y, t, x


def encoded(data):
    y, t, x = data
    return gather(ArrayRecords.of(y, t, x, bounds=BOUNDS))


def first_stage(rng):
    """Models that were trained on other records, which count as public."""
    rows = encoded(records(rng, 200))
    return train(
        rows, BOUNDS, LinearRegression(), LogisticRegression(), known=None, clipped=True, rng=np.random.RandomState(0)
    )


def moves(seed=0, bases=BASES, neighbours=NEIGHBOURS):
    """Distances of refits in the norm of the kernel's space, over what is stated for them in that norm."""
    rng = np.random.default_rng(seed)
    found = []
    for base in range(bases):
        model, nuisances = estimator(LAYOUTS[base % len(LAYOUTS)]), first_stage(rng)
        extreme = rng.integers(0, N)
        data = replaced(records(rng), rng, extreme)
        before = dp_cate_kernel.second_stage(model, encoded(data), nuisances, clipped=True)
        stated = before.stable.move / math.sqrt(before.span.kernel.height)
        # From one extreme to another is furthest: half of the time the record that is replaced is extreme already.
        for place in np.where(np.arange(neighbours) % 2, extreme, rng.integers(0, N, neighbours)):
            after = dp_cate_kernel.second_stage(model, encoded(replaced(data, rng, place)), nuisances, clipped=True)
            assert after.stable[1:] == before.stable[1:]
            assert np.linalg.norm(after.stable.coefficients) <= after.stable.radius
            moved = before.span.norm(before.stable.coefficients - after.stable.coefficients)
            found.append(moved / stated)
    return np.array(found)


def test_over_a_thousand_pairs_no_function_moves_further_than_stated():
    found = moves()
    assert found.shape == (1000,)
    assert found.max() <= 1
    assert found.max() > 0.5


@pytest.mark.parametrize("factor", [0.5])
def test_a_sensitivity_stated_too_small_is_found(factor, monkeypatch):
    right = rkhs.sensitivity
    monkeypatch.setattr(rkhs, "sensitivity", lambda *given: factor * right(*given))
    assert moves(bases=15).max() > 1


def test_the_norm_of_coefficients_is_the_norm_of_the_function():
    """Against the kernel matrix of the centres: the squared norm of sum w_j K(c_j, .) is w'Kw."""
    rng = np.random.default_rng(4)
    kernel = rkhs.GaussianKernel(0.6, 0.3)
    span = rkhs.Span.of(kernel, rng.random((9, 2)))
    b = rng.normal(0, 1, span.dimension)
    weights = span.function(b).weights / kernel.height
    assert span.norm(b) ** 2 == pytest.approx(weights @ kernel(span.centres, span.centres) @ weights, rel=1e-6)
    x = rng.random((50, 2))
    np.testing.assert_allclose(span.coordinates(x) @ b, span.function(b)(x), atol=1e-9)
    assert np.linalg.norm(span.coordinates(x), axis=1).max() <= 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("split", ["public", "private"])
def test_what_enters_the_gate_moves_within_its_diameter_and_only_in_the_half_of_the_record(layout, split):
    rng = np.random.default_rng(7)
    data = replaced(records(rng, 120), rng, 119)
    models = {"model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
    model = estimator(layout, split=split, **(models if split == "public" else {}))
    tape = Tape(lambda data: model.fit(data[0], data[1], X=data[2]), data, seed=3)
    for place in (0, 119) if split == "private" else (119,):
        moved = dict(zip(tape.names, tape.moves(replaced(data, rng, place)), strict=True))
        own = moved.pop("coefficients, part 2" if split == "private" else "coefficients")
        if place:
            assert 0 < own <= 1
            assert set(moved.values()) <= {0}
        else:
            assert own == 0
            assert 0 < max(moved.values()) <= 1


def test_rounds_on_the_halves_compose_in_parallel():
    rng = np.random.default_rng(8)
    y, t, x = records(rng, 200)
    with seeded_noise(0):
        (event,) = estimator(LAYOUTS[0], split="private").fit(y, t, X=x).guarantee_.events
    training, own = event.parts
    assert [part.name for part in own] == ["coefficients"]
    assert "treatment moments" in [part.name for part in training]
