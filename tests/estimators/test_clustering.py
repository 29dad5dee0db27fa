"""Private k-means: where centres start, where they go, and what is refused."""

import numpy as np
import pytest

from discreet import Bounds, Budget
from discreet.data.clusters import Clusters, nearest
from discreet.data.frames import encoded
from discreet.data.in_memory import ArrayRecords
from discreet.estimators.clustering import first_clusters, lloyd
from discreet.exceptions import InvalidInput
from discreet.papers import PrivateKMeans
from discreet.privacy.gate import Gate
from discreet.testing import frozen_noise, seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates=[(-1, 1), (-1, 1), ["a", "b", "c"]])


def records(n=3_000, seed=0):
    """Three clouds on the first two covariates."""
    rng = np.random.default_rng(seed)
    middle = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])[np.arange(n) % 3]
    x = np.column_stack([(middle + rng.normal(0, 0.05, (n, 2))).astype(object), np.full(n, "a")])
    return x, ArrayRecords.of(np.zeros(n) + 0.5, np.arange(n) % 2, x, bounds=BOUNDS)


def found(wanted, epsilon=None, neighbours="replace-one"):
    x, source = records()
    gate = Gate(source, budget=Budget(epsilon=epsilon or 1.0), neighbours=neighbours)
    return x, lloyd(gate, wanted, 1.0), gate


def test_first_centres_depend_on_the_seed_alone_and_keep_their_distance():
    first, again, other = (
        first_clusters(PrivateKMeans(clusters=6, columns=(0, 1), random_state=seed), BOUNDS).centres
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    gaps = np.sqrt(((first[:, None] - first) ** 2).sum(axis=2)) + 9 * np.eye(6)
    assert gaps.min() > 0.4
    assert np.abs(first).max() < 1


def test_without_noise_centres_are_the_means_of_their_clusters():
    with frozen_noise():
        x, clusters, _ = found(PrivateKMeans(clusters=3, columns=(0, 1), rounds=10, random_state=3))
    cells = clusters.cells(encoded(x, BOUNDS))
    means = np.array([x[cells == k, :2].astype(float).mean(axis=0) for k in range(3)])
    np.testing.assert_allclose(clusters.centres, means, atol=1e-9)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_clouds_are_found_with_a_budget_to_spare(neighbours):
    with seeded_noise(4):
        x, clusters, gate = found(PrivateKMeans(clusters=3, columns=(0, 1)), 10.0, neighbours)
    cells = clusters.cells(encoded(x, BOUNDS))
    assert all(len(set(cells[k::3])) == 1 for k in range(3))
    assert gate.spent == pytest.approx(1.0)


def test_all_numbers_of_a_round_have_the_noise_of_dplloyd():
    with seeded_noise(4):
        *_, gate = found(PrivateKMeans(clusters=3, rounds=4), 2.0, "add-remove")
    # Three covariates: one record moves counts by 1 and sums by 3, and each of 4 rounds has a quarter of epsilon.
    scales = [event.scale / event.diameter for event in gate.events]
    assert len(gate.events) == 8
    assert scales[::2] == pytest.approx([(1 + 3) / (2.0 / 4)] * 4)
    assert [3 * scale for scale in scales[1::2]] == pytest.approx([(1 + 3) / (2.0 / 4)] * 4)


def test_a_centre_without_records_stays_and_none_leaves_the_range():
    with frozen_noise():
        _, clusters, _ = found(PrivateKMeans(clusters=40, random_state=1))
    assert clusters.centres.shape == (40, 4)
    assert np.all(np.abs(clusters.centres) <= 1)
    assert np.all(clusters.centres[:, 2:] >= 0)
    with seeded_noise(0):
        _, noisy, _ = found(PrivateKMeans(clusters=40, random_state=1), 0.01)
    assert np.all(np.abs(noisy.centres) <= 1)


def test_the_nearest_centre_does_not_depend_on_the_place_of_a_record():
    rng = np.random.default_rng(0)
    v, centres = rng.uniform(-1, 1, (999, 7)), rng.uniform(-1, 1, (16, 7))
    whole = nearest(v, centres)
    assert whole.tolist() == [int(nearest(row[None, :], centres)[0]) for row in v]
    np.testing.assert_array_equal(whole, ((v[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1))


def test_clusters_are_read_back_from_plain_json():
    clusters = first_clusters(PrivateKMeans(clusters=5, columns=[2, 0]), BOUNDS)
    again = Clusters.from_dict(clusters.to_dict(), BOUNDS)
    np.testing.assert_array_equal(again.centres, clusters.centres)
    assert again.columns == (2, 0)
    assert again.labels() == [f"cluster {k}" for k in range(5)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"clusters": 0}, "clusters must be a whole number"),
        ({"clusters": 5_000}, "clusters must be a whole number from 1 to 4,096"),
        ({"clusters": True}, "clusters must be a whole number"),
        ({"clusters": 3, "rounds": 0}, "rounds must be a whole number"),
        ({"clusters": 3, "rounds": 1.5}, "rounds must be a whole number"),
        ({"clusters": 3, "columns": "x0"}, "columns must list"),
        ({"clusters": 3, "columns": ()}, "columns must list"),
    ],
)
def test_what_cannot_be_clustered_by_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        PrivateKMeans(**given)


@pytest.mark.parametrize(
    ("columns", "bounds", "words"),
    [
        (("height",), BOUNDS, "does not declare|do not declare"),
        ((0, "x0"), BOUNDS, "names a covariate twice"),
        (None, Bounds(outcome=(0, 1)), r"needs Bounds\(covariates"),
    ],
)
def test_columns_have_to_be_declared(columns, bounds, words):
    with pytest.raises(InvalidInput, match=words):
        first_clusters(PrivateKMeans(clusters=2, columns=columns), bounds)
