"""Values and edges of admission that mutants showed to be unprotected."""

import pytest

from discreet import Budget
from discreet.ledger import Cost
from discreet.ledger.composition import gaussian_limit, plain_limit


def test_a_cap_whose_delta_the_lattice_alone_uses_up_admits_no_gaussian_request():
    assert gaussian_limit(Budget(epsilon=1.0, delta=1e-300), "gaussian") == 0.0


def test_a_gaussian_cap_adds_up_nothing_plainly():
    assert plain_limit(Budget(epsilon=1.0, delta=1e-6), "gaussian") == (0.0, 0.0)
    assert plain_limit(Budget(epsilon=1.0, delta=1e-6), "either") == (1.0, 5e-7)


def test_an_account_shows_what_is_spent_reserved_and_left(quick):
    quick.open("icu", epsilon=1.0)
    quick.charge(quick.reserve("icu", Cost(epsilon=0.5)))
    quick.reserve("icu", Cost(epsilon=0.25))
    assert quick.account("icu").shares == pytest.approx((0.5, 0.25, 0.25))
