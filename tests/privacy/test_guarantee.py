import json
import math
import pickle
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.exceptions import InvalidBudget, InvalidInput
from discreet.privacy.accountant import (
    calibrate_mu,
    gdp_epsilon,
)
from discreet.privacy.budget import Budget, ClaimedEvent, GaussianEvent, LaplaceEvent, ParallelEvent
from discreet.privacy.guarantee import Guarantee, parallel, sequential

GRID = 2.0**45


def gaussian_event(mu, name="score"):
    return GaussianEvent(name=name, diameter=GRID, sigma=GRID / mu, dimension=3)


def laplace_event(epsilon, name="counts"):
    return LaplaceEvent(name=name, diameter=GRID, scale=GRID / epsilon, dimension=3)


def guarantee(epsilon=1.0, delta=1e-6, **changes):
    facts = {
        "neighbours": "replace-one",
        "status": "proved",
        "proof": "ate.md",
        "public": ("the number of records",),
        "events": (gaussian_event(calibrate_mu(epsilon, delta)),) if delta else (laplace_event(epsilon),),
    }
    return Guarantee(epsilon=epsilon, delta=delta, **(facts | changes))


def paper(epsilon=1.0, delta=1e-6):
    events = (ClaimedEvent(name="forest", epsilon=epsilon, delta=delta),)
    return guarantee(epsilon, delta, status="claimed", proof=None, events=events)


@given(st.floats(0.01, 5), st.floats(-12, -2).map(lambda exponent: 10**exponent), st.integers(1, 6))
@settings(max_examples=50)
def test_a_calibrated_budget_can_be_stated_and_a_smaller_one_cannot(epsilon, delta, rounds):
    mu = calibrate_mu(epsilon, delta)
    events = tuple(gaussian_event(mu / math.sqrt(rounds), f"round {i}") for i in range(rounds))
    stated = guarantee(epsilon, delta, events=events)
    assert stated.budget == Budget(epsilon=epsilon, delta=delta)
    assert stated.delta_at(epsilon) <= delta
    assert stated.epsilon_at(delta) <= epsilon
    with pytest.raises(InvalidBudget, match="events spend more"):
        guarantee(0.95 * epsilon, delta, events=events)
    with pytest.raises(InvalidBudget, match="events spend more"):
        guarantee(epsilon, 0.9 * delta, events=events)
    with pytest.raises(InvalidBudget, match="events spend more"):
        guarantee(epsilon, None, events=events)


def test_a_statement_may_be_larger_than_what_was_spent():
    spent = guarantee(0.5, 1e-6).events
    assert guarantee(2.0, 1e-5, events=spent).epsilon_at(1e-6) <= 0.5


@given(st.lists(st.floats(0.01, 2), min_size=1, max_size=3))
@settings(max_examples=15)
def test_pure_epsilons_that_add_up_by_floating_point_can_be_stated(epsilons):
    events = tuple(laplace_event(epsilon) for epsilon in epsilons)
    stated = guarantee(sum(epsilons), None, events=events)
    assert stated.delta == 0.0
    assert stated.epsilon_at(0.0) == pytest.approx(sum(epsilons), rel=1e-12)
    with pytest.raises(InvalidBudget, match="events spend more"):
        guarantee(sum(epsilons) * (1 - 1e-9), None, events=events)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"proof": None}, "needs proof="),
        ({"proof": ""}, "needs proof="),
        ({"status": "assumed"}, "status must be"),
        ({"neighbours": "replace"}, "neighbours must be"),
        ({"events": ()}, "at least one event"),
        ({"events": (ClaimedEvent(name="forest", epsilon=0.1, delta=0.0),)}, "cannot rest on a claimed event"),
        (
            {"events": (ParallelEvent(name="folds", parts=((ClaimedEvent(name="forest", epsilon=0.1, delta=0.0),),)),)},
            "cannot rest on a claimed event",
        ),
    ],
)
def test_a_guarantee_that_does_not_hold_together_is_refused(changes, message):
    with pytest.raises(InvalidInput, match=message):
        guarantee(**changes)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-6), (math.nan, 1e-6), (1.0, 1.0), (1.0, -1.0)])
def test_a_statement_that_is_not_a_budget_is_refused(epsilon, delta):
    with pytest.raises(InvalidBudget, match="must"):
        guarantee(epsilon, delta, events=(gaussian_event(0.01),))


def test_a_guarantee_is_frozen():
    with pytest.raises(FrozenInstanceError, match="epsilon"):
        guarantee().epsilon = 0.1


@pytest.mark.parametrize(
    "stated",
    [guarantee(), guarantee(delta=None), paper(), parallel(guarantee(), paper()), sequential(guarantee(), paper())],
)
def test_guarantees_survive_json_and_pickling(stated):
    assert pickle.loads(pickle.dumps(stated)) == stated
    assert Guarantee.from_dict(json.loads(json.dumps(stated.to_dict()))) == stated


def test_a_file_that_was_tampered_with_or_is_of_another_version_is_refused():
    plain = guarantee().to_dict()
    with pytest.raises(InvalidBudget, match="events spend more"):
        Guarantee.from_dict(plain | {"epsilon": 0.1})
    with pytest.raises(InvalidInput, match="exactly the fields"):
        Guarantee.from_dict(plain | {"composition": "magic"})
    with pytest.raises(InvalidInput, match="exactly the fields"):
        Guarantee.from_dict({key: value for key, value in plain.items() if key != "proof"})


def test_releases_in_sequence_cost_less_than_the_sum_of_their_epsilons():
    both = sequential(guarantee(1.0, 1e-6), guarantee(1.0, 1e-6, proof="cate.md", public=("the bounds",)))
    mu = math.sqrt(2) * calibrate_mu(1.0, 1e-6)
    assert both.delta == pytest.approx(2e-6)
    assert both.epsilon == pytest.approx(gdp_epsilon(mu, 2e-6), rel=1e-6)
    assert both.epsilon < 1.5
    assert both.proof == "ate.md, cate.md"
    assert both.public == ("the number of records", "the bounds")
    assert len(both.events) == 2


def test_pure_releases_in_sequence_stay_pure():
    both = sequential(guarantee(0.3, None), guarantee(0.4, None))
    assert both.delta == 0.0
    assert both.epsilon == pytest.approx(0.7)


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_the_worst_status_wins_and_one_guarantee_stays_what_it_is(compose):
    proved, claimed, test = guarantee(), paper(), guarantee(status="test", proof=None)
    assert compose(proved) is proved
    assert compose(proved, proved).status == "proved"
    assert compose(proved, claimed).status == compose(claimed, proved).status == "claimed"
    assert compose(claimed, test, proved).status == "test"
    assert compose(proved, claimed).proof == "ate.md"


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_guarantees_about_different_things_do_not_compose(compose):
    with pytest.raises(InvalidInput, match="must agree"):
        compose(guarantee(), guarantee(neighbours="add-remove"))
    with pytest.raises(InvalidInput, match="must agree"):
        compose(guarantee(), guarantee(unit="one household"))


@pytest.mark.parametrize("compose", [sequential, parallel])
def test_nothing_cannot_be_composed(compose):
    with pytest.raises(InvalidInput, match="at least one"):
        compose()


def test_deltas_that_add_up_to_one_promise_nothing():
    with pytest.raises(InvalidBudget, match="promises nothing"):
        sequential(guarantee(1.0, 0.5), guarantee(1.0, 0.5))


def test_disjoint_parts_cost_the_largest_of_each_number_alone_and_in_sequence():
    parts = parallel(guarantee(0.5, 1e-6), guarantee(1.0, 1e-9), guarantee(0.7, None))
    assert (parts.epsilon, parts.delta) == (1.0, 1e-6)
    folds = parallel(guarantee(1.0, 1e-6), guarantee(0.5, 1e-6))
    again = sequential(folds, guarantee(1.0, 1e-6))
    assert again.epsilon == pytest.approx(sequential(guarantee(1.0, 1e-6), guarantee(1.0, 1e-6)).epsilon, rel=1e-9)


def test_a_guarantee_reads_like_a_promise_to_a_person():
    text = str(guarantee(0.5, 1e-6, public=("the number of records", "the bounds"), unit="one patient's record"))
    for phrase in [
        "epsilon = 0.5, delta = 1e-06",
        "one patient's record",
        "replaced by any other",
        "at most 1.65 times as likely",
        "a chance of at most 1e-06",
        "Public, not protected: the number of records; the bounds.",
        "Status: proved",
        "docs/proofs/ate.md",
    ]:
        assert phrase in text


def test_the_text_says_which_relation_and_which_status():
    assert "left out" in str(guarantee(neighbours="add-remove"))
    assert "claimed, not proved" in str(paper())
    assert "docs/proofs" not in str(paper())
    assert "drawn with seeded noise: not private" in str(guarantee(status="test", proof=None))
    assert "docs/proofs/ate.md and docs/proofs/cate.md" in str(sequential(guarantee(), guarantee(proof="cate.md")))
    assert "(delta)" not in str(guarantee(delta=None))
    assert "nothing beyond the settings" in str(guarantee(public=()))


def test_an_absurd_epsilon_can_still_be_printed():
    assert "more than 1e+304" in str(guarantee(1e4, 1e-6))


def test_a_copy_with_a_smaller_statement_is_refused_too():
    with pytest.raises(InvalidBudget, match="events spend more"):
        replace(guarantee(), epsilon=0.5)


def test_a_guarantee_names_the_audit_that_covers_it_and_older_files_name_none():
    stated = guarantee(audit=1)
    assert "covered by audit version 1; see docs/evidence/audit.md" in str(stated)
    plain = json.loads(json.dumps(stated.to_dict()))
    assert Guarantee.from_dict(plain) == stated
    older = Guarantee.from_dict({key: value for key, value in plain.items() if key != "audit"})
    assert older == guarantee()
    assert "audit" not in str(older)
    for wrong in (0, True, "1", 1.5):
        with pytest.raises(InvalidInput, match="audit must be"):
            guarantee(audit=wrong)


def test_together_releases_are_covered_by_an_audit_only_if_each_of_them_is():
    covered, not_covered = guarantee(audit=1), guarantee()
    assert sequential(covered, covered).audit == 1
    assert sequential(covered, not_covered).audit is None
    assert parallel(covered, covered).audit == 1
