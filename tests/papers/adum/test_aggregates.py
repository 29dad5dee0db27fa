"""ADUM from given aggregates: the same numbers as from records, and what no records could have given is refused."""

import numpy as np
import pytest

import discreet
from discreet import Bounds, InvalidInput
from discreet.datasets import adum
from discreet.papers import ADUM, UnprovedClaim
from discreet.papers.adum.aggregates import from_aggregates
from discreet.papers.adum.error_bound import pehe_decomposition
from discreet.testing import frozen_noise

STUDY = adum(n=2_000, seed=1, sigma=0.1)
BY = {0: 4}


def exact():
    with frozen_noise():
        return ADUM(epsilon=1.0, bounds=STUDY.bounds, by=BY).fit(STUDY.Y, STUDY.T, X=STUDY.X).release_


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_aggregates_give_what_their_records_give_and_are_claimed(neighbours, tmp_path):
    records = exact()
    counts = np.round(records.counts)
    with frozen_noise(), pytest.warns(UnprovedClaim, match="came without records"):
        given = from_aggregates(counts, records.sums, epsilon=1.0, bounds=STUDY.bounds, by=BY, neighbours=neighbours)
    np.testing.assert_allclose(given.effects, records.effects, atol=1e-6)
    worse = 2.0 if neighbours == "replace-one" else 1.0
    assert given.count_scale == 2.0 * worse
    assert given.guarantee.status == "test"
    given.save(tmp_path / "cells.json")
    np.testing.assert_array_equal(discreet.load(tmp_path / "cells.json").effects, given.effects)


@pytest.mark.parametrize(
    ("counts", "sums", "words"),
    [
        ([[10, -1], [5, 5]], [[1, 0], [1, 1]], "not negative"),
        ([[10, 1.5], [5, 5]], [[1, 0], [1, 1]], "whole numbers"),
        ([[10, 1], [5, 5]], [[11, 0], [1, 1]], "could add up to"),
        ([[10, 1], [5, 5]], [[-1, 0], [1, 1]], "could add up to"),
        ([[10, 1]], [[1, 0], [1, 1]], "2 rows of two finite numbers"),
        ([[10, 1], [5, np.nan]], [[1, 0], [1, 1]], "2 rows of two finite numbers"),
        ("many", [[1, 0], [1, 1]], "counts must be numbers"),
    ],
)
def test_aggregates_that_no_records_have_are_refused(counts, sums, words):
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1)])
    with pytest.raises(InvalidInput, match=words):
        from_aggregates(counts, sums, epsilon=1.0, bounds=bounds, by={0: 2})


def test_proposition_1_bounds_the_error_of_cell_means():
    """Cell means of noisy outcomes, drawn again and again: their error is at most the bound."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 4_000)
    cells = np.floor((x + 1) * 2).astype(int)
    arms = [np.zeros_like(x), 2.0 * x]
    fits = [[], []]
    for _ in range(200):
        for arm, truth in enumerate(arms):
            y = truth + rng.normal(0, 1, len(x))
            fits[arm].append((np.bincount(cells, y) / np.bincount(cells))[cells])
    means, spread = zip(*((np.mean(each, axis=0), np.var(each, axis=0)) for each in fits), strict=True)
    found = np.mean([(fits[1][k] - fits[0][k] - (arms[1] - arms[0])) ** 2 for k in range(200)])
    biases = means[0] - arms[0], means[1] - arms[1]
    bound = pehe_decomposition(biases, (spread[0], spread[1]))
    assert bound / 2.2 <= found <= bound
    with pytest.raises(InvalidInput, match="variances not negative"):
        pehe_decomposition(biases, (-spread[0], spread[1]))
