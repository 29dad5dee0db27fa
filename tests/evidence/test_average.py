"""The simulations' own arithmetic: if the yardsticks were bent, so would every verdict be."""

import json
from dataclasses import replace

import numpy as np
import pytest

from discreet.data.bounds import Range
from discreet.datasets import draw
from evidence import cache
from evidence.average.coverage import ALPHAS, BOOSTED, LINEAR, OURS, Cell, Summary
from evidence.average.nonprivate import difference_of_means, linear_aipw, linear_nuisances, linear_scores
from evidence.average.private_ci_formula import largest_and_smallest_score, observed_domain, private_ci
from evidence.average.targets import Table, judge, judged_coverage


def summary(method, *, epsilon=None, coverage=0.95, width=1.0, replications=100, design="setup-a", n=30_000):
    """A made-up line of results."""
    return Summary(
        design=design,
        n=n,
        method=method,
        epsilon=epsilon,
        replications=replications,
        coverage=dict.fromkeys(ALPHAS, coverage),
        width=dict.fromkeys(ALPHAS, width),
        bias=0.0,
        sd=1.0,
        components={},
    )


def table(*lines):
    """Made-up lines as a run's results."""
    return Table(lines={Cell("setup-a", 30_000): lines})


def test_linear_aipw_removes_confounding_that_the_difference_of_means_keeps():
    study = draw("correlated", 20_000, 41)
    adjusted, naive = linear_aipw(study), difference_of_means(study)
    assert abs(adjusted.estimate - study.ate) < 4 * adjusted.se
    assert abs(naive.estimate - study.ate) > 10 * naive.se


@pytest.mark.parametrize("design", ["private-ci-1", "correlated", "clinic"])
def test_no_record_within_bounds_has_a_score_beyond_the_computed_extremes_and_some_come_close(design):
    study = draw(design, 1_000, 42)
    nuisances, rng, m = linear_nuisances(study), np.random.default_rng(0), 20_000

    def column(spec):
        if not isinstance(spec, Range):
            return rng.choice(spec.levels, m)
        return spec.low + spec.width * np.clip(rng.uniform(-1, 2, m), 0, 1)

    X = np.column_stack([column(spec) for spec in study.bounds.columns])
    scores = np.concatenate(
        [
            linear_scores(replace(study, X=X, T=np.full(m, arm), Y=np.full(m, y)), nuisances)
            for arm in (0.0, 1.0)
            for y in study.bounds.outcome
        ]
    )
    largest, smallest = largest_and_smallest_score(study, nuisances)
    # The grid of propensities may miss the extreme by a hair.
    assert 0.95 * largest < scores.max() < 1.001 * largest
    assert 1.001 * smallest < scores.min() < 0.95 * smallest


def test_the_published_interval_shrinks_with_the_budget_and_on_the_kinder_domain():
    study = draw("private-ci-1", 3_000, 43)

    def width(domain):
        rng = np.random.default_rng(0)
        return private_ci(domain, epsilon=[0.5, 1.0], delta=1e-5, alpha=ALPHAS, rng=rng).half_width

    declared, observed = width(study), width(observed_domain(study))
    assert declared.shape == (2, len(ALPHAS))
    assert (np.diff(declared, axis=0) < 0).all()
    assert (np.diff(declared, axis=1) > 0).all()
    assert (observed < declared).all()


def test_the_yardstick_is_the_narrower_method_that_covers():
    narrow_and_wrong = summary(LINEAR, coverage=0.5, width=0.5)
    assert table(summary(BOOSTED), narrow_and_wrong).non_private("setup-a", 30_000).method == BOOSTED
    assert table(summary(BOOSTED), summary(LINEAR, width=0.5)).non_private("setup-a", 30_000).method == LINEAR
    assert table(summary(BOOSTED, coverage=0.6), narrow_and_wrong).non_private("setup-a", 30_000).method == BOOSTED


def test_coverage_is_judged_by_the_smaller_of_nominal_and_boosted():
    def failures(ours, boosted):
        lines = table(summary(BOOSTED, coverage=boosted), summary(OURS, epsilon=1.0, coverage=ours))
        judged = judged_coverage(lines, ["setup-a"], errors=2, beside_boosted=True)
        return [alpha for _, alpha, _, failed in judged if failed]

    assert failures(ours=0.95, boosted=0.95) == []
    assert failures(ours=0.88, boosted=1.0) == [0.05]
    assert failures(ours=0.60, boosted=0.65) == []
    assert failures(ours=0.50, boosted=0.65) == list(ALPHAS)


def test_a_width_above_its_limit_is_not_reached_and_a_missing_cell_is_not_run():
    lines = table(summary(BOOSTED), summary(LINEAR), summary(OURS, epsilon=1.0, width=1.4))
    verdicts = {verdict.target: verdict.word for verdict in judge(lines)}
    assert verdicts["Width, setup-a, n = 30,000, ε = 1"] == "**not reached**"
    assert verdicts["Width, setup-b, n = 30,000, ε = 1"] == "not run"


def test_an_interrupted_run_keeps_whole_lines_and_drops_half_of_one(tmp_path):
    path = tmp_path / "cell.jsonl"
    cache.Results(path).add({"replication": 0, "ate": 1.0})
    with path.open("a") as file:
        file.write(json.dumps({"replication": 1, "ate": 1.0})[:10])
    resumed = cache.Results(path)
    assert set(resumed.rows) == {0}
    resumed.add({"replication": 1, "ate": 1.0})
    assert set(cache.Results(path).rows) == {0, 1}


def test_code_changes_the_fingerprint_and_comments_do_not(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    path = tmp_path / "module.py"

    def of(text):
        path.write_text(text)
        return cache.fingerprint("settings", [path])

    first = of('"""Say."""\nx = 1\n')
    assert of('"""Say it differently."""\n# why\nx = 1\n') == first
    assert of('"""Say."""\nx = 2\n') != first
    assert cache.fingerprint("other settings", [path]) != first
