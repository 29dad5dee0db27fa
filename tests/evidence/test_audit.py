"""Runs behind the audit's page: kept by the code that each depends on, and never under code that has changed."""

from dataclasses import replace
from pathlib import Path

import pytest

import discreet.papers as papers
from discreet.audit._configurations import matrix
from discreet.audit.attacks import ATTACKS
from evidence.audit import page as audit_page
from evidence.audit import runs as audit_runs
from evidence.audit.runs import ATTACK_SEED, Job
from evidence.reproduce import cache

FIRST = matrix()[0]


def needed(module):
    return cache._imported(module, cache.PRESENTATION)


def test_what_is_kept_of_an_attack_depends_on_the_mechanism_that_it_attacks():
    for attack in ATTACKS.values():
        if attack.mechanism.startswith("papers."):
            kind = getattr(papers, attack.mechanism.removeprefix("papers."))
            assert cache.file_of(kind.__module__) in needed(attack.run_.__module__), attack.name


def test_a_change_to_effect_functions_leaves_all_other_estimators_results_alone():
    homes = {type(configuration.make()).__module__ for configuration in matrix()}
    files = {name: cache.file_of(f"discreet.estimators.{name}") for name in ("ate", "cate", "uplift")}
    assert {home for home in homes if files["cate"] in needed(home)} == {"discreet.estimators.cate"}
    for instrument in audit_runs._INSTRUMENTS:
        assert not set(files.values()) & needed(instrument)


def test_names_of_kept_results_follow_settings_and_code(monkeypatch):
    job, folder = Job("proved", FIRST.name, False), Path()
    path = job.path(folder)
    assert job.path(folder) == path
    assert Job("proved", FIRST.name, True).path(folder) != path
    longer = {FIRST.name: replace(FIRST, n=FIRST.n + 1)}
    with monkeypatch.context() as patch:
        patch.setattr(audit_runs, "_configurations", lambda: longer)
        assert job.path(folder) != path
    audit_runs._code.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(audit_runs, "code", lambda *given, **how: "other")
        assert job.path(folder) != path
    audit_runs._code.cache_clear()
    assert job.path(folder) == path


def test_what_a_warning_quotes_from_the_page_does_not_make_the_page_run_again(tmp_path):
    path = tmp_path / "mechanism.py"
    prints = []
    for text in ("MEASURED = 'at least 3'\nN = 1\n", "MEASURED = 'at least 4'\nN = 1\n", "MEASURED = ''\nN = 2\n"):
        path.write_text(text)
        prints.append(cache.fingerprint((), [path], tmp_path))
    assert prints[0] == prints[1] != prints[2]


def test_the_code_of_a_module_is_read_once(monkeypatch):
    read = []
    monkeypatch.setattr(audit_runs, "code", lambda settings, module, flagship: read.append(module) or "print")
    audit_runs._code.cache_clear()
    for configuration in matrix()[:6]:
        Job("proved", configuration.name, False).path(Path())
    audit_runs._code.cache_clear()
    assert len(read) == len(set(read)) == 3


def test_a_result_is_kept_whole_and_read_back(tmp_path):
    job = Job("attack", "float_laplace", True)
    words = audit_runs._keep(job, tmp_path)
    assert "the claim is refuted" in words
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
    kept = audit_runs._read(job.path(tmp_path))
    assert kept.result.violated
    assert kept.seconds >= 0


def test_large_claims_are_run_as_a_black_box_with_an_epsilon_that_can_be_refuted(monkeypatch):
    name = next(each.name for each in matrix() if each.family == "papers.TLearner")
    monkeypatch.setattr(audit_runs, "LEAST_TRIALS", 20)
    result = audit_runs._proved(name, quick=True)
    replayed, simulated = result.parts
    assert (replayed.claimed.epsilon, simulated.claimed.epsilon) == (20.0, 1.0)
    assert (replayed.instrument, simulated.instrument, simulated.trials) == ("replay", "black box", 40)
    assert not result.violated
    assert audit_page._power(simulated) < 1.0


def test_the_page_says_what_was_chosen_after_results_were_seen_and_with_which_seed_it_was_measured():
    chosen = audit_page._after_seeing_results()
    assert f"seed {ATTACK_SEED}" in chosen
    named = {name for name in ATTACKS if f"(`{name}`)" in chosen}
    assert named == {"dp_cate_identical_queries", "ebm_offset_target", "private_ci_few_treated"}
    assert ATTACK_SEED not in (0, audit_runs.SEED)


@pytest.mark.parametrize(("values", "words"), [([3, 3], "3"), ([20, 1_000], "20 to 1,000")])
def test_runs_are_given_from_the_least_to_the_most(values, words):
    assert audit_page._between(values, "{:,}") == words
