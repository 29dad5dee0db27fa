"""What people call columns, and in which units they are measured."""

import pickle

import pytest

import discreet as dc
from discreet.exceptions import InvalidInput
from discreet.ledger._identity import method_words

LABELS = {"outcome": "days in hospital", "treatment": "catheter", "age": "age at admission"}
UNITS = {"outcome": "days", "age": "years"}


def declared(**more):
    return dc.Bounds(outcome=(0, 40), covariates={"age": (18, 95), "sex": ["f", "m"]}, **more)


def test_labels_and_units_outlive_files_copies_and_pickles():
    bounds = declared(labels=LABELS, units=UNITS)
    for again in (
        dc.Bounds.from_toml(bounds.to_toml()),
        dc.Bounds.from_dict(bounds.to_dict()),
        pickle.loads(pickle.dumps(bounds)),
    ):
        assert dict(again.labels) == LABELS
        assert dict(again.units) == UNITS
    assert bounds.label("age") == "age at admission"
    assert bounds.label("sex") == "sex"
    assert (bounds.unit("age"), bounds.unit("sex")) == ("years", "")


def test_bounds_without_labels_are_written_as_they_always_were():
    assert "labels" not in declared().to_dict()
    assert "units" not in declared().to_toml()
    assert dc.Bounds.from_toml(declared().to_toml()).labels is None


def test_labels_change_neither_equality_nor_what_a_request_costs():
    plain, labelled = declared(), declared(labels=LABELS, units=UNITS)
    assert plain == labelled
    assert hash(plain) == hash(labelled)
    keys = [method_words(dc.ATE(epsilon=1.0, delta=1e-6, bounds=bounds)) for bounds in (plain, labelled)]
    assert keys[0] == keys[1]


def test_other_covariates_keep_the_labels_that_are_left():
    bounds = declared(labels=LABELS, units=UNITS).declaring({"sex": ["f", "m"]})
    assert dict(bounds.labels) == {"outcome": "days in hospital", "treatment": "catheter"}
    assert dict(bounds.units) == {"outcome": "days"}
    by_position = dc.Bounds(outcome=(0, 1), covariates=[(0, 1)], labels={"x0": "share of cash"})
    assert by_position.label("x0") == "share of cash"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weight": "kg"}, "unknown name 'weight'"),
        ({"age": ""}, "printable text"),
        ({"age": "x" * 81}, "at most 80"),
        ({"age": "two\nlines"}, "printable"),
        ({"age": 3}, "printable"),
        (["age"], "dictionary"),
    ],
)
@pytest.mark.parametrize("which", ["labels", "units"])
def test_labels_that_cannot_be_shown_are_refused_by_name(which, given, words):
    with pytest.raises(InvalidInput, match=words):
        declared(**{which: given})
