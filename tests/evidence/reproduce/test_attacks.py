"""Attacks on published claims: what they prove, by closed form and by simulation, and that warnings quote the pages."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from discreet.audit._lower_bounds import Law, least_epsilon
from discreet.audit.result import rounded_down
from discreet.papers.private_ate.equations import Exact, publish
from discreet.papers.private_ate.estimator import MEASURED as PRIVATE_CI
from discreet.papers.propensity.estimator import MEASURED as PROPENSITY
from discreet.papers.propensity.logistic import sensitivity
from discreet.privacy.accountant import gdp_epsilon, gdp_mu
from discreet.testing import seeded_noise
from evidence.reproduce.pages import write
from evidence.reproduce.private_ate import attack as private_ci_attack
from evidence.reproduce.private_ate import attack_runs as private_ci_attack_runs
from evidence.reproduce.private_ate.runs import EPSILON, ESTIMATE_SHARE, parts
from evidence.reproduce.propensity import attack as propensity_attack

PAGES = Path(__file__).parents[3] / "docs" / "evidence"


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0, 20.0])
def test_two_normal_laws_are_distinguished_as_far_as_gaussian_privacy_says(mu):
    found = least_epsilon(Law.normal(0.0, 2.0), Law.normal(2.0 * mu, 2.0), 1e-5)
    assert 0.98 * gdp_epsilon(mu, 1e-5) - 0.01 < found <= gdp_epsilon(mu, 1e-5) * (1 + 1e-9)


def test_a_mechanism_that_keeps_its_promise_is_not_accused():
    assert least_epsilon(Law.normal(0.0, 1.0), Law.normal(gdp_mu(0.5, 1e-6), 1.0), 1e-6) <= 0.5
    assert least_epsilon(Law.normal(3.0, 1.0), Law.normal(3.0, 1.0), 1e-6) == 0.0


def test_a_mixture_is_distinguished_by_the_probabilities_of_its_parts():
    one, other = Law(np.array([0.3, 0.7]), np.array([0.0, 4.0]), np.array([1.0, 2.0])), Law.normal(1.0, 1.5)
    sample = np.random.default_rng(0)
    drawn = np.where(sample.random(200_000) < 0.3, sample.normal(0, 1, 200_000), sample.normal(4, 2, 200_000))
    assert np.exp(one.log_above(np.array([2.0])))[0] == pytest.approx(np.mean(drawn > 2.0), abs=0.005)
    assert np.exp(one.log_above(np.array([2.0]), -1.0))[0] == pytest.approx(np.mean(drawn < 2.0), abs=0.005)
    # One event, worked out by itself, proves no more than the best.
    p, q = 0.7 * 0.5 * math.erfc(1 / math.sqrt(2)), 0.5 * math.erfc(5 / 1.5 / math.sqrt(2))  # above 6
    assert least_epsilon(one, other, 1e-3) >= math.log((p - 1e-3) / q) - 0.01


def test_bounds_are_rounded_down():
    assert [rounded_down(value) for value in (0.4999, 0.0512, 1.99, 39.4, 1234.0, -0.1)] == [
        *("0.49", "0.051", "1.9", "39", "1.2e+03"),
        "nothing",
    ]


def test_the_probability_that_a_width_is_close_to_gamma_is_what_simulation_shows():
    one, other = (Exact(n=3_000, tau=1.0, sigma2=1.5, gamma=gamma) for gamma in (12.0, 12.1))
    given = parts(EPSILON, ESTIMATE_SHARE)
    r, r_other = (exact.estimate_noise(given.epsilon1, given.delta1) for exact in (one, other))
    hits = []
    for exact in (one, other):
        with seeded_noise(5):
            drawn = [publish(exact, given) for _ in range(4_000)]
        roots = np.sqrt([found.sigma2 / 3_000 + found.r**2 for found in drawn])
        hits.append(np.mean(np.abs(roots - r) <= abs(r_other - r) / 2))
    simulated = hits[0] - math.exp(EPSILON) * hits[1]
    assert private_ci_attack.width_delta([one], [other]) == pytest.approx(simulated, abs=4 * 2 * 0.5 / math.sqrt(4_000))
    assert simulated > 0.3


def test_neighbours_with_the_same_gamma_are_not_distinguished_by_the_width():
    exact = Exact(n=3_000, tau=1.0, sigma2=1.5, gamma=12.0)
    assert private_ci_attack.width_delta([exact], [exact]) <= 0


def test_neighbours_differ_in_one_record_and_few_are_treated():
    study = private_ci_attack_runs.few_treated(300, 3, 0)  # type: ignore[attr-defined]
    assert (len(study.Y), study.T.sum()) == (300, 3)
    one, other = (private_ci_attack_runs.with_first(study, end) for end in study.bounds.outcome)  # type: ignore[attr-defined]
    assert np.flatnonzero(one.Y != other.Y).tolist() == [0]
    assert np.array_equal(one.X, other.X)
    assert np.array_equal(one.T, other.T)


def test_a_copy_moves_the_weight_within_the_sensitivity_and_many_go_beyond():
    stated = sensitivity(propensity_attack.TRAINING, propensity_attack.LAMBDA)  # type: ignore[attr-defined]
    assert propensity_attack._with_copies(0) == pytest.approx(0.0, abs=1e-8)
    moved = [2 * propensity_attack._with_copies(copies) for copies in (1, 3)]
    assert 0.5 * stated < moved[0] <= stated < moved[1]


def test_scaling_by_the_largest_norm_moves_the_weights_beyond_the_sensitivity():
    stated = sensitivity(propensity_attack.M, propensity_attack.LAMBDA)  # type: ignore[attr-defined]
    assert all(propensity_attack.run(cell, 0)["moved"] > 3 * stated for cell in propensity_attack.NORMS)


def test_pages_of_attacks_can_be_written(tmp_path):
    found = {"tau": 1.0, "sigma2": 1.5, "gammas": [12.0] * private_ci_attack.DRAWS}  # type: ignore[attr-defined]
    other = found | {"tau": 1.5, "gammas": [12.1] * private_ci_attack.DRAWS}  # type: ignore[attr-defined]
    row = {"one": found, "other": other, "truncated": True}
    cells = (*private_ci_attack_runs.WIDTH, *private_ci_attack_runs.FEW)
    weights = {cell: [propensity_attack.run(cell, r) for r in range(2)] for cell in propensity_attack.CELLS}
    pages = [private_ci_attack.page({cell: [row, row] for cell in cells}), propensity_attack.page(weights)]
    for page in pages:
        assert {len(line) for line in page.lines} == {len(page.head)}
        write(page, tmp_path, stem="attack", title="t", command="c")


QUOTED = re.compile(r"a delta of at least [\d.]*\d|a claimed epsilon of [\d.]*\d (?:is|into) at least [\d.]*\d")


@pytest.mark.parametrize(("paper", "warning"), [("private-ci", PRIVATE_CI), ("propensity", PROPENSITY)])
def test_warnings_quote_what_the_pages_print_and_nothing_else(paper, warning):
    quoted = QUOTED.findall(warning)
    assert len(quoted) == 2
    page = (PAGES / paper / "attack.md").read_text()
    assert [phrase for phrase in quoted if phrase not in page] == []
    # No other number stands in the warning than those, a nominal delta, and counts that the page's phrases have too.
    rest = QUOTED.sub("", warning).replace("a nominal 1e-5", "").replace("3 treated among 30,000 records", "")
    assert re.findall(r"\d", rest) == []
    assert f"discreet reproduce {paper} attack" in warning


def test_what_the_warnings_quote_is_proved_again_on_a_study():
    row = private_ci_attack_runs.run("few ridge 30000 3", 1)
    quoted = float(QUOTED.findall(PRIVATE_CI)[1].split()[-1])
    assert private_ci_attack._shown_by_estimates(row, 30_000)[2] >= quoted
    scaled = propensity_attack.run("norm 10", 1)
    quoted = float(QUOTED.findall(PROPENSITY)[0].split()[-1])
    assert propensity_attack._shown(scaled["moved"] / 2, scaled["sd"]) >= quoted
