"""Learners that split the sample on neighbours, answers held fixed: no round moves by more than its noise covers."""

import json
import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.audit._tape import Tape
from discreet.data.columns import Levels, Range
from discreet.data.records import Chunk
from discreet.papers import DRLearner, RLearner, TLearner
from discreet.papers.meta_learners import additive as learners_additive
from discreet.papers.meta_learners import bin_smoothing as learners_smoothing
from discreet.papers.meta_learners import linear as learners_linear
from discreet.papers.meta_learners.additive import AdditiveLearner
from discreet.papers.meta_learners.base_learner import Task, checked
from discreet.papers.meta_learners.linear import LinearLearner, LogisticLearner
from discreet.papers.meta_learners.stages import partition, sizes
from discreet.privacy.sensitivity.sets import MeanSquare
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-4, 10), covariates=[(-3, 3), ["a", "b", "c"]], propensity=(0.1, 0.9))
COLUMNS = (Range(-3, 3), Levels(("a", "b", "c")))
N = 40
BASES, NEIGHBOURS = 25, 40


def task(target, weight_bound=None, product_bound=None):
    budget = Budget(epsilon=1.0, delta=1e-6)
    return Task(
        name="m",
        columns=COLUMNS,
        target=target,
        bounds=BOUNDS,
        budget=budget,
        weight_bound=weight_bound,
        product_bound=product_bound,
    )


LEARNERS = {
    "additive": lambda: AdditiveLearner(task((-4, 10))),
    "additive, weights": lambda: AdditiveLearner(task((-4, 10), 0.8)),
    # As the R-learner states it: a wide range of quotients, and a narrow one of their products with the weights.
    "additive, weights and products": lambda: AdditiveLearner(task((-60, 60), 0.8, 5.0)),
    "linear, weights and products": lambda: LinearLearner(task((-60, 60), 0.8, 5.0)),
    "additive classifier": lambda: AdditiveLearner(task((0, 1)), classify=True),
    "linear": lambda: LinearLearner(task((-4, 10))),
    "linear, weights": lambda: LinearLearner(task((-4, 10), 0.8)),
    "logistic": lambda: LogisticLearner(task((0, 1))),
}


def taped(fit, data):
    """A first fit; what it returns is all that it publishes."""
    return Tape(lambda data: SimpleNamespace(release_=fit(data), guarantee_=None), data)


def records(rng, classify):
    """Encoded covariates, target and weights: extreme ones among them, that no bound has clipped yet."""
    x = np.column_stack([rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], N), rng.integers(0, 3, N)])
    y = rng.integers(0, 2, N) * 1.0 if classify else rng.normal(3, rng.choice([0.1, 3.0, 50.0]), N)
    return x, y, rng.choice([0.0, 0.8, 5.0, rng.random()], N)


def replaced(data, rng, place, classify):
    """One record replaced by an extreme one."""
    x, y, w = (part.copy() for part in data)
    x[place] = rng.choice([-1.0, 1.0, 0.0, 1e9, np.nan]), rng.integers(0, 3)
    y[place] = rng.integers(0, 2) if classify else rng.choice([-4.0, 10.0, 1e12, -1e12, np.nan])
    w[place] = rng.choice([0.0, 0.8, 1e9, np.nan])
    return x, y, w


def search(name, bases=BASES, neighbours=NEIGHBOURS):
    """Moves of all rounds over random pairs of neighbours."""
    rng, classify, weighted = np.random.default_rng(1), name in ("additive classifier", "logistic"), "weights" in name

    def fit(data):
        x, y, w = data
        # What a logistic regression gets is encoded: no covariate is missing or outside its range.
        x = np.column_stack([np.clip(np.nan_to_num(x[:, 0]), -1, 1), x[:, 1]]) if name == "logistic" else x
        learner = LEARNERS[name]()
        return learner.fit(x, y, sample_weight=w if weighted else None).model_  # type: ignore[attr-defined]

    moves = []
    for _ in range(bases):
        # From one extreme to another is furthest: half of the time the record that is replaced is extreme already.
        extreme = int(rng.integers(0, N))
        data = replaced(records(rng, classify), rng, extreme, classify)
        tape = taped(fit, data)
        for k in range(neighbours):
            place = extreme if k % 2 else int(rng.integers(0, N))
            moves.append(tape.moves(replaced(data, rng, place, classify)))
    return np.array(moves)


@pytest.mark.parametrize("name", LEARNERS)
def test_over_a_thousand_pairs_no_round_of_a_base_learner_exceeds_its_diameter(name, monkeypatch):
    # Fewer bins and one reach, so that a thousand fits take seconds; the sums are made as ever.
    monkeypatch.setattr(learners_additive, "BINS", 4)
    monkeypatch.setattr(learners_smoothing, "_REACHES", (1.0,))
    moves = search(name)
    assert len(moves) == BASES * NEIGHBOURS == 1000
    assert moves.max() <= 1
    # A round that could not be told to move would prove nothing.
    assert moves.max(axis=0).min() > (0.05 if name == "logistic" else 0.35)


@pytest.mark.parametrize(("module", "factor"), [(learners_additive, 0.4), (learners_linear, 0.4)])
def test_a_ball_that_states_less_than_it_lets_through_is_found(module, factor, monkeypatch):
    monkeypatch.setattr(learners_additive, "BINS", 4)
    right = module.Ball
    monkeypatch.setattr(module, "Ball", lambda radius, dimension: Understated(right(radius, dimension), factor))
    assert search("additive" if module is learners_additive else "linear", bases=3).max() > 1


def test_a_product_that_states_less_than_it_lets_through_is_found(monkeypatch):
    right = MeanSquare
    monkeypatch.setattr(learners_linear, "MeanSquare", lambda radius: Understated(right(radius), 0.4))
    assert search("linear, weights and products", bases=3).max() > 1


def test_products_beyond_the_stated_bound_are_clipped_before_any_learner_sees_them():
    x, y, w = np.zeros((N, 2)), np.linspace(-60, 60, N), np.linspace(0.0, 0.8, N)
    rows = checked(task((-60, 60), 0.8, 5.0), x, y, w).rows
    assert np.abs(rows.e * rows.y).max() == pytest.approx(5.0)
    kept = np.abs(w * y) < 5.0
    np.testing.assert_array_equal(rows.y[kept], y[kept])


class Understated:
    """A negative control: a ball with too small a diameter."""

    def __init__(self, ball, factor):
        self.right, self.factor = ball, factor
        self.columns, self.dimension = ball.columns, ball.dimension

    def __hash__(self):
        return hash((self.right, self.factor))

    def __eq__(self, other):
        return isinstance(other, Understated) and (self.right, self.factor) == (other.right, other.factor)

    def l2(self, neighbours):
        return self.factor * self.right.l2(neighbours)

    def l1(self, neighbours):
        return self.factor * self.right.l1(neighbours)

    def grid(self, grid_bits, neighbours):
        from dataclasses import replace

        grid = self.right.grid(grid_bits, neighbours)
        return replace(grid, l2=self.factor * grid.l2, l1=self.factor * grid.l1)

    def natural(self, noisy):
        return self.right.natural(noisy)


def study(rng, n=90):
    x = np.empty((n, 2), dtype=object)
    x[:, 0], x[:, 1] = rng.normal(0, 1, n), rng.choice(["a", "b", "c"], n)
    return rng.normal(3, 3, n), rng.integers(0, 2, n) * 1.0, x


def last_and_first(n, learner):
    """The records where two parts meet: one too many would be one of these."""
    order = np.random.RandomState(0).permutation(n)
    *ends, _ = np.cumsum(list(sizes(n, learner._models).values()))
    return [int(order[place]) for end in ends for place in (end - 1, end)]


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("ratios", [(1 / 3, 1 / 3, 1 / 3), (0.5, 0.5), (0.21, 0.29, 0.5)])
def test_parts_share_no_record_and_lose_none(ratios, shuffle):
    numbers = np.arange(97.0)
    rows = Chunk(y=numbers, t=numbers, x=numbers[:, None], e=None)
    ratios = {f"part {k}": ratio for k, ratio in enumerate(ratios)}
    parts = partition(rows, ratios, shuffle=shuffle, random_state=0)
    for column in ("y", "t", "x"):
        held = np.concatenate([getattr(part, column).ravel() for part in parts.values()])
        np.testing.assert_array_equal(np.sort(held), numbers)
    # A record's columns stay together.
    assert all(np.array_equal(part.y, part.x[:, 0]) and np.array_equal(part.y, part.t) for part in parts.values())


@pytest.mark.parametrize("base", ["additive", "linear", "logistic"])
@pytest.mark.parametrize("learner", [DRLearner, RLearner, TLearner])
def test_a_replaced_record_moves_the_rounds_of_its_own_part_only(learner, base, monkeypatch):
    monkeypatch.setattr(learners_additive, "BINS", 4)
    rng = np.random.default_rng(3)
    y, t, x = study(rng)

    def fit(data):
        model = learner(epsilon=1.0, delta=1e-6, bounds=BOUNDS, base=base, random_state=0)
        return model.fit(data[0], data[1], X=data[2]).release_.to_dict()

    tape = taped(fit, (y, t, x))
    (event,) = json.loads(tape.published)["guarantee"]["events"]
    lengths = np.cumsum([len(part) for part in event["parts"]])
    seen = set()
    for place in [*range(0, 90, 6), *(last_and_first(90, learner) if base == "logistic" else ())]:
        new_y, new_t, new_x = y.copy(), t.copy(), x.copy()
        new_y[place], new_t[place] = rng.choice([1e9, -1e9]), 1 - t[place]
        new_x[place] = rng.choice([-1e9, 1e9]), rng.choice(["a", "b", "c"])
        moves = tape.moves((new_y, new_t, new_x))
        assert max(moves) <= 1
        parts = {int(np.searchsorted(lengths, k, side="right")) for k, move in enumerate(moves) if move > 0}
        assert len(parts) == 1
        seen |= parts
    assert len(seen) == len(event["parts"])


@pytest.mark.parametrize(("classify", "column"), [(False, 5), (True, 6)])
def test_the_rounds_are_those_of_the_proof_with_the_shares_that_it_states(classify, column):
    proof = Path(__file__).parents[2] / "docs" / "proofs" / "learners.md"
    rows = [[cell.strip() for cell in line.split("|")] for line in proof.read_text().splitlines()]
    stated = {row[1]: row[column] for row in rows if len(row) == 8 and row[column].startswith("0.")}
    rng = np.random.default_rng(0)
    x, y, _ = records(rng, classify)
    with seeded_noise(0):
        learner = AdditiveLearner(task((0, 1) if classify else (-4, 10)), classify=classify).fit(x, y)
    events = learner.guarantee_.events
    total = sum(event.mu**2 for event in events)  # type: ignore[misc]
    parts = {"p": 2, "a_1": 0.6, "a_2": 0.4}
    for event in events:
        kind = event.name.replace("column 0", "column j").replace("column 1", "column j")
        cycle = kind[-1] if "cycle" in kind else "0"
        text = stated[kind.replace(f"cycle {cycle}", "cycle k")].replace("a_k", f"a_{cycle}")
        number, *rest = text.replace("/p", " /p").split()
        share = float(number)
        for factor in rest:
            share = share / parts["p"] if factor == "/p" else share * parts[factor]
        assert event.mu**2 / total == pytest.approx(share, rel=1e-4), event.name
    assert len(events) == (3 + 2 + 4 if classify else 3 + 2 + 2 * 3)


def test_parts_compose_in_parallel_and_no_part_spends_more_than_the_budget():
    y, t, x = study(np.random.default_rng(0), 200)
    with seeded_noise(0):
        guarantee = DRLearner(epsilon=1.0, delta=1e-6, bounds=BOUNDS, base="logistic").fit(y, t, X=x).guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (1.0, 1e-6)
    (event,) = guarantee.events
    assert len(event.parts) == 3
    spent = [math.fsum(one.mu**2 for one in part) for part in event.parts]
    assert max(spent) == pytest.approx(min(spent), rel=1e-6)
    assert guarantee.epsilon_at(1e-6) <= 1.0
    assert guarantee.proof == "propensity.md, learners.md"
