"""Values and edges of admission that mutants showed to be unprotected."""

import math
import os
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from discreet import Bounds, Budget, DifferenceInMeans
from discreet.ledger import Cost
from discreet.ledger.account import _minus, _plus, bar
from discreet.ledger.charging import _file, wanted_by
from discreet.ledger.composition import Total, gaussian_limit, plain_limit, pure_mu


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
    assert twice.requests == 2
    assert _minus(twice, once).mu == pytest.approx(0.4)
    unknown = _plus(once, Cost(epsilon=1.0, delta=1e-6))
    assert _minus(unknown, once).mu == unknown.mu == math.inf


def test_a_fit_is_charged_to_the_stratum_that_it_names(quick):
    quick.open("icu", epsilon=2.0, strata=("east", "west"))
    means = DifferenceInMeans(epsilon=1.0, bounds=Bounds(outcome=(0, 1)))
    means.fit([0.0, 1.0] * 20, [0, 0, 1, 1] * 10, ledger=quick, dataset="icu", stratum="west")
    assert [request.stratum for request in quick.requests("icu")] == ["west"]
