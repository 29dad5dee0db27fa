"""Corollary 1: its terms, its probability and its number of cells."""

import math

import pytest

from discreet.exceptions import InvalidInput
from discreet.papers.adum.error_bound import Smooth, best_cells, failure_probability, least_epsilon, pehe_bound

STUDY = Smooth(lipschitz_control=0.5, lipschitz_treated=1.0, width=2.0, noise_sd=1.0, outcome_bound=5.0)


def test_the_terms_are_those_of_equation_7():
    terms = pehe_bound(STUDY, 20, 20_000, 0.5, balance=1.5)
    assert terms.bias == pytest.approx(2 * 1.25 * 4 * 1.5**2 / 400)
    assert terms.variance == pytest.approx(4 * (2 + 1.25 * 4) * 20 / 20_000)
    assert terms.privacy == pytest.approx((24 * 5) ** 2 * 400 / (20_000**2 * 0.25))
    assert terms.total == pytest.approx(sum(terms))


def test_the_paper_s_example_holds_from_epsilon_004_on():
    # "If n = 20,000, p <= 20 and Delta = 0.01, the bound holds for any epsilon >= 0.04."
    assert 0.03 < least_epsilon(20, 20_000, 0.01) < 0.04
    assert failure_probability(20, 20_000, 0.04) < 0.01
    assert failure_probability(20, 20_000, least_epsilon(20, 20_000, 0.01)) == pytest.approx(0.01)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 100.0])
def test_the_best_number_of_cells_minimises_the_bound(epsilon):
    p = best_cells(STUDY, 20_000, epsilon)
    totals = [pehe_bound(STUDY, q, 20_000, epsilon).total for q in range(1, 300)]
    assert totals[p - 1] == min(totals)


def test_the_best_number_of_cells_grows_with_epsilon_and_then_as_the_cube_root_of_n():
    found = [best_cells(STUDY, 20_000, epsilon) for epsilon in (0.01, 0.1, 1.0, 100.0)]
    assert found == sorted(found)
    assert best_cells(STUDY, 8_000_000, 1e6) / best_cells(STUDY, 1_000_000, 1e6) == pytest.approx(2.0, rel=0.05)


def test_nonsense_is_refused():
    for p, n, epsilon in ((0, 10, 1.0), (1, 0, 1.0), (1, 10, 0.0), (1, 10, math.nan)):
        with pytest.raises(InvalidInput, match="p and n must be at least 1"):
            pehe_bound(STUDY, p, n, epsilon)
    with pytest.raises(InvalidInput, match="failure must lie"):
        least_epsilon(20, 1_000, 1.0)
