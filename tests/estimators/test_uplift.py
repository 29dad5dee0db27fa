"""Effects by segment as an estimator: what it estimates, promises, keeps and refuses."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import Bounds, PrivateKMeans, Release, Uplift, UpliftRelease
from discreet.datasets import adum, criteo_shaped
from discreet.estimators.uplift import declared, segments_in_words
from discreet.exceptions import DiscreetError, InvalidBudget, InvalidInput, MissingBounds, NotFitted, UnsupportedRelease
from discreet.privacy import gate as gate_module
from discreet.privacy.budget import GaussianEvent, LaplaceEvent
from discreet.releases.report import render_page, save_page
from discreet.testing import frozen_noise, seeded_noise

STUDY = adum(6_000, 0)
GIVEN = {"epsilon": 1.0, "bounds": STUDY.bounds, "by": {0: 6}}
NAMED = Bounds(outcome=(0, 1), covariates={"age": (0, 10), "sex": ["f", "m"]})


def fit(study=STUDY, **given):
    return Uplift(**(GIVEN | given)).fit(study.Y, study.T, X=study.X)


@pytest.fixture(scope="module")
def fitted():
    with seeded_noise(1):
        return fit(epsilon=2.0, propensity=0.5)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [None, 1e-6])
def test_the_guarantee_is_what_was_asked_for_proved_and_all_used(neighbours, delta):
    guarantee = fit(neighbours=neighbours, delta=delta).guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.neighbours) == (1.0, delta or 0.0, neighbours)
    assert (guarantee.status, guarantee.proof) == ("proved", "uplift.md")
    kind = LaplaceEvent if delta is None else GaussianEvent
    assert all(isinstance(event, kind) for event in guarantee.events)
    if delta is None:
        shares = [event.diameter / event.scale for event in guarantee.events]
        assert shares == pytest.approx([0.02, 0.02, 0.96])
    assert ("the number of records" in guarantee.public) == (neighbours == "replace-one")


def test_without_noise_counts_and_sums_are_those_of_the_records():
    with frozen_noise():
        noisy = fit().release_.noisy
    cell = np.minimum((STUDY.X[:, 0] + 1) / 2 * 6, 5).astype(int)
    for arm in (0, 1):
        mine = arm == STUDY.T
        np.testing.assert_allclose(noisy.counts[:, arm], np.bincount(cell[mine], minlength=6), atol=1e-6)
        np.testing.assert_allclose(noisy.sums[:, arm], np.bincount(cell[mine], STUDY.Y[mine] / 5, 6), atol=1e-6)


def test_with_much_budget_a_smooth_effect_is_found_and_covered(fitted):
    places = np.linspace(-0.99, 0.99, 50)[:, None]
    assert np.sqrt(np.mean((fitted.effect(places) - np.sin(places[:, 0])) ** 2)) < 0.12
    low, high = fitted.effect_interval(places, alpha=0.01)
    assert np.mean((low <= np.sin(places[:, 0])) & (np.sin(places[:, 0]) <= high)) > 0.9
    narrow, wide = (np.diff(fitted.effect_interval(places, alpha=a), axis=0).mean() for a in (0.5, 0.05))
    assert 0 < narrow < wide


def test_a_small_budget_with_a_known_design_shares_sums_and_says_so():
    with seeded_noise(0):
        small = fit(epsilon=0.05, propensity=0.5)
        unknown = fit(epsilon=0.05)
    assert (small.release_.kind, unknown.release_.kind) == ("signed", "arms")
    assert "share a sum" in small.summary()
    assert "causal if treatment was as good as random" in unknown.summary()
    assert "control_count" not in small.table()[0]


def test_shared_sums_estimate_the_same_effect():
    study = adum(40_000, 2)
    with frozen_noise():
        noisy = [fit(study, epsilon=epsilon, propensity=0.5).release_ for epsilon in (0.001, 5.0)]
    assert [release.kind for release in noisy] == ["signed", "arms"]
    signed = 2 * noisy[0].noisy.sums[:, 0] / noisy[0].noisy.counts[:, 0]
    arms = np.diff(noisy[1].noisy.sums / noisy[1].noisy.counts)[:, 0]
    np.testing.assert_allclose(signed, arms, atol=0.03)


def test_a_probability_of_each_record_undoes_confounding_within_segments():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (60_000, 1))
    e = 0.2 + 0.6 * x[:, 0]
    t = (rng.random(len(x)) < e) * 1.0
    y = x[:, 0] + 0.2 * t
    bounds = Bounds(outcome=(0, 1.2), covariates=[(0, 1)], propensity=(0.15, 0.85))
    with seeded_noise(0):
        weighted = Uplift(epsilon=20.0, bounds=bounds, by={0: 1}, propensity=e).fit(y, t, X=x)
        plain = Uplift(epsilon=20.0, bounds=bounds, by={0: 1}).fit(y, t, X=x)
    assert weighted.ate() == pytest.approx(0.2, abs=0.02)
    assert plain.ate() > 0.3
    assert weighted.release_.counts.sum() == pytest.approx(60_000, rel=0.05)


def test_auto_makes_more_segments_for_more_budget_and_few_for_little():
    with seeded_noise(0):
        counts = [len(fit(by={0: "auto"}, epsilon=epsilon).table()) for epsilon in (0.02, 1.0, 50.0)]
    assert counts[0] == 2
    assert counts[0] < counts[1] < counts[2] == 12


def test_auto_takes_levels_as_they_are_and_shares_segments_among_ranges():
    bounds = Bounds(outcome=(0, 1), covariates={"a": (0, 1), "b": (0, 1), "c": ["x", "y", "z"]})
    assert declared({"a": "auto", "b": "auto"}, bounds, 9) == {"a": 3, "b": 3}
    assert declared({"a": "auto", "c": "auto"}, bounds, 12) == {"a": 4, "c": "levels"}
    assert declared({"a": "auto", "b": 8}, bounds, 4) == {"a": 2, "b": 8}
    assert declared({"a": 5}, bounds, 4) == {"a": 5}


def test_crossed_segments_and_private_clusters_work():
    study = criteo_shaped(4_000, 1)
    with seeded_noise(0):
        crossed = fit(study, bounds=study.bounds, by={"f0": 3, "f9": [13, 20, 76]}, epsilon=5.0)
        clusters = fit(study, bounds=study.bounds, by=PrivateKMeans(clusters=4, rounds=2))
    assert [len(crossed.table()), len(clusters.table())] == [6, 4]
    assert np.isfinite(crossed.effect(study.X)).all()
    assert len(set(clusters.effect(study.X))) <= 4
    assert "the declared segments" not in clusters.guarantee_.public
    spent = [event.diameter / event.scale for event in clusters.guarantee_.events]
    assert sum(spent[:4]) == pytest.approx(0.5)
    assert sum(spent) == pytest.approx(1.0)


def test_the_table_the_curve_and_the_average_agree(fitted):
    rows = pd.DataFrame(fitted.table())
    assert list(rows) == ["segment", "effect", "low", "high", "control_count", "treated_count", "count"]
    assert (rows.low < rows.effect).all()
    assert (rows.effect < rows.high).all()
    curve = fitted.uplift_curve()
    assert (curve.share[0], curve.value[0]) == (0.0, 0.0)
    assert curve.share[-1] == pytest.approx(1.0)
    assert curve.value[-1] == pytest.approx(fitted.ate())
    # Negative effects come last, so that the curve rises above its end.
    assert curve.value.max() > curve.value[-1] + 0.1
    assert np.all(curve.low <= curve.value)
    assert np.all(curve.value <= curve.high)
    low, high = fitted.ate_interval()
    assert low < fitted.ate() < high
    assert (curve.low[-1], curve.high[-1]) == pytest.approx((low, high))


def test_simultaneous_intervals_contain_those_of_each_segment(fitted):
    each, at_once = pd.DataFrame(fitted.table(0.1)), pd.DataFrame(fitted.table(0.1, simultaneous=True))
    assert list(each) == list(at_once)
    assert (at_once.low < each.low).all()
    assert (each.high < at_once.high).all()
    assert (each.effect == at_once.effect).all()
    # Of one segment, all at once is that one.
    with seeded_noise(0):
        single = fit(by={0: 1})
    assert single.table()[0] == pytest.approx(single.table(simultaneous=True)[0])
    head, lines = fitted.release_.shown(0.1, simultaneous=True)
    assert head[2] == "90 % interval, segments at once"
    assert lines[-1] == fitted.release_.shown(0.1)[1][-1]


@pytest.mark.parametrize("wrong", [1, None, "yes", np.True_])
def test_simultaneous_is_true_or_false(fitted, wrong):
    with pytest.raises(InvalidInput, match="simultaneous must be True or False: say whether"):
        fitted.table(simultaneous=wrong)


def test_records_of_levels_have_the_intervals_of_their_segments():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 10, 3_000), "sex": rng.choice(["f", "m"], 3_000)})
    t = rng.integers(0, 2, 3_000)
    with seeded_noise(0):
        fitted = Uplift(epsilon=2.0, bounds=NAMED, by={"sex": "levels"}).fit(t * 0.5, t, X=frame)
    low, high = fitted.effect_interval(frame.iloc[:20], alpha=0.2)
    rows = {row["segment"]: row for row in fitted.table(0.2)}
    for sex, first, last in zip(frame.sex[:20], low, high, strict=True):
        assert (first, last) == pytest.approx((rows[f"sex {sex}"]["low"], rows[f"sex {sex}"]["high"]))


def test_targeting_takes_the_largest_effects_and_no_more_than_allowed(fitted):
    chosen, effect = fitted.targeting(STUDY.X, 0.25), fitted.effect(STUDY.X)
    assert chosen.sum() == STUDY.n // 4
    assert effect[chosen].min() >= effect[~chosen].max()
    assert [fitted.targeting(STUDY.X, share).sum() for share in (0, 1)] == [0, STUDY.n]
    with pytest.raises(InvalidInput, match="fraction must lie between 0 and 1"):
        fitted.targeting(STUDY.X, 1.5)


def test_fitting_leaves_nothing_behind_but_the_release():
    with seeded_noise(0):
        fitted = fit()
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    plain = json.dumps(fitted.release_.to_dict())
    assert len(pickle.dumps(fitted)) < 60_000
    assert len(plain) < 20_000
    # Exact numbers of the records appear nowhere, not even in what the release computes.
    exact = {float(count) for count in np.bincount(np.minimum((STUDY.X[:, 0] + 1) * 3, 5).astype(int))}
    assert not exact & {row["count"] for row in fitted.table()}
    assert clone(fitted).get_params()["by"] == {0: 6}
    assert not hasattr(clone(fitted), "release_")


def test_the_file_alone_answers(fitted, tmp_path):
    fitted.release_.save(tmp_path / "u.json")
    read = UpliftRelease.load(tmp_path / "u.json")
    np.testing.assert_array_equal(read.effect(STUDY.X), fitted.effect(STUDY.X))
    np.testing.assert_array_equal(read.effect_interval(STUDY.X, 0.2), fitted.effect_interval(STUDY.X, 0.2))
    assert read.table() == fitted.table()
    assert str(read) == fitted.summary()
    assert read.guarantee == fitted.guarantee_


def test_files_of_another_kind_or_version_and_broken_ones_are_refused(fitted, tmp_path):
    path = tmp_path / "u.json"
    plain = fitted.release_.to_dict()
    for change, error, words in [
        ({"format": "discreet-release"}, UnsupportedRelease, "a release of another kind, 'discreet-release'"),
        ({"version": 99}, UnsupportedRelease, "version 99, newer than 2"),
        ({"extra": 1}, InvalidInput, "exactly the fields"),
        ({"kind": "signed", "propensity": None}, InvalidInput, "known propensity"),
        ({"noisy": {"counts": [1]}}, InvalidInput, "wrong type"),
        ({"noisy": plain["noisy"] | {"sums": [[1.0, 2.0]]}}, InvalidInput, "one finite number per segment"),
        ({"noisy": plain["noisy"] | {"sum_sd": 0.0}}, InvalidInput, "must be positive"),
        ({"noisy": plain["noisy"] | {"sum_sd": 1e308}}, InvalidInput, "wrong type"),
        ({"settings": [1]}, InvalidInput, "plain JSON by name"),
        (
            {"partition": {"kind": "declared", "cuts": [{"column": 3, "edges": []}]}},
            InvalidInput,
            "does not fit the bounds",
        ),
        (
            {"partition": {"kind": "declared", "cuts": [{"column": 0, "edges": "x"}]}},
            InvalidInput,
            "does not fit the bounds",
        ),
        (
            {"partition": {"kind": "declared", "cuts": [{"column": 0, "groups": [0]}]}},
            InvalidInput,
            "does not fit the bounds",
        ),
        ({"partition": {"kind": "clusters", "centres": [[0.0]], "columns": [4]}}, InvalidInput, "clusters do not fit"),
        ({"partition": {"kind": "clusters", "centres": [[0.0]], "columns": []}}, InvalidInput, "clusters do not fit"),
        ({"partition": {"kind": "clusters", "centres": [[9.0]], "columns": [0]}}, InvalidInput, "clusters do not fit"),
        ({"guarantee": plain["guarantee"] | {"proof": 3}}, InvalidInput, "must be text"),
    ]:
        path.write_text(json.dumps(plain | change))
        with pytest.raises(error, match=words):
            UpliftRelease.load(path)
    path.write_text("{")
    with pytest.raises(UnsupportedRelease, match="not complete JSON"):
        UpliftRelease.load(path)
    path.write_text(json.dumps(plain))
    with pytest.raises(UnsupportedRelease, match="a release of another kind"):
        Release.load(path)


def test_queries_that_do_not_fit_the_bounds_are_refused():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 10, 200), "sex": rng.choice(["f", "m"], 200)})
    t = np.arange(200) % 2
    with seeded_noise(0):
        fitted = Uplift(epsilon=1.0, bounds=NAMED, by={"age": 3, "sex": "levels"}).fit(t * 0.5, t, X=frame)
    assert len(fitted.effect(frame.head(3))) == 3
    for query, words in [
        (frame[["age"]], "lacks columns that the bounds declare: 'sex'"),
        (frame.assign(day=1), "columns that the bounds do not declare: drop or declare 'day'"),
        (frame.assign(sex="x"), "'sex'"),
        (frame.assign(age=np.nan), "'age'"),
        (np.zeros((3, 5)), "5 columns"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            fitted.effect(query)
    for alpha in (0, 1, "x"):
        with pytest.raises(InvalidInput, match="alpha"):
            fitted.effect_interval(frame, alpha)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"by": {"height": 3}}, InvalidInput, "'height' that the bounds do not declare"),
        ({"by": {7: 3}}, InvalidInput, "do not declare"),
        ({"by": {}}, InvalidInput, "by must map covariates"),
        ({"by": None}, InvalidInput, "by must map covariates"),
        ({"by": {0: "levels"}}, InvalidInput, "number of cuts or a list of edges"),
        ({"by": {0: 1_000}}, InvalidInput, "more than 512: cut more coarsely"),
        ({"neighbours": "both"}, InvalidInput, "neighbours must be"),
        ({"bounds": None}, MissingBounds, "Uplift needs bounds"),
        ({"epsilon": -1.0}, InvalidBudget, "epsilon"),
        ({"propensity": True}, InvalidInput, "propensity must be a probability"),
        ({"propensity": 0.01}, InvalidInput, "propensity must lie inside"),
    ],
)
def test_what_cannot_be_used_is_refused_before_noise_is_drawn(given, error, words, monkeypatch):
    monkeypatch.setattr(gate_module, "discrete_laplace", lambda *_: pytest.fail("noise was drawn"))
    estimator = Uplift(**(GIVEN | given))
    with pytest.raises(error, match=words) as caught:
        estimator.fit(STUDY.Y, STUDY.T, X=STUDY.X)
    assert isinstance(caught.value, DiscreetError)
    assert not hasattr(estimator, "release_")


def test_nothing_is_answered_before_fit():
    with pytest.raises(NotFitted, match="call fit first"):
        Uplift(**GIVEN).effect(STUDY.X)


def test_a_picture_can_be_drawn(fitted):
    pytest.importorskip("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ax = fitted.plot()
    assert ax.get_xlabel() == "effect (95 % intervals)"
    assert [label.get_text() for label in ax.get_yticklabels()] == fitted.release_.partition.labels()
    assert fitted.plot_curve().get_ylabel() == "effect per person of all"
    pyplot.close("all")


def test_a_release_has_a_methods_paragraph_and_a_page(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    words = fitted.release_.methods()
    for part in (
        "6 segments declared by x0",
        "6,000 records",
        "epsilon = 2",
        "range from -5 to 5",
        "discrete Laplace noise",
        "pairs by segment and arm",
        "known by design",
    ):
        assert part in words
    save_page(fitted.release_, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    for part in ("It is largest where x0 [0.666667, 1]", "best segments first", "A test, not private", "<td class"):
        assert part in text
    assert text.count("<svg") == 2


def test_words_and_pages_fit_every_kind_of_table():
    pytest.importorskip("matplotlib")
    study = criteo_shaped(3_000, 1)
    given = {"bounds": study.bounds, "epsilon": 0.1}
    with seeded_noise(0):
        clusters = fit(study, **given, by=PrivateKMeans(clusters=3, rounds=1), neighbours="add-remove").release_
        signed = fit(epsilon=0.05, delta=1e-6, propensity=0.5).release_
        weighted = fit(propensity=np.full(STUDY.n, 0.5)).release_
    assert "3 segments found by private k-means on f0, f1" in clusters.methods()
    assert "from about 3," in clusters.methods() or "from about 2," in clusters.methods()
    assert "as if treatment had been drawn by lot" in clusters.methods()
    assert "do not show that it differs between segments" in render_page(clusters)
    assert "signed sums by segment" in signed.methods()
    assert "discrete Gaussian noise" in signed.methods()
    assert (signed.design, weighted.design, clusters.design) == ("known propensity",) * 2 + ("observational",)
    assert "treatment assigned by design" in render_page(weighted)


def test_nothing_but_sums_and_counts_by_cell_is_asked_for(monkeypatch):
    asked = []
    ask = gate_module.Gate.ask

    def told(gate, *queries):
        asked.extend(type(query.geometry).__name__ for query in queries)
        return ask(gate, *queries)

    monkeypatch.setattr(gate_module.Gate, "ask", told)
    with seeded_noise(0):
        for given in ({}, {"epsilon": 0.05, "propensity": 0.5}, {"by": PrivateKMeans(clusters=3, rounds=1)}):
            fit(**given)
    assert set(asked) == {"Pairs", "Interval", "Cells", "CellSums"}


def test_a_fitted_estimator_survives_pickling(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.effect(STUDY.X), fitted.effect(STUDY.X))
    assert again.summary() == fitted.summary()
    assert vars(again).keys() == vars(fitted).keys()


def test_segments_are_read_from_the_command_line():
    by = segments_in_words(["age=8", "sex=levels", "bp=40,90,220", "x=auto"])
    assert by == {"age": 8, "sex": "levels", "bp": [40.0, 90.0, 220.0], "x": "auto"}
    for words in (["age"], ["age="], ["age=8", "age=9"], ["age=many"], ["=3"]):
        with pytest.raises(InvalidInput, match="--by"):
            segments_in_words(words)
