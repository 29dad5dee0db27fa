"""One word for what a guarantee rests on; the words of before are understood, with a warning."""

import warnings

import pytest

from discreet import Bounds, InvalidInput, papers
from discreet.datasets import adum
from discreet.papers import UnprovedClaim
from discreet.testing import frozen_noise

STUDY = adum(n=300, seed=1, sigma=0.1)
BINARY = Bounds(outcome=(0, 1), covariates=STUDY.bounds.covariates)
WORDS = {
    "ADUM": ({"by": {0: 2}}, {"outcome_bound": "range"}),
    "PropensityIPTW": ({"delta": 1e-5, "xi": 0.1, "random_state": 0}, {"protect": "propensity"}),
    "TwoModel": ({"model": "logistic"}, {"perturbation": "objective"}),
}


def fitted(name, **given):
    bounds = BINARY if name == "TwoModel" else STUDY.bounds
    y = (STUDY.Y > 0) * 1.0 if name == "TwoModel" else STUDY.Y
    model = getattr(papers, name)(epsilon=0.9, bounds=bounds, **WORDS[name][0], **given)
    with frozen_noise(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UnprovedClaim)
        return model.fit(y, STUDY.T, X=STUDY.X).release_


@pytest.mark.parametrize("name", WORDS)
def test_the_word_says_what_the_older_argument_said(name):
    with pytest.warns(DeprecationWarning, match="calibration='published' now"):
        old = fitted(name, **WORDS[name][1])
    assert fitted(name, calibration="published").to_dict() == old.to_dict()
    assert fitted(name, calibration="proved").to_dict() == fitted(name).to_dict() != old.to_dict()


@pytest.mark.parametrize("name", WORDS)
def test_words_that_contradict_each_other_are_refused(name):
    with pytest.raises(InvalidInput, match="contradicts"):
        fitted(name, calibration="proved", **WORDS[name][1])
    with pytest.raises(InvalidInput, match="calibration must be one of 'published', 'proved'"):
        fitted(name, calibration="hoped")
