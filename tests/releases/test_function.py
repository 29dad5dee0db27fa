"""The file of an effect function: it answers by itself, refuses what it cannot answer, and stays small."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet import CATE, Bounds, EffectRelease, InvalidInput, Release, UnsupportedRelease, load
from discreet.postprocessing.kernel_basis import combine
from discreet.releases import io
from discreet.releases.report import effect_finding, render_effect, save_page
from discreet.testing import seeded_noise

# Made of polynomials.
OLDER = Path(__file__).parent.parent / "golden" / "releases" / "discreet-effect-release.v2.json"
BOUNDS = Bounds(outcome=(-8, 8), covariates={"age": (0, 90), "sex": ["f", "m"]}, propensity=(0.1, 0.9))


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.uniform(0, 90, n), "sex": rng.choice(["f", "m"], n)})


@pytest.fixture(scope="module")
def release():
    X, rng = people(4_000), np.random.default_rng(1)
    t = rng.integers(0, 2, len(X))
    y = X["age"] / 45 + t * (X["age"] / 30 - (X["sex"] == "m")) + rng.normal(size=len(X))
    with seeded_noise(0):
        return CATE(epsilon=10.0, delta=1e-6, bounds=BOUNDS).fit(y, t, X=X).release_


@pytest.fixture(scope="module")
def plain(release):
    return json.dumps(release.to_dict())


def test_a_file_answers_as_the_release_does(release, tmp_path):
    release.save(tmp_path / "r.json")
    loaded, X = EffectRelease.load(tmp_path / "r.json"), people(500, 3)
    np.testing.assert_array_equal(loaded.effect(X), release.effect(X))
    # Factors of the covariance are rounded.
    width, again = (np.diff(part.effect_interval(X), axis=0) for part in (release, loaded))
    np.testing.assert_allclose(again, width, rtol=1e-3)
    assert loaded.guarantee == release.guarantee
    assert loaded.to_dict() == release.to_dict()
    assert loaded.summary() == release.summary()


def test_effect_and_interval_at_once_are_the_same_as_apart(release):
    X = people(300, 5)
    effect, low, high = release.effect_with_interval(X, 0.1)
    np.testing.assert_allclose(effect, release.effect(X), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal((low, high), release.effect_interval(X, 0.1))


def test_ten_covariates_make_a_small_file(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (3_000, 10))
    t = rng.integers(0, 2, 3_000)
    with seeded_noise(0):
        bounds = Bounds(outcome=(-8, 8), covariates=[(-1, 1)] * 10)
        cate = CATE(epsilon=50.0, delta=1e-6, bounds=bounds).fit(x[:, 0] + t * x[:, 1], t, X=x)
    cate.release_.save(tmp_path / "r.json")
    assert cate.release_.terms.m > 100
    assert (tmp_path / "r.json").stat().st_size < 150_000


@pytest.mark.parametrize("size", [0, 1, 60])
def test_a_factor_comes_back_from_its_file_as_it_was_but_for_rounding(size):
    factor = np.tril(np.random.default_rng(size).standard_normal((size or 1, size or 1))) * (size > 0)
    factor[factor < -1.0] = 0.0
    again = io.triangular_from_steps(**json.loads(json.dumps(io.triangular_to_steps(factor))))
    np.testing.assert_allclose(again, factor, rtol=0.0, atol=2.0**-12 * np.abs(factor).max())


def test_the_fast_evaluation_is_the_features_times_the_coefficients(release):
    X = people(300, 5)
    slow = np.concatenate([combine(part, release.coefficients) for part in release._features(X)])
    np.testing.assert_allclose(release.effect(X), slow, atol=1e-10)


def test_rows_are_answered_one_by_one_whatever_the_frame(release):
    X = people(40_000, 6)
    answers = release.effect(X)
    assert answers.shape == (40_000,)
    some = X.iloc[[0, 17, 39_999]]
    for frame in (some, pl.from_pandas(some), pa.Table.from_pandas(some, preserve_index=False), some[["sex", "age"]]):
        np.testing.assert_allclose(release.effect(frame), answers[[0, 17, 39_999]], atol=1e-12)
    assert release.effect(X.iloc[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: X[["age"]], "X lacks columns that the bounds declare: 'sex'"),
        (lambda X: X.assign(day=1), "X has columns that the bounds do not declare: drop or declare 'day'"),
        (lambda X: X.assign(sex="x"), "'sex' of X has values outside its declared levels"),
        (lambda X: X.assign(age=np.nan), "'age' of X has missing values"),
        (lambda X: X.assign(age=np.inf), "'age' of X has infinite values"),
        (lambda X: X.assign(age="old"), "'age' of X must hold numbers"),
        (lambda X: X.to_numpy()[:, :1], "X has 1 columns, but the bounds declare 2"),
        (lambda X: None, "X is missing"),
        (lambda X: np.zeros((2, 2, 2)), "X must be an array or a frame"),
    ],
)
def test_queries_that_do_not_fit_are_refused(release, change, message):
    with pytest.raises(InvalidInput, match=message):
        release.effect(change(people(5)))
    with pytest.raises(InvalidInput, match=message):
        release.effect_interval(change(people(5)))


@pytest.mark.parametrize("alpha", [0, 1, -1, np.nan, "5 %", True])
def test_levels_that_are_none_are_refused(release, alpha):
    for ask in (release.effect_interval, release.effect_on_interval):
        with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
            ask(people(5), alpha)


def test_an_average_over_nobody_is_refused(release):
    with pytest.raises(InvalidInput, match="X has no rows"):
        release.effect_on(people(5).iloc[:0])


def test_a_curve_follows_the_function_where_it_is_additive(release):
    curve = release.curve("age")
    assert curve.values[0] == pytest.approx(0.0)
    assert curve.values[-1] == pytest.approx(90.0)
    assert np.all(curve.low <= curve.effect)
    assert np.all(curve.effect <= curve.high)
    assert curve.effect[-1] - curve.effect[0] == pytest.approx(3.0, abs=1.0)
    assert release.curve("sex").values == ("f", "m")
    np.testing.assert_array_equal(release.curve(1).effect, release.curve("sex").effect)
    for feature in ("height", 2, -1, True, None):
        with pytest.raises(InvalidInput, match="feature must be one of age, sex"):
            release.curve(feature)


def test_words_for_people(release):
    text, words = release.summary(), release.methods()
    for part in ("average effect", "age", "Privacy", "Notes", "4,000"):
        assert part in text
    for part in ("4,000 records", "epsilon = 10", "effect moments 2", "pointwise", "age and sex"):
        assert part in words
    # Older files hold intervals for the best approximation, newer ones allow for more by a rule of thumb.
    assert "not in full for what no such function can follow" in words
    assert str(release) == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"coefficients": [1.0]}, "coefficients; check the file"),
        ({"coefficients": ["a"]}, "wrong type"),
        ({"terms": {"kind": "splines"}}, "wrong type"),
        ({"terms": {"kind": "codes"}}, "edges, tables and members, and nothing else"),
        ({"terms": {"kind": "polynomials"}}, "wrong type"),
        ({"terms": ["codes"]}, "wrong type"),
        ({"terms": {"kind": "codes", "edges": [[], []], "tables": [[], []], "members": [[]]}}, "coefficients; check"),
        ({"n": -3}, "n must be positive"),
        ({"n": "many"}, "wrong type"),
        ({"importance": {"age": 1.0}}, "importance must name each covariate"),
        ({"design": "guess"}, "design must be one of"),
        ({"factor": [[1.0, 2.0]]}, "wrong type"),
        ({"factor": {"step": 1.0, "rows": [[0, 1, 2]]}}, "wrong type"),
        ({"factor": {"step": 1.0, "rows": [[1, 5]]}}, "factor must be triangular"),
        ({"factor": {"step": 1.0, "rows": [[-1, 5]]}}, "factor must be triangular"),
        ({"factor": {"step": 1.0, "rows": []}}, "coefficients; check the file"),
        ({"limits": [1.0, 0.0]}, "limits must be two finite numbers"),
        ({"limits": [0.0]}, "wrong type"),
        ({"measured": {"estimate": 1.0}}, "a measured average has an estimate"),
        ({"reference": {"unadjusted": float("nan")}}, "finite"),
        ({"more": 1}, "exactly the fields"),
    ],
)
def test_files_that_were_changed_are_refused(plain, change, message):
    with pytest.raises(InvalidInput, match=message):
        EffectRelease.from_dict(json.loads(plain) | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"marginals": [[1.0]]}, "one number for each cell"),
        ({"marginals": None}, "wrong type"),
        ({"terms": {"kind": "codes", "edges": [], "tables": [], "members": [[]]}}, "wrong type"),
        ({"size": {"degree": 10**9, "pairs": False, "curved": False}}, "degree that no release has"),
        ({"size": {"degree": 2.5, "pairs": False, "curved": False}}, "wrong type"),
        ({"size": {"degree": 2, "pairs": 1, "curved": False}}, "size has a field of the wrong type"),
        ({"windows": [[0.0, 0.5]]}, "windows must lie inside the ranges"),
        ({"windows": [[0.6, 0.5], None]}, "windows must lie inside the ranges"),
        ({"windows": [[0.0, 1e-310], None]}, "windows must lie inside the ranges"),
        ({"windows": [None, [0.0, 0.5]]}, "windows must lie inside the ranges"),
        ({"windows": [[0.0, 0.5, 0.5], None]}, "wrong type"),
        ({"windows": [False, None]}, "wrong type"),
    ],
)
def test_older_files_that_were_changed_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        EffectRelease.from_dict(json.loads(OLDER.read_text()) | change)


def test_other_files_are_refused(plain, tmp_path):
    path = tmp_path / "r.json"
    with pytest.raises(InvalidInput, match="There is no release file"):
        EffectRelease.load(path)
    path.write_text(plain[:-20])
    with pytest.raises(UnsupportedRelease, match="not complete JSON"):
        EffectRelease.load(path)
    path.write_text(json.dumps(json.loads(plain) | {"version": 99}))
    with pytest.raises(UnsupportedRelease, match="version 99, newer than 3"):
        EffectRelease.load(path)
    path.write_text(plain)
    with pytest.raises(UnsupportedRelease, match="a release of another kind"):
        Release.load(path)
    path.write_text(json.dumps({"format": "discreet-release", "version": 1}))
    with pytest.raises(UnsupportedRelease, match="a release of another kind"):
        EffectRelease.load(path)


def test_pictures_and_a_page(release, tmp_path):
    pytest.importorskip("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    assert release.plot("age").get_xlabel() == "age"
    assert len(release.plot("sex").get_xticks()) == 2
    pyplot.close("all")
    text = render_effect(release)
    for part in (
        "<svg",
        "What the effect goes with",
        "The effect along age",
        "effect moments 2",
        "A test, not private",
    ):
        assert part in text
    assert "most of all with age" in effect_finding(release)
    release.save(tmp_path / "r.json")
    save_page(load(tmp_path / "r.json"), tmp_path / "r.html")
    assert "The effect along age" in (tmp_path / "r.html").read_text()


def test_a_file_without_further_numbers_has_a_page(plain):
    bare = EffectRelease.from_dict(json.loads(plain) | {"reference": {}})
    assert "most of all with age" in effect_finding(bare)
    assert "The effect along age" in render_effect(bare)
