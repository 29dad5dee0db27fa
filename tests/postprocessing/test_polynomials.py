"""Functions of release files of versions 1 and 2: their features are what they were when the files were written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.data.columns import Levels, Range
from discreet.exceptions import InvalidInput
from discreet.postprocessing.polynomials import NARROWEST, PolynomialTerms, Size, Window, cells

CENTRES = (2 * np.arange(24) + 1) / 24 - 1
BELL = np.exp(-0.5 * (CENTRES / 0.4) ** 2)
# Long enough a tail for normal scores.
SKEWED = np.exp(-3.0 * (CENTRES + 1))
COLUMNS = (Range(0, 1), Levels(("a", "b", "c")), Range(-3, 3))
WINDOWS = ((0.1, 0.5), None, (-0.75, 0.25))
ROWS = np.array([[-0.35, 0.0, -0.9], [0.2, 2.0, 0.4]])
LINEAR = Size(degree=1, pairs=False, curved=False)
CURVED = Size(degree=2, pairs=False, curved=True)
STEPS = Size(degree=2, pairs=True, curved=True, steps=True)
JUMPS = Size(degree=5, pairs=True, curved=True, jumps=3)


def terms_of(size: Size, windows: tuple[Window | None, ...] = ()) -> PolynomialTerms:
    marginals = (BELL / BELL.sum(), np.array([0.5, 0.3, 0.2]), SKEWED / SKEWED.sum())
    return PolynomialTerms(COLUMNS, marginals, size, windows)


def points(n: int) -> Float:
    """Covariates as bounds encode them, edges of bins among them."""
    x = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    x[: n // 2] = np.round(x[: n // 2] * 12) / 12
    x[:, 1] = np.arange(n) % 3
    return x


# Computed by the code that wrote such files: a line or more for each of ROWS.
FEATURES = {
    "linear": (
        LINEAR,
        (),
        "1.5 -0.914534455022 1.0 0 -0.8263497429919",
        "1.5 0.5225911171554 -1.0 1.732050807569 2.414646311459",
    ),
    "curved": (
        CURVED,
        ((0.1, 0.5), None, None),
        "1.5 -2.351660027199 2.885400067132 1.0 0 -0.8263497429919 0.009296211115359 -1.467739347153 -0.01345734908414",
        "1.5 0.5225911171554 -0.4629695141167 -1.0 1.732050807569 2.414646311459 2.758634006749 -0.6881528663966 "
        "0.8874320555266",
    ),
    "steps": (
        STEPS,
        WINDOWS,
        "1.5 -2.351660027199 2.885400067132 1.774481049258 -0.9767966034827 1.0 0 0.5271712719602 "
        "-0.6656043315752 0.8284592801638 0.2245216341083 -1.41099601632 0 -0.743836564654 0.3163027631761 0 "
        "0.9363468980378 0.9635398476619 0.6503235508487 -1.354416029884",
        "1.5 0.5225911171554 -0.4629695141167 0.8698614045133 0.3127304495702 -1.0 1.732050807569 2.78701064041 "
        "4.034666980584 -1.007068707517 -1.727821763566 -0.3135546702932 0.5430926198984 0.8738802024576 "
        "-1.672206384246 2.896346418255 -0.7942734104677 1.297922378679 1.685369263418 -0.3658705941163",
    ),
    "jumps": (
        JUMPS,
        (),
        "1.5 -0.914534455022 -0.1042156304116 0.6864381300039 -0.344783360876 -0.3723891550248 -1.105417263855 "
        "-0.04102991510522 0.09906758606958 1.0 0 -0.8263497429919 0.009296211115359 0.5973627311727 "
        "-0.8772090942364 0.7333822003691 1.83099713296 0.9357139139415 -0.3488502862625 -0.5487206730132 0 "
        "0.4534351871188 -0.4958098457951 0 0.0530121916492 -0.005233413532723",
        "1.5 0.5225911171554 -0.4629695141167 -0.5156813408887 0.1929527803712 0.5177296264445 -0.228517621133 "
        "0.1043604989823 -0.9017233846296 -1.0 1.732050807569 2.414646311459 2.758634006749 1.775359473314 "
        "0.04869084844822 -1.472550914724 -0.5396559728583 0.1959564194562 0.5597971396825 -0.3135546702932 "
        "0.5430926198984 0.7571236280645 -1.448787786876 2.509374056254 -0.6881528663966 0.8874320555266",
    ),
}


@pytest.mark.parametrize(("size", "windows", "first", "second"), FEATURES.values(), ids=FEATURES)
def test_features_are_what_they_were(size, windows, first, second):
    terms = terms_of(size, windows)
    expected = np.array([first.split(), second.split()], dtype=np.float64)
    assert terms.m == len(terms.weight) == expected.shape[1]
    np.testing.assert_allclose(terms.features(ROWS), expected, rtol=1e-9, atol=1e-12)


def test_weights_are_what_they_were():
    falling = [1.0, 0.812252396356, 0.719223093325, 0.659753955386]
    expected = [1.5, *falling, 1.0, 1.0, *falling, *[0.6] * 5, *[0.5] * 4]
    np.testing.assert_allclose(terms_of(STEPS).weight, expected, rtol=1e-9)


def test_features_along_a_covariate_are_what_they_were():
    terms = terms_of(STEPS, WINDOWS)
    average = np.arange(1.0, 21.0) / 20.0
    along = terms.along(2, np.array([-0.8, 0.3]), average)
    curves = [1.437130978609, 0.350477311765, -0.102188570747, 0.456408702511]
    products = [0.086227858717, 0.25868357615, 0.301797505508, 0.132698683167, 0.021574409219, 0.199817134898]
    expected = [*average[:7], *curves, *average[11:13], *products, -0.007104094105]
    np.testing.assert_allclose(along[0], expected, rtol=1e-9)
    np.testing.assert_allclose(along[1, 7:11], [2.78701064041, 4.034666980584, -1.007068707517, -1.727821763566])
    (middle,) = terms.along(1, np.array([1.0]), average)
    own = [5, 6, 11, 12, 14, 15]
    expected = [-1.0, -1.154700538379, -0.06, -0.069282032303, -0.24, -0.277128129211]
    np.testing.assert_allclose(middle[own], expected, rtol=1e-9)
    np.testing.assert_array_equal(np.delete(middle, own), np.delete(average, own))


@pytest.mark.parametrize("j", [0, 1, 2])
def test_features_along_a_covariate_are_means_over_the_others_where_these_are_independent(j):
    values = (np.linspace(-0.9, 0.8, 5), np.arange(3.0), np.linspace(-1.0, 1.0, 7))
    grid = np.stack(np.meshgrid(*values, indexing="ij"), axis=-1).reshape(-1, 3)
    terms = terms_of(JUMPS, WINDOWS)
    features = terms.features(grid)
    means = [features[grid[:, j] == value].mean(axis=0) for value in values[j]]
    np.testing.assert_allclose(terms.along(j, values[j], features.mean(axis=0)), means, atol=1e-12)


@pytest.mark.parametrize("size", [STEPS, JUMPS])
def test_features_of_a_row_do_not_depend_on_the_others(size):
    terms, x = terms_of(size, WINDOWS), points(60)
    together = terms.features(x)
    np.testing.assert_array_equal(np.vstack([terms.features(row[None]) for row in x]), together)
    np.testing.assert_array_equal(terms.features(np.asfortranarray(x)[10:20]), together[10:20])


def test_what_lies_outside_a_window_counts_as_its_end():
    terms = terms_of(STEPS, WINDOWS)
    outside, at = terms.features(np.array([[0.9, 1.0, 1.0], [0.6, 1.0, -0.5]]))
    np.testing.assert_allclose(outside, at, rtol=1e-12)


def test_without_covariates_there_is_a_constant():
    terms = PolynomialTerms((), (), LINEAR)
    np.testing.assert_array_equal(terms.features(np.zeros((2, 0))), [[1.5], [1.5]])


def test_ranges_may_have_no_curves():
    terms = PolynomialTerms(COLUMNS[:1], (BELL / BELL.sum(),), Size(degree=0, pairs=False, curved=False))
    np.testing.assert_array_equal(terms.features(np.zeros((2, 1))), [[1.5], [1.5]])


def test_a_column_has_a_cell_for_each_level_and_a_range_has_24():
    assert [cells(column) for column in COLUMNS] == [24, 3, 24]
    assert pytest.approx(24**2) == 1 / NARROWEST


def test_terms_say_how_rich_they_are():
    assert str(terms_of(LINEAR)) == "linear"
    words = "polynomials of degree 2, a step and a kink at each median, products of all pairs, curved products"
    assert str(terms_of(STEPS)) == words
    assert str(terms_of(JUMPS)).startswith("polynomials of degree 5, jumps at 3 ranks, products of all pairs")
    assert [size.curves for size in (LINEAR, STEPS, JUMPS)] == [1, 4, 8]


@pytest.mark.parametrize("windows", [(), WINDOWS], ids=["whole", "windows"])
def test_terms_are_read_back_as_they_were_written(windows):
    terms = terms_of(JUMPS, windows)
    plain = json.loads(json.dumps(terms.to_dict()))
    assert list(plain) == ["kind", "size", "marginals", "windows"]
    assert plain["kind"] == "polynomials"
    assert plain["size"] == {"degree": 5, "pairs": True, "curved": True, "steps": False, "jumps": 3}
    assert plain["windows"] == [window and list(window) for window in windows]
    again = PolynomialTerms.from_dict(plain, COLUMNS)
    assert again.to_dict() == plain
    assert again.size == terms.size
    assert again.windows == windows
    np.testing.assert_array_equal(again.features(points(20)), terms.features(points(20)))


def test_terms_cannot_be_changed():
    terms = terms_of(JUMPS)
    for array in (terms.weight, *terms.marginals):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.0


def size(**changes: Any) -> dict[str, Any]:
    return {"size": {"degree": 2, "pairs": False, "curved": False} | changes}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (size(degree=2.0), "size has a field of the wrong type; check the file."),
        (size(degree=True), "size has a field of the wrong type"),
        (size(jumps="3"), "size has a field of the wrong type"),
        (size(pairs=1), "size has a field of the wrong type"),
        (size(steps=None), "size has a field of the wrong type"),
        (size(degree=-1), "size has a degree that no release has; check the file."),
        (size(degree=10**9), "size has a degree that no release has"),
        (size(jumps=65), "size has a jumps that no release has"),
        ({"marginals": [[1.0]]}, "marginals must have one number for each cell of each covariate; check the file."),
        ({"marginals": [[1 / 24] * 24, [0.5, 0.5], [1 / 24] * 24]}, "one number for each cell"),
        ({"marginals": [[[1 / 24]] * 24, [0.5, 0.3, 0.2], [1 / 24] * 24]}, "one number for each cell"),
        ({"marginals": [[1 / 24] * 24, [0.5, 0.3, np.nan], [1 / 24] * 24]}, "every released number must be finite"),
        ({"marginals": [[np.inf] * 24, [0.5, 0.3, 0.2], [1 / 24] * 24]}, "finite; check how it was computed."),
        ({"windows": [[0.0, 0.5]]}, "windows must lie inside the ranges, one for each covariate or none; check the"),
        ({"windows": [[0.6, 0.5], None, None]}, "windows must lie inside the ranges"),
        ({"windows": [[-0.6, 0.5], None, None]}, "windows must lie inside the ranges"),
        ({"windows": [[0.0, 1e-310], None, None]}, "windows must lie inside the ranges"),
        ({"windows": [[np.nan, 0.5], None, None]}, "windows must lie inside the ranges"),
        ({"windows": [[0.0, np.nan], None, None]}, "windows must lie inside the ranges"),
        ({"windows": [None, [0.0, 0.5], None]}, "windows must lie inside the ranges"),
    ],
)
def test_what_no_file_has_is_refused(changes, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        PolynomialTerms.from_dict(terms_of(LINEAR).to_dict() | changes, COLUMNS)


@pytest.mark.parametrize("size", [Size(degree=0, pairs=True, curved=False), Size(degree=0, pairs=False, curved=True)])
def test_products_of_curves_that_are_not_there_are_refused(size):
    with pytest.raises(InvalidInput, match="size has a degree that no release has"):
        PolynomialTerms((Range(0, 1), Range(0, 1)), (np.full(24, 1 / 24), np.full(24, 1 / 24)), size)


def test_the_narrowest_window_is_read():
    plain = terms_of(LINEAR).to_dict() | {"windows": [[0.0, NARROWEST], None, [1.0 - NARROWEST, NARROWEST]]}
    assert np.isfinite(PolynomialTerms.from_dict(plain, COLUMNS).features(ROWS)).all()
