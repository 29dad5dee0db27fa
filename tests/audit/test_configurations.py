"""The positive control: every proved configuration, replayed on adversarial neighbours, keeps to its claim."""

import pytest

from discreet.audit._configurations import matrix
from discreet.audit._replay import replay
from discreet.audit._tape import Tape
from discreet.privacy.guarantee import COVERED
from discreet.releases.wording import leaves

CONFIGURATIONS = matrix()


@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=[each.name for each in CONFIGURATIONS])
def test_no_neighbour_moves_a_round_beyond_its_diameter_or_is_distinguished_by_anything_else(configuration):
    result, worst = replay(configuration.make(), configuration.settings)
    assert not result.violated, result.summary()
    assert (result.status, result.confidence) == ("proved", 1.0)
    assert 0 < result.epsilon_lower <= result.claimed.epsilon * (1 + 1e-9)
    # Two models bound both arms of a worst case at once.
    assert max(moved.ratio for moved in result.rounds) > (0.2 if configuration.family == "papers.TwoModel" else 0.9)
    assert worst is not None
    if configuration.family in ("ATE", "CATE", "DifferenceInMeans", "PolicyValue", "SurvivalEffect", "Uplift"):
        # NaN, infinities and new levels never get as far as a question; missing outcomes do that are adjusted for.
        lost = "nan" if "missing outcomes" not in configuration.words else "inf"
        assert any(f"refused as input: outcome {lost}" in note for note in result.notes)


def test_the_matrix_is_what_guarantees_say_that_it_covers():
    covered = set()
    for configuration in CONFIGURATIONS:
        estimator = configuration.make()
        # The same proofs are named whatever the study is.
        tape = tape_of(configuration)
        noise = "laplace" if estimator.delta is None else "gaussian"
        covered |= {(proof, tape.guarantee.neighbours, noise) for proof in tape.guarantee.proof.split(", ")}
        assert tape.guarantee.audit is not None
        assert len(list(leaves(tape.guarantee.events))) == len(tape.rounds)
    assert covered == COVERED


def tape_of(configuration):
    from discreet.audit._neighbours import base
    from discreet.audit._replay import study_of
    from discreet.audit.mechanism import fitted

    estimator = configuration.make()
    table = base(estimator.bounds, configuration.n, "ordinary", study_of(1), binary=configuration.binary)
    return Tape(lambda data: fitted(estimator, data), table)


def test_the_matrix_has_every_design_outcome_relation_noise_and_one_to_thirty_covariates():
    words = {
        family: " ".join(each.words for each in CONFIGURATIONS if each.family == family) for family in ("ATE", "CATE")
    }
    for listed in words.values():
        for part in ("observational", "trial", "continuous", "binary", "p = 1,", "p = 30", "replace-one", "add-remove"):
            assert part in listed
    assert {each.make().bounds.p for each in CONFIGURATIONS} >= {0, 1, 3, 30}
    for family in ("DifferenceInMeans", "Uplift"):
        listed = " ".join(each.words for each in CONFIGURATIONS if each.family == family)
        assert "pure" in listed
        assert "approximate" in listed
