"""Maps of all rounds: records lie in the set that a round is asked in before the gate clips them.

The gate would clip them in any case, so that privacy does not hang on it; but a statistic that is clipped unawares is
another one than the proofs and the intervals speak of. Proof: docs/proofs/ate.md, second column of the table; of
effect functions docs/proofs/cate.md.
"""

from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import ATE, CATE, Bounds, DifferenceInMeans
from discreet.data.bounds import Levels
from discreet.data.records import Chunk
from discreet.estimators._effect_allocation import AVERAGE
from discreet.privacy.query import rows_of as rows_in_shape
from discreet.privacy.sensitivity.sets import Ball, Cells, Gram, Interval, MeanSquare
from discreet.testing import seeded_noise, watched

COLUMNS: list[Any] = [(-3, 3), (0, 1), [0, 1, 2], (0, 1_000)]
# Rounds that are clipped by their set and by nothing else, as the table says.
CLIPPED_BY_THEIR_SET = {"centre of the outcome"}


def bounds(p, propensity):
    return Bounds(outcome=(-4, 10), covariates=[COLUMNS[j % 4] for j in range(p)], propensity=propensity)


CASES: dict[str, tuple[Any, ...]] = {
    "observational, rich": (ATE, 3, (0.05, 0.95), None, 60.0),
    "observational, poor": (ATE, 3, (0.05, 0.95), None, 0.3),
    "observational, no covariates": (ATE, 0, (0.05, 0.95), None, 2.0),
    "observational, one covariate": (ATE, 1, (0.05, 0.95), None, 2.0),
    "observational, screened": (ATE, 12, (0.2, 0.8), None, 20.0),
    "observational, few treated": (ATE, 3, (0.02, 0.4), None, 20.0),
    "observational, few controls": (ATE, 3, (0.6, 0.98), None, 20.0),
    "known number": (ATE, 3, (0.05, 0.95), 0.3, 20.0),
    "known column": (ATE, 3, (0.05, 0.95), "column", 20.0),
    "known column, few treated": (ATE, 3, (0.02, 0.4), "column", 20.0),
    "means": (DifferenceInMeans, 0, (0.05, 0.95), None, 1.0),
    "means, known number": (DifferenceInMeans, 0, (0.05, 0.95), 0.7, 1.0),
    "means, known column": (DifferenceInMeans, 0, (0.6, 0.98), "column", 1.0),
    "function, rich": (CATE, 3, (0.05, 0.95), None, 60.0),
    "function, poor": (CATE, 3, (0.05, 0.95), None, 0.3),
    "function, screened": (CATE, 12, (0.2, 0.8), None, 20.0),
    "function, few treated": (CATE, 3, (0.02, 0.4), None, 20.0),
    "function, few controls": (CATE, 3, (0.6, 0.98), None, 20.0),
    "function, doubly robust": (partial(CATE, correction="DR"), 3, (0.02, 0.98), None, 60.0),
    "function, known number": (CATE, 3, (0.05, 0.95), 0.3, 20.0),
    "function, known column": (CATE, 3, (0.02, 0.98), "column", 60.0),
}


@cache
def rounds_of(case):
    """Every question of a fit, and what is public about its records."""
    method, p, overlap, propensity, epsilon = CASES[case]
    rng, facts, n = np.random.default_rng(7), bounds(p, overlap), 1_500
    x = np.column_stack([_column(spec, rng, n) for spec in facts.columns]) if p else None
    drive = np.zeros(n) if x is None else x[:, 0] / 3
    e = np.clip(1 / (1 + np.exp(-drive)), *overlap)
    t = (rng.random(n) < e).astype(float)
    y = 3 + 2 * drive + t + rng.standard_t(2, n)
    known = e if propensity == "column" else propensity
    seen = []
    with seeded_noise(3), watched(lambda _, rounds: seen.extend(each.query for each in rounds)):
        method(epsilon=epsilon, delta=1e-6, bounds=facts, propensity=known).fit(y, t, X=x)
    # Beside a function, rounds of the average effect are those that have cases of their own.
    own = [query for query in seen if not query.name.startswith(AVERAGE)]
    return SimpleNamespace(queries=own, bounds=facts, known=propensity)


def _column(spec, rng, n):
    if isinstance(spec, Levels):
        return rng.integers(0, 3, n)
    # Long tails: most records are in a small part of the range.
    return np.clip(spec.low + (spec.high - spec.low) * rng.beta(1, 6, n), spec.low, spec.high)


def fill(geometry, rows):
    """How far the furthest record is from the middle of a set, over what the set allows."""
    rows = np.asarray(rows, dtype=float)
    assert np.isfinite(rows).all()
    if isinstance(geometry, Interval):
        middle, half = (geometry.high + geometry.low) / 2, (geometry.high - geometry.low) / 2
        return np.abs(rows - middle).max() / half
    if isinstance(geometry, MeanSquare):
        return np.abs(rows).max() / geometry.bound
    if isinstance(geometry, Ball | Gram):
        return np.sqrt((rows.reshape(len(rows), -1) ** 2).sum(axis=1)).max() / geometry.radius
    assert isinstance(geometry, Cells)
    cells = rows.reshape(len(rows), -1)
    assert ((cells >= 0) & (cells < np.array(geometry.sizes)) & (cells == np.rint(cells))).all()
    return 1.0


unit = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0]))


def chunk_of(found, rows):
    """Records as the gate sees them: clipped and encoded."""
    y, t, e, x = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
    p, (low, high) = found.bounds.p, found.bounds.propensity
    encoded = 2 * x[:, :p] - 1
    for j, spec in enumerate(found.bounds.columns):
        if isinstance(spec, Levels):
            encoded[:, j] = np.floor(2.999 * x[:, j])
    known = None
    if found.known is not None:
        known = np.clip(low + e * (high - low), low, high) if found.known == "column" else np.full(len(y), found.known)
    return Chunk(2 * y - 1, t, np.asfortranarray(encoded), known)


def corners():
    """Records at the ends of everything."""
    rng = np.random.default_rng(1)
    places = [*np.eye(12), *(1 - np.eye(12)), np.zeros(12), np.ones(12), *rng.integers(0, 2, (40, 12))]
    return [(y, t, e, list(x)) for y in (0.0, 1.0) for t in (0.0, 1.0) for e in (0.0, 0.5, 1.0) for x in places]


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25, deadline=None)
@given(rows=st.lists(st.tuples(unit, st.sampled_from([0.0, 1.0]), unit, st.lists(unit, min_size=12, max_size=12))))
def test_records_lie_in_the_sets_that_they_are_asked_in(case, rows):
    found = rounds_of(case)
    chunk = chunk_of(found, [*rows, *corners()])
    for query in found.queries:
        if query.name not in CLIPPED_BY_THEIR_SET:
            assert fill(query.geometry, rows_of(query, chunk)) <= 1 + 1e-9, query.name


def rows_of(query, chunk):
    # What a map returns may lie in a buffer that the next one writes to.
    return np.array(rows_in_shape(query, chunk), dtype=float)


def taken(chunk, places):
    """Some of a chunk's records, in any order."""
    x, e = np.asfortranarray(chunk.x[places]), None if chunk.e is None else chunk.e[places]
    return Chunk(chunk.y[places], chunk.t[places], x, e)


@pytest.mark.parametrize("case", CASES)
def test_a_record_gives_the_same_row_to_the_last_bit_wherever_it_stands(case):
    # Neighbours by add-remove move all records behind one: a row that hung on its place would move the others' sums.
    found, rng = rounds_of(case), np.random.default_rng(4)
    rows = [(*rng.random(1), float(rng.integers(0, 2)), *rng.random(1), list(rng.random(12))) for _ in range(150)]
    chunk = chunk_of(found, [*rows, *corners()[:50]])
    order = rng.permutation(200)
    for query in found.queries:
        whole = rows_of(query, chunk)
        np.testing.assert_array_equal(rows_of(query, taken(chunk, order)), whole[order], err_msg=query.name)
        for start, stop in ((0, 1), (3, 10), (17, 18), (60, 131), (1, 200)):
            part = rows_of(query, taken(chunk, np.arange(start, stop)))
            np.testing.assert_array_equal(part, whole[start:stop], err_msg=query.name)


def test_the_cases_have_every_round():
    names = {query.name for case in CASES for query in rounds_of(case).queries}
    cycles = {
        f"{kind} {k}" for kind in ("propensity refinement", "residual magnitude", "residual moments") for k in (1, 2, 3)
    }
    assert names >= cycles | CLIPPED_BY_THEIR_SET | {
        "arms and ends of the outcome",
        "outcome mean and square",
        "outcome magnitude",
        "arm means",
        "marginals",
        "marginals within windows",
        "correlations",
        "screening moments",
        "second moments",
        "outcome moments",
        "outcome contrast",
        "treatment moments",
        "effect moment",
        "residual tails",
        "clipped excess",
        "score",
        "probabilities of treatment",
        *(f"effect {kind} {k}" for kind in ("residual magnitude", "moments") for k in (1, 2, 3)),
    }


@pytest.mark.parametrize(
    ("case", "name", "least"),
    [
        ("observational, rich", "score", 0.99),
        ("observational, rich", "clipped excess", 0.99),
        ("observational, rich", "arm means", 0.99),
        ("observational, rich", "second moments", 0.99),
        ("observational, rich", "outcome moments", 0.85),
        ("observational, rich", "treatment moments", 0.95),
        ("observational, rich", "propensity refinement 3", 0.8),
        ("observational, rich", "residual moments 3", 0.95),
        ("observational, rich", "effect moment", 0.9),
        ("observational, screened", "correlations", 0.99),
        ("observational, screened", "screening moments", 0.95),
        ("known column", "score", 0.99),
        ("function, rich", "effect moments 1", 0.9),
        ("function, rich", "effect moments 3", 0.9),
        ("function, few treated", "effect moments 3", 0.9),
        ("function, doubly robust", "effect moments 3", 0.9),
        ("function, known column", "effect moments 3", 0.9),
    ],
)
def test_the_sets_are_filled_so_that_no_noise_is_wasted(case, name, least):
    found = rounds_of(case)
    rng = np.random.default_rng(2)
    # Features beyond the radius are weighed down by its square, so that those on it count most: some lie inside.
    inside = [(y, t, e, list(rng.beta(1, 6, 12))) for y, t, e, _ in corners() for _ in range(3)]
    chunk = chunk_of(found, [*inside, *corners()])
    (query,) = [each for each in found.queries if each.name == name]
    assert fill(query.geometry, rows_of(query, chunk)) >= least
