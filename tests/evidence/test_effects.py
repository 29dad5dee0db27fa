"""The yardsticks of the page about effect functions: designs, and what counts as reached."""

import numpy as np
import pytest

from discreet.data.columns import Range
from evidence.effects.designs import DESIGNS, draw
from evidence.effects.page import page, verdicts, write_csv
from evidence.effects.runs import IHDP, OPEN, WIDE, Cell, cells, run


@pytest.mark.parametrize("design", DESIGNS)
def test_designs_respect_their_bounds_and_tell_the_truth_about_the_effect(design):
    sample = draw(design, 20_000, 5)
    low, high = sample.bounds.outcome
    assert low <= sample.y.min()
    assert sample.y.max() <= high
    assert set(np.unique(sample.t)) == {0.0, 1.0}
    again = draw(design, 20_000, 5)
    np.testing.assert_array_equal(again.y, sample.y)
    # Regressing on the true effect among the treated, beside an additive baseline, gives a slope of one.
    base = np.column_stack([np.ones(len(sample.x)), sample.x, sample.x**2, sample.t])
    if np.std(sample.tau) > 0.05 and not design.startswith("setup"):
        centred = sample.t * (sample.tau - sample.tau.mean())
        design_matrix = np.column_stack([base, sample.tau, centred])
        slope = np.linalg.lstsq(design_matrix, sample.y, rcond=None)[0][-1]
        assert slope == pytest.approx(1.0, abs=0.3)


def test_wide_bounds_are_ten_times_as_wide_about_the_same_middle_and_leave_records_alone():
    tight, wide = draw("mixed", 500, 1), draw(f"mixed{WIDE}", 500, 1)
    np.testing.assert_array_equal(tight.x, wide.x)
    for before, after in zip(tight.bounds.columns, wide.bounds.columns, strict=True):
        if isinstance(before, Range):
            assert after.high - after.low == pytest.approx(10 * (before.high - before.low))
            assert after.high + after.low == pytest.approx(before.high + before.low)
        else:
            assert after == before


def test_cells_are_named_apart():
    names = [cell.name for cell, _ in cells()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("method", ["CATE", "CATE, DR", "additive"])
def test_a_run_measures_errors_beside_a_constant(method):
    row = run(Cell("dataset-1", 2_700, 2.0, method), 0)
    assert 0.0 < row["mse"] < 1.5
    assert ("constant" in row) == (method == "CATE")
    assert run(Cell("dataset-1", 2_700, 2.0, method), 0) == row


def test_intervals_are_judged_at_one_size():
    row = run(Cell("binary", 10_000, 1.0), 0)
    assert 0.0 <= row["inside"] <= 1.0
    assert row["width"] > 0.0


def _found(**changes):
    """Results in which everything is as wanted, but for what is changed."""
    good = {"mse": 1e-6, "constant": 1.0, "variance": 1.0, "effect_variance": 1.0, "varies": 1.0}
    good |= {"inside": 0.95, "width": 1.0, "posterior": 1.0}
    rows = {cell: [good | {"replication": 0} | changes.get(cell.name, {})] for cell, _ in cells()}
    return {cell: row for cell, row in rows.items() if not cell.design.startswith(IHDP)}


def test_every_target_can_be_reached_and_missed(tmp_path):
    assert all(v.reached for v in verdicts(_found()))
    for name, change, words in [
        ("dataset-2_2700_1_CATE", {"mse": 0.63**2}, "root-PEHE, dataset-2, n = 2,700, ε = 1"),
        ("setup-B_16000_2_CATE", {"mse": 0.9}, "setup B"),
        ("null_10000_0.5_CATE", {"mse": 1.2}, "1.1 times"),
        (
            "step_10000_2_CATE",
            {"inside": 0.85},
            "coverage of 90 % intervals and their width over the shrunk posterior's, step",
        ),
        (
            "step_10000_2_CATE",
            {"width": 20.0},
            "coverage of 90 % intervals and their width over the shrunk posterior's, step",
        ),
        ("binary_wide_bounds_30000_2_CATE", {"mse": 1e-5}, "ten times too wide"),
    ]:
        found = _found(**{name: change})
        missed = [v.target for v in verdicts(found) if not v.reached]
        assert len(missed) == 1
        assert words in missed[0]
        assert "**not reached**" in page(found, "command")
    write_csv(tmp_path / "cate.csv", _found())
    assert len((tmp_path / "cate.csv").read_text().splitlines()) == len(_found()) + 1


def test_what_was_not_run_is_neither_reached_nor_missed():
    found = {cell: rows for cell, rows in _found().items() if cell.design == "dataset-1" and cell.epsilon != OPEN}
    states = {v.target: v.reached for v in verdicts(found)}
    assert states["root-PEHE, dataset-1, n = 2,700, ε = 1"] is True
    assert states["root-PEHE, step, n = 30,000, ε = 2"] is None
