"""Terms of a released function: those of the basis that they come from, written and read without loss."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from discreet.data._arrays import Float
from discreet.data.columns import Levels, Range
from discreet.exceptions import InvalidInput
from discreet.postprocessing.coded_terms import CodedTerms
from discreet.postprocessing.coding import Coding
from discreet.postprocessing.kernel_basis import CodedBasis

EVEN = Coding(np.linspace(-1.0, 1.0, 33)[1:-1], np.linspace(-0.97, 0.97, 32), np.full(32, 1 / 32), True)
ATOM = Coding(np.array([-0.99, 0.0]), np.array([-1.0, -0.5, 0.5]), np.array([0.7, 0.2, 0.1]), True)
LEVELS = Coding(np.array([0.5, 1.5, 2.5]), np.arange(4.0), np.array([0.4, 0.3, 0.2, 0.1]), False)
COLUMNS = (Range(0.0, 1.0), Range(-5.0, 5.0), Levels(("a", "b", "c", "d")))
BASIS = CodedBasis.build((EVEN, ATOM, LEVELS), np.full(3, 1 / 3), 80)
SOME = np.array([0, *range(1, 80, 3)])


def rows(n: int = 400) -> Float:
    rng = np.random.default_rng(3)
    return np.column_stack([rng.uniform(-1, 1, n), rng.uniform(-1, 1, n), rng.integers(0, 4, n)])


@pytest.mark.parametrize("kept", [np.arange(80), SOME, np.array([0]), np.array([0, 7])])
def test_features_are_those_of_the_basis_without_their_weights(kept: Any) -> None:
    x, terms = rows(), CodedTerms.of(BASIS, kept)
    expected = (BASIS.from_codes(BASIS.codes(x), len(x)) / BASIS.weight)[:, kept]
    # Tables are rounded to six digits behind the point, and products have up to three of them.
    np.testing.assert_allclose(terms.features(x), expected, atol=1e-4)
    assert terms.m == len(kept)
    assert [len(terms.covariates(k)) for k in range(terms.m)] == [len(BASIS.members[k]) for k in kept]


def test_values_at_the_edges_and_beyond_have_the_codes_that_fitting_gave_them() -> None:
    x = np.column_stack([*(np.array([-1.0, 0.0, 1.0, EVEN.edges[3]]) for _ in range(2)), [0.0, 3.0, 1.0, 2.0]])
    expected = BASIS.from_codes(BASIS.codes(x), len(x)) / BASIS.weight
    np.testing.assert_allclose(CodedTerms.of(BASIS, np.arange(80)).features(x), expected, atol=1e-4)


def test_covariates_that_no_term_needs_take_no_place() -> None:
    only = [k for k, member in enumerate(BASIS.members) if all(j == 1 for j, _ in member)]
    terms = CodedTerms.of(BASIS, np.array(only))
    assert [len(own) for own in terms.edges] == [0, 2, 0]
    assert [own.shape for own in terms.tables] == [(1, 0), (3, 2), (1, 0)]
    x = rows()
    x[:, [0, 2]] = 0.0
    np.testing.assert_array_equal(terms.features(x), terms.features(rows()))


@pytest.mark.parametrize("j", [0, 1, 2])
def test_along_a_covariate_its_own_terms_follow_it_and_products_with_single_others_vanish(j: int) -> None:
    terms, values = CodedTerms.of(BASIS, np.arange(80)), np.array([0.0, 1.0, -0.5 if j < 2 else 2.0])
    average = np.concatenate([[1.0], np.random.default_rng(1).normal(size=79)])
    along, codes = terms.along(j, values, average), BASIS.codings[j].codes(values)
    for k, member in enumerate(BASIS.members):
        others = tuple(each for each in member if each[0] != j)
        own = [BASIS.curves[j].table[codes, curve] for at, curve in member if at == j]
        if not own:
            expected = np.full(3, average[k])
        elif len(others) == 1:
            expected = np.zeros(3)
        else:
            # Of a product of three, what the two others have in common stays, where their product is a term as well.
            expected = own[0] * (average[BASIS.members.index(others)] if others in BASIS.members else 0.0)
        np.testing.assert_allclose(along[:, k], expected, atol=1e-5)


def test_along_a_covariate_is_the_mean_over_others_that_are_independent() -> None:
    terms, x = CodedTerms.of(BASIS, SOME), rows(40_000)
    x[:, 1] = np.random.default_rng(2).choice([-1.0, -0.5, 0.5], 40_000, p=ATOM.mass)
    x[:, 2] = np.random.default_rng(4).choice(4, 40_000, p=LEVELS.mass)
    average = terms.features(x).mean(axis=0)
    x[:, 0] = 0.3
    np.testing.assert_allclose(terms.along(0, np.array([0.3]), average)[0], terms.features(x).mean(axis=0), atol=0.05)


@pytest.mark.parametrize("kept", [np.arange(80), SOME, np.array([0])])
def test_terms_come_back_as_they_were(kept: Any) -> None:
    terms = CodedTerms.of(BASIS, kept)
    plain = json.loads(json.dumps(terms.to_dict()))
    again = CodedTerms.from_dict(plain, COLUMNS)
    np.testing.assert_array_equal(again.features(rows()), terms.features(rows()))
    assert again.to_dict() == terms.to_dict()
    assert (again.members, str(again)) == (terms.members, str(terms))


def test_without_covariates_there_is_a_constant() -> None:
    terms = CodedTerms.from_dict(CodedTerms((), (), ((),)).to_dict(), ())
    np.testing.assert_array_equal(terms.features(np.empty((3, 0))), np.ones((3, 1)))
    assert str(terms) == "none"


def test_terms_cannot_be_changed() -> None:
    terms = CodedTerms.of(BASIS, SOME)
    for array in (*terms.edges, *terms.tables):
        with pytest.raises(ValueError, match="read-only"):
            array += 1.0


PLAIN = {
    "kind": "codes",
    "edges": [[-0.5, 0.5], [], [0.5, 1.5]],
    "tables": [[[-1.0, 0.0, 1.0], [1.0, -2.0, 1.0]], [], [[1.0, -1.0, 0.0]]],
    "members": [[], [[0, 0]], [[0, 1], [2, 0]]],
}


def test_the_terms_that_refusals_start_from_are_read() -> None:
    terms = CodedTerms.from_dict(PLAIN, COLUMNS)
    x = np.array([[-1.0, 0.0, 0.0], [0.9, 0.0, 3.0]])
    np.testing.assert_array_equal(terms.features(x), [[1.0, -1.0, 1.0], [1.0, 1.0, 0.0]])


EDGES = "edges must rise inside of each covariate's range"
MEMBERS = "members must name functions of different covariates"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"edges": [[-0.5, 0.5], []]}, EDGES),
        ({"edges": [[-0.5, 0.5], [], [0.5, 1.5], []]}, EDGES),
        ({"edges": [[0.5, -0.5], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [[0.5, 0.5], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [[-1.0, 0.5], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [[-0.5, 1.0], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [[-0.5, 0.5], [], [0.0, 1.5]]}, EDGES),
        ({"edges": [[-0.5, 0.5], [], [0.5, 3.0]]}, EDGES),
        ({"edges": [[float("nan"), 0.5], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [[[-0.5, 0.5]], [], [0.5, 1.5]]}, EDGES),
        ({"edges": [0.5, [], [0.5, 1.5]]}, EDGES),
        ({"tables": [[[-1.0, float("inf"), 1.0]] * 2, [], [[1.0, -1.0, 0.0]]]}, "must be finite"),
        ({"members": []}, MEMBERS),
        ({"members": [[[0, 0]], []]}, MEMBERS),
        ({"members": [[], [[0, 2]]]}, MEMBERS),
        ({"members": [[], [[0, -1]]]}, MEMBERS),
        ({"members": [[], [[1, 0]]]}, MEMBERS),
        ({"members": [[], [[3, 0]]]}, MEMBERS),
        ({"members": [[], [[-1, 0]]]}, MEMBERS),
        ({"members": [[], [[0, 0], [0, 1]]]}, MEMBERS),
        ({"members": [[], [[2, 0], [0, 1]]]}, MEMBERS),
        ({"members": [[], [[0.0, 0]]]}, MEMBERS),
        ({"members": [[], [[0, True]]]}, MEMBERS),
        ({"members": [[], [["a", 0]]]}, MEMBERS),
        ({"members": [[], [[0, 0]], [[0, 0]]]}, MEMBERS),
        ({"members": [[], []]}, MEMBERS),
        ({"more": 1}, "and nothing else"),
    ],
)
def test_what_no_file_has_is_refused(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        CodedTerms.from_dict(PLAIN | change, COLUMNS)


@pytest.mark.parametrize(
    "change",
    [
        {"edges": None},
        {"edges": [["a"], [], []]},
        {"tables": [[[1.0, 2.0]], [], [[1.0, -1.0, 0.0]]]},
        {"tables": [[[-1.0, 0.0, 1.0]] * 2, []]},
        {"tables": [3.0, [], []]},
        {"members": [[], [[0]]]},
        {"members": [[], [0, 0]]},
        {"members": None},
    ],
)
def test_values_of_the_wrong_type_or_length_are_refused(change: dict[str, Any]) -> None:
    # Reading a release says of these that a field has a value of the wrong type.
    with pytest.raises((TypeError, ValueError, LookupError)):
        CodedTerms.from_dict(PLAIN | change, COLUMNS)


@pytest.mark.parametrize("name", ["edges", "tables", "members"])
def test_a_part_that_is_missing_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="and nothing else"):
        CodedTerms.from_dict({key: value for key, value in PLAIN.items() if key != name}, COLUMNS)
