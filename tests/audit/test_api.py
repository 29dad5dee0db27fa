"""One call for all instruments: what it takes, what it returns, and what it refuses."""

import json
import subprocess
import sys

import numpy as np
import pytest

import discreet as dc
import discreet.papers as papers
from discreet.audit import ATTACKS, AuditResult, Mechanism
from discreet.audit._neighbours import Table, base, extremes, unwelcome
from discreet.audit._replay import study_of
from discreet.audit._tape import Tape, Unlike
from discreet.exceptions import InvalidInput

BOUNDS = dc.Bounds(outcome=(0, 10), covariates=[(0, 1), ["a", "b"]], propensity=(0.1, 0.9))


def noisy_sum(scale):
    """A sum of numbers in [0, 1] with Laplace noise of a scale that may be right."""
    generator = np.random.default_rng(4)
    return lambda data: {"sum": float(np.sum(data)) + generator.laplace(0.0, scale)}


def mechanism(scale, **given):
    return Mechanism(run=noisy_sum(scale), epsilon=1.0, pair=(np.zeros(3), np.array([0.0, 0.0, 1.0])), **given)


def test_a_proved_estimator_is_replayed_and_then_run_as_a_black_box():
    estimator = dc.Uplift(epsilon=1.0, bounds=BOUNDS, by={0: 2})
    steps = []
    result = dc.audit(estimator, trials=30, progress=lambda *step: steps.append(step))
    assert isinstance(result, AuditResult)
    assert (result.status, result.neighbours, result.violated) == ("proved", "replace-one", False)
    assert [part.instrument for part in result.parts] == ["replay", "black box"]
    assert result.parts[1].confidence == 0.999
    assert 0.9 < result.epsilon_lower <= 1.0
    assert steps
    # The user's object is left as it was.
    assert not hasattr(estimator, "release_")


class Talkative(dc.DifferenceInMeans):
    """Keeps what it should not, beside a release that is private."""

    def fit(self, Y, T, **more):
        super().fit(Y, T, **more)
        self.mean_ = float(np.mean(Y))
        return self


def test_what_a_subclass_keeps_beside_its_release_is_compared():
    bounds = dc.Bounds(outcome=(0, 10), covariates=[(0, 1)], propensity=(0.1, 0.9))
    assert not dc.audit(dc.DifferenceInMeans(epsilon=1.0, bounds=bounds), trials=60).violated
    talkative = dc.audit(Talkative(epsilon=1.0, bounds=bounds), trials=60)
    assert talkative.violated
    assert "mean_" in " ".join(map(str, talkative.parts))


def test_a_result_survives_json_and_says_what_it_found(tmp_path):
    result = dc.audit(mechanism(0.2), trials=200)
    assert result.violated
    again = AuditResult.from_dict(json.loads(result.to_json(tmp_path / "audit.json")))
    assert again == result
    assert json.loads((tmp_path / "audit.json").read_text())["epsilon_lower"] == result.epsilon_lower
    text = str(result)
    assert "the claim is refuted" in text
    assert "epsilon = 1" in text


def test_a_foreign_mechanism_that_keeps_its_promise_is_not_accused():
    result = dc.audit(mechanism(1.0, name="ours"), trials=300)
    assert not result.violated
    assert result.mechanism == "ours"
    assert result.epsilon_lower <= 1.0


def test_every_kind_of_result_can_be_drawn():
    from matplotlib.figure import Figure

    pictures = [
        dc.audit(mechanism(0.2), trials=40),
        *dc.audit(None, attack="adum_range_for_max", trials=40).parts,
        dc.audit(None, attack="float_laplace", trials=200),
        *dc.audit(dc.DifferenceInMeans(epsilon=1.0, bounds=BOUNDS), trials=20).parts,
    ]
    assert {result.picture["kind"] for result in pictures} == {"histograms", "laplace", "bars", "ratios"}
    for result in pictures:
        ax = result.plot(Figure().subplots())
        assert result.mechanism in ax.get_title(loc="left")


def test_a_claim_without_known_attacks_meets_extreme_records():
    result = dc.audit(papers.DRLearner(epsilon=1.0, delta=1e-5, bounds=BOUNDS, base="ebm"), trials=3)
    assert (result.status, result.instrument) == ("claimed", "black box")
    assert any("no attack is known" in note for note in result.notes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"attack": "nonsense"}, "there is no attack 'nonsense'"),
        ({"attack": "dp_cate_forest"}, "is on papers.DPCATE, not on ATE"),
        ({"trials": 1}, "trials must be an integer"),
        ({"trials": 2.5}, "trials must be an integer"),
        ({"trials": -3}, "trials must be an integer"),
        ({"confidence": 1.5}, "confidence must lie"),
        ({"confidence": "high"}, "confidence must lie"),
        ({"random_state": -1}, "random_state must be an integer"),
        ({"random_state": "x"}, "random_state must be an integer"),
    ],
)
def test_what_makes_no_sense_is_refused(given, words):
    with pytest.raises(InvalidInput, match=words):
        dc.audit(dc.ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS), **given)


def test_objects_that_cannot_be_audited_are_refused():
    with pytest.raises(InvalidInput, match="must have fit and bounds"):
        dc.audit(3)
    with pytest.raises(InvalidInput, match="give propensity as one number"):
        dc.audit(dc.ATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=np.full(10, 0.5)))
    with pytest.raises(InvalidInput, match="run must be callable"):
        Mechanism(run=3, epsilon=1.0, pair=(0, 1))
    with pytest.raises(InvalidInput, match="neighbours must be"):
        Mechanism(run=noisy_sum(1.0), epsilon=1.0, pair=(0, 1), neighbours="anything")
    with pytest.raises(InvalidInput, match="pair must hold two"):
        Mechanism(run=noisy_sum(1.0), epsilon=1.0, pair=(0,))


class Foreign:
    """An estimator of another library: no parameters to ask for, no release, but a claim."""

    epsilon, bounds, noise = 1.0, BOUNDS, 0.0

    def fit(self, Y, T, X=None):
        self.effect_ = np.mean(Y[T == 1]) - np.mean(Y[T == 0]) + np.random.default_rng().laplace(0.0, 1e-9 + self.noise)
        return self


def test_a_foreign_estimator_without_noise_is_refuted_by_what_its_attributes_tell():
    estimator = Foreign()
    result = dc.audit(estimator, trials=60)
    assert result.violated
    assert (result.status, result.instrument) == ("claimed", "black box")
    assert not hasattr(estimator, "effect_")
    estimator.noise = 10.0
    assert not dc.audit(estimator, trials=60).violated


def test_a_foreign_estimator_without_a_claim_or_without_numbers_is_refused():
    class Silent(Foreign):
        def fit(self, Y, T, X=None):
            return self

    class Modest(Foreign):
        @property
        def epsilon(self):  # type: ignore[override]
            raise AttributeError

    with pytest.raises(InvalidInput, match="publishes no numbers"):
        dc.audit(Silent())
    with pytest.raises(InvalidInput, match="states no epsilon"):
        dc.audit(Modest())


@pytest.mark.parametrize("nothing", [None, {}, [], {"model": object()}])
def test_a_mechanism_that_publishes_no_numbers_is_no_proof_of_privacy(nothing):
    silent = Mechanism(run=lambda data: nothing, epsilon=1.0, pair=(0, 1))
    with pytest.raises(InvalidInput, match="publishes no numbers"):
        dc.audit(silent)


def test_importing_the_package_does_not_import_the_audit():
    known = "print('discreet.audit' in sys.modules)"
    script = f"import sys, discreet; {known}; discreet.audit; {known}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_made_up_neighbours_differ_in_one_record_and_include_what_nobody_declared():
    table = base(BOUNDS, 50, "lopsided", study_of(0))
    for record in extremes(BOUNDS):
        other = table.with_record(7, record)
        same = [np.array_equal(table.record(k).x, other.record(k).x) and table.y[k] == other.y[k] for k in range(50)]
        assert set(np.flatnonzero(~np.array(same))) <= {7}
        assert table.and_record(record).n == 51
    labels = [record.label for record in unwelcome(BOUNDS, table, 7)]
    assert {"outcome nan", "outcome inf", "outcome -inf", "a twin of another record"} <= set(labels)
    assert any("new level" in label for label in labels)
    assert table.without(3).n == 49


def test_a_neighbour_that_leaves_an_arm_empty_is_refused_before_any_question():
    lonely = table = base(BOUNDS, 30, "tiny arm", study_of(0))
    assert table.t.sum() == 1
    tape = Tape(lambda data: dc.DifferenceInMeans(epsilon=1.0, bounds=BOUNDS).fit(data.y, data.t, X=data.x), lonely)
    empty = Table(table.y, np.zeros(30, dtype=int), table.x)
    assert tape.replay(empty) is None
    with pytest.raises(Unlike, match="refused"):
        tape.moves(empty)
    assert max(tape.moves(Table(table.y, np.r_[1, 1, np.zeros(28, dtype=int)], table.x))) <= 1


def test_every_attack_has_a_name_a_title_and_its_setting():
    assert set(ATTACKS) == {
        *("dp_cate_forest", "dp_cate_identical_queries", "private_ci_width", "private_ci_few_treated"),
        *("ebm_offset_target", "ebm_max_weight", "adum_range_for_max", "propensity_data_norm"),
        *("functional_bandwidth", "float_laplace", "norm_noise"),
    }
    for attack in ATTACKS.values():
        assert attack.title.endswith(".")
        assert len(attack.setting) > 40
