"""What was paid for before classes moved, were renamed or got new parameters is not paid for again."""

import inspect
import json
import sqlite3
from contextlib import closing, contextmanager, nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone

import discreet
from discreet import ATE, CATE, Bounds, InvalidInput, Ledger, PrivateKMeans, UnsupportedRelease, papers
from discreet.ledger import _legacy_keys, charging
from discreet.ledger._identity import method_words
from discreet.ledger.charging import wanted_by
from discreet.ledger.hash_chain import canonical
from discreet.releases import io
from discreet.testing import seeded_noise
from tests.golden_calls import BOUNDS, calls, fit, study

GOLDEN = Path(__file__).parent.parent / "golden"
# Computed by the code from before estimators had ids, with the secret of the golden ledger.
KEYS = json.loads((GOLDEN / "ledger" / "keys.json").read_text())
DEFAULTS = json.loads((GOLDEN / "ledger" / "defaults.json").read_text())
# Answers to queries that come later are no release to be answered from; what is estimated otherwise now has a new id.
ANSWERED = [name for name in calls() if name not in ("DP-CATE function", "R-learner")]
# Ids that no class has any more, as its defaults have changed.
RETIRED = {"discreet/papers/dp-cate-function", "discreet/papers/r-learner"}
ESTIMATORS = {
    kind.method_id: kind
    for kind in [
        *(getattr(discreet, name) for name in ("ATE", "CATE", "DifferenceInMeans", "Uplift")),
        *(getattr(papers, name) for name in papers._HOME if hasattr(getattr(papers, name), "get_params")),
        papers.baselines.SubsampledDifference,
    ]
}
# Without old names: nobody paid for them before estimators had ids.
_NAMES = ("ATC", "ATO", "ATT", "DifferenceInDifferences", "LATE", "PolicyValue", "SurvivalEffect")
NEWER: dict[str, Any] = {kind.method_id: kind for kind in (getattr(discreet, name) for name in _NAMES)}


@pytest.fixture
def ledger(tmp_path):
    """A copy of a ledger that was written before estimators had ids."""
    # Kept as text: a database in a repository shows nobody what it holds.
    with closing(sqlite3.connect(tmp_path / "budget.db")) as database:
        database.executescript((GOLDEN / "ledger" / "before-method-ids.sql").read_text())
    with closing(Ledger(f"sqlite:///{tmp_path}/budget.db")) as opened:
        yield opened


@contextmanager
def renamed(*kinds):
    """Classes in another module and under another name."""
    before = [(kind, kind.__module__, kind.__qualname__, kind.__name__) for kind in kinds]
    for kind in kinds:
        kind.__module__, kind.__qualname__, kind.__name__ = "discreet.elsewhere", "Renamed", "Renamed"
    try:
        yield
    finally:
        for kind, *names in before:
            kind.__module__, kind.__qualname__, kind.__name__ = names


def wanted(estimator, ledger, **call):
    """What a fit to the study would ask for."""
    Y, T, X = study()
    return wanted_by(estimator, call or {"Y": Y, "T": T, "X": X}, one_gate=True, ledger=ledger)


@pytest.mark.parametrize("name", ANSWERED)
def test_old_keys_are_still_what_they_were(name, ledger):
    want = wanted(calls()[name], ledger)
    assert want.legacy == KEYS[name]
    assert want.same not in KEYS.values()


def test_old_keys_of_tables_and_of_seeded_noise_are_still_what_they_were(ledger):
    with seeded_noise(0):
        assert wanted(calls()["ate"], ledger).legacy == KEYS["ate, seeded"]
    Y, T, X = study()
    table = {"table": X.assign(died=Y, treated=T), "outcome": "died", "treatment": "treated", "covariates": ["age"]}
    assert wanted(calls()["ate"], ledger, **table, where={"age": (0, 0.5)}).legacy == KEYS["ate, table"]


@pytest.mark.parametrize("moved", [False, True], ids=["in place", "moved"])
@pytest.mark.parametrize("name", ANSWERED)
def test_an_old_ledger_answers_what_it_was_paid_for(name, moved, ledger):
    estimator = calls()[name]
    assert ledger.account(name).spent.epsilon == 1.0
    with renamed(type(estimator), PrivateKMeans) if moved else nullcontext():
        fit(estimator, ledger=ledger, dataset=name, analyst="ada")
    assert ledger.account(name).spent.epsilon == 1.0
    assert [request.state for request in ledger.requests(name)] == ["settled"]
    # The digest in the log is of the release as JSON; what is answered is of the version that is written now.
    plain = ledger.release(ledger.requests(name)[0].id)
    assert json.loads(json.dumps(estimator.release_.to_dict())) == io.upgrade(plain, plain["version"])
    assert ledger.log()[-1].action == "answer"
    ledger.verify()


def test_a_request_that_differs_in_a_parameter_is_charged_in_an_old_ledger(ledger):
    fit(ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=0.4), ledger=ledger, dataset="ate")
    assert ledger.account("ate").spent.epsilon > 1.0
    with seeded_noise(0):
        fit(calls()["cate"], ledger=ledger, dataset="cate")
    assert ledger.account("cate").spent.epsilon > 1.0


def test_a_reservation_of_an_old_ledger_is_used(ledger):
    (waiting,) = ledger.requests("reserved")
    with pytest.raises(InvalidInput, match="made for another request"):
        fit(calls()["ate, known propensity"], ledger=ledger, reservation=waiting.id)
    fit(calls()["ate"], ledger=ledger, reservation=waiting.id)
    assert ledger.request(waiting.id).state == "settled"


@pytest.mark.parametrize("name", ANSWERED)
def test_keys_survive_a_move_and_another_name(name, ledger):
    before = wanted(calls()[name], ledger)
    with renamed(type(calls()[name]), PrivateKMeans):
        assert wanted(calls()[name], ledger) == replace(before, about=before.about | {"method": "Renamed"})


def test_a_binary_outcome_has_a_key_of_its_own_and_a_range_keeps_its(ledger):
    ranged, binary = (calls()["ate"], ATE(epsilon=1.0, delta=1e-6, bounds=replace(BOUNDS, outcome=[0, 1])))
    assert wanted(ranged, ledger).legacy == KEYS["ate"]
    assert len({wanted(each, ledger).same for each in (ranged, binary)}) == 2
    # Frozen: a ledger is read for ever.
    words = [method_words(each)["parameters"]["bounds"] for each in (ranged, binary)]
    assert words[0]["outcome"] == {"low": 0.0, "high": 1.0}
    assert words[1] == words[0] | {"outcome": {"levels": [0, 1]}}
    assert list(words[0]) == ["outcome", "propensity", "covariates"]


def grown(base):
    """A class as it may be later: with one more parameter, under the same id."""

    class Grown(base):  # type: ignore[misc, valid-type]
        method_id = base.method_id

        def __init__(self, *, epsilon, bounds, delta=None, propensity=None, neighbours="replace-one", more="usual"):
            super().__init__(epsilon=epsilon, bounds=bounds, delta=delta, propensity=propensity, neighbours=neighbours)
            self.more = more

    return Grown


def test_a_new_parameter_changes_no_key_until_it_is_used(ledger):
    later = grown(ATE)
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}
    old, usual, other = (wanted(each, ledger) for each in (ATE(**given), later(**given), later(**given, more="other")))
    assert (usual.same, usual.legacy) == (old.same, old.legacy)
    assert other.same not in (old.same, None)
    assert other.legacy is None


def test_a_subclass_without_an_id_is_somebody_else(ledger):
    class Mine(ATE):
        """Somebody's own estimator."""

    class Named(ATE):
        method_id = "somebody/else"

    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS}
    found = [wanted(kind(**given), ledger) for kind in (ATE, Mine, Named)]
    assert len({key for want in found for key in (want.same, want.legacy)}) == 5
    mine = json.loads(found[1].same)
    assert mine["method"] == f"{Mine.__module__}.{Mine.__qualname__}"
    # Its defaults may change under the same name, so that its key holds all parameters, as it always did.
    assert mine["parameters"].keys() == Mine(**given).get_params().keys()
    assert found[1].legacy == found[1].same
    fit(Mine(**given), ledger=ledger, dataset="ate")
    assert ledger.account("ate").spent.epsilon > 1.0


def fixed(**facts):
    """A class whose constructor settles what those of the library take as parameters."""

    class Fixed(ATE):
        def __init__(self, *, sure=True):
            super().__init__(**({"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS} | facts))
            self.sure = sure

    return Fixed()


def test_what_a_constructor_settles_without_a_parameter_is_part_of_the_key(ledger):
    wider = replace(BOUNDS, outcome=(-1, 2))
    changes = ({}, {"epsilon": 2.0}, {"delta": 1e-7}, {"bounds": wider}, {"propensity": 0.4})
    found = [wanted(fixed(**facts), ledger) for facts in changes]
    assert len({want.same for want in found} - {None}) == len(changes)
    # Keys of earlier versions did not hold it, so that nothing is answered from them.
    assert {want.legacy for want in found} == {None}
    ledger.open("fixed", epsilon=20, delta=1e-3)
    for facts in changes:
        first, again = (fit(fixed(**facts), ledger=ledger, dataset="fixed").release_ for _ in range(2))
        assert first == again
        assert first.bounds == fixed(**facts).bounds
    assert len(ledger.requests("fixed")) == len(changes)


def test_a_constructor_that_settles_what_cannot_be_compared_is_charged_each_time(ledger):
    odd = fixed()
    odd.model = object()
    assert (wanted(odd, ledger).same, wanted(odd, ledger).legacy) == (None, None)


def test_a_column_that_a_constructor_settles_is_part_of_what_identifies_records(ledger):
    Y, T, X = study()
    tables = [X.assign(died=Y, treated=T, known=known) for known in (0.4, 0.5)]
    call = {"outcome": "died", "treatment": "treated", "covariates": ["age", "bp"]}
    found = {wanted(fixed(propensity="known"), ledger, table=table, **call).same for table in tables}
    assert len(found - {None}) == 2


def test_a_stored_release_of_another_budget_is_no_answer(ledger):
    class Varied(ATE):
        epsilon = 1.0

        def __init__(self, *, delta=1e-6):
            self.delta, self.bounds, self.propensity, self.neighbours = delta, BOUNDS, None, "replace-one"

    ledger.open("varied", epsilon=20, delta=1e-3)
    assert fit(Varied(), ledger=ledger, dataset="varied").guarantee_.epsilon == 1.0
    Varied.epsilon = 0.5
    assert fit(Varied(), ledger=ledger, dataset="varied").guarantee_.epsilon == 0.5


def test_a_subclass_of_a_value_without_an_id_is_another_value():
    class Mine(PrivateKMeans):
        __slots__ = ()

    given = {"epsilon": 1.0, "bounds": BOUNDS}
    words = [method_words(papers.ADUM(**given, by=kind(clusters=2))) for kind in (PrivateKMeans, Mine)]
    assert words[0]["parameters"]["by"] == {"is": "discreet/private-k-means", "clusters": 2}
    assert words[1]["parameters"]["by"]["is"] == "Mine"


def test_every_estimator_has_an_id_of_its_own_and_a_frozen_old_name():
    later = {papers.DPCATEFunction.method_id, papers.RLearner.method_id, papers.XLearner.method_id}
    assert ESTIMATORS.keys() - later == _legacy_keys.ESTIMATORS.keys() - RETIRED
    assert len(ESTIMATORS) == 16
    assert PrivateKMeans.method_id in _legacy_keys.VALUES
    for name, kind in (ESTIMATORS | NEWER).items():
        assert vars(kind)["method_id"] == name


def test_defaults_have_not_changed_under_the_same_id():
    # Keys leave defaults out: a new one would be answered with what the old one released. Change the id with it.
    found = {
        name: {
            each.name: each.default
            for each in inspect.signature(kind).parameters.values()
            if each.default is not inspect.Parameter.empty
        }
        for name, kind in (ESTIMATORS | NEWER).items()
    }
    found[PrivateKMeans.method_id] = {part.name: part.default for part in fields(PrivateKMeans)[1:]}
    for name, defaults in DEFAULTS.items():
        # What is new is added to the file.
        if name in RETIRED:
            assert name not in found
            continue
        assert {key: found[name][key] for key in defaults} == defaults
        assert found[name].keys() == defaults.keys()


class Stored:
    """A release as an older version left it in a ledger."""

    def __init__(self, path, **change):
        self._plain = json.loads(path.read_text()) | change
        self.guarantee = discreet.load(path).guarantee

    def to_dict(self):
        """As plain JSON."""
        return self._plain


def paid(ledger, estimator, stored, Y, T, X):
    """Let a ledger hold a release for a request."""
    ledger.open("paid", epsilon=20, delta=1e-3)
    want = wanted(estimator, ledger, Y=Y, T=T, X=X)
    number = ledger.reserve("paid", want.cost, about=want.about, same=want.legacy)
    ledger.charge(number)
    ledger.settle(number, stored)


@pytest.mark.parametrize("shape", ["", "-decimals", "-steps"])
def test_a_stored_release_of_an_older_version_is_answered(shape, ledger):
    Y, T, X = study()
    path = GOLDEN / "releases" / f"discreet-effect-release.v1{shape}.json"
    estimator = CATE(epsilon=4, delta=1e-6, bounds=Bounds(outcome=(0, 1), covariates={"age": (0, 1), "bp": (0, 1)}))
    paid(ledger, estimator, Stored(path), Y, T, X)
    estimator.fit(Y, T, X=X, ledger=ledger, dataset="paid")
    assert estimator.release_.ate() == discreet.load(path).ate()
    assert ledger.account("paid").spent.epsilon == 4
    ledger.verify()


def test_a_stored_release_of_a_newer_version_is_refused_and_nothing_is_charged(ledger):
    Y, T, X = study()
    path = GOLDEN / "releases" / "discreet-effect-release.v2.json"
    estimator = CATE(epsilon=4, delta=1e-6, bounds=Bounds(outcome=(0, 1), covariates={"age": (0, 1), "bp": (0, 1)}))
    paid(ledger, estimator, Stored(path, version=99), Y, T, X)
    with pytest.raises(UnsupportedRelease, match="newer than 3; upgrade discreet"):
        estimator.fit(Y, T, X=X, ledger=ledger, dataset="paid")
    assert ledger.account("paid").spent.epsilon == 4
    assert ledger.log()[-1].action == "settle"


UNSORTED = Bounds(outcome=(0, 1), covariates={"bp": (0, 1), "age": (0, 1)})
FUNCTIONS = {
    "cate": CATE(epsilon=4, delta=1e-6, bounds=UNSORTED),
    "uplift": discreet.Uplift(epsilon=4, bounds=UNSORTED, by={"bp": 2}),
    "adum": papers.ADUM(epsilon=4, bounds=UNSORTED, by={"bp": 2}),
    "T-learner": papers.TLearner(epsilon=4, delta=1e-6, bounds=UNSORTED, base="linear", random_state=0),
    "two models": papers.TwoModel(epsilon=4, bounds=UNSORTED),
}


@pytest.mark.parametrize("sorted_by_ledger", [False, True], ids=["now", "formerly"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_a_stored_release_keeps_its_covariates_in_their_order(name, sorted_by_ledger, ledger, monkeypatch):
    if sorted_by_ledger:
        # Ledgers of earlier versions sorted all names of a release, and keys did not hold their order.
        monkeypatch.setattr("discreet.ledger.ledger.in_order", canonical)
        monkeypatch.setattr(charging, "sorted", list, raising=False)
    ledger.open("order", epsilon=20, delta=1e-3)
    first, again = (fit(clone(FUNCTIONS[name]), ledger=ledger, dataset="order") for _ in range(2))
    assert len(ledger.requests("order")) == 1
    assert again.release_.bounds.names == ("bp", "age")
    people = [[0.1, 0.9], [0.9, 0.1], [0.4, 0.2]]
    assert again.effect(people).tolist() == first.effect(people).tolist()
    ledger.verify()


def test_columns_of_an_array_in_another_order_are_another_request(ledger):
    Y, T, X = study()
    ledger.open("other order", epsilon=20, delta=1e-3)
    names = []
    for covariates in ({"age": (0, 1), "bp": (0, 1)}, {"bp": (0, 1), "age": (0, 1)}):
        estimator = ATE(epsilon=1.0, delta=1e-6, bounds=Bounds(outcome=(0, 1), covariates=covariates))
        names.append(estimator.fit(Y, T, X=X.to_numpy(), ledger=ledger, dataset="other order").release_.bounds.names)
    assert names == [("age", "bp"), ("bp", "age")]
    assert len(ledger.requests("other order")) == 2


def test_fits_name_no_module_of_an_estimator():
    assert "__module__" not in inspect.getsource(charging)
