"""Releases of effects: models as numbers, files, and what is refused in them."""

import json

import numpy as np
import pytest

from discreet import Bounds, InvalidInput, UnsupportedRelease
from discreet.papers.meta_learners.release import LearnerRelease, ReleasedModel, Term
from discreet.privacy.budget import ClaimedEvent
from discreet.privacy.guarantee import Guarantee

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (20, 60), "sex": ["f", "m"]})
GUARANTEE = Guarantee(
    epsilon=1.0,
    delta=1e-5,
    neighbours="replace-one",
    status="claimed",
    events=(ClaimedEvent(name="m", epsilon=1.0, delta=1e-5),),
)
STEPS = Term(cuts=(-0.5, 0.5), scores=(1.0, 2.0, 4.0))
SEX = Term(cuts=(0.5,), scores=(0.0, 10.0))


def release(contrast="effect", **models):
    models = models or {"effect": ReleasedModel(intercept=100.0, terms=(STEPS, SEX))}
    return LearnerRelease(
        method="m", contrast=contrast, models=models, guarantee=GUARANTEE, bounds=BOUNDS, settings={"a": 1}
    )


def test_effects_add_up_over_columns_in_their_own_unit():
    assert release().effect([[20, "f"], [40, "m"], [60, "m"]]) == pytest.approx([101.0, 112.0, 114.0])
    ages, heights = release().shape("age", points=5)
    assert list(ages) == [20, 30, 40, 50, 60]
    assert list(heights) == [1, 2, 2, 4, 4]


def test_slopes_and_probabilities():
    model = ReleasedModel(intercept=0.0, terms=(Term(slope=2.0),), link="logit")
    assert model.predict(np.array([[0.0], [1.0]])) == pytest.approx([0.5, 1 / (1 + np.exp(-2))])


def test_two_models_are_compared_and_one_is_compared_with_itself():
    treated, control = (ReleasedModel(intercept=b, terms=(STEPS, SEX)) for b in (3.0, 1.0))
    assert release("arms", treated=treated, control=control).effect([[20, "f"]]) == pytest.approx([2.0])
    outcome = ReleasedModel(intercept=0.0, terms=(Term(cuts=(0.5,), scores=(0.0, 7.0)), STEPS, SEX))
    assert release("treatment", outcome=outcome).effect([[20, "f"], [60, "m"]]) == pytest.approx([7.0, 7.0])


def test_a_file_is_read_back_and_a_changed_one_is_refused(tmp_path):
    path = tmp_path / "r.json"
    release().save(path)
    assert LearnerRelease.load(path) == release()
    plain = json.loads(path.read_text())
    for change, error, words in [
        ({"format": "x"}, UnsupportedRelease, "not a release of discreet"),
        ({"version": 2}, UnsupportedRelease, "version 2, newer than 1"),
        ({"extra": 1}, InvalidInput, "exactly the fields"),
        ({"contrast": "arms"}, InvalidInput, "with its models"),
        (
            {"models": {"effect": {"intercept": 1.0, "terms": [], "link": "identity"}}},
            InvalidInput,
            "one term for each",
        ),
        ({"models": {"effect": {"intercept": 1.0, "terms": [3], "link": "identity"}}}, InvalidInput, "wrong type"),
        ({"models": {"effect": {"intercept": 1.0, "terms": [], "link": "probit"}}}, InvalidInput, "link"),
    ]:
        path.write_text(json.dumps(plain | change))
        with pytest.raises(error, match=words):
            LearnerRelease.load(path)
    path.write_text("{")
    with pytest.raises(UnsupportedRelease, match="complete JSON"):
        LearnerRelease.load(path)
    with pytest.raises(InvalidInput, match="no release file"):
        LearnerRelease.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    "given",
    [{"cuts": (1.0,), "scores": (1.0,)}, {"scores": (float("nan"),)}, {"cuts": (1.0, 1.0), "scores": (1.0, 2.0, 3.0)}],
)
def test_terms_that_are_no_steps_are_refused(given):
    with pytest.raises(InvalidInput, match="check the file"):
        Term(**given)


@pytest.mark.parametrize("feature", ["weight", 2, -1, True, 0.5])
def test_an_unknown_covariate_is_refused_by_name(feature):
    with pytest.raises(InvalidInput, match="choose from age, sex"):
        release().shape(feature)
