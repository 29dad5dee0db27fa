"""Base learners of a user's own: one made with OpenDP, one of scikit-learn's on public data, and what is refused."""

import numpy as np
import opendp.prelude as dp
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from discreet import Bounds, Budget, InvalidBudget, InvalidInput, papers
from discreet.datasets import adum
from discreet.papers import PublicLearner, ReleasedModel, Term
from discreet.papers.meta_learners.x_learner import x_outcome
from discreet.privacy.budget import ParallelEvent
from discreet.testing import frozen_noise, seeded_noise

dp.enable_features("contrib")
STUDY = adum(n=4_000, seed=3, sigma=0.1)
GIVEN = {"epsilon": 2.0, "delta": 1e-6, "bounds": STUDY.bounds, "random_state": 0}
CUTS = (-0.5, 0.0, 0.5)
LEARNERS = {
    "DR": (papers.DRLearner, ("propensity", "outcome", "effect")),
    "R": (papers.RLearner, ("propensity", "outcome", "effect")),
    "T": (papers.TLearner, ("treated", "control")),
    "X": (papers.XLearner, ("propensity", "treated", "control", "effect")),
}


class Steps:
    """Noisy sums over noisy sums of weights in bins of the last column, with OpenDP's own Laplace noise."""

    def __init__(self, task):
        self.task = task

    def fit(self, X, y, sample_weight=None):
        task = self.task
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        most = 1.0 if sample_weight is None else task.weight_bound
        place = np.searchsorted(CUTS, X[:, -1], side="right")
        size = max(map(abs, task.target))
        # One record in one bin: replacing it moves two sums by what it can hold, and half of epsilon is for either.
        noisy = [
            self._noisy(np.bincount(place, part, len(CUTS) + 1), 4.0 * bound / task.budget.epsilon)
            for part, bound in ((w * y, most * size), (w, most))
        ]
        self.model_ = ReleasedModel(
            intercept=0.0,
            terms=(*(Term() for _ in task.columns[:-1]), Term(cuts=CUTS, scores=noisy[0] / np.maximum(noisy[1], 1.0))),
        )
        self.guarantee_ = task.claim("sums in bins, by OpenDP")
        return self

    def _noisy(self, sums, scale):
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l1_distance(T=float)
        return np.array(dp.m.make_laplace(*space, scale=scale)(sums.tolist()))

    def predict(self, X):
        return self.model_.predict(X)


class Plain(Steps):
    """The same, which predicts but gives no numbers to write."""

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        self.kept = self.__dict__.pop("model_")
        return self

    def predict(self, X):
        return self.kept.predict(X)


class Broken(Steps):
    def __init__(self, task, how):
        super().__init__(task)
        self.how = how

    def fit(self, X, y, sample_weight=None):
        if self.how == "raises":
            raise KeyError(y[0])
        super().fit(X, y, sample_weight)
        if self.how == "no guarantee":
            del self.guarantee_
        if self.how == "too much":
            self.task = papers.Task(
                **{name: getattr(self.task, name) for name in ("name", "columns", "target", "bounds")},
                budget=Budget(epsilon=3.0),
            )
            self.guarantee_ = self.task.claim("more")
        if self.how == "missing numbers":
            del self.model_
        return self

    def predict(self, X):
        return np.full(len(X), np.nan)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_made_with_opendp_serves_every_meta_learner_and_the_whole_is_claimed(name, tmp_path):
    kind, modules = LEARNERS[name]
    learner = kind(**GIVEN, base=Steps).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    guarantee = learner.guarantee_
    assert (guarantee.status, guarantee.epsilon, guarantee.delta) == ("claimed", 2.0, 1e-6)
    (event,) = guarantee.events
    assert isinstance(event, ParallelEvent)
    assert [part[0].name for part in event.parts] == [f"sums in bins, by OpenDP, {each}" for each in modules]
    assert learner.effect([[0.9]])[0] > learner.effect([[-0.9]])[0]
    learner.release_.save(tmp_path / "release.json")
    assert papers.LearnerRelease.load(tmp_path / "release.json").effect([[0.9]])[0] == learner.effect([[0.9]])[0]


def test_status_is_proved_only_if_every_part_is():
    for base, status in (({"effect": Steps}, "claimed"), ({"effect": "linear", "outcome": "additive"}, "proved")):
        learner = papers.DRLearner(**GIVEN, base=base).fit(STUDY.Y, STUDY.T, X=STUDY.X)
        assert learner.guarantee_.status == status


def test_models_of_public_data_spend_nothing_and_are_named():
    pilot = adum(n=500, seed=9, sigma=0.1)
    base = {
        "outcome": PublicLearner(LinearRegression().fit(np.column_stack([pilot.T, pilot.X]), pilot.Y), about="a pilot"),
        "propensity": PublicLearner(LogisticRegression().fit(pilot.X, pilot.T), about="a register"),
        "effect": "linear",
    }
    learner = papers.DRLearner(**GIVEN, base=base).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    guarantee = learner.guarantee_
    assert (guarantee.status, guarantee.epsilon) == ("proved", 2.0)
    assert {"a pilot", "a register"} <= set(guarantee.public)
    assert not any(isinstance(event, ParallelEvent) for event in guarantee.events)
    with pytest.raises(InvalidInput, match="no module reads a record"):
        papers.TLearner(**GIVEN, base=base["propensity"]).fit(STUDY.Y, STUDY.T, X=STUDY.X)


def test_a_model_that_is_no_plain_numbers_predicts_and_is_not_written(tmp_path):
    learner = papers.TLearner(**GIVEN, base=Plain).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert np.isfinite(learner.effect(STUDY.X[:5])).all()
    assert "Privacy" in learner.summary()
    for refused in (lambda: learner.release_.save(tmp_path / "x.json"), lambda: learner.plot(0)):
        with pytest.raises(InvalidInput, match="of your own"):
            refused()


def test_modules_have_budgets_of_their_own_and_the_whole_is_the_largest():
    budgets = {"propensity": Budget(epsilon=0.5, delta=1e-6), "outcome": Budget(epsilon=1.0, delta=1e-6)}
    learner = papers.DRLearner(**GIVEN, base="linear", budgets=budgets).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert learner.guarantee_.epsilon == 2.0
    smaller = papers.DRLearner(**GIVEN, base=Steps, budgets=budgets).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    (event,) = smaller.guarantee_.events
    assert isinstance(event, ParallelEvent)
    claims = [part[0].to_dict()["epsilon"] for part in event.parts]
    assert claims == [0.5, 1.0, 2.0]
    with pytest.raises(InvalidBudget, match=r"outcome has .* above"):
        papers.DRLearner(**GIVEN, budgets={"outcome": Budget(epsilon=3.0)}).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    with pytest.raises(InvalidInput, match="budgets names 'mean'"):
        papers.DRLearner(**GIVEN, budgets={"mean": Budget(epsilon=1.0)}).fit(STUDY.Y, STUDY.T, X=STUDY.X)


@pytest.mark.parametrize("kind", [papers.DRLearner, papers.RLearner, papers.XLearner])
def test_a_known_propensity_leaves_its_records_to_the_others(kind):
    with seeded_noise(0):
        learner = kind(**GIVEN, base="linear", propensity=0.5).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert "propensity" not in learner.release_.models
    assert "the probability of treatment" in learner.guarantee_.public
    assert learner.release_.settings["records, effect"] > 2_600 if kind is not papers.XLearner else 1_900
    with pytest.raises(InvalidInput, match="propensity must be one number"):
        kind(**GIVEN, propensity=1.0).fit(STUDY.Y, STUDY.T, X=STUDY.X)


def test_without_noise_the_x_learner_finds_the_effects():
    study = adum(n=20_000, seed=5, sigma=0.1)
    with frozen_noise():
        learner = papers.XLearner(**GIVEN | {"bounds": study.bounds, "epsilon": 1e5}).fit(study.Y, study.T, X=study.X)
    assert np.sqrt(np.mean((learner.effect(study.X) - study.effects) ** 2)) < 0.3 * np.std(study.effects)
    t, e = np.array([1.0, 0.0]), np.array([0.2, 0.2])
    effect, weight = x_outcome(np.array([3.0, 1.0]), t, e, np.array([2.5, 2.5]), np.array([1.5, 1.5]))
    np.testing.assert_allclose(effect, [1.5, 1.5])
    # Shares at x: e times the treated weight, 1 - e times the control one.
    np.testing.assert_allclose(weight * [0.2, 0.8], [0.8, 0.2])


@pytest.mark.parametrize(
    ("base", "error", "words"),
    [
        ("forest", InvalidInput, "base must be one of"),
        ({"mean": "linear"}, InvalidInput, "no module"),
        ({"effect": 3}, InvalidInput, "base must be one of"),
        (lambda task: object(), InvalidInput, "fit, predict and guarantee_"),
        (lambda task: Broken(task, "raises"), InvalidInput, r"could not be fitted \(KeyError\)"),
        (lambda task: Broken(task, "no guarantee"), InvalidInput, "no guarantee_"),
        (lambda task: Broken(task, "too much"), InvalidBudget, "its part has"),
        (lambda task: Broken(task, "missing numbers"), InvalidInput, "one finite number for each row"),
    ],
)
def test_bases_that_cannot_be_used_are_refused(base, error, words):
    with pytest.raises(error, match=words):
        papers.DRLearner(**GIVEN, base=base).fit(STUDY.Y, STUDY.T, X=STUDY.X)


def test_a_learner_sees_targets_and_weights_inside_what_its_task_says():
    seen = []

    class Watching(Steps):
        def fit(self, X, y, sample_weight=None):
            seen.append((self.task, np.abs(y).max(), None if sample_weight is None else sample_weight.max()))
            return super().fit(X, y, sample_weight)

    bounds = Bounds(outcome=(-0.5, 0.5), covariates=STUDY.bounds.covariates, propensity=(0.1, 0.9))
    papers.RLearner(**GIVEN | {"bounds": bounds}, base=Watching).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert len(seen) == 3
    for task, largest, weight in seen:
        assert largest <= max(map(abs, task.target)) * (1 + 1e-12)
        assert weight is None or weight <= task.weight_bound
