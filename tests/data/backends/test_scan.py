"""One pass over a table: what it notices of its rows, and that no part of them gets lost between processes."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import joblib
import numpy as np
import pyarrow as pa
import pytest

from discreet.data.backends.files import Part
from discreet.data.backends.scan import MANY_ROWS, Columns, Sweep, Tally, run_parts, shares, total, workers_for
from discreet.data.bounds import Bounds
from discreet.data.filters import Condition
from discreet.data.records import Chunk
from discreet.exceptions import InvalidInput

BOUNDS = Bounds(outcome=(-1, 1), covariates={"x": (-1, 1), "z": (-1, 1)}, propensity=(0.1, 0.9))
N = 30


def columns(**more: Any) -> Columns:
    return Columns(bounds=BOUNDS, outcome="y", treatment="t", covariates=("x", "z"), **more)


def values(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    facts = {name: rng.uniform(-1, 1, N) for name in ("y", "x", "z")}
    return facts | {"t": np.arange(N) % 2, "e": rng.uniform(0.2, 0.8, N), "k": rng.permutation(N)}


WHOLE = columns(propensity="e", sample_by="k")


def checksum(facts: dict[str, Any], of: Columns = WHOLE) -> int:
    tally = Sweep(of)(pa.table(facts).select(list(of.wanted)).to_batches(max_chunksize=7))
    assert tally.refusal is None
    return tally.checksum


# An opposite differs in its first bit alone, which is the first to get lost.
CHANGES: dict[str, Any] = {
    "y": lambda y: -y,
    "x": lambda x: -x,
    "z": lambda z: -z,
    "t": lambda t: 1 - t,
    "e": lambda e: 1 - e,
    "k": lambda k: -k - 1,
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_checksum_depends_on_every_value_of_every_column(name: str) -> None:
    facts = values()
    found = [checksum(facts)]
    for place in range(N):
        changed = facts[name].copy()
        changed[place] = CHANGES[name](changed[place])
        found.append(checksum(facts | {name: changed}))
    assert len(set(found)) == N + 1


@pytest.mark.parametrize("name", CHANGES)
def test_what_two_rows_change_does_not_cancel_in_the_checksum(name: str) -> None:
    facts = values()
    changed = [np.where(np.arange(N) // 2 == pair, CHANGES[name](facts[name]), facts[name]) for pair in range(N // 2)]
    assert len({checksum(facts), *(checksum(facts | {name: column}) for column in changed)}) == N // 2 + 1


def test_opposite_signs_of_two_columns_of_a_row_do_not_cancel_in_the_checksum() -> None:
    facts = values()
    pairs = [(one, other) for one in "yxz" for other in "yxz" if one < other]
    found = {checksum(facts | {one: -facts[one], other: -facts[other]}) for one, other in pairs}
    assert len(found | {checksum(facts)}) == 4


def test_a_checksum_does_not_depend_on_the_order_of_rows_but_on_what_stands_beside_what() -> None:
    facts, order = values(), np.random.default_rng(5).permutation(N)
    assert checksum({name: column[order] for name, column in facts.items()}) == checksum(facts)
    for name, column in facts.items():
        exchanged = column.copy()
        exchanged[[0, 1]] = column[[1, 0]]
        assert checksum(facts | {name: exchanged}) != checksum(facts)
    assert checksum(facts | {"x": facts["z"], "z": facts["x"]}) != checksum(facts)


def test_what_is_missing_from_the_columns_is_missing_from_the_checksum_alone() -> None:
    facts = values()
    found = {checksum(facts, of) for of in (columns(), columns(propensity="e"), columns(sample_by="k"), WHOLE)}
    assert len(found) == 4


def test_columns_are_called_by_their_names_in_refusals() -> None:
    names = columns(propensity="e", sample_by="k").names
    assert names == ("column 'y'", "column 't'", ("column 'x'", "column 'z'"), "column 'e'", "column 'k'", ())
    bare = columns(propensity=0.5).names
    assert (bare.e, bare.k) == ("propensity", "sample_by")


def test_text_cannot_choose_a_sample_and_a_filter_fits_what_is_declared() -> None:
    words = Bounds(outcome=(0, 1), covariates={"x": ["a", "b"]})
    text = Columns(bounds=words, outcome="y", treatment="t", covariates=("x",))
    assert text.wanted == {"y": False, "t": False, "x": True}
    assert columns(propensity="e", sample_by="k").wanted == dict.fromkeys("ytxzek", False)
    with pytest.raises(InvalidInput, match="sample_by"):
        _ = Columns(bounds=words, outcome="y", treatment="t", covariates=("x",), sample_by="x").wanted
    with pytest.raises(InvalidInput, match="where"):
        _ = columns(where=(Condition("x", values=("a",)),)).wanted
    assert columns(where=(Condition("w", values=("a",)),)).wanted["w"] is True


def test_filters_are_met_one_after_the_other_and_an_empty_batch_has_no_chunks() -> None:
    facts = values()
    both = columns(where=(Condition("x", low=0.0), Condition("z", high=0.0)))
    batch = pa.record_batch({name: facts[name] for name in both.wanted})
    meant = (facts["x"] >= 0) & (facts["z"] <= 0)
    (chunk,) = both.chunks(batch)
    np.testing.assert_array_equal(chunk.y, facts["y"][meant])
    assert chunk.e is chunk.k is None
    assert list(columns(where=(Condition("x", low=2.0),)).chunks(batch)) == []


def test_a_probability_by_design_is_that_of_every_row() -> None:
    facts = values()
    (chunk,) = columns(propensity=0.25).chunks(pa.record_batch({name: facts[name] for name in ("y", "t", "x", "z")}))
    np.testing.assert_array_equal(chunk.e, np.full(N, 0.25))


def test_a_refusal_comes_home_instead_of_numbers() -> None:
    spoiled = pa.table(values() | {"y": np.full(N, np.nan)}).select(["y", "t", "x", "z"])
    tally = Sweep(columns(), counted)(spoiled.to_batches())
    assert "column 'y' has missing values" in str(tally.refusal)
    assert (tally.rows, tally.treated, tally.checksum, tally.sums, tally.sample) == (0, 0, 0, None, ())


def test_a_refusal_of_any_part_is_that_of_the_whole_and_no_parts_are_nothing() -> None:
    both = total([Tally(1, 0, 2**64 - 1), Tally(2, 2, 3, refusal="no"), Tally(3, 1, 1)])
    assert (both.rows, both.treated, both.checksum, both.refusal) == (6, 3, 3, "no")
    assert (total([]).rows, total([]).sums, total([]).sample) == (0, None, ())


def test_rows_of_a_sample_that_several_parts_kept_are_all_kept() -> None:
    chunks = [Chunk(np.zeros(1), np.zeros(1), np.zeros((1, 0)), None) for _ in range(3)]
    whole = total([Tally(1, sample=(chunks[0],)), Tally(2, sample=(chunks[1], chunks[2]))])
    assert [id(chunk) for chunk in whole.sample] == [id(chunk) for chunk in chunks]


def counted(chunk: Chunk) -> Any:
    return np.array([len(chunk.t), int(chunk.t.sum())], dtype=np.int64)


def test_a_sweep_counts_all_rows_and_its_kernel_sees_those_of_a_sample() -> None:
    told: list[int] = []
    batches = pa.table(values()).select(list(WHOLE.wanted)).to_batches(max_chunksize=7)
    every, some = Sweep(WHOLE, counted)(batches, told.append), Sweep(WHOLE, counted, 0.5)(batches)
    assert (every.rows, every.treated, list(every.sums)) == (N, N // 2, [N, N // 2])
    assert (some.rows, some.treated, some.checksum) == (N, N // 2, every.checksum)
    assert 0 < some.sums[0] < N
    assert told == [7, 7, 7, 7, 2]
    kept = Sweep(WHOLE, part=0.5)(batches)
    assert kept.sums is None
    assert sum(len(chunk.t) for chunk in kept.sample) == some.sums[0]
    assert Sweep(WHOLE)(batches).sample == ()


@pytest.mark.parametrize("asked", [True, 0, 65, 2.0, "2"])
def test_a_number_of_processes_that_makes_no_sense_is_refused(asked: Any) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 64"):
        workers_for(asked, 10)


def test_several_processes_read_what_is_asked_to_be_read_by_them_or_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [workers_for(asked, 10) for asked in (1, 64, None)] == [1, 64, 1]
    assert workers_for(None, MANY_ROWS) == 1
    for cores, used in ((4, 4), (96, 8), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        assert workers_for(None, MANY_ROWS + 1) == used
        assert workers_for(3, MANY_ROWS + 1) == 3


class Rows:
    """A part of a table."""

    def __init__(self, seed: int) -> None:
        self.table = pa.table(values(seed))
        self.rows = N

    def batches(self, wanted: Iterable[str]) -> Iterator[Any]:
        yield from self.table.select(list(wanted)).to_batches(max_chunksize=7)


PARTS = [Rows(seed) for seed in range(4)]


class Pool:
    """joblib's pool without processes; what it was asked for, and how many parts it answers."""

    asked: dict[str, Any]
    most = 99
    error: Exception | None = None

    def __init__(self, **asked: Any) -> None:
        Pool.asked = asked

    def __call__(self, tasks: Any) -> Iterator[Any]:
        for place, (task, args, named) in enumerate(tasks):
            if place == Pool.most:
                if Pool.error is not None:
                    raise Pool.error
                return
            yield task(*args, **named)


@pytest.fixture
def pool(monkeypatch: pytest.MonkeyPatch) -> type[Pool]:
    monkeypatch.setattr(joblib, "Parallel", Pool)
    monkeypatch.setattr(Pool, "asked", None, raising=False)
    monkeypatch.setattr(Pool, "most", 99)
    monkeypatch.setattr(Pool, "error", None)
    return Pool


@pytest.mark.parametrize("workers", [2, 9])
def test_parts_that_processes_read_add_up_to_what_one_process_reads(workers: int, pool: Any) -> None:
    sweep, told = Sweep(columns(), counted), list[int]()
    alone = run_parts(sweep, PARTS, 1, told.append)
    assert pool.asked is None
    assert told == 4 * [7, 7, 7, 7, 2]
    told.clear()
    found = run_parts(sweep, PARTS, workers, told.append)
    assert (found.rows, found.treated, found.checksum) == (alone.rows, alone.treated, alone.checksum)
    np.testing.assert_array_equal(found.sums, alone.sums)
    assert told == [N] * 4
    # No more processes than parts, nothing about records in files, and parts one by one as they come, so that a refusal
    # ends the pass.
    how = {"backend": "loky", "return_as": "generator_unordered", "batch_size": 1, "max_nbytes": None}
    assert pool.asked == how | {"n_jobs": min(workers, 4)}
    assert run_parts(sweep, PARTS, workers, None).rows == 4 * N


@pytest.mark.parametrize(("count", "workers"), [(1, 2), (5, 2), (12, 2), (97, 3), (4, 9)])
def test_processes_get_all_parts_in_a_few_tasks_of_falling_size(count: int, workers: int) -> None:
    parts = [Part("p", "f", (k,), 10 + k % 3) for k in range(count)]
    tasks = shares(parts, workers)
    assert [part for task in tasks for part in task] == parts
    # Two turns each; and a remainder, where parts do not fill a turn.
    assert len(tasks) <= min(count, 3 * workers)
    sizes, rows = [sum(part.rows for part in task) for task in tasks], sum(part.rows for part in parts)
    for size, task in zip(sizes, tasks, strict=True):
        assert len(task) == 1 or size <= 0.75 * rows / workers
    if count > 50:
        # A whole turn of each process, less what one part is too long.
        assert min(sizes[:workers]) >= 0.75 * rows / workers - 12
        assert max(sizes[workers:]) <= 0.25 * rows / workers


def test_a_table_of_one_part_is_read_in_this_process(pool: Any) -> None:
    assert run_parts(Sweep(columns()), PARTS[:1], 2, None).rows == N
    assert pool.asked is None


@pytest.mark.parametrize("error", [None, OSError("gone")])
def test_a_part_that_no_process_has_read_is_noticed(error: Any, pool: Any) -> None:
    pool.most, pool.error = 3, error
    with pytest.raises(InvalidInput, match="workers=1"):
        run_parts(Sweep(columns()), PARTS, 2, None)


def test_no_more_parts_are_read_after_a_refusal_which_is_the_answer(pool: Any) -> None:
    spoiled, told = Rows(1), list[int]()
    spoiled.table = pa.table(values() | {"y": np.full(N, np.inf)})
    found = run_parts(Sweep(columns()), [PARTS[0], spoiled, PARTS[1], PARTS[2]], 2, told.append)
    assert "column 'y' has infinite values" in str(found.refusal)
    assert told == [N]
