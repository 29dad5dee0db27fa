"""Values and edges of admission that mutants showed to be unprotected."""

from discreet import Budget
from discreet.ledger.composition import gaussian_limit


def test_a_cap_whose_delta_the_lattice_alone_uses_up_admits_no_gaussian_request():
    assert gaussian_limit(Budget(epsilon=1.0, delta=1e-300), "gaussian") == 0.0
