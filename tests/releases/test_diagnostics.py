"""Balance, overlap and omitted confounders: at no cost, in files, on pages; old files and bad arguments are refused."""

import copy
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import ATE, CATE, Bounds, DifferenceInMeans, InvalidInput, MissingExtra, Release, UnsupportedRelease
from discreet.estimators.weighted import average as average_module
from discreet.releases.diagnostics.figures import diagnostic_figures
from discreet.releases.diagnostics.plots import plot_balance, plot_overlap
from discreet.releases.diagnostics.sensitivity import Average, OutcomeFacts, sensitivity_of
from discreet.releases.plots import svg
from discreet.releases.report import kind_of, render_page
from discreet.testing import frozen_noise, seeded_noise
from tests.releases.test_average import a_release

GOLDEN = Path(__file__).parent.parent / "golden" / "releases"
N = 4_000
BOUNDS = Bounds(
    outcome=(-6, 8),
    covariates={"age": (20, 90), "bp": (60, 220), "ward": ["north", "south", "east"], "sex": ["f", "m"]},
    propensity=(0.05, 0.95),
)


def study(n=N, seed=0):
    rng = np.random.default_rng(seed)
    age, bp = rng.normal(55, 12, n).clip(20, 90), rng.normal(130, 18, n).clip(60, 220)
    ward, sex = rng.choice(["north", "south", "east"], n, p=[0.5, 0.3, 0.2]), rng.choice(["f", "m"], n)
    e = 1 / (1 + np.exp(-((age - 55) / 15 + 0.6 * (ward == "east"))))
    t = (rng.random(n) < e).astype(float)
    y = 0.03 * (age - 55) + t + rng.normal(0, 1, n)
    return y, t, pd.DataFrame({"age": age, "bp": bp, "ward": ward, "sex": sex})


def fit(estimator, noise=lambda: seeded_noise(3), n=N):
    y, t, x = study(n)
    with noise():
        return estimator.fit(y, t, X=x).release_


@pytest.fixture(scope="module")
def release():
    return fit(ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS))


@pytest.fixture(scope="module")
def function():
    return fit(CATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS))


def exact(n=N):
    _, t, x = study(n)
    found: dict[tuple[str, str | None], Any] = {}
    for name in ("age", "bp"):
        found[name, None] = (x[name][t == 1].mean() - x[name][t == 0].mean()) / x[name].std(ddof=0)
    for name, levels in (("ward", ("north", "south", "east")), ("sex", ("m",))):
        found |= {(name, own): (x[name] == own)[t == 1].mean() - (x[name] == own)[t == 0].mean() for own in levels}
    return found


# --- no further cost --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [ATE, CATE])
def test_diagnostics_add_no_event_and_change_no_number(estimator, monkeypatch):
    with_them = fit(estimator(epsilon=2.0, delta=1e-6, bounds=BOUNDS)).to_dict()
    monkeypatch.setattr(average_module, "diagnostics_of", lambda *_: None)
    without = fit(estimator(epsilon=2.0, delta=1e-6, bounds=BOUNDS)).to_dict()
    assert with_them.pop("diagnostics")
    assert "diagnostics" not in without
    assert with_them == without


def test_everything_is_computed_from_the_file_alone(release, tmp_path):
    release.save(tmp_path / "ate.json")
    again = discreet.load(tmp_path / "ate.json")
    assert again == release
    assert again.balance() == release.balance()
    assert again.overlap() == release.overlap()
    assert str(again.sensitivity()) == str(release.sensitivity())


# --- balance ----------------------------------------------------------------------------------------------------------


def test_balance_has_a_row_for_each_range_and_level(release):
    rows = release.balance()
    assert [(row["covariate"], row["level"]) for row in rows] == list(exact())
    assert rows[0]["scale"] == pytest.approx(study()[2]["age"].std(), rel=0.15)
    assert pd.DataFrame(rows).shape == (6, 7)


def test_noisy_differences_lie_about_the_exact_ones(release):
    # Of six differences with two sd each, more than one outside is a thousand to one.
    outside = [
        abs(row["before"] - truth) > 2.5 * row["before_sd"]
        for row, truth in zip(release.balance(), exact().values(), strict=True)
    ]
    assert sum(outside) <= 1


def test_with_noise_gone_differences_are_exact_and_adjustment_balances():
    free = fit(ATE(epsilon=200.0, delta=1e-6, bounds=BOUNDS), noise=frozen_noise, n=20_000)
    for row, truth in zip(free.balance(), exact(20_000).values(), strict=True):
        assert row["before"] == pytest.approx(truth, abs=0.02)
        assert abs(row["after"]) < 0.03 or row["after_sd"] > abs(row["after"])
    assert free.balance()[0]["before"] > 0.4


def test_a_function_has_those_of_its_average(function):
    assert [row["covariate"] for row in function.balance()] == ["age", "bp", "ward", "ward", "ward", "sex"]
    assert 0.0 < function.overlap().quantiles[0.05] < function.overlap().quantiles[0.95] < 1.0
    assert function.sensitivity().robustness_value > 0.0


def test_a_trial_has_no_weights_by_a_model_and_needs_none():
    y, _, x = study(20_000)
    t = np.random.default_rng(8).integers(0, 2, 20_000)
    with seeded_noise(4):
        trial = ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS, propensity=0.5).fit(y, t, X=x).release_
    assert {row["after"] for row in trial.balance()} == {None}
    assert all(abs(row["before"]) < 4 * row["before_sd"] for row in trial.balance())
    with pytest.raises(UnsupportedRelease, match="known probabilities, so that none were fitted"):
        trial.overlap()
    with pytest.raises(UnsupportedRelease, match="no covariate that was left out can bias"):
        trial.sensitivity()
    assert len(diagnostic_figures(trial)) == 1


def test_a_single_covariate_of_a_trial_was_asked_nothing_about():
    y, _, x = study(20_000)
    t = np.random.default_rng(8).integers(0, 2, 20_000)
    bounds = Bounds(outcome=(-6, 8), covariates={"age": (20, 90)})
    with seeded_noise(4):
        trial = ATE(epsilon=2.0, delta=1e-6, bounds=bounds, propensity=0.5).fit(y, t, X=x[["age"]]).release_
    with pytest.raises(UnsupportedRelease, match="balanced by design"):
        trial.balance()


def test_a_difference_of_means_says_that_it_knows_no_covariates():
    y, t, _ = study()
    with seeded_noise(1):
        means = DifferenceInMeans(epsilon=1.0, bounds=Bounds(outcome=(-6, 8))).fit(y, t).release_
    for ask in (means.balance, means.overlap, means.plot_balance, means.plot_overlap):
        with pytest.raises(UnsupportedRelease, match="adjusts for no covariates"):
            ask()
    assert means.diagnostics is None
    assert "balance" not in means.summary()


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["discreet-release.v1", "discreet-effect-release.v3", "discreet-effect-release.v1"])
def test_old_files_have_none_and_say_so(name):
    old = discreet.load(GOLDEN / f"{name}.json")
    assert old.diagnostics is None
    assert old.arms_in_words() == []
    for ask in (old.balance, old.overlap):
        with pytest.raises(UnsupportedRelease, match="an earlier version of discreet, which did not keep them"):
            ask()


@pytest.mark.parametrize("name", ["discreet-release.v1-diagnosed", "discreet-effect-release.v3-diagnosed"])
def test_files_with_diagnostics_are_read_for_ever(name):
    kept = discreet.load(GOLDEN / f"{name}.json")
    rows = kept.balance()
    assert [(row["covariate"], row["level"]) for row in rows] == [("age", None), ("sex", "m")]
    assert kept.overlap().edges[-1] == 1.0
    assert json.loads((GOLDEN / f"{name}.json").read_text())["diagnostics"] == kept.diagnostics


def test_an_older_function_without_a_measured_average_has_no_sensitivity():
    old = discreet.load(GOLDEN / "discreet-effect-release.v1.json")
    with pytest.raises(UnsupportedRelease, match="did not measure the average effect by itself"):
        old.sensitivity()


@pytest.mark.parametrize(
    "edit",
    [
        lambda kept: kept | {"more": 1},
        lambda kept: {name: part for name, part in kept.items() if name != "outcome"},
        lambda kept: kept | {"outcome": {"mean": 0.0, "sd": -1.0}},
        lambda kept: kept | {"balance": {}},
        lambda kept: kept | {"balance": kept["balance"] | {"before": [0.0]}},
        lambda kept: kept | {"balance": {name: [] for name in kept["balance"]}},
        lambda kept: kept | {"balance": kept["balance"] | {"before_sd": [-1.0] * 6}},
        lambda kept: kept | {"balance": kept["balance"] | {"before": ["much"] * 6}},
        lambda kept: kept | {"balance": kept["balance"] | {"after": [None] * 6}},
        lambda kept: kept | {"overlap": 3},
        lambda kept: kept | {"overlap": kept["overlap"] | {"trim": [0.1]}},
        lambda kept: kept | {"overlap": kept["overlap"] | {"shares": {"all": [1.0]}}},
        lambda kept: kept | {"overlap": kept["overlap"] | {"quantiles": [[0.5, 0.5]]}},
        lambda kept: [],
    ],
)
def test_an_edited_file_is_refused(release, edit):
    plain = release.to_dict()
    plain["diagnostics"] = edit(copy.deepcopy(plain["diagnostics"]))
    with pytest.raises(InvalidInput, match=r"check the file|plain JSON"):
        Release.from_dict(plain)


# --- omitted confounders ----------------------------------------------------------------------------------------------


def average(estimate=1.0, half=0.5, score_sd=5.0):
    return Average(estimate, lambda alpha: (estimate - half, estimate + half), score_sd)


@pytest.mark.parametrize("estimate", [1.0, -1.0, 1e-9, 40.0])
def test_a_confounder_as_strong_as_the_robustness_value_brings_the_estimate_to_zero(estimate):
    value = sensitivity_of(average(estimate), None, treatment=0.1, outcome=0.1, alpha=0.05).robustness_value
    assert 0.0 < value < 1.0
    moved = sensitivity_of(average(estimate), None, treatment=value, outcome=value, alpha=0.05)
    assert moved.bias == pytest.approx(abs(estimate), rel=1e-6)


def test_a_confounder_as_strong_as_that_of_the_interval_brings_its_end_to_zero():
    value = sensitivity_of(average(), None, treatment=0.1, outcome=0.1, alpha=0.05).robustness_value_of_interval
    assert sensitivity_of(average(), None, treatment=value, outcome=value, alpha=0.05).robust_interval[
        0
    ] == pytest.approx(0)
    assert "includes zero without any" in str(
        sensitivity_of(average(half=2.0), None, treatment=0.1, outcome=0.1, alpha=0.05)
    )


def test_no_confounder_moves_nothing_and_stronger_ones_move_more():
    found = [
        sensitivity_of(average(), None, treatment=part, outcome=0.3, alpha=0.05).bias for part in (0.0, 0.1, 0.5, 0.9)
    ]
    assert found[0] == 0.0
    assert found == sorted(found)


def test_e_values_are_those_of_the_literature():
    # VanderWeele and Ding (2017): a risk ratio of 3.9 has an E-value of 7.26.
    facts = OutcomeFacts(mean=0.2, sd=0.4, treated=0.5, binary=True)
    effect = 0.4 * (3.9 - 1) / (3.9 + 1)
    found = sensitivity_of(average(effect, half=2 * effect), facts, treatment=0.1, outcome=0.1, alpha=0.05)
    assert found.e_value == pytest.approx(7.26, abs=0.01)
    assert found.e_value_of_interval == 1.0
    spread_out = OutcomeFacts(mean=0.0, sd=1.0, treated=0.5, binary=False)
    by_size = sensitivity_of(average(math.log(3.9) / 0.91), spread_out, treatment=0.1, outcome=0.1, alpha=0.05)
    assert by_size.e_value == pytest.approx(7.26, abs=0.01)


def test_sensitivity_works_for_old_files_but_for_e_values():
    found = a_release().sensitivity()
    assert found.e_value is None
    assert found.interval == a_release().interval()
    assert found.bias > 0.0
    assert "E-value" not in str(found)


@pytest.mark.parametrize("given", [{"treatment": 1.0}, {"treatment": -0.1}, {"outcome": "much"}, {"outcome": math.nan}])
@pytest.mark.parametrize("boolean", [False, True])
def test_parts_of_a_variance_are_refused_where_they_are_none(given, boolean):
    (name,) = given
    with pytest.raises(InvalidInput, match=f"{name} must be a part of its variance"):
        a_release().sensitivity(**({name: True} if boolean else given))


@pytest.mark.parametrize("alpha", [0.0, 1.0, "small", True])
def test_levels_are_refused_where_they_are_none(alpha):
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        a_release().sensitivity(alpha=alpha)


# --- plots, words and pages -------------------------------------------------------------------------------------------


def test_plots_draw_on_given_axes(release):
    from matplotlib.figure import Figure

    for plot in (release.plot_balance, release.plot_overlap):
        ax = Figure().subplots()
        assert plot(ax=ax) is ax
    text = svg(dict(enumerate(diagnostic_figures(release)))[0][1], "balance")
    assert "ward = east" in text
    assert "after adjustment" in text


def test_without_axes_pyplot_makes_a_figure(release):
    from matplotlib import pyplot

    before = set(pyplot.get_fignums())
    axes = [release.plot_balance(), release.plot_overlap()]
    assert len(set(pyplot.get_fignums()) - before) == 2
    for ax in axes:
        pyplot.close(ax.figure)


def test_many_rows_are_cut_to_the_largest(release):
    from matplotlib.figure import Figure

    row = release.balance()[0]
    rows = [row | {"covariate": f"x{k}", "before": k / 100} for k in range(90)]
    labels = [label.get_text() for label in plot_balance(rows, Figure().subplots()).get_yticklabels()]
    assert labels[0] == "x89"
    assert len(labels) == 40


def test_without_matplotlib_the_error_names_the_extra(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plot, what in ((plot_balance, release.balance()), (plot_overlap, release.overlap())):
        with pytest.raises(MissingExtra, match=r"discreet\[plots\]"):
            plot(what)


def test_summary_and_pages_have_a_line_and_a_figure_for_each(release, function):
    for shown in (release, function):
        assert "clearest differences: before adjustment age" in shown.summary()
        assert "after none beyond two sd" in shown.summary()
        assert "fitted probabilities" in shown.summary()
        page = render_page(shown)
        assert "How the arms differ in their covariates" in page
        assert "Fitted probabilities of treatment in either arm" in page
        kind = kind_of(shown)
        assert {"balance", "overlap"} <= {name for name, _ in kind.facts(shown)["numbers"]}
        captions = [caption for caption, _ in kind.figures(shown, 4)]
        assert sum("arm" in caption for caption in captions) == 2
        assert len(kind.figures(shown, 1)) == 1
