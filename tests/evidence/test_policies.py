"""The page about policies: its arithmetic, and that a miss is printed as a miss."""

import numpy as np
import pytest

from discreet.datasets import criteo_shaped
from evidence.policies import page as pages
from evidence.policies import runs


@pytest.fixture
def small(monkeypatch):
    """One small made-up trial in place of all."""
    trial = runs.TRIALS["criteo"]._replace(load=lambda: criteo_shaped(6_000, 5), by={"f8": 2, "f9": 2})
    monkeypatch.setattr(runs, "TRIALS", {"criteo": trial})
    monkeypatch.setattr(pages, "TRIALS", {"criteo": trial})
    monkeypatch.setattr(runs, "SMALL", 2_000)
    monkeypatch.setattr(runs, "PEOPLE", 5_000)
    for cached in (runs.loaded, runs._people):
        cached.cache_clear()
    runs._KEPT.clear()
    yield trial
    for cached in (runs.loaded, runs._people):
        cached.cache_clear()
    runs._KEPT.clear()


def test_a_split_has_a_value_for_every_method_and_case(small):
    lines = list(runs.split(0, functions=False))
    methods = {line.method for line in lines if line.measure == "value"}
    assert methods == {runs.PRIVATE, runs.SAME, *pages.LEARNERS, "by lot"}
    assert {line.case for line in lines} == set(map(str, runs.cases(small)))
    assert all(np.isfinite(line.value) for line in lines)
    for line in lines:
        if line.measure == "share" and line.case.startswith("capacity"):
            assert line.value <= float(line.case.split()[1]) + 0.03


def test_a_bound_is_compared_with_the_truth_of_many_people(small):
    found = [bound for k in range(3) for bound in runs.bounded(k)]
    assert all(bound.at_choice <= bound.expected and bound.elsewhere <= bound.value for bound in found)


@pytest.mark.parametrize(("ratio", "word"), [(0.9, "**not reached**"), (0.97, "| reached |")])
def test_a_miss_is_printed_as_a_miss(small, ratio, word):
    lines = []
    for case in map(str, runs.cases(small)):
        for k in range(4):
            for method, value in ((runs.PRIVATE, ratio * (k + 1)), (runs.SAME, k + 1.0), ("by lot", 0.1)):
                lines.append(runs.Line("criteo", case, method, k, "value", value))
            lines += [runs.Line("criteo", case, method, k, "value", 1.0) for method in pages.LEARNERS]
            lines.append(runs.Line("criteo", case, runs.PRIVATE, k, "share", 0.2))
    bounds = [runs.Bound("cost 0.02", 1.0, 2.0, 0.5, 1.1, 0.9 if k else 1.2) for k in range(50)]
    shown = pages.page(pages.Found(lines), bounds, {"splits": 4, "functions": 0, "bounds": 50}, 1.0)
    assert shown.count(word) >= 3
    assert f"{ratio:.3f} ± 0.000" in shown
    assert "| cost 0.02 | 50 | 1.00000 | 2.00000 | 1.000 | 0.50000 | 1.10000 | 0.980 | 0.90600 |" in shown


def test_what_treating_gains_is_by_true_effects_or_by_the_trial():
    study = criteo_shaped(4_000, 3)
    chosen = np.arange(4_000) < 1_000
    assert runs.gain(study, chosen, 0.01, 0.85) == pytest.approx(np.sum(study.effects[:1_000] - 0.01) / 4_000)
    blind = type(study)(name="x", X=study.X, T=study.T, Y=study.Y, bounds=study.bounds)
    t, y = study.T[:1_000], study.Y[:1_000]
    assert runs.gain(blind, chosen, 0.01, 0.85) == pytest.approx(0.25 * (y[t == 1].mean() - y[t == 0].mean() - 0.01))
    assert runs.gain(blind, np.zeros(4_000, dtype=bool), 0.01, 0.85) == 0.0
