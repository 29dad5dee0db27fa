"""Every estimator pays before it draws, once, and is answered for free when it asks the same again."""

import inspect
import sqlite3
import warnings
from contextlib import closing, contextmanager
from types import SimpleNamespace
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest

import discreet
from discreet import ATE, Bounds, BudgetExceeded, InvalidInput, Ledger, LedgerCorrupt, LedgerRefused, papers
from discreet.audit._configurations import matrix
from discreet.audit._neighbours import base
from discreet.audit._replay import study_of
from discreet.audit.mechanism import fitted as fit_to
from discreet.ledger import Cost
from discreet.ledger.charging import wanted_by
from discreet.privacy import noise
from discreet.privacy.noise import charge_first, charged_by
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (0, 1), "bp": (0, 1)}, propensity=(0.1, 0.9))
# One configuration of every proved estimator, relation and kind of noise is enough here.
PROVED = {
    (each.family, *(getattr(each.make(), name, None) for name in ("neighbours", "delta", "base"))): each
    for each in matrix()
    if "p = 30" not in each.words
}
QUERIES = pd.DataFrame({"age": [0.2, 0.7], "bp": [0.5, 0.5]})
CLAIMED = {
    "ADUM, range": (papers.ADUM, {"by": {"age": 2}, "calibration": "published"}, {}),
    "DPCATE": (papers.DPCATE, {"delta": 1e-5, "starts": 1}, {"queries": QUERIES}),
    "DPCATEFunction": (papers.DPCATEFunction, {"delta": 1e-5, "basis": 5}, {}),
    "PrivATE": (papers.PrivATE, {"delta": 1e-5, "supremum": "closed-form"}, {}),
    "PropensityIPTW, output": (papers.PropensityIPTW, {"delta": 1e-5, "xi": 0.1, "calibration": "published"}, {}),
    "SLearner, boosting": (papers.SLearner, {"delta": 1e-5, "base": "ebm"}, {}),
    "SubsampledDifference": (papers.baselines.SubsampledDifference, {}, {}),
    "TwoModel, objective": (papers.TwoModel, {"model": "logistic", "calibration": "published"}, {}),
}


def study(n=80, seed=0):
    """A small trial with named columns."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(n, 2)), columns=["age", "bp"])
    T = pd.Series(np.arange(n) % 2, name="treated")
    return pd.Series(rng.integers(0, 2, n).astype(float), name="died"), T, X


@pytest.fixture
def ledger(tmp_path):
    with closing(Ledger(f"sqlite:///{tmp_path}/budget.db")) as made:
        made.path = tmp_path / "budget.db"  # type: ignore[attr-defined]
        yield made


@contextmanager
def watched_draws(path, monkeypatch):
    """Every source of noise reads the database from outside, and finds a charge there before it draws."""
    draws = []

    def charged(what):
        with closing(sqlite3.connect(path)) as outside:
            actions = [action for (action,) in outside.execute("SELECT action FROM ledger_log ORDER BY seq")]
        assert actions.count("charge") == actions.count("reserve") == 1, f"{what} was drawn before the charge"
        draws.append(what)

    def watching(module, name):
        real = getattr(module, name)

        def watched(*args, **named):
            charged(name)
            return real(*args, **named)

        monkeypatch.setattr(module, name, watched)

    from interpret import privacy

    watching(noise, "_exact")
    # Others draw from NumPy as well, though not noise.
    library = SimpleNamespace(**vars(np) | {"random": SimpleNamespace(**vars(np.random))})
    monkeypatch.setattr(noise, "np", library)
    watching(library.random, "default_rng")
    for kind in (privacy.DPExplainableBoostingRegressor, privacy.DPExplainableBoostingClassifier):
        watching(kind, "fit")
    yield draws


def account_of(ledger, neighbours="replace-one"):
    ledger.open("icu", epsilon=100, delta=1e-3, neighbours=neighbours)
    return ledger.account("icu")


@pytest.mark.parametrize("configuration", PROVED.values(), ids=[each.name for each in PROVED.values()])
def test_no_proved_estimator_draws_before_its_charge_is_on_disk(configuration, ledger, monkeypatch):
    estimator = configuration.make()
    account_of(ledger, getattr(estimator, "neighbours", "replace-one"))
    table = base(estimator.bounds, configuration.n, "ordinary", study_of(1), binary=configuration.binary)
    with watched_draws(ledger.path, monkeypatch) as draws:
        estimator = fit_to(estimator, table, ledger=ledger, dataset="icu")
    assert draws
    (request,) = ledger.requests("icu")
    assert (request.state, request.outcome["status"]) == ("settled", "proved")
    guarantee = estimator.guarantee_
    assert (request.cost.epsilon, request.cost.delta) == (guarantee.epsilon, guarantee.delta)
    assert type(estimator.release_).from_dict(ledger.release(request.id)).to_dict() == estimator.release_.to_dict()
    assert ledger.verify() == ledger.head


@pytest.mark.parametrize("name", CLAIMED)
def test_no_published_method_draws_before_its_charge_is_on_disk(name, ledger, monkeypatch):
    kind, parameters, more = CLAIMED[name]
    account_of(ledger)
    Y, T, X = study(200)
    estimator = kind(epsilon=0.9, bounds=BOUNDS, **parameters)
    with watched_draws(ledger.path, monkeypatch) as draws, warnings.catch_warnings():
        warnings.simplefilter("ignore", papers.UnprovedClaim)
        estimator.fit(Y, T, X=X, ledger=ledger, dataset="icu", **more)
        assert bool(draws) != (name == "DPCATEFunction")
        if name == "DPCATEFunction":
            # As published it draws when it is asked; it was paid for when it was fitted.
            estimator.effect(QUERIES)
            assert draws
    (request,) = ledger.requests("icu")
    assert (request.state, request.cost.epsilon) == ("settled", 0.9)
    assert request.outcome.get("status") == {"DPCATEFunction": None, "SubsampledDifference": "proved"}.get(
        name, "claimed"
    )


def keywords_of(method):
    """Names of the arguments that a method takes, those of an unpacked TypedDict included."""
    parameters = inspect.signature(method).parameters
    names = set(parameters)
    for name, parameter in parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            for given in get_args(get_type_hints(method)[name]):
                names |= given.__optional_keys__
    return names


def test_the_walk_leaves_no_estimator_out():
    public = {name for name in discreet.__all__ if hasattr(getattr(discreet, name), "get_params")}
    public |= {f"papers.{name}" for name in papers.__all__ if hasattr(getattr(papers, name), "get_params")}
    walked = {family for family, *_ in PROVED} | {f"papers.{kind.__name__}" for kind, *_ in CLAIMED.values()}
    assert public <= walked
    for name in public:
        kind = getattr(papers, name.removeprefix("papers.")) if "." in name else getattr(discreet, name)
        for method in (kind.fit, getattr(kind, "fit_table", kind.fit)):
            assert {"ledger", "dataset", "analyst", "stratum", "reservation"} <= keywords_of(method), name


def test_every_sampler_charges_before_it_draws():
    sums = np.zeros(2, dtype=np.int64)
    samplers = [
        lambda: noise.discrete_gaussian(sums, 2.0**30),
        lambda: noise.discrete_laplace(sums, 2.0**30),
        lambda: noise.published_gaussian(2, 1.0),
        lambda: noise.published_laplace(2, 1.0),
        lambda: noise.published_gamma(2, 1.0),
    ]
    named = [name for name in vars(noise) if name.startswith(("discrete_", "published_"))]
    assert len(samplers) == len(named)

    def refuse():
        raise LedgerRefused("no")

    for sampler in samplers:
        sampler()
        with charged_by(refuse), pytest.raises(LedgerRefused):
            sampler()


def test_charging_outside_a_ledger_is_nothing_and_a_block_ends():
    calls = []
    with charged_by(lambda: calls.append(1)):
        charge_first()
    charge_first()
    assert calls == [1]


def test_identical_requests_are_answered_for_free_and_others_are_charged(ledger):
    ledger.open("icu", epsilon=9, delta=1e-3)
    Y, T, X = study()

    def ask(Y=Y, X=X, epsilon=1.0, **where):
        fit = ATE(epsilon=epsilon, delta=1e-6, bounds=BOUNDS).fit(
            Y, T[: len(Y)], X=X, ledger=ledger, dataset="icu", **where
        )
        return fit.ate_, ledger.account("icu").spent.requests

    first, one = ask()
    assert ask() == (first, one) == (first, 1)
    assert [entry.action for entry in ledger.log()][-1] == "answer"
    assert ask(epsilon=0.5)[1] == 2
    assert ask(Y=Y.rename("alive"))[1] == 3
    # Other rows under the same names, as many of them or fewer.
    assert ask(Y=Y[:70], X=X[:70])[1] == 4
    assert ask(Y=1 - Y)[1] == 5
    # Arrays have no names, and are compared by what is in them.
    arrays = ask(Y=Y.to_numpy(), X=X.to_numpy())
    assert ask(Y=Y.to_numpy(), X=X.to_numpy()) == arrays == (arrays[0], 6)
    ledger.renew("icu", "2", curator="cy")
    assert ask()[1] == 7
    with seeded_noise(0):
        assert ask()[1] == 8
    ledger.freeze("icu", curator="cy")
    assert ask()[1] == 8
    with pytest.raises(LedgerRefused, match="frozen"):
        ask(epsilon=0.25)


def test_files_are_told_apart_by_name_also_where_the_number_of_records_is_private(ledger, tmp_path):
    ledger.open("icu", epsilon=9, delta=1e-3, neighbours="add-remove", strata=["north", "south"])
    Y, T, X = study()
    frame = pd.concat([Y, T, X], axis=1)
    frame.to_csv(tmp_path / "a.csv", index=False)
    estimator = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS, neighbours="add-remove")

    def ask(table, **where):
        estimator.fit_table(table, outcome="died", treatment="treated", ledger=ledger, dataset="icu", **where)
        return len(ledger.requests("icu"))

    assert [ask(tmp_path / "a.csv"), ask(str(tmp_path / "a.csv"))] == [1, 1]
    assert [ask(tmp_path / "a.csv", stratum="north"), ask(frame), ask(frame), ask(frame[::-1])] == [2, 3, 3, 4]
    assert [ask(frame, where={"age": (0, 50)}), ask(frame, where={"age": (0, 50)})] == [5, 5]


@pytest.mark.parametrize(
    "address",
    ["postgresql://ada:secret@host/base", "postgresql://host/base?user=ada&password=secret", "pg://a:b@secret@h"],
)
def test_the_log_holds_no_password_and_no_digest_that_could_be_guessed(address, ledger):
    call = {"table": address, "outcome": "y", "treatment": "t", "relation": "claims"}
    want = wanted_by(ATE(epsilon=1, delta=1e-6, bounds=BOUNDS), call, one_gate=True, ledger=ledger)
    assert "secret" not in str(want)
    assert want.same is not None
    again = ledger.seal([b"records"])
    assert ledger.seal([b"records"]) == again != ledger.seal([b"rec", b"ords"])
    assert all(again not in entry.line for entry in ledger.log())


def test_requests_that_differ_in_any_column_file_or_class_are_not_the_same(ledger, tmp_path, monkeypatch):
    Y, T, X = study()
    frame = pd.concat([Y, T, X], axis=1).assign(e=0.5)
    bounds = Bounds(outcome=(0, 1), covariates={"age": (0, 1)}, propensity=(0.1, 0.9))

    def same(table=frame, made=ATE, **options):
        estimator = made(epsilon=1, delta=1e-6, bounds=bounds, propensity="e")
        call = {"table": table, "outcome": "died", "treatment": "treated", "covariates": ["age"]} | options
        return wanted_by(estimator, call, one_gate=True, ledger=ledger).same

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        frame.to_csv(tmp_path / name / "r.csv", index=False)
    found = [same(), same(frame.assign(e=0.4)), same(made=type("ATE", (ATE,), {})), same(where={"age": (0, 0.5)})]
    monkeypatch.chdir(tmp_path / "a")
    found.append(same("r.csv"))
    monkeypatch.chdir(tmp_path / "b")
    found.append(same("r.csv"))
    frame[:50].to_csv("r.csv", index=False)
    found.append(same("r.csv"))
    assert len(set(found)) == len(found)
    assert same() == found[0]
    assert same(frame.assign(bp=0.0)) == found[0]
    masked = np.ma.masked_array(Y.to_numpy(), mask=np.arange(len(Y)) == 3)
    call = {"Y": masked, "T": T, "X": X}
    assert wanted_by(ATE(epsilon=1, delta=1e-6, bounds=BOUNDS), call, one_gate=True, ledger=ledger).same is None


def test_a_reservation_or_release_of_another_relation_or_size_is_refused(ledger):
    ledger.open("icu", epsilon=9, delta=1e-3)
    Y, T, X = study()
    number = ledger.reserve("icu", Cost.of(discreet.Budget(epsilon=1, delta=1e-6), one_gate=True))
    away = discreet.DifferenceInMeans(epsilon=1, delta=1e-6, bounds=BOUNDS, neighbours="add-remove")
    with pytest.raises(InvalidInput, match="another relation"):
        away.fit(Y, T, X=X, ledger=ledger, reservation=number)
    ledger.charge(number)
    with pytest.raises(InvalidInput, match="another relation"):
        ledger.settle(number, away.fit(Y, T, X=X).release_)
    with pytest.raises(InvalidInput, match="promises less"):
        ledger.settle(number, discreet.DifferenceInMeans(epsilon=2, delta=1e-6, bounds=BOUNDS).fit(Y, T, X=X).release_)


def test_an_analyst_without_a_budget_gets_no_stored_release_either(ledger):
    from discreet import Budget

    ledger.open("icu", epsilon=9, delta=1e-3, analysts={"ada": Budget(epsilon=2, delta=1e-5)})
    Y, T, X = study()
    ask = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS)
    ask.fit(Y, T, X=X, ledger=ledger, dataset="icu", analyst="ada")
    ask.fit(Y, T, X=X, ledger=ledger, dataset="icu", analyst="ada")
    with pytest.raises(LedgerRefused, match="no budget for this analyst"):
        ask.fit(Y, T, X=X, ledger=ledger, dataset="icu", analyst="eve")


def test_records_that_cannot_be_used_cost_nothing_and_a_failure_after_the_charge_costs_everything(ledger, monkeypatch):
    account_of(ledger)
    Y, T, X = study()
    estimator = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS)
    with pytest.raises(InvalidInput):
        estimator.fit(Y[:5], T, X=X, ledger=ledger, dataset="icu")

    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(noise, "_exact", broken)
    with pytest.raises(MemoryError):
        estimator.fit(Y, T, X=X, ledger=ledger, dataset="icu")
    account = ledger.account("icu")
    assert account.requests == {"cancelled": 1, "failed": 1}
    assert account.spent.epsilon == 1


def test_a_refused_charge_draws_nothing_and_a_refused_reservation_reads_nothing(ledger, monkeypatch):
    ledger.open("icu", epsilon=1, delta=1e-5)
    Y, T, X = study()
    estimator = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS)
    monkeypatch.setattr(noise, "_exact", lambda *_: pytest.fail("noise was drawn"))
    real = Ledger.charge

    def frozen_in_between(self, request):
        self.freeze("icu", curator="cy")
        real(self, request)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", frozen_in_between)
        with pytest.raises(LedgerRefused, match="frozen"):
            estimator.fit(Y, T, X=X, ledger=ledger, dataset="icu")
    assert ledger.account("icu").requests == {"cancelled": 1}
    ledger.unfreeze("icu", curator="cy")
    with pytest.raises(BudgetExceeded):
        ATE(epsilon=2, delta=1e-6, bounds=BOUNDS).fit("no records at all", None, ledger=ledger, dataset="icu")


def test_a_ledger_that_is_lost_in_the_middle_stops_the_fit_before_noise(ledger, monkeypatch):
    account_of(ledger)
    monkeypatch.setattr(noise, "_exact", lambda *_: pytest.fail("noise was drawn"))

    def lost(*_):
        raise LedgerCorrupt("gone")

    monkeypatch.setattr(Ledger, "charge", lost)
    monkeypatch.setattr(Ledger, "cancel", lost)
    Y, T, X = study()
    with pytest.raises(LedgerCorrupt, match="gone"):
        ATE(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(Y, T, X=X, ledger=ledger, dataset="icu")
    # Nobody could say that it was never charged, so that it counts.
    assert ledger.account("icu").spent.epsilon == 1


def test_a_reservation_made_earlier_is_used_once(ledger):
    account_of(ledger)
    Y, T, X = study()
    estimator = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS)
    want = wanted_by(estimator, {"Y": Y, "T": T, "X": X}, one_gate=True, ledger=ledger)
    assert ledger.stored("icu", want.same) is None
    number = ledger.reserve("icu", want.cost, about=want.about, same=want.same)
    estimator.fit(Y, T, X=X, ledger=ledger, reservation=number)
    assert ledger.request(number).state == "settled"
    assert ledger.stored("icu", want.same).id == number
    other = ledger.reserve("icu", Cost(epsilon=1))
    for wrong, said in ((number, "already used"), (other, "not one of exactly this cost")):
        with pytest.raises(InvalidInput, match=f"reservation is {said}"):
            estimator.fit(Y, T, X=X, ledger=ledger, reservation=wrong)
    elsewhere = ledger.reserve("icu", want.cost, same="something else")
    with pytest.raises(InvalidInput, match="made for another request"):
        estimator.fit(Y, T, X=X, ledger=ledger, reservation=elsewhere)
    third = ledger.reserve("icu", want.cost)
    with pytest.raises(InvalidInput, match="on another data set"):
        estimator.fit(Y, T, X=X, ledger=ledger, dataset="other", reservation=third)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dataset": "icu"}, "belong to a ledger"),
        ({"ledger": "sqlite:///budget.db", "dataset": "icu"}, "ledger must be a discreet.Ledger"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(given, said):
    Y, T, X = study()
    with pytest.raises(InvalidInput, match=said):
        ATE(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(Y, T, X=X, **given)


def test_a_ledger_without_a_data_set_or_under_another_relation_is_refused(ledger):
    ledger.open("icu", epsilon=9, delta=1e-3, neighbours="add-remove")
    Y, T, X = study()
    estimator = ATE(epsilon=1, delta=1e-6, bounds=BOUNDS)
    with pytest.raises(InvalidInput, match="dataset is missing"):
        estimator.fit(Y, T, X=X, ledger=ledger)
    with pytest.raises(InvalidInput, match="needs neighbours='add-remove'"):
        estimator.fit(Y, T, X=X, ledger=ledger, dataset="icu")
    assert ledger.head.seq == 1


def test_nothing_in_the_log_depends_on_the_records(tmp_path):
    lines, keys = [], []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        Y, T, X = study(seed=seed)
        with closing(Ledger(f"sqlite:///{tmp_path}/{name}.db")) as ledger:
            ledger.open("icu", epsilon=9)
            discreet.DifferenceInMeans(epsilon=1, bounds=BOUNDS).fit(Y, T, X=X, ledger=ledger, dataset="icu")
            hidden = {"release": None, "outcome": None, "key": None}
            lines.append([(e.seq, e.actor, e.action, {**e.body, **hidden}) for e in ledger.log()])
            keys.append(ledger.request(ledger.requests("icu")[0].id).key)
    assert lines[0] == lines[1] == lines[2]
    # Keys are keyed: the same records have another one in another ledger.
    assert len(set(keys)) == 3
