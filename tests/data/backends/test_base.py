"""What every backend owes to privacy, tried on one whose rows change exactly as a test says."""

from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from discreet.data._arrays import IntArray
from discreet.data.backends import base
from discreet.data.backends.base import Capabilities, Groups, TableRecords, quoted, types_of, unusable
from discreet.data.backends.scan import Columns, Sweep, Tally
from discreet.data.bounds import Bounds
from discreet.data.filters import Condition, Half
from discreet.data.partition import Partition
from discreet.data.records import Chunk, Unit
from discreet.data.sampling import Sample
from discreet.exceptions import InvalidInput, SourceFailed

BOUNDS = Bounds(outcome=(0, 1), covariates={"x": (0, 1)})
N = 40
CHANGED = "changed while they were being read"


def rows(n: int = N, **changes: Any) -> pa.Table:
    facts = {"y": np.arange(n) / n, "t": np.arange(n) % 2, "x": np.arange(n) / n, "id": np.arange(n)}
    return pa.table(facts | changes)


class Rows:
    """A source whose rows, counts and groups are what a test puts there."""

    capabilities: Any = Capabilities()

    def __init__(self, table: pa.Table, groups: Groups | None = None, known: int | None = None) -> None:
        self.table, self.groups, self.known = table, groups, known
        self.most = 1
        self.passes = self.counted = self.closed = 0

    def run(self, sweep: Sweep, progress: Any = None) -> Tally:
        self.passes += 1
        return sweep(self.table.select(list(sweep.columns.wanted)).to_batches(max_chunksize=7), progress)

    def count(self, columns: Columns) -> int | None:
        return self.known

    def group(self, columns: Columns, partition: Any, formulas: Any) -> Groups | None:
        return self.groups

    def most_rows(self, columns: Columns) -> int:
        self.counted += 1
        return self.most

    def close(self) -> None:
        self.closed += 1


def columns(**more: Any) -> Columns:
    return Columns(bounds=BOUNDS, outcome="y", treatment="t", covariates=("x",), **more)


def counts(control: int, treated: int) -> Groups:
    return Groups(np.array([[control, treated]]), (), usable=True)


def added_up(chunk: Chunk) -> IntArray:
    """Sums that tell any two sets of rows apart, and need covariates as float64."""
    assert chunk.x.dtype == np.float64
    return np.rint([len(chunk.t), chunk.t.sum(), 1e6 * chunk.y.sum(), 1e6 * chunk.x.sum()]).astype(np.int64)


SWAPPED = np.arange(N) % 2
SWAPPED[[0, 1]] = [1, 0]
OTHERS = {
    "a row more": rows(N + 1),
    "another arm": rows(t=np.where(np.arange(N) == 0, 1, np.arange(N) % 2)),
    "arms exchanged": rows(t=SWAPPED),
    "another outcome": rows(y=np.where(np.arange(N) == 3, 0.5, np.arange(N) / N)),
    "another covariate": rows(x=np.where(np.arange(N) == 3, 0.5, np.arange(N) / N)),
}


@pytest.mark.parametrize("known", [None, N])
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_a_pass_that_sees_other_rows_than_the_first_is_refused(other: pa.Table, known: int | None) -> None:
    source = Rows(rows(), known=known)
    records = TableRecords(columns(), source)
    first = records.sum(added_up)
    np.testing.assert_array_equal(records.sum(added_up), first)
    source.table = other
    with pytest.raises(SourceFailed, match=rf"{CHANGED}.*stays spent"):
        records.sum(added_up)


@pytest.mark.parametrize("known", [N - 1, N + 1])
def test_a_first_pass_that_sees_more_or_fewer_rows_than_were_counted_is_refused(known: int) -> None:
    # Nothing was spent yet, so that this is no failure of the source, but of what was handed over.
    with pytest.raises(InvalidInput, match=CHANGED):
        TableRecords(columns(), Rows(rows(), known=known)).sum(added_up)


def test_rows_are_counted_by_a_pass_where_nothing_else_says_how_many_there_are() -> None:
    for known, passes in ((None, 1), (0, 1), (N, 0)):
        source = Rows(rows(), known=known)
        assert (TableRecords(columns(), source).n, source.passes) == (N, passes)
    halves = columns(where=(Condition("id", half=Half(1, 0, False)),))
    source = Rows(rows(), counts(20, 20), known=N)
    records = TableRecords(halves, source)
    assert 0 < records.n < N
    assert source.passes == 1
    # An engine cannot say which rows a hash chooses.
    assert records.group_sums(None, ()) is None


def test_a_refusal_is_passed_on_and_says_what_was_spent() -> None:
    spoiled = rows(y=np.where(np.arange(N) == 3, np.nan, 0.5))
    with pytest.raises(InvalidInput, match="column 'y' has missing values"):
        TableRecords(columns(), Rows(spoiled))
    source = Rows(rows())
    records = TableRecords(columns(), source)
    source.table = spoiled
    with pytest.raises(SourceFailed, match=r"column 'y' has missing values.*stays spent"):
        records.sum(added_up)


def test_too_little_memory_for_a_batch_is_a_sentence_that_says_what_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise MemoryError("17 GiB for an array of shape (31337, 2)")

    records = TableRecords(columns(), Rows(rows()))
    monkeypatch.setattr(Rows, "run", full)
    with pytest.raises(SourceFailed, match=r"too little memory for a batch of rows: .*stays spent"):
        records.sum(added_up)
    with pytest.raises(InvalidInput, match="too little memory for a batch of rows: give") as refused:
        TableRecords(columns(), Rows(rows()))
    assert "spent" not in str(refused.value)


def test_too_few_rows_and_an_empty_arm_are_refused_in_sweeps_and_in_groups() -> None:
    with pytest.raises(InvalidInput, match="fewer than 10"):
        TableRecords(columns(), Rows(rows(9)))
    with pytest.raises(InvalidInput, match="One arm is empty"):
        TableRecords(columns(), Rows(rows(), counts(0, N), known=N)).group_sums(None, ())
    with pytest.raises(InvalidInput, match="fewer than 10"):
        TableRecords(columns(), Rows(rows(), counts(4, 5), known=9)).group_sums(None, ())


@pytest.mark.parametrize(("control", "treated"), [(20, 21), (21, 20), (19, 21), (21, 19)])
def test_groups_that_are_of_other_rows_than_the_first_pass_are_refused(control: int, treated: int) -> None:
    source = Rows(rows(), counts(20, 20))
    records = TableRecords(columns(), source)
    np.testing.assert_array_equal(records.group_sums(None, ()), [[[20, 20]]])
    fresh = TableRecords(columns(), source)
    source.groups = counts(control, treated)
    for each in (records, fresh):
        with pytest.raises(SourceFailed, match=rf"{CHANGED}.*stays spent"):
            each.group_sums(None, ())


def test_groups_of_more_rows_than_were_counted_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(InvalidInput, match=CHANGED):
        TableRecords(columns(), Rows(rows(), counts(20, 21), known=N)).group_sums(None, ())


def test_a_first_sweep_after_groups_sees_the_arms_that_these_had() -> None:
    source = Rows(rows(), counts(20, 20), known=N)
    records = TableRecords(columns(), source)
    records.group_sums(None, ())
    assert records.sum(added_up)[0] == N
    source = Rows(rows(), counts(19, 21), known=N)
    records = TableRecords(columns(), source)
    records.group_sums(None, ())
    with pytest.raises(SourceFailed, match=CHANGED):
        records.sum(added_up)


def test_cells_may_differ_between_partitions_and_not_between_rounds() -> None:
    cells = [Groups(np.array(found), (), usable=True) for found in ([[20, 0], [0, 20]], [[0, 20], [20, 0]])]
    halves, thirds = Partition.of({"x": 2}, BOUNDS), Partition.of({"x": [0, 0.3, 1]}, BOUNDS)
    source = Rows(rows(), cells[0], known=N)
    records = TableRecords(columns(), source)
    np.testing.assert_array_equal(records.group_sums(halves, ()), [cells[0].counts])
    source.groups = cells[1]
    np.testing.assert_array_equal(records.group_sums(thirds, ()), [cells[1].counts])
    source.groups = cells[0]
    with pytest.raises(SourceFailed, match=CHANGED):
        records.group_sums(thirds, ())


@pytest.mark.parametrize("wrong", [unusable(), counts(20, 19), Groups(np.array([[20, 20]]), (), usable=False)])
def test_groups_without_some_rows_are_no_answer_whatever_a_sweep_finds(wrong: Groups) -> None:
    source = Rows(rows(), wrong, known=N)
    with pytest.raises(InvalidInput, match="in two ways"):
        TableRecords(columns(), source).group_sums(None, ())
    source.table = rows(y=np.full(N, np.inf))
    with pytest.raises(InvalidInput, match="column 'y' has infinite values"):
        TableRecords(columns(), source).group_sums(None, ())


def test_an_engine_that_cannot_add_up_leaves_it_to_a_sweep() -> None:
    assert TableRecords(columns(), Rows(rows())).group_sums(None, ()) is None


def test_groups_are_whole_numbers_in_the_order_of_the_formulas_and_progress_is_told() -> None:
    told: list[int] = []
    first, second = (np.array([[value, value + 1]], dtype=np.int32) for value in (3, 5))
    source = Rows(rows(), Groups(np.array([[20, 20]], dtype=np.uint8), (first, second), usable=True), known=N)
    found = TableRecords(columns(), source).group_sums(None, (), told.append)
    assert found is not None
    assert (found.tolist(), found.dtype) == ([[[20, 20]], [[3, 4]], [[5, 6]]], np.dtype(np.int64))
    assert told == [N]
    assert (unusable().counts.dtype, unusable().usable) == (np.dtype(np.int64), False)


@pytest.mark.parametrize("snapshot", [True, False])
def test_units_are_counted_again_in_the_rows_that_are_added_up_unless_these_cannot_change(snapshot: bool) -> None:
    for known in (None, N):
        source = Rows(rows(), counts(20, 20), known=known)
        source.capabilities = Capabilities(snapshot=snapshot)
        records = TableRecords(columns(unit=Unit("id", 1)), source)
        assert source.counted == 1
        records.sum(added_up)
        # Where a pass came before the units were counted, its checksum holds later passes to the same rows.
        again = 0 if snapshot or known is None else 1
        assert source.counted == 1 + again
        records.sum(added_up)
        assert source.counted == 1 + again
        records.group_sums(None, ())
        assert source.counted == 1 + again + (not snapshot)


def test_a_unit_has_no_more_rows_than_declared() -> None:
    source = Rows(rows(), counts(20, 20), known=N)
    source.most = 2
    with pytest.raises(InvalidInput, match="more rows than the 1 declared"):
        TableRecords(columns(unit=Unit("id", 1)), source)
    for asked in (lambda records: records.sum(added_up), lambda records: records.group_sums(None, ())):
        source.most = 2
        records = TableRecords(columns(unit=Unit("id", 2)), source)
        source.most = 3
        with pytest.raises(InvalidInput, match="more rows than the 2 declared"):
            asked(records)


def test_a_source_is_closed_if_its_records_cannot_be_used_and_otherwise_by_its_owner() -> None:
    spoiled, good = Rows(rows(5)), Rows(rows())
    with pytest.raises(InvalidInput):
        TableRecords.opened(columns(), spoiled)
    records = TableRecords.opened(columns(), good)
    assert (spoiled.closed, good.closed) == (1, 0)
    records.close()
    assert good.closed == 1


def test_records_say_what_their_source_and_columns_do() -> None:
    source = Rows(rows())
    plain, filtered = columns(), columns(where=(Condition("x", low=0.0),), unit=Unit("id", 1))
    assert TableRecords(plain, source).public == ()
    assert TableRecords(filtered, source).public == ("the filter that chose the records",)
    assert (TableRecords(plain, source).unit, TableRecords(filtered, source).unit) == (None, Unit("id", 1))
    assert not TableRecords(plain, source).ordered
    source.capabilities = Capabilities(ordered=True)
    assert TableRecords(plain, source).ordered


def test_without_a_column_to_choose_by_there_is_no_sample() -> None:
    assert TableRecords(columns(), Rows(rows())).sample(0.5, 20.0) is None


def sampled(remote: bool, part: float = 0.5, unit: Unit | None = None) -> Any:
    source = Rows(rows())
    source.capabilities = Capabilities(remote=remote)
    return TableRecords(columns(sample_by="id", unit=unit), source).sample(part, part * N)


@pytest.mark.parametrize("unit", [None, Unit("id", 1)])
def test_a_sample_is_the_same_whether_it_is_kept_or_looked_for_in_every_pass(unit: Unit | None) -> None:
    kept, swept = sampled(False, unit=unit), sampled(True, unit=unit)
    assert isinstance(kept, Sample)
    assert not hasattr(swept, "kept")
    np.testing.assert_array_equal(kept.sum(added_up), swept.sum(added_up))
    assert 0 < kept.sum(added_up)[0] < N
    for each in (kept, swept):
        # How many rows it has is private.
        assert (each.n, each.bounds, each.public) == (N, BOUNDS, ())
        assert each.unit == (Unit("record", 1) if unit is None else unit)
        assert each.sample(0.5, 1.0) is None
        assert each.group_sums(None, ()) is None
        each.close()


@pytest.mark.parametrize("remote", [True, False])
def test_a_sample_of_no_rows_adds_up_to_zeros(remote: bool) -> None:
    np.testing.assert_array_equal(sampled(remote, 0.0).sum(added_up), [0, 0, 0, 0])


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_a_sample_is_kept_up_to_the_most_numbers(spare: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # A covariate, and six numbers for outcome, arm and probability, which count double.
    monkeypatch.setattr(base, "KEPT_NUMBERS", 20 * 7 + spare)
    assert isinstance(sampled(False), Sample) == kept


def test_progress_of_a_sample_is_told_in_rows_of_the_table() -> None:
    told: list[int] = []
    records = TableRecords(columns(sample_by="id"), Rows(rows()))
    found = records.sample(0.5, 20.0, told.append)
    assert sum(told) == N
    remote = sampled(True)
    remote.sum(added_up, told.append)
    assert sum(told) == 2 * N
    assert found is not None
    assert not remote.ordered


def test_numbers_to_choose_by_that_change_are_noticed() -> None:
    source = Rows(rows())
    source.capabilities = Capabilities(remote=True)
    records = TableRecords(columns(sample_by="id"), source)
    some: Any = records.sample(0.5, 20.0)
    some.sum(added_up)
    source.table = rows(id=np.arange(N) + 128)
    with pytest.raises(SourceFailed, match=CHANGED):
        some.sum(added_up)


def test_a_quotation_mark_in_a_columns_name_is_doubled() -> None:
    assert quoted('the "ward"') == '"the ""ward"""'


def test_names_that_differ_in_case_alone_are_one_name_and_refused() -> None:
    assert types_of(duckdb.sql('SELECT 1 AS "ß", 2.5::DOUBLE AS "SS"')) == {"ß": "integer", "SS": "double"}
    with pytest.raises(InvalidInput, match="apart from case"):
        types_of(duckdb.sql('SELECT 1 AS "Y"').project('"Y", 2 AS "y"'))
