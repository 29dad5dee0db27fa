"""Learners that split the sample: what they estimate, release and refuse."""

import pickle
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import Bounds, InvalidBudget, InvalidInput, MissingBounds, MissingExtra, NotFitted
from discreet.data.records import Chunk
from discreet.datasets import meta_learners
from discreet.papers import DRLearner, RLearner, SLearner, TLearner, UnprovedClaim
from discreet.papers.meta_learners.release import LearnerRelease
from discreet.papers.meta_learners.stages import (
    dr_outcome,
    folded_outcome,
    least_residual,
    overlap_of,
    partition,
    r_outcome,
    r_weights,
    sizes,
)
from discreet.testing import frozen_noise, seeded_noise

ALL = (SLearner, TLearner, DRLearner, RLearner)
PROVED = ("additive", "linear", "logistic")
BOUNDS = Bounds(outcome=(-6, 8), covariates={"age": (0, 1), "ward": ["a", "b", "c"]}, propensity=(0.2, 0.8))


def trial(n=4_000, seed=0):
    """A randomised trial with the effect 2 age + (0, 1, -1 by ward)."""
    rng = np.random.default_rng(seed)
    x = np.empty((n, 2), dtype=object)
    age, ward = rng.random(n), rng.integers(0, 3, n)
    x[:, 0], x[:, 1] = age, np.array(["a", "b", "c"])[ward]
    effect = 2 * age + np.array([0.0, 1.0, -1.0])[ward]
    t = (rng.random(n) < 0.5) * 1.0
    return age + t * effect + 0.5 * rng.standard_normal(n), t, x, effect


def make(learner, **options):
    return learner(**{"epsilon": 1.0, "delta": 1e-5, "bounds": BOUNDS} | options)


def fitted(learner, base, data, **options):
    y, t, x, _ = data
    with seeded_noise(0), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return make(learner, base=base, **options).fit(y, t, X=x)


@pytest.mark.parametrize("base", PROVED)
@pytest.mark.parametrize("learner", [TLearner, DRLearner, RLearner])
def test_without_noise_the_effect_is_found(learner, base):
    y, t, x, effect = trial(12_000)
    with frozen_noise():
        options = {} if learner is TLearner else {"clip": 6.0}
        model = make(learner, base=base, epsilon=8.0, random_state=0, **options)
        error = model.fit(y, t, X=x).effect(x) - effect
    # The effect's own standard deviation is 1.0; thousands of records with residuals of about 1 estimate four numbers.
    assert np.sqrt(np.mean(error**2)) < 0.15


@pytest.mark.parametrize("base", [*PROVED, "ebm"])
def test_an_s_learner_finds_one_number_for_everyone(base):
    data = trial()
    model = fitted(SLearner, base, data, epsilon=4.0)
    effects = model.effect(data[2])
    assert np.ptp(effects) < 1e-9
    assert effects[0] == pytest.approx(np.mean(data[3]), abs=0.3)
    assert "the same for everyone" in model.summary()
    assert np.all(model.release_.shape("age")[1] == 0)


@pytest.mark.parametrize("learner", ALL)
@pytest.mark.parametrize("base", PROVED)
def test_a_proved_base_learner_makes_a_proved_release_without_a_warning(learner, base):
    y, t, x, _ = trial(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(learner, base=base).fit(y, t, X=x)
    assert model.guarantee_.status == "proved"
    assert "learners.md" in model.guarantee_.proof
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1.0, 1e-5)


@pytest.mark.parametrize("learner", ALL)
def test_dp_ebm_is_claimed_and_says_what_was_measured(learner):
    y, t, x, _ = trial(300)
    with pytest.warns(UnprovedClaim, match="evidence.audit.*at least [0-9]") as caught:
        model = make(learner, base="ebm").fit(y, t, X=x)
    assert caught[0].filename == __file__
    assert model.guarantee_.status == "claimed"
    assert model.guarantee_.epsilon == 1.0
    assert "Claimed, not proved" in model.summary()


def test_dp_ebm_learns_from_enough_records():
    data = trial(12_000)
    error = fitted(DRLearner, "ebm", data, epsilon=8.0, clip=6.0, random_state=0).effect(data[2]) - data[3]
    assert np.sqrt(np.mean(error**2)) < 0.4


@pytest.mark.parametrize("learner", ALL)
def test_after_fit_nothing_but_parameters_and_the_release_is_there(learner):
    model = fitted(learner, "additive", trial(300))
    assert set(vars(model)) - set(model.get_params()) == {"release_"}
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.effect(trial(50)[2]), model.effect(trial(50)[2]))


@pytest.mark.parametrize("base", [*PROVED, "ebm"])
@pytest.mark.parametrize("learner", ALL)
def test_a_release_file_gives_the_same_effects(learner, base, tmp_path):
    data = trial(300)
    model = fitted(learner, base, data)
    model.release_.save(tmp_path / "effects.json")
    loaded = LearnerRelease.load(tmp_path / "effects.json")
    assert np.array_equal(loaded.effect(data[2]), model.effect(data[2]))
    assert loaded.guarantee == model.guarantee_
    assert loaded.summary() == model.summary()


def test_all_intermediate_models_are_released():
    data = trial(300)
    names = {learner: list(fitted(learner, "linear", data).release_.models) for learner in ALL}
    assert names[SLearner] == ["outcome"]
    assert names[TLearner] == ["treated", "control"]
    assert names[DRLearner] == names[RLearner] == ["propensity", "outcome", "effect"]


def test_scores_are_those_of_section_3_1():
    y, t, e, mu1, mu0 = (np.array(column) for column in ([3.0, 1.0], [1.0, 0.0], [0.5, 0.2], [2.0, 2.0], [1.0, 0.5]))
    assert dr_outcome(y, t, e, mu1, mu0) == pytest.approx([1.0 + 1.0 / 0.5, 1.5 - 0.5 / 0.8])
    quotient, weight = r_outcome(y, t, e, mu0)
    assert quotient == pytest.approx([2.0 / 0.5, 0.5 / -0.2])
    assert weight == pytest.approx([0.25, 0.04])
    assert folded_outcome(y, t, e, mu0) == pytest.approx([0.5 * 2.0 / 0.25, -0.2 * 0.5 / 0.16])


@pytest.mark.parametrize(
    ("base", "risk", "near"), [("additive", "weighted", 0.15), ("additive", "folded", 0.15), ("ebm", "folded", 0.15)]
)
def test_the_weighted_and_the_folded_r_learner_aim_at_the_same_effect(base, risk, near):
    _, _, x, effect = data = trial(12_000)
    model = fitted(RLearner, base, data, risk=risk, epsilon=16.0, clip=6.0, random_state=0)
    assert np.mean(model.effect(x)) == pytest.approx(np.mean(effect), abs=near)


def test_with_dp_ebm_the_weighted_r_learner_stops_before_it_has_learnt_all():
    # 300 rounds over two columns in steps of a quarter of a hundredth: 1 - 0.9975^600 = 0.78 of a mean is learnt.
    _, _, x, effect = data = trial(12_000)
    model = fitted(RLearner, "ebm", data, epsilon=16.0, clip=6.0, random_state=0)
    assert np.mean(model.effect(x)) == pytest.approx(0.78 * np.mean(effect), abs=0.15)


BASIC = st.floats(0.0, 1.0)


@given(y=BASIC, eta=BASIC, treated=st.booleans(), p=BASIC, low=st.floats(0.01, 0.45), high=st.floats(0.55, 0.99))
def test_what_the_r_learner_states_of_its_weights_and_products_holds(y, eta, treated, p, low, high):
    bounds = Bounds(outcome=(-3.0, 4.0), propensity=(low, high))
    overlap = overlap_of(bounds, 0.05)
    y, eta, e = -3.0 + 7.0 * y, -3.0 + 7.0 * eta, np.clip(p, *overlap)
    quotient, weight = r_outcome(np.array([y]), np.array([1.0 * treated]), np.array([e]), np.array([eta]))
    stated = r_weights(bounds, 0.05, weight)
    assert weight[0] <= stated.weight_bound
    assert abs(weight[0] * quotient[0]) <= stated.product_bound * (1 + 1e-12)
    assert abs(quotient[0]) <= 7.0 / least_residual(overlap) * (1 + 1e-12)


def test_what_the_r_learner_states_is_attained():
    bounds = Bounds(outcome=(-3.0, 4.0), propensity=(0.2, 0.9))
    y, t, e, eta = (np.array([value]) for value in (4.0, 0.0, 0.9, -3.0))
    quotient, weight = r_outcome(y, t, e, eta)
    stated = r_weights(bounds, 0.05, weight)
    assert weight[0] == pytest.approx(stated.weight_bound)
    assert abs(weight[0] * quotient[0]) == pytest.approx(stated.product_bound)
    assert 0 < stated.usual_weight <= 0.25
    assert least_residual((0.2, 0.9)) == pytest.approx(0.1)


def test_as_written_no_residual_of_the_r_learner_is_clipped_unless_somebody_says_where():
    data = trial(400)
    clip = {
        (base, risk): fitted(RLearner, base, data, risk=risk).release_.settings["clip"]
        for base, risk in (("linear", "weighted"), ("linear", "folded"), ("ebm", "weighted"))
    }
    # A width of 14, propensities inside (0.2, 0.8), and twice the width where a range costs noise.
    assert clip == {("linear", "weighted"): pytest.approx(70.0), ("linear", "folded"): 28.0, ("ebm", "weighted"): 28.0}
    assert fitted(RLearner, "linear", data, clip=5.0).release_.settings["clip"] == 5.0


def test_the_partition_is_disjoint_complete_and_knows_nothing_of_the_records():
    rng = np.random.default_rng(0)
    rows = Chunk(y=np.arange(101.0), t=rng.integers(0, 2, 101) * 1.0, x=rng.random((101, 2)), e=None)
    ratios = {"propensity": 0.25, "outcome": 0.25, "effect": 0.5}
    assert sizes(101, ratios) == {"propensity": 25, "outcome": 25, "effect": 51}
    parts = partition(rows, ratios, shuffle=True, random_state=3)
    assert sorted(np.concatenate([part.y for part in parts.values()])) == list(range(101))
    other = partition(rows._replace(t=1 - rows.t, x=rows.x * 0), ratios, shuffle=True, random_state=3)
    assert all(np.array_equal(parts[name].y, other[name].y) for name in ratios)
    in_order = partition(rows, ratios, shuffle=False, random_state=None)
    assert list(in_order["propensity"].y) == list(range(25))


def test_ratios_are_named_and_may_come_in_any_order():
    data = trial(400)
    model = fitted(DRLearner, "linear", data, ratios={"effect": 0.6, "propensity": 0.1, "outcome": 0.3})
    assert "records, propensity  40" in " ".join(model.summary().split("\n"))
    assert model.release_.settings["records, effect"] == 240


def test_progress_names_the_models():
    y, t, x, _ = trial(300)
    steps = []
    with seeded_noise(0):
        make(DRLearner, base="linear").fit(y, t, X=x, progress=lambda *step: steps.append(step))
    assert steps == [("propensity", 1, 3), ("outcome", 2, 3), ("effect", 3, 3)]


def test_shapes_are_drawn_in_the_unit_of_the_covariate():
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    data = trial(4_000)
    for learner in ALL:
        model = fitted(learner, "additive", data, epsilon=8.0)
        ax = Figure().subplots()
        assert model.plot("age", ax=ax) is ax
        ages, heights = ax.lines[-1].get_data()
        assert (min(ages), max(ages)) == (0.0, 1.0)
        assert np.array_equal(heights, model.release_.shape(0)[1])
        assert ax.get_xlabel() == "age"
        levels, heights = model.release_.shape("ward")
        assert levels == ["a", "b", "c"]
        model.plot("ward", ax=Figure().subplots())
    assert heights.argmax() == 1


def test_seeds_change_the_partition_and_never_the_noise():
    data = trial(400)
    first, again, other = (fitted(DRLearner, "linear", data, random_state=seed).effect(data[2]) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    y, t, x, _ = data
    fresh = [make(DRLearner, base="linear", random_state=0).fit(y, t, X=x).effect(x) for _ in range(2)]
    assert not np.array_equal(*fresh)


REFUSED = [
    (DRLearner, {"base": "forest"}, InvalidInput, "base must be one of additive, linear, logistic, ebm"),
    (DRLearner, {"delta": None}, InvalidBudget, "needs delta"),
    (DRLearner, {"bounds": None}, MissingBounds, "needs bounds"),
    (SLearner, {"bounds": Bounds(outcome=(0, 1))}, MissingBounds, "covariates"),
    (DRLearner, {"ratios": {"propensity": 0.5, "outcome": 0.25, "effect": 0.5}}, InvalidInput, "add up to 1.25"),
    (DRLearner, {"ratios": {"propensity": 0.5, "outcome": 0.5, "effect": 0.0}}, InvalidInput, "positive"),
    (DRLearner, {"ratios": {"propensity": 0.5, "outcome": 0.5, "effect": "a"}}, InvalidInput, "positive"),
    (DRLearner, {"ratios": {"propensity": 0.5, "effect": 0.5}}, InvalidInput, "exactly the parts"),
    (TLearner, {"ratios": {"propensity": 0.5, "effect": 0.5}}, InvalidInput, "exactly the parts treated, control"),
    (RLearner, {"ratios": [0.25, 0.25, 0.5]}, InvalidInput, "dictionary"),
    (DRLearner, {"trim": 0.5}, InvalidInput, "trim"),
    (RLearner, {"risk": "quotient"}, InvalidInput, "risk must be one of weighted, folded"),
    (RLearner, {"clip": -1.0}, InvalidInput, "clip"),
    (RLearner, {"clip": float("nan")}, InvalidInput, "clip"),
    (DRLearner, {"ratios": {"propensity": 0.01, "outcome": 0.49, "effect": 0.5}}, InvalidInput, "fewer than 10"),
]


@pytest.mark.parametrize(("learner", "options", "error", "words"), REFUSED)
def test_what_cannot_be_used_is_refused_in_one_sentence(learner, options, error, words):
    y, t, x, _ = trial(300)
    model = make(learner, **options)
    with pytest.raises(error, match=words):
        model.fit(y, t, X=x)
    assert not hasattr(model, "release_")


def test_too_few_records_and_an_empty_arm_are_refused():
    y, t, x, _ = trial(24)
    with pytest.raises(InvalidInput, match="fewer than 10 records in a part"):
        make(DRLearner).fit(y, t, X=x)
    with pytest.raises(InvalidInput, match="One arm is empty"):
        make(DRLearner).fit(y, 0 * t, X=x)


def test_a_part_with_one_arm_is_no_obstacle_to_the_gate_and_one_to_dp_ebm():
    y, t, x, _ = trial(200)
    t[:50], t[50] = 1.0, 0.0
    with seeded_noise(0):
        make(DRLearner, shuffle=False).fit(y, t, X=x)
    with pytest.warns(UnprovedClaim), pytest.raises(InvalidInput, match="one arm only"):
        make(DRLearner, base="ebm", shuffle=False).fit(y, t, X=x)


def test_a_missing_extra_is_named_before_a_record_is_read(monkeypatch):
    monkeypatch.setitem(sys.modules, "interpret.privacy", None)
    with pytest.raises(MissingExtra, match=r"discreet\[ebm\]"):
        make(DRLearner, base="ebm").fit(None, None, X=None)


def test_nothing_can_be_asked_before_fit():
    for ask in (lambda m: m.effect([[0.5, "a"]]), lambda m: m.guarantee_, lambda m: m.summary(), lambda m: m.plot(0)):
        with pytest.raises(NotFitted, match="no release yet"):
            ask(make(DRLearner))


def test_a_failed_fit_leaves_no_older_release_behind():
    y, t, x, _ = trial(300)
    with seeded_noise(0):
        model = make(DRLearner, base="linear").fit(y, t, X=x)
        with pytest.raises(InvalidInput):
            model.fit(y[:20], t[:20], X=x[:20])
    assert not hasattr(model, "release_")


def test_the_proved_base_learner_is_nearer_to_the_truth_than_dp_ebm():
    study, test = meta_learners("B", 4_000, 5), meta_learners("B", 4_000, 6)
    data = study.Y, study.T, study.X, study.effects
    errors = {
        base: np.mean(
            (fitted(DRLearner, base, data, bounds=study.bounds, clip=16.0).effect(test.X) - test.effects) ** 2
        )
        for base in ("additive", "ebm")
    }
    assert errors["additive"] < errors["ebm"]


def test_a_trim_that_leaves_no_overlap_is_refused():
    bounds = Bounds(outcome=(0, 1), covariates=[(0, 1)], propensity=(0.005, 0.04))
    with pytest.raises(InvalidInput, match="trim leaves nothing"):
        DRLearner(epsilon=1.0, delta=1e-5, bounds=bounds, base="linear").fit(
            np.zeros(60), np.arange(60) % 2, X=np.zeros((60, 1))
        )
