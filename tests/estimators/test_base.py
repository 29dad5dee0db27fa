"""What all estimators share: parameters, options and payment are refused or taken by name, before records are read."""

import inspect
import pickle
import sys
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils import get_tags

from discreet import ATE, CATE, Bounds, DifferenceInMeans, InvalidInput, Ledger, NotFitted, Uplift, plan
from discreet.estimators._base import TableFits
from discreet.estimators._parameters import Parameters
from discreet.papers import ADUM, DRLearner, PrivATE, SLearner, TLearner, TwoModel
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(-3, 4), covariates={"age": (0, 1)}, propensity=(0.1, 0.9))
MADE: dict[str, Any] = {
    "ATE": ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS),
    "CATE": CATE(epsilon=4.0, delta=1e-6, bounds=BOUNDS),
    "DifferenceInMeans": DifferenceInMeans(epsilon=1.0, bounds=BOUNDS),
    "Uplift": Uplift(epsilon=1.0, bounds=BOUNDS, by={"age": 4}),
}
LEARNERS: dict[str, Any] = {
    "ADUM": ADUM(epsilon=1.0, bounds=BOUNDS, by={"age": 4}),
    "TwoModel": TwoModel(epsilon=1.0, bounds=BOUNDS),
    "DRLearner": DRLearner(epsilon=1.0, delta=1e-6, bounds=BOUNDS, random_state=0),
    "SLearner": SLearner(epsilon=1.0, delta=1e-6, bounds=BOUNDS),
}


class Unread:
    """A table or array that nobody may touch."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was read")


def records(n=400):
    rng = np.random.default_rng(2)
    age, t = rng.random(n), rng.integers(0, 2, n)
    return pd.DataFrame({"y": age + t + rng.normal(0, 0.2, n), "t": t, "age": age})


def fitted(estimator):
    frame = records()
    with seeded_noise(0):
        return clone(estimator).fit(frame["y"], frame["t"], X=frame[["age"]])


@pytest.mark.parametrize("estimator", (MADE | LEARNERS).values(), ids=MADE | LEARNERS)
def test_a_fitted_estimator_is_cloned_pickled_and_shown_like_any_of_scikit_learn(estimator):
    made = fitted(estimator)
    assert set(vars(made)) - set(made.get_params()) == {"release_"}
    assert not hasattr(clone(made), "release_")
    assert pickle.loads(pickle.dumps(made)).summary() == made.summary()
    assert repr(clone(made)).startswith(type(made).__name__ + "(")


@pytest.mark.parametrize("estimator", (MADE | LEARNERS).values(), ids=MADE | LEARNERS)
def test_what_is_not_fitted_says_so(estimator):
    with pytest.raises(NotFitted, match=f"this {type(estimator).__name__} has no release yet; call fit first"):
        clone(estimator).summary()


@pytest.mark.parametrize("estimator", (MADE | LEARNERS).values(), ids=MADE | LEARNERS)
def test_names_that_fit_does_not_know_are_refused_before_records_are_read(estimator):
    with pytest.raises(InvalidInput, match=r"fit does not take covariates=: .*analyst, dataset, ledger"):
        estimator.fit(Unread(), Unread(), X=Unread(), covariates=["age"])


@pytest.mark.parametrize("estimator", MADE.values(), ids=MADE)
def test_names_that_fit_table_does_not_know_are_refused_before_the_table_is_read(estimator):
    with pytest.raises(
        InvalidInput, match=r"fit_table does not take units=: .*stratum, unit, (weight, )?where, workers"
    ):
        estimator.fit_table(Unread(), outcome="y", treatment="t", units="id")


def test_names_that_a_plan_does_not_know_are_refused():
    with pytest.raises(InvalidInput, match=r"plan does not take sd=: .*outcome_sd"):
        plan("ate", n=1_000, bounds=BOUNDS, epsilon=1.0, delta=1e-6, **{"sd": 2.0})


@pytest.mark.parametrize("estimator", (MADE | LEARNERS).values(), ids=MADE | LEARNERS)
def test_payment_without_a_ledger_is_refused_before_records_are_read(estimator):
    with pytest.raises(InvalidInput, match="belong to a ledger: give ledger="):
        estimator.fit(Unread(), Unread(), X=Unread(), dataset="trial")
    with pytest.raises(InvalidInput, match=r"must be a discreet\.Ledger"):
        estimator.fit(Unread(), Unread(), X=Unread(), ledger="budget.db", dataset="trial")


@pytest.mark.parametrize(
    "method", [ATE.fit, ATE.fit_table, PrivATE.fit, TLearner.fit, plan], ids=lambda m: m.__qualname__
)
def test_every_keyword_is_typed_and_documented(method):
    parameters = inspect.signature(method).parameters
    (rest,) = [name for name, each in parameters.items() if each.kind is inspect.Parameter.VAR_KEYWORD]
    assert len(parameters) <= 8
    (given,) = get_args(get_type_hints(method)[rest])
    documented = inspect.getdoc(method)
    for name in {*parameters, *given.__optional_keys__} - {"self", rest}:
        assert name in documented


def test_a_fit_without_a_ledger_calls_no_code_of_ledgers():
    called = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_globals.get("__name__")) if event == "call" else None)
    try:
        fitted(MADE["ATE"])
    finally:
        sys.setprofile(None)
    assert "discreet.estimators.ate" in called
    assert not {name for name in called if str(name).startswith("discreet.ledger")}


def test_a_ledger_is_charged_by_arrays_and_by_tables(tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("trial", epsilon=3.0, delta=1e-3)
    frame = records()
    with seeded_noise(0):
        MADE["ATE"].fit(frame["y"], frame["t"], X=frame[["age"]], ledger=ledger, dataset="trial", analyst="ada")
        first = clone(MADE["ATE"]).fit_table(frame, outcome="y", treatment="t", ledger=ledger, dataset="trial")
        again = clone(MADE["ATE"]).fit_table(frame, outcome="y", treatment="t", ledger=ledger, dataset="trial")
    assert [request.cost.epsilon for request in ledger.requests("trial")] == [1.0, 1.0]
    assert again.release_ == first.release_


def test_an_estimator_that_does_not_say_how_it_fits_cannot_be_made():
    class Unfinished(TableFits, Parameters):
        """Checks its budget, and forgets the rest."""

        def _check_budget(self, budget):
            """Any budget will do."""

    with pytest.raises(TypeError, match="_fit"):
        Unfinished()  # type: ignore[abstract]


def test_parameters_follow_the_rules_of_scikit_learn():
    made = clone(LEARNERS["ADUM"]).set_params(epsilon=2.0, by={"age": 8})
    assert (made.epsilon, made.by, LEARNERS["ADUM"].epsilon) == (2.0, {"age": 8}, 1.0)
    assert made.get_params().keys() == inspect.signature(ADUM).parameters.keys()
    assert get_tags(made).estimator_type is None
    with pytest.raises(InvalidInput, match=r"ADUM has no parameter epsilom: it takes .*, epsilon, "):
        made.set_params(neighbours="add-remove", epsilom=3.0)
    assert made.neighbours == "replace-one"


def test_parameters_of_models_that_are_parameters_can_be_set():
    model = PrivATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, model_regression=LinearRegression())
    assert model.get_params()["model_regression__positive"] is False
    assert "model_regression__positive" not in model.get_params(deep=False)
    model.set_params(model_regression__positive=True)
    assert model.model_regression.positive is True


def test_an_estimator_shows_what_is_not_at_its_default_and_no_long_column():
    assert repr(Uplift(epsilon=1, bounds=None, by={"age": 4})) == "Uplift(bounds=None, by={'age': 4}, epsilon=1)"
    long = repr(Uplift(epsilon=1, bounds=BOUNDS, by={"age": 4}, propensity=[0.5] * 10_000))
    assert len(long) < 800
    assert long.endswith("propensity=<list>)")
