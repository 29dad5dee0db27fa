"""The page on models from a sample: what it says follows from its runs, and misses are printed as misses."""

import pytest

from discreet.estimators import _allocation
from evidence import samples
from evidence.samples import Run, page, without_sample, write


def runs(half=0.1, error=0.05, wider=1.05):
    few = [Run("number", k, "a sample", 1.0 + error, 1.0 + error - half, 1.0 + error + half, 1.0) for k in range(20)]
    whole = half / wider
    both = [one._replace(models_from="all records", low=1.0 - whole, high=1.0 + whole) for one in few[:2]]
    return [*few, *both]


@pytest.mark.parametrize(
    ("found", "missed"),
    [(runs(), 0), (runs(error=0.2), 2), (runs(wider=1.5), 1)],
)
def test_misses_are_misses(found, missed, tmp_path):
    assert page(found, 9).count("**not reached**") == missed
    write(found, 9, tmp_path)
    assert len((tmp_path / "samples.csv").read_text().splitlines()) == 1 + len(found)


def test_a_whole_fit_leaves_the_rule_as_it_was():
    kept = _allocation.SAMPLE
    with without_sample():
        assert _allocation.SAMPLE.by_place > 1e300
    assert _allocation.SAMPLE is kept


def test_a_fit_that_is_not_what_it_is_called_ends_the_run(monkeypatch):
    with pytest.raises(SystemExit, match="not fitted to a sample"):
        list(samples.studies(2_000, 1, 0))
