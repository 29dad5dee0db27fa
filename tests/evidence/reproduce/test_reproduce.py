"""Reproductions: nothing is run twice or for too long, and pages say what was found."""

import ast
import csv
import json
import os
import shutil
import time
from dataclasses import replace
from datetime import date
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from discreet import InvalidInput
from discreet.cli import app
from discreet.datasets import rhc
from discreet.papers.private_ate import baselines
from discreet.papers.private_ate.equations import Exact
from evidence.reproduce import cache, find, papers, runner
from evidence.reproduce.pages import Aim, Page, axes, falls, nominal, share, write
from evidence.reproduce.private_ate import runs, tables
from evidence.reproduce.private_ate.catheter import over_unit_cube
from evidence.reproduce.propensity import pages as propensity_pages
from evidence.reproduce.propensity import runs as propensity_runs
from evidence.reproduce.targets import Target

CALLS = []
DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[4] / "shared" / "data"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="real studies are no part of this project; set DISCREET_DATA")


def count(cell, replication):
    """A run that remembers that it was called."""
    CALLS.append((cell, replication))
    return {"value": 10.0 * replication + len(cell)}


def slowly(cell, replication):
    time.sleep(0.05)
    return {}


def target(run=count, replications=3):
    return Target(
        name="t",
        title="T",
        experiment="e",
        run=run,
        cells=lambda full: ("a", "bb"),
        replications=lambda full: replications,
        page=lambda results: None,  # type: ignore[return-value]
    )


def collect(given, folder, **options):
    return runner.collect(given, paper="p", full=False, cache=folder, **({"processes": 1} | options))


@pytest.fixture(autouse=True)
def _forget():
    CALLS.clear()


def test_rows_come_by_cell_in_order(tmp_path):
    results = collect(target(), tmp_path)
    assert [row["value"] for row in results["bb"]] == [2.0, 12.0, 22.0]
    assert [row["replication"] for row in results["a"]] == [0, 1, 2]


def test_a_second_run_continues_and_repeats_nothing(tmp_path):
    collect(target(replications=2), tmp_path)
    results = collect(target(replications=4), tmp_path)
    assert len(CALLS) == len(set(CALLS)) == 8
    assert len(results["a"]) == 4


def test_fewer_replications_are_taken_from_what_is_there(tmp_path):
    collect(target(replications=4), tmp_path)
    assert len(collect(target(replications=1), tmp_path)["a"]) == 1
    assert len(CALLS) == 8


def test_a_line_that_was_half_written_is_run_again(tmp_path):
    collect(target(), tmp_path)
    (file,) = tmp_path.glob("*/a.jsonl")
    file.write_text(file.read_text()[:-5])
    CALLS.clear()
    assert len(collect(target(), tmp_path)["a"]) == 3
    assert CALLS == [("a", 2)]


def test_when_time_is_up_every_cell_has_been_run_equally_often(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "QUICK_SECONDS", 0.32)
    results = collect(target(slowly, 40), tmp_path)
    assert 1 <= len(results["a"]) == len(results["bb"]) < 10


def test_the_first_replication_is_run_however_little_time_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "QUICK_SECONDS", -1.0)
    assert len(collect(target(), tmp_path)["a"]) == 1


def test_other_processes_find_the_same(tmp_path):
    there = Target(
        name="fig6",
        title="",
        experiment="trial",
        run=runs.trial,
        cells=lambda full: (runs.DIFFERENCE,),
        replications=lambda full: 3,
        page=lambda results: None,  # type: ignore[return-value]
    )
    alone = collect(there, tmp_path / "one")
    together = collect(there, tmp_path / "two", processes=2)
    assert json.dumps(alone) == json.dumps(together)


def test_progress_counts_what_an_earlier_run_did(tmp_path):
    collect(target(replications=2), tmp_path)
    steps = []
    collect(target(replications=3), tmp_path, progress=lambda what, done, total: steps.append((done, total)))
    assert steps == [(5, 6), (6, 6)]


def test_results_are_only_used_while_the_code_of_runs_is_the_same(tmp_path):
    file = tmp_path / "m.py"
    file.write_text('"""Words."""\nx = 1\n')
    before = cache.fingerprint((), [file], tmp_path)
    file.write_text('"""Other words."""\nx = 1  # and a comment\n')
    assert cache.fingerprint((), [file], tmp_path) == before
    file.write_text('"""Words."""\nx = 2\n')
    assert cache.fingerprint((), [file], tmp_path) != before


def test_results_are_only_used_with_the_same_libraries_and_data(tmp_path, monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(tmp_path))
    (tmp_path / "data.csv").write_text("1\n")
    reading = replace(target(replications=1), files=(Path("data.csv"),))
    collect(reading, tmp_path / "cache")
    collect(reading, tmp_path / "cache")
    assert len(CALLS) == 2
    (tmp_path / "data.csv").write_text("2\n")
    collect(reading, tmp_path / "cache")
    assert len(CALLS) == 4
    monkeypatch.setattr(cache, "version", lambda name: "0.0")
    collect(reading, tmp_path / "cache")
    assert len(CALLS) == 6


def test_targets_that_read_data_name_the_files():
    reading = {(paper, name) for paper, targets in papers().items() for name, given in targets.items() if given.files}
    assert reading == {
        ("adum", "fig3"),
        ("dp-cate", "fig6"),
        ("dp-cate", "fig7"),
        ("meta-learners", "fig1"),
        ("meta-learners", "fig2"),
        ("meta-learners", "fig3"),
        ("private-ci", "table2"),
        ("propensity", "table1"),
    }


def test_a_page_becomes_three_files(tmp_path):
    figure, _ = axes()
    page = Page(
        lead="Lead.",
        head=["a", "b"],
        lines=[["1", "2, or 3"]],
        remarks=["A."],
        seeds="7",
        replications=9,
        figure=figure,
    )
    words, table, picture = write(page, tmp_path / "new", stem="t", title="Title", command="discreet reproduce")
    assert list(csv.reader(table.read_text().splitlines())) == [["a", "b"], ["1", "2, or 3"]]
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = words.read_text()
    assert all(part in text for part in ("# Title", "| 1 | 2, or 3 |", "![Title](t.png)", "* A.", "Replications: 9"))


def test_a_page_says_which_aims_were_reached(tmp_path):
    figure, _ = axes()
    page = Page(
        lead="Lead.",
        head=["a"],
        lines=[["1"]],
        remarks=["A."],
        seeds="7",
        replications=9,
        figure=figure,
        aims=[Aim("first", True, "2 of 2"), Aim("second", False, "0.3")],
    )
    text = write(page, tmp_path, stem="t", title="Title", command="c")[0].read_text()
    assert f"By the code of {date.today():%-d %B %Y}." in text
    assert "* Reached: first (2 of 2)." in text
    assert "* Not reached: second (0.3)." in text


def test_coverage_is_nominal_within_three_standard_errors():
    good, bad = [True] * 80 + [False] * 20, [True] * 67 + [False] * 33
    assert nominal([("a", 0.8, good)]) == ("coverages within three standard errors of nominal", True, "1 of 1")
    assert nominal([("a", 0.8, good), ("b", 0.8, bad)])[1:] == (False, "1 of 2; not b at 0.80: 0.670")


def test_a_curve_falls_if_no_step_rises_beyond_its_error():
    assert falls([0.4, 0.2, 0.21], [0.0, 0.01, 0.01])
    assert not falls([0.4, 0.2, 0.3], [0.0, 0.01, 0.01])
    assert not falls([0.1, 0.1, 0.11], [0.1, 0.1, 0.1])
    # A curve that stays where it is does not fall, nor one that falls by less than chance would.
    assert not falls([1.79, 1.79, 1.79], [0.0, 0.0, 0.0])
    assert not falls([1.8, 1.79, 1.78], [0.03, 0.03, 0.03])


def test_aims_of_table_1_follow_the_rows():
    given = find("private-ci", "table1")
    results = made_up_results(given, np.random.default_rng(0))
    coverage, naive = given.page(results).aims
    assert not naive.reached  # estimates that scatter by 0.1 around the truth are covered by chance
    for rows in results.values():
        for row in rows:
            if "published" in row:
                row["published"]["0.5"][0] = 99.0
    coverage, naive = given.page(results).aims
    assert naive.reached
    assert not coverage.reached
    assert "PrivATE (1, Kernel) at 0.80: 0.000" in coverage.found


def test_aims_of_table_3_compare_the_widths_of_the_rows():
    given = find("private-ci", "table3")
    results = made_up_results(given, np.random.default_rng(0))
    narrower, narrowest = given.page(results).aims[1:]
    assert (narrower.reached, narrowest.reached) == (True, False)
    for row in results[runs.OURS]:
        row["intervals"] = {key: [[0.9, 1.1]] * 3 for key in row["intervals"]}
    for row in results["nn"]:
        row["published"]["0.5"][2] = 9.0
    narrower, narrowest = given.page(results).aims[1:]
    assert (narrower.reached, narrowest.reached) == (False, True)


def test_what_table_2_says_of_the_supremum_follows_the_rows():
    given = find("private-ci", "table2")
    results = made_up_results(given, np.random.default_rng(0))
    widths, reason, *_ = given.page(results).aims
    assert (widths.reached, reason.reached, reason.found) == (False, False, "none")
    assert "none of these" in given.page(results).remarks[1]
    needed = [float(line[-1]) for line in given.page(results).lines]
    for row in results["kernel"]:
        row["cube"]["own units"] = float(np.mean(needed))
    widths, reason, *_ = given.page(results).aims
    assert (widths.found, reason.reached) == ("0 of 9", True)
    assert reason.found == "the unit cube, covariates in their own units"


@real
def test_over_the_unit_cube_the_supremum_is_the_one_that_the_published_widths_need(monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(DATA))
    study = rhc()
    assert 4.0 < over_unit_cube(study, study.X, 0) < 4.4


def test_a_proportion_has_its_standard_error():
    assert share([True] * 80 + [False] * 20) == "0.800 ± 0.040"


def test_every_paper_has_the_targets_that_it_should():
    names = {paper: set(targets) for paper, targets in papers().items()}
    assert names["adum"] == {"fig1", "fig2", "fig3", "corollary1"}
    assert names["dp-cate"] >= {f"fig{number}" for number in (3, 4, 5, 9, 10, 11, 13, 14, 15)}
    assert names["meta-learners"] == {"fig1", "fig2", "fig3", "boosting", "rlearner"}
    assert names["private-ci"] == {"table1", "table2", "table3", "fig4", "fig5", "fig6", "supremum", "attack"}
    assert names["propensity"] == {"table1", "fig1", "fig2", "attack"}


@pytest.mark.parametrize(("paper", "name", "words"), [("x", "table1", "no paper"), ("propensity", "x", "table1, fig1")])
def test_unknown_names_are_refused_with_those_that_are_known(paper, name, words):
    with pytest.raises(InvalidInput, match=words):
        find(paper, name)


def made_up(methods, epsilons, rng):
    """A row as a run of these methods would have left it."""
    if methods == "intervals":
        return {"truth": 1.0, "intervals": {f"{e:g}": [[0.5, 1.5]] * 3 for e in epsilons}}
    published = {f"{e:g}": [1.0 + rng.normal(0, 0.1), 2.0, 0.1] for e in epsilons}
    return {
        "truth": 1.0,
        "exact": [1_000, 1.0, 2.0, 30.0],
        "published": published,
        "bootstrap": {f"{e:g}": [0.0, 2.0] for e in epsilons},
        "largest": 5.0,
        "observed": 20.0,
        "cube": {"standardised": 9.0, "own units": 9.0},
    }


def made_up_results(given, rng):
    if given.experiment == "supremum":
        return {cell: [{"searched": 9.0, "grid": 10.0, "closed": 51.0}] * 2 for cell in given.cells(False)}
    epsilons = {*runs.BUDGETS, *runs.CATHETER_BUDGETS}
    kinds = {
        cell: "intervals" if cell.split()[-1] in (runs.OURS, runs.DIFFERENCE) else "rows" for cell in given.cells(False)
    }
    return {cell: [made_up(kind, epsilons, rng) for _ in range(3)] for cell, kind in kinds.items()}


@pytest.mark.parametrize("name", ["table1", "table2", "table3", "fig4", "fig5", "fig6", "supremum"])
def test_every_page_of_private_ci_can_be_written(name, tmp_path):
    given = find("private-ci", name)
    page = given.page(made_up_results(given, np.random.default_rng(0)))
    assert page.lines
    assert {len(line) for line in page.lines} == {len(page.head)}
    assert page.remarks
    assert len(write(page, tmp_path, stem=name, title=given.title, command="c")) == 3


def test_figure_5_says_who_is_ahead_and_under_which_reading():
    given = find("private-ci", "fig5")
    results = made_up_results(given, np.random.default_rng(0))
    for row in results["kernel"]:
        row["bootstrap"] = {key: [0.0, 2_000.0] for key in row["bootstrap"]}
        for key, (tau, sigma2, _) in row["published"].items():
            row["published"][key] = [tau, sigma2, 1.0 / float(key)]
    naive, bootstrap, grows, reason = given.page(results).aims
    assert (naive.reached, bootstrap.reached, grows.reached, reason.reached) == (False, True, True, True)
    assert naive.found.endswith("of 21")
    assert "widths as shares of the widest at the same ε: 21 of 21" in reason.found
    for row in results["kernel"]:
        # The bootstrap is narrower than what is left of PrivATE's width without noise.
        row["bootstrap"] = {key: [0.0, 1e-9] for key in row["bootstrap"]}
        row["published"] = {key: [tau, 1e-9, 0.0] for key, (tau, _, _) in row["published"].items()}
    naive, bootstrap, *_ = given.page(results).aims
    assert naive.reached
    assert (bootstrap.reached, bootstrap.found) == (False, "0 of 21")


def test_figures_4_and_6_and_table_2_repeat_what_the_paper_says_of_them():
    rng = np.random.default_rng(0)
    results = made_up_results(find("private-ci", "fig6"), rng)
    (narrower,) = find("private-ci", "fig6").page(results).aims
    assert narrower.found == "3 of 3"
    assert narrower.reached
    for row in results["nn"]:
        row["published"]["0.5"][2] = 9.0
    assert not find("private-ci", "fig6").page(results).aims[0].reached
    results = made_up_results(find("private-ci", "fig4"), rng)
    flat = find("private-ci", "fig4").page(results).aims
    assert not any(aim.reached for aim in flat if "fall with ε" in aim.what)
    for cell, rows in results.items():
        for row in rows:
            if "published" in row:
                row["exact"] = [int(cell.split()[0]), *row["exact"][1:]]
                row["published"] = {
                    key: [1.0, 2.0, 30.0 / (int(cell.split()[0]) * float(key))] for key in row["published"]
                }
    falling = find("private-ci", "fig4").page(results).aims
    assert all(aim.reached for aim in falling)
    results = made_up_results(find("private-ci", "table2"), rng)
    *_, inside, positive = find("private-ci", "table2").page(results).aims
    assert positive.reached
    for row in results["kernel"]:
        row["published"]["0.1"][0] = -2.0
        row["published"] = {key: [tau, 0.0, r] for key, (tau, _, r) in row["published"].items()}
    *_, inside, positive = find("private-ci", "table2").page(results).aims
    assert (inside.reached, positive.reached) == (False, False)


def test_intervals_on_pages_are_those_of_the_equations():
    row = {"truth": 1.0, "exact": [500, 1.1, 2.0, 30.0], "published": {"0.5": [0.7, 1.5, 0.2]}}
    exact = Exact(n=500, tau=1.1, sigma2=2.0, gamma=30.0)
    parts = runs.parts(0.5, 0.9)
    row["published"]["0.5"][2] = exact.estimate_noise(parts.epsilon1, parts.delta1)
    (private,), (valid,), (standard,), (naive,) = (
        tables.intervals([row], method, 0.5, 0.05)
        for method in (tables.PRIVATE, tables.VALID, tables.STANDARD, tables.NAIVE)
    )
    v = 1.5 + 30.0**2 * 50 * np.log(500) / (500 * 0.45**2) * np.log(2 / 0.9e-5)  # (16)
    half = 1.959963984540054 * np.sqrt(v / 500)
    assert private[:2] == pytest.approx((0.7 - half, 0.7 + half))
    assert valid[:2] == pytest.approx(baselines.valid_naive(exact, 0.7, parts.epsilon1, parts.delta1, 0.05))
    assert standard[:2] == pytest.approx(baselines.standard(exact, 0.05))
    assert naive[:2] == pytest.approx(baselines.naive(exact, 0.7, 0.05))
    assert private.covers
    assert not naive.covers


def test_pages_of_the_propensity_paper_can_be_written(tmp_path):
    results = {
        f"{tau:g} {m}": [propensity_runs.signs(f"{tau:g} {m}", r) for r in range(2)] for tau in (0.1, 2) for m in (500,)
    }
    for tau in ("0.1", "2"):
        for m in (1000, 2000):
            results[f"{tau} {m}"] = results[f"{tau} 500"]
        ours = {f"{epsilon:g}": 1.0 for epsilon in propensity_runs.EPSILONS}
        results[f"{tau} discreet"] = [{"estimates": ours}] * 2
    pages = propensity_pages.fig1(results), propensity_pages.fig2(results)
    # All sizes of the training set hold the same rows here: nothing rises with m.
    assert [aim.reached for aim in pages[0].aims] == [True, True]
    assert [aim.reached for aim in pages[1].aims[:2]] == [True, True]
    backwards = dict(zip(propensity_runs.EPSILONS, reversed(propensity_runs.EPSILONS), strict=True))
    turned = {
        cell: [row | {f"{e:g}": row[f"{other:g}"] for e, other in backwards.items() if f"{e:g}" in row} for row in rows]
        for cell, rows in results.items()
    }
    assert [propensity_pages.fig1(turned).aims[0].reached, propensity_pages.fig2(turned).aims[0].reached] == [False] * 2
    for page in pages:
        assert {len(line) for line in page.lines} == {len(page.head)}
        write(page, tmp_path, stem="f", title="t", command="c")


def real_rows(rng):
    """Rows of Table 1 as a run would have left them."""
    keys = [f"{epsilon:g}" for epsilon in propensity_runs.TABLE_EPSILONS]
    paper = [
        {"tau": 1.0, "output": {k: rng.normal(1, 1) for k in keys}, "objective": {k: rng.normal(1, 1) for k in keys}}
        for _ in range(3)
    ]
    ours = [{"estimates": dict.fromkeys(keys, 1.0)} for _ in range(3)]
    return {
        f"{name} {method}": rows for name in ("ihdp", "nsw") for method, rows in (("paper", paper), ("discreet", ours))
    }


def test_table_1_of_the_propensity_paper_says_what_is_clipped():
    page = propensity_pages.table1(real_rows(np.random.default_rng(0)))
    text = " ".join(page.remarks)
    assert "Outcomes are not clipped" in text
    assert "-50 to 300 for IHDP and 0 to 100,000 dollars" in text
    assert "clipped to ±300" in text


@real
def test_no_outcome_of_table_1_is_clipped(monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(DATA))
    for name, realisations in (("ihdp", range(propensity_runs.REALISATIONS)), ("nsw", [0])):
        for realisation in realisations:
            study = propensity_runs._study.__wrapped__(name, realisation)
            low, high = study.bounds.outcome
            # A clipped outcome would sit at an end; earnings of 0 are real.
            assert study.Y.max() < high
            assert study.Y.min() > low or name == "nsw"


def test_flips_become_rarer_with_epsilon_and_with_the_effect_and_the_bound_with_abs_y_holds():
    flips = {}
    for tau in propensity_runs.TAUS:
        rows = [propensity_runs.signs(f"{tau:g} 1000", replication) for replication in range(4)]
        for epsilon in (0.03, 0.1, 0.4):
            cells = [row[f"{epsilon:g}"] for row in rows]
            flips[tau, epsilon] = np.mean([cell["flips"] for cell in cells])
            assert propensity_pages._held(cells, "corrected") == "4 of 4"
    for tau in propensity_runs.TAUS:
        assert flips[tau, 0.03] > flips[tau, 0.4] - 1e-9
    for epsilon in (0.03, 0.1, 0.4):
        assert flips[0.1, epsilon] > flips[2.0, epsilon] - 1e-9
    assert flips[0.1, 0.03] > 0.3


def test_the_bias_of_figure_1_is_the_one_that_noise_shows():
    rows = [propensity_runs.signs("2 500", replication) for replication in range(6)]
    g = np.mean([row["0.2"]["bias"] for row in rows])
    observed = np.mean([row["0.2"]["mean"] - row["tau"] for row in rows])
    # 1,200 draws with a standard deviation of about 0.2: four standard errors.
    assert g > 0.15
    assert observed == pytest.approx(g, abs=4 * 0.2 / np.sqrt(6 * propensity_runs.DRAWS))


def test_one_trial_of_table_3_runs_for_every_method():
    rows = {cell: runs.trial(cell, 0) for cell in (runs.DIFFERENCE, "kernel", runs.OURS)}
    widths = {
        cell: tables.intervals([row], {"kernel": tables.PRIVATE}.get(cell, cell), runs.EPSILON, 0.05)[0].width
        for cell, row in rows.items()
    }
    assert widths[runs.OURS] < widths["kernel"] < widths[runs.DIFFERENCE]


def test_the_published_numbers_have_one_entry_for_each_that_is_computed():
    assert {len(levels) for levels in tables.TABLE1.values()} == {3}
    assert len(tables.TABLE2) == 9
    assert all(low < estimate < high for _, _, estimate, (low, high), _ in tables.TABLE2)
    assert all(len(column) == 5 for columns in propensity_pages.NOTEBOOK.values() for column in columns)


def test_the_command_line_lists_and_refuses(tmp_path):
    listed = CliRunner().invoke(app, ["reproduce", "list"])
    assert listed.exit_code == 0
    assert "table1" in listed.output
    refused = CliRunner().invoke(app, ["reproduce", "private-ci", "table9"])
    assert refused.exit_code == 2
    assert "choose from table1" in refused.output


def test_the_command_line_writes_a_quick_run_beside_and_not_over_the_evidence(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "QUICK_SECONDS", -1.0)
    options = ["--out", str(tmp_path / "ev"), "--cache", str(tmp_path / "cache"), "--processes", "1"]
    done = CliRunner().invoke(app, ["reproduce", "private-ci", "fig6", *options])
    assert done.exit_code == 0, done.output
    written = {path.name for path in (tmp_path / "ev" / "private-ci").iterdir()}
    assert written == {"fig6-quick.md", "fig6-quick.csv", "fig6-quick.png"}


def test_a_missing_data_folder_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    options = ["--out", str(tmp_path), "--cache", str(tmp_path), "--processes", "1"]
    done = CliRunner().invoke(app, ["reproduce", "private-ci", "table2", *options])
    assert done.exit_code == 2
    assert "DISCREET_DATA" in done.output
    assert not list(Path(tmp_path).rglob("*.md"))


@pytest.mark.parametrize("path", sorted((cache.ROOT / "evidence" / "reproduce").rglob("*.py")), ids=str)
def test_modules_of_runs_import_nothing_through_a_lazy_door(path):
    # The fingerprint follows imports: through a lazy package it would not find what is behind a name.
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module in ("discreet", "discreet.papers"):
            assert all(cache.file_of(f"{node.module}.{alias.name}") is not None for alias in node.names)


@pytest.mark.parametrize(
    ("paper", "needed"),
    [
        ("meta_learners", {"papers.meta_learners.estimators", "papers.meta_learners.ebm", "privacy.gate"}),
        ("dp_cate", {"papers.dp_cate.pointwise", "papers.dp_cate.k_anonymity", "papers.common.nuisances"}),
        ("adum", {"papers.adum.estimator", "papers.adum.two_model", "estimators.clustering"}),
    ],
)
def test_published_cells_depend_on_the_methods_that_they_run(paper, needed):
    found = cache._imported(f"evidence.reproduce.{paper}.runs", cache.PRESENTATION + cache.FLAGSHIP)
    assert {cache.file_of(f"discreet.{name}") for name in needed} <= found
    assert not found & {cache.file_of(name) for name in cache.FLAGSHIP}


def test_an_extra_that_is_not_installed_is_a_setting_like_any_other(monkeypatch):
    def version(name):
        if name == "interpret-core":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(cache, "version", version)
    assert "interpret-core not installed" in cache.settings([])


def test_published_cells_do_not_depend_on_the_flagships_models_and_its_own_do(tmp_path, monkeypatch):
    module = "evidence.reproduce.private_ate.runs"
    for folder in ("src", "evidence"):
        shutil.copytree(cache.ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(cache, "ROOT", tmp_path)
    ate, paper = (cache.file_of(f"discreet.{name}") for name in ("estimators.ate", "papers.private_ate.estimator"))
    assert ate is not None
    assert paper is not None
    before = [cache.code("", module, flagship=flagship) for flagship in (False, True)]
    ate.write_text(ate.read_text() + "\nCHANGED = 1\n")
    after = [cache.code("", module, flagship=flagship) for flagship in (False, True)]
    assert after[0] == before[0]
    assert after[1] != before[1]
    paper.write_text("CHANGED = 1\n")
    assert cache.code("", module, flagship=False) != before[0]
