"""Releases: they survive the disk to the last bit, refuse what is foreign, and say what they are in plain words."""

import json
import math
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.data.bounds import Bounds
from discreet.exceptions import InvalidBudget, InvalidInput, UnsupportedRelease
from discreet.privacy.accountant import calibrate_mu
from discreet.privacy.budget import ClaimedEvent, GaussianEvent, LaplaceEvent, ParallelEvent
from discreet.privacy.guarantee import Guarantee
from discreet.releases.average import Release, Uncertainty

SHARES = {"location": 0.1, "moments": 0.5, "score": 0.4}


def a_guarantee(**changes):
    mu = calibrate_mu(0.5, 1e-6)
    events = tuple(
        GaussianEvent(name=name, diameter=2.0**40 * mu * math.sqrt(share), sigma=2.0**40, dimension=3)
        for name, share in SHARES.items()
    )
    facts = {"epsilon": 0.5, "delta": 1e-6, "neighbours": "replace-one", "status": "proved", "proof": "gate.md"}
    return Guarantee(**(facts | {"events": events, "public": ("the number of records",)} | changes))


def a_release(**changes):
    facts = {
        "kind": "ate",
        "estimate": -1.2345678,
        "uncertainty": Uncertainty(sampling=0.1, privacy=0.05, nuisance=0.03, clipping=0.0),
        "n": 3_000,
        "guarantee": a_guarantee(),
        "bounds": Bounds(outcome=(0, 40), covariates={"age": (18, 95), "sex": ["f", "m"]}, propensity=(0.1, 0.9)),
        "design": "observational",
        "adjustment": {"basis": "degree 2, all pairs, 5 terms", "trim": [0.12, 0.88]},
        "notes": ("All confounders are among the covariates.",),
        "reference": {"unadjusted": -0.7},
    }
    return Release(**(facts | changes))


def test_a_saved_release_is_read_back_to_the_last_bit(tmp_path):
    release = a_release(estimate=0.1 + 0.2, reference={"unadjusted": math.pi})
    release.save(tmp_path / "ate.json")
    assert Release.load(tmp_path / "ate.json") == release


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1e300), st.text())
def test_any_finite_numbers_and_any_text_survive_json(estimate, sampling, note):
    uncertainty = Uncertainty(sampling=sampling, privacy=1e-9, nuisance=0.0, clipping=0.0)
    release = a_release(estimate=estimate, uncertainty=uncertainty, notes=(note,))
    assert Release.from_dict(json.loads(json.dumps(release.to_dict()))) == release


def test_the_file_says_what_it_is_and_holds_no_pickle(tmp_path):
    a_release().save(tmp_path / "ate.json")
    plain = json.loads((tmp_path / "ate.json").read_text())
    assert (plain["format"], plain["version"]) == ("discreet-release", 2)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"format": "discreet-release", "version": 1', "is not complete JSON"),
        (b"\xff\xfe", "is not complete JSON"),
        (b"[" * 100_000, "is not complete JSON"),
        (b"", "is not complete JSON"),
        (b"[1, 2]", "not a release of discreet"),
        (b'{"format": "something else"}', "not a release of discreet"),
        (b'{"format": "discreet-release"}', "no valid version"),
        (b'{"format": "discreet-release", "version": "1"}', "no valid version"),
        (b'{"format": "discreet-release", "version": 3}', "version 3, newer than 2; upgrade"),
    ],
)
def test_files_that_are_no_readable_release_are_refused(tmp_path, content, sentence):
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(UnsupportedRelease, match=sentence):
        Release.load(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="There is no release file"):
        Release.load(tmp_path / "nothing.json")


def test_a_path_that_is_no_file_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        Release.load(tmp_path)


def test_more_records_budget_and_fewer_covariates_scale_what_depends_on_them():
    parts = Uncertainty(sampling=0.4, privacy=0.3, nuisance=0.2, clipping=0.1)
    assert parts.scaled() == parts
    assert parts.scaled(records=4) == Uncertainty(sampling=0.2, privacy=0.075, nuisance=0.1, clipping=0.025)
    assert parts.scaled(mu=4) == Uncertainty(sampling=0.4, privacy=0.075, nuisance=0.1, clipping=0.025)
    assert parts.scaled(covariates=0.25) == replace(parts, nuisance=0.1)


@pytest.mark.parametrize("name", ["records", "mu", "covariates"])
@pytest.mark.parametrize("value", [0, -1.0, math.inf, math.nan, True, "2"])
def test_changes_that_are_no_positive_numbers_are_refused(name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be a positive number"):
        a_release().uncertainty.scaled(**{name: value})


@pytest.mark.parametrize("name", ["estimate", "guarantee", "notes"])
def test_a_missing_field_is_refused(name):
    plain = a_release().to_dict()
    del plain[name]
    with pytest.raises(InvalidInput, match="exactly the fields"):
        Release.from_dict(plain)


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": "high"},
        {"estimate": None},
        {"estimate": math.nan},
        {"n": True},
        {"uncertainty": []},
        {"uncertainty": {"sampling": 1.0}},
        {"guarantee": 3},
        {"bounds": None},
        {"notes": 5},
        {"notes": [1]},
        {"reference": {"unadjusted": None}},
        {"reference": 3},
        {"adjustment": []},
    ],
)
def test_a_field_of_the_wrong_type_is_refused(change):
    with pytest.raises(InvalidInput):
        Release.from_dict(a_release().to_dict() | change)


def test_a_file_whose_stated_budget_was_lowered_by_hand_is_refused():
    plain = a_release().to_dict()
    plain["guarantee"]["epsilon"] = 0.1
    with pytest.raises(InvalidBudget, match="the events spend more than the stated"):
        Release.from_dict(plain)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "cate"}, "kind must be one of"),
        ({"design": "guess"}, "design must be one of"),
        ({"estimate": math.inf}, "estimate must be a finite number"),
        ({"n": 0}, "n must be positive"),
        ({"uncertainty": Uncertainty(sampling=-1.0, privacy=0.0)}, "no part of the uncertainty negative"),
        ({"notes": "one sentence"}, "notes must be sentences"),
        ({"adjustment": {"model": object()}}, "plain JSON"),
        ({"adjustment": {"trim": math.nan}}, "plain JSON"),
    ],
)
def test_nothing_that_makes_no_sense_can_be_released(change, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        a_release(**change)


def test_a_release_cannot_change():
    adjustment = {"covariates": ["age"]}
    release = a_release(adjustment=adjustment)
    adjustment["covariates"].append("name")
    assert release.adjustment == {"covariates": ["age"]}
    with pytest.raises(FrozenInstanceError):
        release.estimate = 0.0


def test_intervals_shrink_with_alpha_and_hold_the_estimate():
    release = a_release()
    (low, high), (inner_low, inner_high) = release.interval(), release.interval(0.2)
    assert low < inner_low < release.estimate < inner_high < high
    assert release.interval() == release.uncertainty.interval(release.estimate, 0.05)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, math.nan, "0.05"])
def test_an_alpha_outside_zero_and_one_is_refused(alpha):
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        a_release().interval(alpha)


@pytest.mark.parametrize(
    ("sampling", "value", "text"),
    [
        (0.12, -1.2345, "-1.23"),
        (12.0, 1234.6, "1,235"),
        (0.0012, 0.12345, "0.1235"),
        (1e-30, 1e-29, "1e-29"),
        (0.12, -0.001, "0.00"),
        (0.0, 0.0, "0"),
    ],
)
def test_numbers_have_the_decimals_that_the_standard_error_gives_meaning_to(sampling, value, text):
    release = a_release(uncertainty=Uncertainty(sampling=sampling, privacy=0.0))
    assert release.text(value) == text


def test_the_shares_of_the_budget_are_recovered_from_the_events():
    rounds = a_release().rounds()
    assert [name for name, _, _ in rounds] == list(SHARES)
    assert [share for _, _, share in rounds] == pytest.approx(list(SHARES.values()))


def test_laplace_rounds_share_epsilon_and_claims_share_nothing():
    laplace = tuple(
        LaplaceEvent(name=name, diameter=1.0, scale=scale, dimension=1) for name, scale in [("a", 4), ("b", 8)]
    )
    pure = a_release(guarantee=a_guarantee(events=laplace, delta=0.0))
    assert [share for _, _, share in pure.rounds()] == pytest.approx([2 / 3, 1 / 3])
    assert "discrete Laplace noise" in pure.methods()
    mixed = (*laplace, ClaimedEvent(name="c", epsilon=0.1, delta=0.0))
    claimed = a_release(guarantee=a_guarantee(events=mixed, status="claimed", epsilon=1.0))
    assert [share for _, _, share in claimed.rounds()] == [None, None, None]
    assert "claimed, not proved" in claimed.methods()


def test_rounds_on_disjoint_parts_are_listed_by_part_and_share_the_budget_of_their_part():
    parts = tuple(
        tuple(GaussianEvent(name=name, diameter=1.0, sigma=40.0, dimension=1) for name in names)
        for names in (["a", "b"], ["c"])
    )
    release = a_release(guarantee=a_guarantee(events=(ParallelEvent(name="disjoint parts", parts=parts),)))
    assert release.rounds() == (("part 1, a", 1, 0.5), ("part 1, b", 1, 0.5), ("part 2, c", 1, 1.0))
    assert "part 1, a (1, 50 %); part 1, b (1, 50 %); part 2, c (1, 100 %)" in release.methods()
    claim = (ClaimedEvent(name="z", epsilon=0.1, delta=0.0),)
    claimed = a_release(
        guarantee=a_guarantee(events=(ParallelEvent(name="p", parts=(parts[0], claim)),), status="claimed")
    )
    assert "as the method's authors prescribe (a, b and z)" in claimed.methods()


def test_the_summary_holds_estimate_interval_split_guarantee_and_notes():
    text = a_release().summary()
    for part in ("-1.23", "-1.46 to -1.01", "3,000", "sampling", "75 %", "privacy noise", "19 %", "adjustment", "7 %"):
        assert part in text
    assert "epsilon = 0.5, delta = 1e-06" in text
    assert "All confounders are among the covariates." in text
    assert "clipping" not in text
    assert str(a_release()) == text


def test_clipping_is_named_when_it_matters():
    uncertainty = Uncertainty(sampling=0.1, privacy=0.05, nuisance=0.0, clipping=0.05)
    release = a_release(uncertainty=uncertainty)
    assert "clipping" in release.summary()
    assert "a bias of up to 0.05 that clipping is taken to have caused" in release.methods()


def test_the_methods_paragraph_has_every_number_a_reader_needs():
    text = a_release().methods()
    for part in (
        "3,000 records",
        "epsilon = 0.5, delta = 1e-06",
        "one record",
        "differ in the content of one record",
        "from 0 to 40",
        "between 0.12 and 0.88",
        "age and sex",
        "degree 2, all pairs, 5 terms",
        "discrete Gaussian noise",
        "location (3, 10 %); moments (3, 50 %); score (3, 40 %).",
        "-1.46 to -1.01",
    ):
        assert part in text
    assert "\n" not in text


@pytest.mark.parametrize("adjustment", [{}, {"basis": "none", "trim": 0.1}, {"basis": 3, "trim": ["a", "b"]}])
def test_the_methods_paragraph_does_not_rely_on_how_the_adjustment_is_described(adjustment):
    assert "between 0.1 and 0.9" in a_release(adjustment=adjustment).methods()


def test_a_private_number_of_records_is_said_to_be_noisy():
    release = a_release(guarantee=a_guarantee(neighbours="add-remove"), n=2_998.7)
    assert release.records == "about 2,999"
    assert "presence of one record" in release.methods()


def test_seeded_noise_is_called_a_test_everywhere():
    release = a_release(guarantee=a_guarantee(status="test"))
    assert "not private" in release.summary()
    assert "not private" in release.methods()
    assert "test" in release._repr_html_()


def test_a_difference_in_means_without_covariates_reads_well():
    release = a_release(kind="difference-in-means", bounds=Bounds(outcome=(0, 1)), design="known propensity")
    assert "difference in mean outcomes" in release.methods()
    assert "covariates" not in release.methods()


def test_html_for_notebooks_escapes_what_comes_from_files():
    guarantee = replace(a_guarantee(), unit="one <script>")
    html = a_release(guarantee=guarantee, notes=("<script>",))._repr_html_()
    assert html.startswith("<table>")
    assert "<script>" not in html
