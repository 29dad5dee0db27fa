"""Declared partitions: which cell a record is in, what cells are called, and what is refused."""

import numpy as np
import pytest

from discreet import Bounds
from discreet.data.frames import encoded
from discreet.data.partition import MOST_CELLS, Partition
from discreet.exceptions import InvalidInput

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (18, 98), "sex": ["f", "m"], "ward": ["a", "b", "c"]})


def cells(by, age, sex="f", ward="a", bounds=BOUNDS):
    partition = Partition.of(by, bounds)
    columns = {"age": age, "sex": np.broadcast_to(sex, len(age)), "ward": np.broadcast_to(ward, len(age))}
    import pandas as pd

    return partition.cells(encoded(pd.DataFrame(columns), bounds)).tolist()


def test_a_regular_cut_has_cells_of_equal_width_that_hold_their_lower_end():
    assert cells({"age": 8}, [18, 27.9, 28, 38, 97.9, 98]) == [0, 0, 1, 2, 7, 7]
    assert cells({"age": 8}, [-5, 200]) == [0, 7]


def test_a_column_may_be_given_by_position():
    assert Partition.of({0: 8}, BOUNDS) == Partition.of({"age": 8}, BOUNDS)
    assert Partition.of({"x1": 2}, Bounds(outcome=(0, 1), covariates=[(0, 1), (0, 1)])).cuts[0].column == 1


def test_edges_divide_a_range_where_they_say():
    assert cells({"age": [18, 30, 65, 98]}, [29.999, 30, 64, 65, 98]) == [0, 1, 1, 2, 2]
    assert Partition.of({"age": (0, 30, 200)}, BOUNDS).count == 2


@pytest.mark.parametrize("k", [3, 7, 10, 49])
def test_a_value_on_an_edge_belongs_to_the_cell_that_begins_there(k):
    edges = np.linspace(18, 98, k + 1)
    assert cells({"age": k}, edges) == [*range(k), k - 1]
    assert cells({"age": edges.tolist()}, edges) == [*range(k), k - 1]


def test_levels_and_groups_of_levels_are_cells():
    assert cells({"sex": "levels"}, [20, 20], ["m", "f"]) == [1, 0]
    assert cells({"ward": [["c", "a"], ["b"]]}, [20, 20, 20], ward=["a", "b", "c"]) == [0, 1, 0]


def test_covariates_are_crossed_and_the_last_runs_fastest():
    by = {"age": 2, "sex": "levels"}
    assert cells(by, [20, 20, 90, 90], ["f", "m", "f", "m"]) == [0, 1, 2, 3]
    assert Partition.of(by, BOUNDS).labels() == [
        "age [18, 58), sex f",
        "age [18, 58), sex m",
        "age [58, 98], sex f",
        "age [58, 98], sex m",
    ]


def test_groups_are_called_by_their_levels():
    assert Partition.of({"ward": [["c", "a"], ["b"]]}, BOUNDS).labels() == ["ward a or c", "ward b"]


def test_a_partition_is_read_back_from_plain_json():
    partition = Partition.of({"age": [18, 30, 98], "ward": [["a"], ["b", "c"]], "sex": "levels"}, BOUNDS)
    assert Partition.from_dict(partition.to_dict(), BOUNDS) == partition


@pytest.mark.parametrize(
    "cut",
    [
        {"column": 9, "edges": []},
        {"column": "age", "edges": [30.0]},
        {"column": 0, "edges": [30.0, 20.0]},
        {"column": 0, "edges": [500.0]},
        {"column": 0, "groups": [0, 1, 2]},
        {"column": 2, "groups": [0, 1, 10**30]},
        {"column": 2, "groups": [0, -1, 1]},
        {"column": 2, "groups": [0]},
        {"column": 1},
        3,
    ],
)
def test_a_file_s_cuts_are_checked_like_declared_ones(cut):
    with pytest.raises(InvalidInput, match="partition does not fit the bounds"):
        Partition.from_dict({"kind": "declared", "cuts": [cut]}, BOUNDS)


def test_every_record_of_the_domain_has_one_cell():
    rng = np.random.default_rng(0)
    partition = Partition.of({"age": 13, "ward": "levels"}, BOUNDS)
    x = np.column_stack([rng.uniform(-1, 1, 500), rng.integers(0, 2, 500), rng.integers(0, 3, 500)])
    found = partition.cells(x)
    assert set(found) == set(range(39))


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ({}, "by must map covariates"),
        (20, "by must map covariates"),
        (["age"], "by must map covariates"),
        ({"height": 3}, "covariate 'height' that the bounds do not declare: choose from age, sex, ward"),
        ({7: 3}, "covariate 7 that the bounds do not declare"),
        ({True: 3}, "covariate True"),
        ({-1: 3}, "covariate -1"),
        ({"age": 3, 0: 4}, "names a covariate twice"),
        ({"age": 0}, "too many cells, or into none"),
        ({"age": MOST_CELLS + 1}, "too many cells"),
        ({"age": 300, "ward": "levels", "sex": "levels", 0: 9}, "twice"),
        ({"age": 30_000, "ward": "levels"}, "more than 65,536 cells"),
        ({"age": 2.5}, "number of cuts or a list of edges"),
        ({"age": True}, "number of cuts or a list of edges"),
        ({"age": "levels"}, "number of cuts or a list of edges"),
        ({"age": [18]}, "number of cuts or a list of edges"),
        ({"age": [18, 60]}, "do not cover its range"),
        ({"age": [30, 98]}, "do not cover its range"),
        ({"age": [18, 40, 30, 98]}, "must increase"),
        ({"age": [18, float("nan"), 98]}, "must be finite"),
        ({"sex": 2}, "needs 'levels' or groups of levels"),
        ({"ward": [["a"], ["b"]]}, "do not cover its declared levels"),
        ({"ward": [["a"], ["b"], ["c", "d"]]}, "do not cover its declared levels"),
        ({"ward": [["a", "b"], ["b", "c"]]}, "hold a level twice"),
        ({"ward": ["a", "b", "c"]}, "needs 'levels' or groups"),
    ],
)
def test_what_is_no_partition_of_the_domain_is_refused(by, words):
    with pytest.raises(InvalidInput, match=words):
        Partition.of(by, BOUNDS)
