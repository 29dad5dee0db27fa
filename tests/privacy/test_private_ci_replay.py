"""PrivATE's proved calibration on neighbours, answers held fixed: no round moves by more than its noise covers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from discreet import Bounds
from discreet.audit._tape import Tape
from discreet.data.records import Chunk
from discreet.datasets import private_ci
from discreet.papers.common.sample_splitting import SampleSplit
from discreet.papers.private_ate.estimator import PrivATE
from discreet.testing import seeded_noise

N = 240
STUDY = private_ci(1, N, 9)
PUBLIC = {"split": "public", "model_regression": LinearRegression(), "model_propensity": LogisticRegression()}
RECORDS = [(4.0, 1.0, [0.0, 0.0]), (-1.0, 0.0, [1.0, 1.0]), (1e9, 1.0, [-1e6, 1e6]), (-1e9, 0.0, [0.5, 0.5])]


def fit(y, t, x, **given):
    model = PrivATE(epsilon=1.0, delta=1e-5, bounds=STUDY.bounds, calibration="proved", random_state=0, **given)
    return model.fit(y, t, X=x)


def neighbour(place, record):
    y, t, x = STUDY.Y.copy(), STUDY.T.copy(), STUDY.X.copy()
    y[place], t[place], x[place] = record
    return y, t, x


def moved(tape, data):
    """How far each round moved, by name."""
    return dict(zip((each.query.name for each in tape.rounds), tape.moves(data), strict=True))


def taped(**given):
    """A first fit."""
    return Tape(lambda data: fit(*data, **given), (STUDY.Y, STUDY.T, STUDY.X), seed=3)


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(
    "given", [PUBLIC, {"split": "private"}, PUBLIC | {"clip": 4.0}], ids=["public", "private", "clip"]
)
def test_a_record_of_the_second_half_moves_the_score_within_its_diameter_and_nothing_else(given, record):
    found = moved(taped(**given), neighbour(N - 1, record))
    assert 0 < found.pop("score") <= 1
    assert set(found.values()) <= {0}


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_of_the_first_half_moves_every_round_within_its_diameter_and_never_the_score(record):
    found = moved(taped(split="private"), neighbour(0, record))
    assert found.pop("score") == 0
    assert all(share <= 1 for share in found.values())
    assert any(share > 0 for share in found.values())


@pytest.mark.parametrize("record", RECORDS[:2])
@pytest.mark.parametrize(
    ("place", "given"),
    [(N // 2 - 1, {"split": "private"}), (N // 2, {"split": "private"}), (N // 2, PUBLIC)],
    ids=["last of the first", "first of the second", "first of the second, public"],
)
def test_the_records_where_the_halves_meet_move_the_rounds_of_one_half_only(place, given, record):
    found = moved(taped(**given), neighbour(place, record))
    score, training = found.pop("score"), max(found.values(), default=0)
    assert (score > 0, training > 0) == (place >= N // 2, place < N // 2)


@pytest.mark.parametrize("n", [2, 3, 40, 41])
def test_halves_by_order_share_no_record_and_lose_none(n):
    numbers = np.arange(float(n))
    split = SampleSplit.by_order(Chunk(y=numbers, t=numbers, x=numbers[:, None], e=numbers))
    for part in ("y", "t", "e"):
        first, second = (getattr(half, part) for half in split)
        np.testing.assert_array_equal(np.concatenate([first, second]), numbers)
    assert abs(len(split.first.t) - len(split.second.t)) <= 1


def test_halves_by_a_hash_share_no_record_and_lose_none():
    n = 500
    frame = pd.DataFrame({"y": np.arange(n) / n, "t": np.arange(n) % 2, "id": np.arange(n)})
    split, _ = SampleSplit.by_hash(
        frame, "id", 7, None, outcome="y", treatment="t", bounds=Bounds(outcome=(0, 1)), propensity=None
    )
    first, second = (half.y.tolist() for half in split)
    assert not set(first) & set(second)
    assert len({*first, *second}) == n


def test_rounds_on_the_halves_compose_in_parallel():
    with seeded_noise(0):
        (event,) = fit(STUDY.Y, STUDY.T, STUDY.X, split="private").guarantee_.events
    training, score = event.parts
    assert [part.name for part in score] == ["score"]
    assert "treatment moments" in [part.name for part in training]
    assert np.isclose(sum(part.mu**2 for part in training), sum(part.mu**2 for part in score), rtol=1e-6)


@pytest.mark.parametrize(("known", "column"), [(None, 5), (0.5, 6)])
def test_the_rounds_on_the_first_half_are_those_of_the_proof_with_the_shares_that_it_states(known, column):
    proof = Path(__file__).parents[2] / "docs" / "proofs" / "private_ci.md"
    rows = [[cell.strip() for cell in line.split("|")] for line in proof.read_text().splitlines()]
    stated = {row[1]: float(row[column]) for row in rows if len(row) == 8 and row[column].startswith("0.")}
    with seeded_noise(0):
        (event,) = fit(STUDY.Y, STUDY.T, STUDY.X, split="private", propensity=known).guarantee_.events
    spent = {part.name: part.mu**2 for part in event.parts[0]}
    assert list(spent) == list(stated)
    assert sum(stated.values()) == pytest.approx(1.0)
    assert [value / sum(spent.values()) for value in spent.values()] == pytest.approx(list(stated.values()), rel=1e-4)
