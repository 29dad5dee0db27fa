"""What the releases of several sites promise together: docs/proofs/combine.md."""

import math
from dataclasses import replace

import pytest

from discreet import Budget, InvalidInput, combine, parallel
from discreet.privacy.accountant import SLACK, calibrate_mu, gdp_epsilon, lattice_delta
from discreet.privacy.budget import ClaimedEvent, GaussianEvent
from discreet.releases.combined.guarantees import guarantee_of
from tests.releases.combined.helpers import gaussian, made, pure, site


def test_without_a_common_person_the_largest_budget_holds_for_all():
    one = guarantee_of([gaussian(1.0, 1e-6), gaussian(0.5, 1e-5), pure(0.7)], "disjoint")
    assert (one.epsilon, one.delta) == (1.0, 1e-5)
    assert (one.unit, one.neighbours, one.status) == ("one record", "replace-one", "proved")
    assert one.proof == "ate.md, combine.md"
    assert one.public == ("the declared bounds", "at which site a record is")
    # Lemma 1: the largest delta of any site, at every epsilon.
    for epsilon in (0.1, 0.5, 2.0):
        each = [gaussian(1.0, 1e-6), gaussian(0.5, 1e-5), pure(0.7)]
        assert one.delta_at(epsilon) == pytest.approx(max(each_.delta_at(epsilon) for each_ in each), rel=1e-6)


def test_gaussian_budgets_of_overlapping_people_add_up_in_squares():
    one = guarantee_of([gaussian(1.0, 1e-6)] * 3, "overlapping")
    mu = math.sqrt(3.0) * calibrate_mu(1.0, 1e-6)
    assert one.delta == pytest.approx(3e-6)
    aside = lattice_delta(3 * SLACK, 2.0)
    assert gdp_epsilon(mu, 3e-6) <= one.epsilon <= gdp_epsilon(mu, 3e-6 - aside) * (1 + 1e-9)
    assert one.epsilon < 3.0
    assert one.unit == "one record at each site"
    assert one.public[-1] == "at which sites someone has records"


def test_pure_budgets_of_overlapping_people_add_up():
    assert guarantee_of([pure(0.5), pure(0.25)], "overlapping").budget == Budget(epsilon=0.75)


def test_what_a_site_left_unspent_is_counted_as_spent():
    whole, half = gaussian(1.0, 1e-6), gaussian(1.0, 1e-6, spent=0.5)
    spent = guarantee_of([whole, whole], "overlapping")
    assert guarantee_of([half, half], "overlapping").epsilon == pytest.approx(spent.epsilon, rel=1e-9)
    assert guarantee_of([half, half], "disjoint").epsilon == 1.0


def test_mixtures_lie_between_the_largest_and_the_sum():
    one = guarantee_of([gaussian(1.0, 1e-6), pure(1.0)], "overlapping")
    assert 1.0 < one.epsilon < 2.0
    assert one.delta == 1e-6


@pytest.mark.parametrize(
    "other",
    [
        made(1.0, 1e-6, (ClaimedEvent(name="paper", epsilon=1.0, delta=1e-6),), status="claimed", proof=None),
        parallel(gaussian(1.0, 1e-6), gaussian(0.5, 1e-6)),
        # So large that nothing is set aside for the lattice.
        gaussian(60.0, 1e-6),
    ],
    ids=["claimed", "parts", "huge"],
)
def test_what_was_no_single_gate_counts_with_what_it_states(other):
    one = guarantee_of([gaussian(1.0, 1e-6), other], "overlapping")
    assert one.budget == Budget(epsilon=1.0 + other.epsilon, delta=1e-6 + other.delta)


def test_the_weakest_status_holds_for_all():
    claimed = made(1.0, 1e-6, (ClaimedEvent(name="paper", epsilon=1.0, delta=1e-6),), status="claimed", proof=None)
    for people in ("disjoint", "overlapping"):
        assert guarantee_of([gaussian(), claimed], people).status == "claimed"
        assert guarantee_of([gaussian(status="test"), claimed, gaussian()], people).status == "test"
    assert guarantee_of([claimed, claimed], "disjoint").proof == "combine.md"
    both = combine([site(1.0), site(2.0, guarantee=gaussian(status="test"))], model="fixed", people="disjoint")
    assert both.guarantee.status == "test"
    assert "site 2: drawn with seeded noise" in both.summary()
    both = combine([site(1.0), site(2.0, guarantee=claimed)], model="fixed")
    assert "site 2: claimed and not proved" in both.summary()


def test_a_statement_that_the_sites_events_contradict_cannot_be_held():
    one = guarantee_of([gaussian(), gaussian()], "overlapping")
    for change in ({"epsilon": one.epsilon * 0.99}, {"delta": one.delta * 0.9}):
        with pytest.raises(InvalidInput, match="events spend more"):
            replace(one, **change)
    assert all(isinstance(event, GaussianEvent) for event in one.events)
