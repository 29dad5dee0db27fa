"""Figures of the ADUM paper: runs keep what pages need, and aims follow the rows."""

import os
from pathlib import Path

import numpy as np
import pytest

from discreet.datasets.metrics import auuc
from discreet.papers.adum.error_bound import failure_probability, pehe_bound
from evidence.reproduce import find
from evidence.reproduce.adum import pages, runs
from evidence.reproduce.adum import ranking as ranking_pages
from evidence.reproduce.pages import write

DATA = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[4] / "shared" / "data"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="real studies are no part of this project; set DISCREET_DATA")


def made_up(given, value):
    """Rows of a target's cells, with ``value(cell, epsilon, setting, replication)`` in place of results."""
    results = {}
    for cell in given.cells(False):
        rows = []
        for r in range(3):
            if given.experiment == "corollary":
                runs_of_a_row = {"pehe": value(cell, None, None, r), "least": 0.3}
                rows.append({name: [one] * runs.RUNS_A_ROW for name, one in runs_of_a_row.items()})
                continue
            if given.experiment == "ranking":
                epsilons, settings = runs.FIG3_EPSILONS, runs.TUNING[cell.split("/")[1]]
            elif given.experiment == "synthetic":
                epsilons = runs.EPSILONS  # type: ignore[assignment]
                settings = runs.FIG1_SETTINGS[cell.split("/")[1]]  # type: ignore[assignment]
            else:
                epsilons, settings = runs.FIG2_EPSILONS, runs.FIG2_CELLS  # type: ignore[assignment]
            row = {f"{e:g}": {f"{s}": value(cell, e, s, r) for s in settings} for e in epsilons}
            rows.append(row | ({"random": 0.01, "best": 0.02} if given.experiment == "ranking" else {}))
        results[cell] = rows
    return results


def written(given, results, tmp_path):
    page = given.page(results)
    assert {len(line) for line in page.lines} == {len(page.head)}
    assert len(write(page, tmp_path, stem="f", title=given.title, command="c")) == 3
    return page


def test_figure_1_says_who_is_ahead_and_where_not(tmp_path):
    given = find("adum", "fig1")

    def crossing(cell, epsilon, setting, r):
        base = 0.01 if cell.endswith("adum") else 0.05 / epsilon**0.9
        return base * (1 + abs(2 if setting == "auto" else setting - 2)) + 1e-5 * r

    page = written(given, made_up(given, crossing), tmp_path)
    ahead = [aim for aim in page.aims if "ahead" in aim.what]
    assert [aim.reached for aim in ahead] == [True, True] * len(runs.SHAPES)
    assert {line[3] for line in page.lines} == {"2"}
    turned = given.page(made_up(given, lambda cell, *rest: crossing("tm" if cell.endswith("adum") else "adum", *rest)))
    assert not any(aim.reached for aim in turned.aims)
    # Two steps miss sin(x) by more than a line does, and the found words say by how much.
    assert f"{pages.best_steps('sin(x)', 2):.5f}, and one straight line by {pages.best_line('sin(x)'):.5f}" in (
        turned.aims[0].found
    )


def test_figure_1_says_how_settings_grow_with_the_budget():
    given = find("adum", "fig1")

    def growing(cell, epsilon, setting, r):
        if setting == "auto":
            return 0.1
        best = (4 if epsilon < 1 else 12) if cell.endswith("adum") else (1 if epsilon < 2 else 3)
        return (0.1 if epsilon < 2 else 0.01) * (1 + abs(setting - best)) + 1e-5 * r

    def aims(value):
        return [aim for aim in given.page(made_up(given, value)).aims if "ahead" not in aim.what]

    assert [aim.reached for aim in aims(growing)] == [True, True] * len(runs.SHAPES)
    assert "from ε = 2 on" in aims(growing)[1].found
    assert not any(aim.reached for aim in aims(lambda cell, epsilon, setting, r: 0.1 if setting in (4, 1) else 0.2))


def test_a_line_suits_the_printed_effect_and_steps_suit_the_other():
    x = np.linspace(-1, 1, 100_001)
    assert pages.best_steps("sin(x)", 1) == pytest.approx(np.mean(np.sin(x) ** 2), rel=1e-3)
    assert pages.best_line("sin(x)") < pages.best_steps("sin(x)", 12)
    assert pages.best_line("sin(pi x)") > pages.best_steps("sin(pi x)", 12)


def test_figure_2_finds_the_minimum_and_how_it_moves(tmp_path):
    given = find("adum", "fig2")

    def trade_off(cell, epsilon, p, r):
        return (1 / p**2 + (p / (40 * min(epsilon, 20))) ** 2) * (1 + 1e-4 * r)

    page = written(given, made_up(given, trade_off), tmp_path)
    assert [aim.reached for aim in page.aims] == [True, True, True]
    falling = given.page(made_up(given, lambda cell, epsilon, p, r: 1 / p))
    assert [aim.reached for aim in falling.aims] == [False, False, True]


def test_a_curve_is_u_shaped_if_its_minimum_is_inside():
    assert pages.is_u(np.array([4.0, 2.0, 1.0, 3.0]))
    assert pages.is_u(np.array([4.0, 2.0, 2.001, 1.0, 3.0]))
    assert not pages.is_u(np.array([4.0, 2.0, 3.0, 1.0, 3.0]))
    assert not pages.is_u(np.array([3.0, 2.0, 1.0]))
    assert not pages.is_u(np.array([1.0, 2.0, 3.0]))


def test_corollary_1_counts_violations_against_its_probability(tmp_path):
    given = find("adum", "corollary1")
    page = written(given, made_up(given, lambda *_: 1e-9), tmp_path)
    assert [aim.reached for aim in page.aims] == [True] * 5
    # 400 Delta is above 1: all runs may violate the bound by what one count does.
    page = given.page(made_up(given, lambda cell, *_: 1e9 if cell.startswith("400") else 1e-9))
    assert [aim.reached for aim in page.aims] == [True, True, False, True, False]
    assert "In 150 of the 150 violations" in " ".join(page.remarks)
    page = given.page(made_up(given, lambda cell, epsilon, setting, r: 1e9 if cell == "20 0.04" and r else 1e-9))
    assert [aim.reached for aim in page.aims] == [False, True, False, False, False]
    assert page.replications == 3 * runs.RUNS_A_ROW
    assert runs.COROLLARY_RUNS == 1_000


def test_figure_3_compares_gains_over_a_random_ranking(tmp_path):
    given = find("adum", "fig3")
    level = {"cut": 0.012, "k-means": 0.015, "two-model": 0.014, "two-model-proved": 0.013, "discreet": 0.016}

    def area(cell, epsilon, setting, r):
        late = 0.002 if epsilon > 5 and "two-model" in cell else 0.0
        return level[cell.split("/")[1]] + late + 1e-5 * r - 1e-4 * abs(np.log10(setting) + 2)

    page = written(given, made_up(given, area), tmp_path)
    assert [aim.reached for aim in page.aims] == [True] * 6
    assert ranking_pages.best([{"1": {"a": 0.2, "b": 0.3}, "random": 0.1}], 1)[0] == "b"
    text = " ".join(page.remarks)
    assert "gains more from ε = 10 on" in text
    turned = given.page(made_up(given, lambda cell, *rest: area(cell, *rest) - (0.004 * ("k-means" in cell))))
    assert "behind at ε = 0.01 by" in turned.aims[0].found
    assert "full file could not be had" in text
    assert "not evidence about Criteo" in text


def test_runs_keep_every_setting(monkeypatch):
    monkeypatch.setattr(runs, "N", 500)
    monkeypatch.setattr(runs, "EPSILONS", (1.0, 100.0))
    row = runs.synthetic("sin(pi x)/tm", 0)
    assert set(row) == {"1", "100"}
    assert set(row["1"]) == {f"{d}" for d in runs.DEGREES}
    assert row["100"]["3"] < row["1"]["3"]
    assert runs.synthetic("sin(pi x)/tm", 0) == row
    monkeypatch.setattr(runs, "FIG2_EPSILONS", (100.0,))
    assert runs.trade_off("sin(x)", 0)["100"]["8"] < runs.trade_off("sin(x)", 0)["100"]["1"]
    monkeypatch.setattr(runs, "RUNS_A_ROW", 3)
    row = runs.corollary("5 0.1", 0)
    assert len(set(row["pehe"])) == len(row["least"]) == 3
    assert max(row["least"]) < 1.0
    assert set(runs.synthetic("sin(x)/discreet", 0)["1"]) == {"auto"}


def test_the_paper_s_example_stays_below_its_bound():
    found = runs.corollary("20 0.04", 7)["pehe"]
    bound = pehe_bound(pages.smooth("sin(x)", 1.0), 20, runs.N, 0.04)
    assert failure_probability(20, runs.N, 0.04) < 0.01
    assert max(found) < bound.total


def test_more_noise_needs_fewer_cells_and_a_steep_effect_more_of_them():
    row = {shape: runs.trade_off(shape, 1) for shape in runs.SHAPES}

    def least(shape, epsilon):
        return int(min(row[shape][epsilon], key=row[shape][epsilon].get))

    for shape in runs.SHAPES:
        assert least(shape, "0.1") < least(shape, "100")
    assert least("sin(x)", "100") <= least("sin(pi x)", "100")


def test_one_replication_of_the_generated_ranking(monkeypatch):
    monkeypatch.setattr(runs, "SHAPED_RECORDS", 6_000)
    monkeypatch.setattr(runs, "FIG3_EPSILONS", (50.0,))
    for method, settings in runs.TUNING.items():
        monkeypatch.setitem(runs.TUNING, method, settings[:1])
        row = runs.ranking(f"criteo-shaped/{method}", 0)
        (value,) = row["50"].values()
        assert -0.02 < value < 0.05
        assert row["best"] > row["random"]


@real
def test_parts_of_the_e_mail_trial_are_disjoint(monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(DATA))
    train, test = runs._split("hillstrom", 0)
    assert train.n + test.n == 64_000
    assert auuc(test.Y, test.T, np.zeros(test.n)).chance == pytest.approx(0.0609 / 2, abs=0.005)
