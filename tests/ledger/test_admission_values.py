"""Values and edges of admission that mutants showed to be unprotected."""

import inspect
import math
import os
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from discreet import Bounds, Budget, DifferenceInMeans
from discreet.exceptions import BudgetExceeded, InvalidBudget, InvalidInput
from discreet.ledger import Cost, charging
from discreet.ledger.account import _charge, _minus, _plus, bar
from discreet.ledger.charging import _bytes, _contents, _file, _stored, on_ledger, wanted_by
from discreet.ledger.composition import (
    MOST_REQUESTS,
    Total,
    admits,
    check_composition,
    gaussian_limit,
    plain_limit,
    pure_mu,
)
from discreet.privacy.accountant import RESERVE, SLACK, gdp_mu
from discreet.privacy.budget import ClaimedEvent, GaussianEvent


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


def test_an_analyst_is_shown_and_charged_what_that_analyst_spent(quick):
    quick.open("icu", epsilon=2.0, analysts={"ada": Budget(epsilon=1.0), "bo": Budget(epsilon=1.0)}, curator="cy")
    quick.charge(quick.reserve("icu", Cost(epsilon=0.75), analyst="ada"))
    account = quick.account("icu")
    assert {name: quota.spent.epsilon for name, quota in account.quotas.items()} == {"ada": 0.75, "bo": 0.0}
    assert not account.fits(Cost(epsilon=0.5), analyst="ada")
    assert account.fits(Cost(epsilon=0.5), analyst="bo")


def test_many_gaussian_requests_are_composed_tightly_and_many_others_are_added_up(quick):
    quick.open("icu", epsilon=4.0, delta=1e-5)
    quick.open("ward", epsilon=4.0, delta=1e-5)
    for _ in range(61):
        quick.charge(quick.reserve("icu", Cost.of(Budget(epsilon=0.05, delta=1e-8), one_gate=True)))
        quick.charge(quick.reserve("ward", Cost(epsilon=0.05)))
    tight, plain = quick.account("icu"), quick.account("ward")
    assert 0.0 < tight.composed < 0.9 * tight.spent.epsilon
    assert plain.composed == plain.spent.epsilon


def test_a_bar_shows_spent_reserved_and_left():
    assert bar(0.5, 0.25, 8) == "████▒▒··"
    assert bar(0.75, 0.5, 8) == "██████▒▒"
    assert bar(0.0, 0.0) == "·" * 32


def test_the_mu_of_a_pure_request_is_rounded_up():
    exact = 2 * norm.isf(1 / (1 + math.e))
    assert exact * (1 + 5e-10) < pure_mu(1.0) < exact * (1 + 2e-9)


def test_a_request_without_a_ledger_has_nothing_to_be_recognised_by():
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1)))
    wanted = wanted_by(estimator, {"Y": [0, 1], "T": [0, 1]}, one_gate=True)
    assert (wanted.same, wanted.legacy, wanted.about) == (None, None, {"method": "DifferenceInMeans"})


def test_a_file_is_named_in_full_and_of_an_address_only_its_kind():
    assert _file("records.csv") == os.path.abspath("records.csv")
    assert _file("postgresql://ada:secret@host/clinic") == "postgresql://"
    assert _file(3) is None


def test_records_are_by_arm_by_outcomes_treatments_and_covariates(quick):
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1), covariates=[(0, 1)]))
    call = {"Y": np.array([0.0, 1.0]), "T": np.array([0, 1]), "X": np.array([[0.25], [0.5]])}

    def same(**more: Any) -> str | None:
        return wanted_by(estimator, {**call, **more}, one_gate=True, ledger=quick).same

    others = [same(Y=np.array([1.0, 1.0])), same(T=np.array([1, 0])), same(X=np.array([[0.25], [0.75]]))]
    assert same() == same()
    assert len({same(), *others}) == 4


def test_a_table_in_memory_has_no_file_among_what_is_told_of_it(quick):
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1)))
    table = pa.table({"y": [0.0, 1.0], "t": [0, 1]})
    call = {"table": table, "outcome": "y", "treatment": "t"}
    about = wanted_by(estimator, call, one_gate=True, ledger=quick).about
    assert about == {"method": "DifferenceInMeans", "columns": {"outcome": "y", "treatment": "t", "covariates": None}}


def test_totals_add_and_subtract_squares_of_mu():
    none = Total(epsilon=0.0, delta=0.0, mu=0.0, requests=0)
    once = _plus(none, Cost(epsilon=1.0, delta=1e-6, mu=0.3))
    twice = _plus(once, Cost(epsilon=1.0, delta=1e-6, mu=0.4))
    assert [once.mu, twice.mu] == pytest.approx([0.3, 0.5])
    assert (twice.epsilon, twice.delta, twice.requests) == (2.0, 2e-6, 2)
    rest = _minus(twice, once)
    assert (rest.epsilon, rest.delta, rest.requests) == (1.0, 1e-6, 1)
    assert _minus(twice, once).mu == pytest.approx(0.4)
    unknown = _plus(once, Cost(epsilon=1.0, delta=1e-6))
    assert _minus(unknown, once).mu == _minus(unknown, unknown).mu == unknown.mu == math.inf
    assert _minus(once, unknown).mu == math.inf


def test_a_fit_is_charged_to_the_stratum_that_it_names(quick):
    quick.open("icu", epsilon=2.0, strata=("east", "west"))
    means = DifferenceInMeans(epsilon=1.0, bounds=Bounds(outcome=(0, 1)))
    means.fit([0.0, 1.0] * 20, [0, 0, 1, 1] * 10, ledger=quick, dataset="icu", stratum="west")
    assert [request.stratum for request in quick.requests("icu")] == ["west"]
    assert [request.about["method"] for request in quick.requests("icu")] == ["DifferenceInMeans"]


def test_a_cost_as_a_budget_keeps_both_numbers():
    assert Cost(epsilon=0.5, delta=1e-7).budget == Budget(epsilon=0.5, delta=1e-7)


class Fits:
    """Something that can be fitted, and says with what."""

    @on_ledger()
    def fit(self, Y: Any, T: Any = None, *, where: Any = None, **options: Any) -> Any:
        """Fit it."""
        return Y, T, where, options


def test_without_a_ledger_a_fit_is_what_it_is_without_the_decorator():
    assert Fits().fit(1, 2, where=3, query=4) == (1, 2, 3, {"query": 4})
    assert Fits().fit(1, T=2) == (1, 2, None, {})


def test_a_fit_shows_what_it_takes_for_a_ledger_after_its_own_arguments():
    def fit(self: Any, Y: Any, **options: Any) -> Any:
        """Fit it."""

    shown = inspect.signature(on_ledger()(fit)).parameters
    names = list(shown)
    assert names[:2] == ["self", "Y"]
    assert names[2] == "ledger"
    assert names[-1] == "options"
    assert (on_ledger()(fit).__doc__ or "").startswith("Fit it.")
    paying = [shown[name] for name in names[2:-1]]
    assert {(each.kind, each.default) for each in paying} == {(inspect.Parameter.KEYWORD_ONLY, None)}


def test_texts_and_numbers_are_told_apart_wherever_they_stand():
    def of(*values: Any) -> bytes:
        return b"|".join(_bytes(*values))

    words = np.array(["a", "b"], dtype=object)
    assert of(words) == of(["a", "b"])
    others = [of(np.array(each, dtype=object)) for each in (["b", "a"], ["a", "c"], ["a", None], ["ab", ""])]
    assert len({of(words), *others}) == 5
    frames = [pa.table(columns) for columns in ({"x": ["a"]}, {"z": ["a"]}, {"x": ["b"]}, {"x": [1]}, {"x": [2]})]
    assert len({of(frame) for frame in frames}) == 5
    assert of(pa.table({"x": [1, 2]})["x"]) == of(np.array([1, 2]))
    assert of(np.arange(4.0).reshape(2, 2).T) != of(np.arange(4.0).reshape(2, 2))


def test_a_lazy_table_has_no_contents_to_be_recognised_by():
    import polars as pl

    frame = pl.DataFrame({"y": [0.0], "t": [1]})
    call = {"outcome": "y", "treatment": "t"}
    assert _contents(call | {"table": frame.lazy()}, ()) is None
    assert _contents(call | {"table": object()}, ()) is None
    assert _contents(call | {"table": frame}, ()) is not None


def test_only_a_gaussian_filter_of_a_pure_cap_is_refused():
    pure, approximate = Budget(epsilon=1.0), Budget(epsilon=1.0, delta=1e-6)
    assert [check_composition(how, pure) for how in ("plain", "either")] == ["plain", "plain"]
    assert [check_composition(how, approximate) for how in ("plain", "either", "gaussian")] == [
        "plain",
        "either",
        "gaussian",
    ]
    with pytest.raises(InvalidBudget, match="needs a delta"):
        check_composition("gaussian", pure)
    with pytest.raises(InvalidInput, match="composition must be one of"):
        check_composition("loose", pure)


def test_a_cap_admits_what_uses_it_up_to_the_last_digit():
    cap = Budget(epsilon=1.0, delta=1e-6)
    limit = gaussian_limit(cap, "gaussian")
    for mu, requests, fits in (
        (limit, 1, True),
        (math.nextafter(limit, 9.0), 1, False),
        (limit, MOST_REQUESTS, True),
        (limit, MOST_REQUESTS + 1, False),
    ):
        assert admits(cap, "gaussian", Total(epsilon=9.0, delta=0.1, mu=mu, requests=requests)) == fits
    assert admits(cap, "plain", Total(epsilon=1.0, delta=1e-6, mu=math.inf, requests=1))
    assert not admits(cap, "plain", Total(epsilon=1.001, delta=1e-6, mu=math.inf, requests=1))
    assert not admits(cap, "plain", Total(epsilon=1.0, delta=1.001e-6, mu=math.inf, requests=1))


def test_a_lowered_cap_holds_in_data_sets_with_and_without_strata(quick):
    for name, strata in (("icu", ()), ("ward", ("east", "west"))):
        quick.open(name, epsilon=2.0, strata=strata, curator="cy")
        request = quick.reserve(name, Cost(epsilon=1.5), stratum=strata[0] if strata else None)
        quick.allow(name, None, epsilon=1.0, curator="cy")
        with pytest.raises(BudgetExceeded):
            quick.charge(request)


def test_what_a_pure_cap_has_composed_is_at_no_delta(quick):
    quick.open("icu", epsilon=4.0)
    for _ in range(3):
        quick.charge(quick.reserve("icu", Cost(epsilon=0.5)))
    assert quick.account("icu").composed == pytest.approx(1.5, rel=1e-9)
    assert quick.account("icu").composed_as_charged == pytest.approx(1.5, rel=1e-9)


def test_what_is_told_of_a_file_is_its_full_name_and_of_an_address_nothing_that_may_be_secret(quick):
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1)))
    call = {"table": "records.csv", "outcome": "y", "treatment": "t"}
    about = wanted_by(estimator, call, one_gate=True).about
    assert about["columns"]["file"] == os.path.abspath("records.csv")
    assert _file("postgresql://ada@host/clinic?via=http://secret") == "postgresql://"


def test_records_that_are_no_columns_are_left_to_the_fit_to_refuse(quick):
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1)))
    for table in (3, {"y": [1]}):
        wanted = wanted_by(estimator, {"table": table, "covariates": 3}, one_gate=True, ledger=quick)
        assert (wanted.same, wanted.about) == (None, {"method": "DifferenceInMeans"})
    ragged = wanted_by(estimator, {"Y": [[1.0], [1.0, 2.0]], "T": [0, 1]}, one_gate=True, ledger=quick)
    assert ragged.same is None


def test_a_reservation_for_a_stratum_pays_for_the_request_that_it_was_made_for(quick):
    quick.open("icu", epsilon=2.0, strata=("east", "west"))
    estimator = DifferenceInMeans(epsilon=0.5, bounds=Bounds(outcome=(0, 1)))
    Y, T = np.array([0.0, 1.0] * 20), np.array([0, 0, 1, 1] * 10)
    wanted = wanted_by(estimator, {"Y": Y, "T": T}, one_gate=True, ledger=quick)
    facts = {"neighbours": wanted.neighbours, "stratum": "west", "same": wanted.same}
    other, own = (quick.reserve("icu", wanted.cost, **facts) for _ in range(2))
    with pytest.raises(InvalidInput, match="made for another request"):
        estimator.fit(1 - Y, T, ledger=quick, reservation=other)
    estimator.fit(Y, T, ledger=quick, reservation=own)
    assert quick.request(own).state == "settled"


def test_an_account_tells_what_a_ledger_knows_of_its_data_set(quick):
    quota = Budget(epsilon=1.5)
    quick.open("icu", epsilon=2.0, strata=("east", "west"), analysts={"ada": quota}, curator="cy")
    quick.charge(quick.reserve("icu", Cost(epsilon=0.5), analyst="ada", stratum="east"))
    quick.reserve("icu", Cost(epsilon=0.25), analyst="ada", stratum="west")
    quick.charge(quick.reserve("icu", Cost(epsilon=0.125), analyst="ada"))
    quick.propose("icu", epsilon=3.0, curator="cy")
    quick.open("ward", epsilon=1.0, curator="cy")
    quick.propose("ward", epsilon=3.0, curator="cy")
    account = quick.account("icu")
    assert [proposal.cap.epsilon for proposal in account.proposals] == [3.0]
    assert account.to_dict() == {
        "dataset": "icu",
        "version": account.version,
        "neighbours": "replace-one",
        "unit": account.unit,
        "frozen": False,
        "composition": "plain",
        "cap": {"epsilon": 2.0, "delta": None},
        "spent": {"epsilon": 0.625, "delta": 0.0},
        "composed": pytest.approx(0.625),
        "shares": {"spent": pytest.approx(0.1875), "reserved": pytest.approx(0.125), "left": pytest.approx(0.6875)},
        "strata": {"east": {"epsilon": 0.625, "delta": 0.0}, "west": {"epsilon": 0.375, "delta": 0.0}},
        "analysts": {
            "ada": {"cap": {"epsilon": 1.5, "delta": None}, "spent": {"epsilon": 0.875, "delta": 0.0}},
        },
        "requests": {"charged": 2, "reserved": 1},
        "claimed": 0,
    }
    assert account.left == (1.375, 0.0)
    assert account.largest(analyst="ada") == pytest.approx(0.625)
    assert account.largest() == 0.0
    # What one stratum has spent leaves the others theirs, up to the analyst's own cap.
    assert account.fits(Cost(epsilon=0.625), analyst="ada", stratum="west")
    assert not account.fits(Cost(epsilon=0.626), analyst="ada", stratum="west")
    quick.freeze("icu", curator="cy")
    assert quick.account("icu").frozen


def test_a_stratum_has_room_for_what_the_others_do_not_use(quick):
    quick.open("icu", epsilon=2.0, strata=("east", "west"))
    quick.charge(quick.reserve("icu", Cost(epsilon=1.5), stratum="east"))
    account = quick.account("icu")
    assert account.largest(stratum="west") == 2.0
    assert account.largest(stratum="east") == account.largest() == pytest.approx(0.5, rel=1e-9)
    assert account.fits(Cost(epsilon=0.5), stratum="east")
    assert not account.fits(Cost(epsilon=0.51), stratum="east")
    assert not account.fits(Cost(epsilon=0.51))
    quick.charge(quick.reserve("icu", Cost(epsilon=0.5)))
    assert quick.account("icu").largest() == 0.0
    assert quick.account("icu").left == (0.0, 0.0)
    assert quick.account("icu").shares == pytest.approx((1.0, 0.0, 0.0))


def test_gaussian_requests_are_shown_by_their_squares_and_may_have_more_than_the_plain_rest(quick):
    quick.open("icu", epsilon=1.0, delta=1e-6)
    cost = Cost.of(Budget(epsilon=0.3, delta=1e-7), one_gate=True)
    for _ in range(2):
        quick.charge(quick.reserve("icu", cost))
    account = quick.account("icu")
    assert account.spent.mu == pytest.approx(cost.mu * math.sqrt(2))
    squares = 2 * (cost.mu / gaussian_limit(account.cap, account.composition)) ** 2
    assert account.shares == pytest.approx((min(squares, 0.6), 0.0, 1 - min(squares, 0.6)))
    assert account.left == pytest.approx((0.4, 8e-7))
    assert 0.4 < account.largest(1e-7) < 1.0
    assert account.largest(1e-7, one_gate=False) == pytest.approx(0.4, rel=1e-6)


def test_a_cap_of_a_large_epsilon_holds_a_smaller_one_at_which_the_lattice_costs_a_quarter_of_delta():
    delta = 1e-6 / 2 * (1 - RESERVE)
    slack = MOST_REQUESTS * SLACK
    epsilon = math.log(delta / (4 * slack))
    expected = gdp_mu(epsilon, delta - slack * (1 + math.exp(epsilon)))
    assert gaussian_limit(Budget(epsilon=50.0, delta=1e-6), "either") == pytest.approx(expected, rel=1e-12)


def test_only_the_first_request_on_a_cap_with_a_delta_chooses_how_costs_add_up(quick):
    quick.open("either", epsilon=1.0, delta=1e-6)
    quick.open("plain", epsilon=1.0, delta=1e-6, composition="plain")
    ways = {name: quick.account(name)._compositions for name in ("either", "plain")}
    assert ways == {"either": ("either", "plain"), "plain": ("plain",)}
    for name in ways:
        quick.reserve(name, Cost(epsilon=0.25))
    assert {name: quick.account(name)._compositions for name in ways} == {"either": ("either",), "plain": ("plain",)}


def test_a_proposal_for_an_analyst_is_measured_by_the_analysts_own_cap(quick):
    quick.open("icu", epsilon=2.0, analysts={"ada": Budget(epsilon=0.5)}, curator="cy")
    quick.approve(quick.propose("icu", epsilon=1.0, analyst="ada", curator="cy"), curator="di")
    assert quick.account("icu").quotas["ada"].cap == Budget(epsilon=1.0)
    with pytest.raises(InvalidInput, match="raises a cap"):
        quick.propose("icu", epsilon=0.75, analyst="ada", curator="cy")


def test_a_stratum_that_nobody_asked_about_has_composed_nothing(quick):
    quick.open("icu", epsilon=1.0, delta=1e-6, composition="gaussian", strata=("east", "west"))
    cost = Cost.of(Budget(epsilon=0.1, delta=6e-7), one_gate=True)
    for _ in range(2):
        quick.charge(quick.reserve("icu", cost, stratum="east"))
    account = quick.account("icu")
    assert account.spent.delta > 1e-6
    assert 0.0 < account.composed < 0.2


def test_what_a_gaussian_request_may_spend_is_one_number_without_a_lattice():
    request: Any = SimpleNamespace(id=7, cost=Cost(epsilon=1.0, delta=1e-6, mu=0.5))
    event = GaussianEvent(name="request 7", diameter=0.5, sigma=1.0, dimension=1, lattice=False)
    assert _charge(request) == event
    plain: Any = SimpleNamespace(id=7, cost=Cost(epsilon=1.0, delta=1e-6))
    assert _charge(plain) == ClaimedEvent(name="request 7", epsilon=1.0, delta=1e-6)


def test_a_gaussian_cost_needs_a_delta():
    assert Cost(epsilon=1.0, delta=1e-300, mu=0.5).mu == 0.5
    with pytest.raises(InvalidInput):
        Cost(epsilon=1.0, delta=0.0, mu=0.5)


def test_a_fit_of_one_gate_is_charged_by_its_mu(quick, monkeypatch):
    charged: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(charging, "charged_fit", lambda *_, **how: charged.append((how["kinds"], how["one_gate"])))
        for one_gate in (True, False):
            on_ledger(Fits, one_gate=one_gate)(lambda self, Y: Y)(None, 1, ledger=quick)
    assert charged == [((Fits,), True), ((Fits,), False)]
    quick.open("icu", epsilon=2.0, delta=1e-5)
    means = DifferenceInMeans(epsilon=0.5, delta=1e-6, bounds=Bounds(outcome=(0, 1)))
    means.fit([0.0, 1.0] * 20, [0, 0, 1, 1] * 10, ledger=quick, dataset="icu")
    (request,) = quick.requests("icu")
    assert request.cost == Cost.of(Budget(epsilon=0.5, delta=1e-6), one_gate=True)
    assert request.cost.mu is not None


UNREADABLE = {"format": "unheard of", "bounds": {"covariates": {}}}


def test_no_request_is_answered_from_a_release_that_cannot_be_read_back():
    budget = Budget(epsilon=0.5)
    kept = SimpleNamespace(id=1, cost=SimpleNamespace(budget=budget))
    wanted: Any = SimpleNamespace(same="x", legacy=None, cost=SimpleNamespace(budget=budget), covariates=())
    ledger: Any = SimpleNamespace(stored=lambda *_, **__: kept, release=lambda _: UNREADABLE)
    payment: Any = {"dataset": "icu"}
    assert _stored(ledger, wanted, {}, payment) is None


def test_an_epsilon_of_a_larger_delta_is_not_stated_at_a_smaller_one(quick):
    quick.open("icu", epsilon=2.0, delta=1e-6, composition="gaussian")
    quick.charge(quick.reserve("icu", Cost.of(Budget(epsilon=0.1, delta=1e-4), one_gate=True)))
    assert quick.account("icu").composed > 0.1


def test_an_account_that_nobody_has_used_has_all_of_its_cap_left(quick):
    for delta in (None, 1e-6):
        quick.open(f"icu {delta}", epsilon=1.0, delta=delta)
        account = quick.account(f"icu {delta}")
        assert account.shares == (0.0, 0.0, 1.0)
        assert (account.composed, account.left) == (0.0, (1.0, delta or 0.0))


def test_a_refusal_says_what_earlier_requests_add_up_to(quick):
    quick.open("icu", epsilon=1.0, delta=1e-5, composition="plain")
    facts = r"has a cap of epsilon = 1, delta = 1e-05; requests so far add up to epsilon = {}, delta = {}, and epsilon"
    with pytest.raises(BudgetExceeded, match=facts.format("0", "0")):
        quick.reserve("icu", Cost(epsilon=1.5, delta=1e-7))
    quick.reserve("icu", Cost(epsilon=0.25, delta=2e-6))
    quick.reserve("icu", Cost(epsilon=0.125, delta=1e-6))
    with pytest.raises(BudgetExceeded, match=facts.format("0.375", "3e-06")):
        quick.reserve("icu", Cost(epsilon=0.75, delta=1e-6))
    quick.open("pure", epsilon=1.0)
    with pytest.raises(BudgetExceeded, match="add up to epsilon = 0, and epsilon = 2 more"):
        quick.reserve("pure", Cost(epsilon=2.0))
