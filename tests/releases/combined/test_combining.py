"""Releases of several sites as one: weights, intervals, heterogeneity, words, and what is refused."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import discreet as dc
from discreet import CATE, Bounds, CombinedRelease, InvalidInput, Uplift, combine
from discreet.releases.average import folded_critical
from discreet.releases.combined.weighing import between_sites, weigh, weighted_squares
from discreet.releases.report import kind_of, render_page
from discreet.testing import seeded_noise
from tests.releases.combined.helpers import BOUNDS, gaussian, site
from tests.seeded_fits import BOUNDS as BOUNDS_OF_STUDY
from tests.seeded_fits import study

# Log relative risks of tuberculosis after vaccination and their variances in 13 trials (Colditz et al. 1994).
BCG = np.array(
    [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713, -0.3394, 0.4459]
)
BCG = np.append(BCG, -0.0173)
BCG_VARIANCE = np.array(
    [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124, 0.5325]
)
BCG_VARIANCE = np.append(BCG_VARIANCE, 0.0714)


def test_the_variance_between_sites_is_that_of_paule_and_mandel():
    # As other software prints it for the same data: 0.3181, and Q = 152.23.
    assert between_sites(BCG, BCG_VARIANCE) == pytest.approx(0.3181, abs=2e-4)
    assert weighted_squares(BCG, BCG_VARIANCE) == pytest.approx(152.23, rel=5e-3)
    tau2 = between_sites(BCG, BCG_VARIANCE)
    assert weighted_squares(BCG, BCG_VARIANCE + tau2) == pytest.approx(len(BCG) - 1, rel=1e-9)


def test_sites_that_agree_have_no_variance_between_them():
    assert between_sites(np.array([1.0, 1.1, 0.9]), np.ones(3)) == 0.0
    assert combine([site(1.0), site(1.0, n=999.0)], model="random").tau == 0.0


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_weights_do_not_depend_on_the_outcomes_unit(scale):
    parts = [site(0.0, sampling=se * scale, privacy=0.1 * scale).uncertainty for se in (0.2, 0.4, 0.5)]
    found = weigh([scale * value for value in (1.0, 2.0, 4.0)], parts, "random")
    plain = weigh(
        [1.0, 2.0, 4.0], [site(0.0, sampling=se, privacy=0.1).uncertainty for se in (0.2, 0.4, 0.5)], "random"
    )
    np.testing.assert_allclose(found.weights, plain.weights, rtol=1e-9)
    assert found.tau == pytest.approx(scale * plain.tau, rel=1e-9)
    assert found.q == pytest.approx(plain.q, rel=1e-9)


def test_fixed_effects_weigh_by_inverse_variances_and_biases_add_up():
    sites = [site(1.0, sampling=0.3, privacy=0.4, clipping=0.1), site(2.0, sampling=0.6, privacy=0.8, clipping=0.2)]
    both = combine(sites, model="fixed", people="disjoint")
    weights = [each.weight for each in both.sites]
    assert weights == pytest.approx([0.8, 0.2])
    assert both.estimate == pytest.approx(1.2)
    parts = both.uncertainty
    assert parts.sampling == pytest.approx(math.hypot(0.8 * 0.3, 0.2 * 0.6))
    assert parts.privacy == pytest.approx(math.hypot(0.8 * 0.4, 0.2 * 0.8))
    assert parts.clipping == pytest.approx(0.8 * 0.1 + 0.2 * 0.2)
    half = folded_critical(parts.clipping / parts.se, 0.1) * parts.se
    assert both.interval(0.1) == pytest.approx((both.estimate - half, both.estimate + half))
    assert (both.between, both.n) == (0.0, 2000.0)


def test_errors_of_people_who_may_be_the_same_add_up_and_noise_does_not():
    sites = [site(1.0, nuisance=0.1), site(2.0, nuisance=0.2)]
    apart, alike = (combine(sites, model="fixed", people=people) for people in ("disjoint", "overlapping"))
    weights = [each.weight for each in alike.sites]
    assert alike.uncertainty.sampling == pytest.approx(0.3)
    assert alike.uncertainty.nuisance == pytest.approx(0.1 * weights[0] + 0.2 * weights[1])
    assert alike.uncertainty.privacy == apart.uncertainty.privacy
    assert alike.guarantee.epsilon > apart.guarantee.epsilon
    assert combine(sites, model="fixed") == alike


def test_random_effects_add_what_differs_between_sites_and_use_students_t():
    values = [0.0, 1.0, 2.0, 3.0, 4.0]
    many = combine([site(value, clipping=0.05) for value in values], model="random", people="disjoint")
    # Alike in size: the variance of the mean is that of the estimates over five, whatever part of it is noise.
    assert many.se == pytest.approx(math.sqrt(np.var(values, ddof=1) / 5))
    assert many.tau == pytest.approx(math.sqrt(np.var(values, ddof=1) - 0.25))
    half = 2.7764451 * many.se + many.uncertainty.clipping
    assert many.interval() == pytest.approx((2.0 - half, 2.0 + half), rel=1e-5)
    assert many.interval()[0] > many.prediction_interval()[0] > -10.0
    found = many.heterogeneity
    assert found.degrees == 4
    assert [found.q, found.tau2] == pytest.approx([40.0, many.tau**2])
    assert found.i2 == pytest.approx(0.9)
    assert found.p == pytest.approx(4.3e-8, rel=0.02)
    assert sum(many.shares().values()) == pytest.approx(1.0, abs=0.01)
    alike = combine([site(value) for value in values], model="fixed", people="disjoint")
    assert "Sites differ by more than their errors explain" in alike.summary()
    with pytest.raises(InvalidInput, match="needs model='random' and three sites"):
        alike.prediction_interval()


def test_no_interval_leaves_the_outcomes_range():
    two = combine([site(-9.0), site(9.0)], model="random")
    assert two.interval() == (-10.0, 10.0)
    capped = combine([site(-3.0, cap=4.0), site(3.0, cap=4.0)], model="random")
    assert capped.interval() == (-4.0, 4.0)
    assert "capped at 4" in capped.title


def test_what_sites_declare_alike_is_kept():
    other = Bounds(outcome=(0, 10), covariates={"age": (0, 1), "bp": (0, 9)}, propensity=(0.01, 0.9))
    two = combine([site(1.0), site(2.0, bounds=other, design="known propensity")], model="fixed")
    assert (two.bounds.names, two.bounds.propensity) == (("age",), (0.01, 0.95))
    words = two.summary()
    assert "different covariates" in words
    assert "others are observational" in words


def test_the_average_of_an_effect_function_is_a_site_like_any_other():
    table = study(800)
    with seeded_noise(0):
        cate = (
            CATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS_OF_STUDY).fit_table(table, outcome="y", treatment="t").release_
        )
        ate = (
            dc.ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS_OF_STUDY)
            .fit_table(table, outcome="y", treatment="t")
            .release_
        )
    both = combine([cate, ate], model="fixed", people="overlapping", names=["function", "average"])
    assert both.sites[0].estimate == cate.ate()
    assert both.guarantee.proof == "cate.md, ate.md, combine.md"
    with pytest.raises(InvalidInput, match="no measured average"):
        combine([replace(cate, measured=None), ate], model="fixed")


def test_a_combined_release_is_saved_read_shown_and_drawn(tmp_path):
    three = combine([site(1.0), site(2.0), site(4.0)], model="random", people="disjoint", names=["<a>", "b", "c"])
    three.save(tmp_path / "combined.json")
    again = dc.load(tmp_path / "combined.json")
    assert again == three == CombinedRelease.load(tmp_path / "combined.json")
    assert type(again.sites) is tuple
    page = render_page(again)
    assert "3 sites combined" in page
    assert "&lt;a&gt;" in page
    assert len(kind_of(again).figures(again, 1)) == 1
    assert kind_of(again).facts(again) == kind_of(three).facts(three)
    axes = three.plot()
    assert [label.get_text() for label in axes.get_yticklabels()][-1] == "all together"
    assert "&lt;a&gt;" in three._repr_html_()
    assert three.display(0.2).head[2] == "80 % interval"
    words = three.methods()
    assert "3 sites (<a>, b and c; 3,000 records in all)" in words
    assert "Paule and Mandel" in words
    assert "no one has records at two sites, as was stated" in words


def test_a_file_whose_estimate_is_not_that_of_its_sites_is_refused(tmp_path):
    two = combine([site(1.0), site(2.0)], model="fixed")
    plain = two.to_dict()
    for change, sentence in [
        ({"estimate": 1.2}, "mean of the sites' estimates"),
        ({"sites": plain["sites"][:1]}, "two or more"),
        ({"sites": [plain["sites"][0]] * 2}, "a name of its own"),
        ({"model": "mixed"}, "model must be"),
        ({"tau": -1.0}, "negative"),
        ({"q": "many"}, "wrong type"),
        ({"sites": [plain["sites"][0] | {"weight": -0.5}, plain["sites"][1]]}, "only its effect may be negative"),
        ({"sites": [plain["sites"][0] | {"design": "lottery"}, plain["sites"][1]]}, "design of its study"),
    ]:
        (tmp_path / "edited.json").write_text(json.dumps(plain | change))
        with pytest.raises(InvalidInput, match=sentence):
            dc.load(tmp_path / "edited.json")


REFUSED = [
    ([site(1.0)], {}, "two or more"),
    (site(1.0), {}, "a list of releases"),
    ("a.json", {}, "a list of releases"),
    ([site(1.0), 3], {}, "give release_ of each estimator"),
    ([site(1.0), site(1.0)], {}, "'site 1' and 'site 2' are the same release"),
    ([site(1.0), site(2.0, kind="difference-in-means")], {}, "estimate different things"),
    ([site(1.0), site(2.0, bounds=Bounds(outcome=(0, 11)))], {}, "different outcomes"),
    ([site(1.0), site(2.0, bounds=Bounds(outcome=(0, 10), outcome_fill=3))], {}, "different outcomes"),
    ([site(1.0), site(2.0, bounds=Bounds(outcome=(0, 10), treatment=("no", "yes")))], {}, "different arms"),
    ([site(1.0, cap=5.0), site(2.0)], {}, "cap the outcome at different numbers"),
    ([site(1.0), site(2.0, guarantee=gaussian(neighbours="add-remove"))], {}, "different units or relations"),
    ([site(1.0), site(2.0, guarantee=gaussian(unit="all rows of one id"))], {}, "different units or relations"),
    ([site(1.0), site(2.0)], {"names": ["a"]}, "as many as there are releases"),
    ([site(1.0), site(2.0)], {"names": "ab"}, "as many as there are releases"),
    ([site(1.0), site(2.0)], {"names": ["a", "a"]}, "no two the same"),
    ([site(1.0), site(2.0)], {"names": ["a", " "]}, "no two the same"),
    ([site(1.0), site(2.0)], {"model": "mixed"}, "model must be"),
    ([site(1.0), site(2.0)], {"people": "some"}, "people must be"),
    ([site(1.0), site(2.0, sampling=0.0, privacy=0.0)], {}, "no standard error"),
    ([combine([site(1.0), site(2.0)], model="fixed"), site(2.0)], {}, "combined already"),
]


@pytest.mark.parametrize(("releases", "more", "sentence"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_combined_is_refused_in_one_sentence(releases, more, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        combine(releases, **({"model": "fixed"} | more))


def test_effects_by_segment_are_no_average():
    with seeded_noise(0):
        uplift = Uplift(epsilon=2.0, bounds=BOUNDS_OF_STUDY, by={"age": 3})
        release = uplift.fit_table(study(600), outcome="y", treatment="t").release_
    with pytest.raises(InvalidInput, match="or CATE"):
        combine([release, site(1.0)], model="fixed")


def test_intervals_at_any_level_hold_the_estimate_and_levels_are_checked():
    three = combine([site(1.0), site(2.0), site(4.0)], model="random")
    assert three.interval(0.5)[0] > three.interval(0.05)[0]
    with pytest.raises(InvalidInput, match="alpha must lie"):
        three.interval(1.5)
    assert replace(three, notes=()).summary().count("Notes") == 0
    assert BOUNDS.outcome_width == 10.0


def test_sites_of_unequal_weight_count_as_fewer():
    alike = combine([site(value) for value in (1.0, 2.0, 3.0, 4.0, 5.0)], model="random")
    assert alike.degrees == pytest.approx(4.0)
    large = [site(1.0, sampling=0.1, privacy=0.1), *(site(value) for value in (1.1, 1.2, 0.9, 0.8))]
    assert combine(large, model="random").degrees == 2.0
    alone = combine([site(1.0, sampling=0.01, privacy=0.01), *large[1:]], model="random")
    assert alone.degrees == 1.0
    assert "nearly all of the weight" in alone.summary()
    assert "nearly all of the weight" not in combine(large, model="random").summary()
    assert combine([site(1.0), site(2.0, sampling=3.0)], model="random").degrees == 1.0


def test_an_interval_covers_where_one_site_is_far_more_precise_than_the_others():
    rng, runs, held = np.random.default_rng(57_900_001), 400, 0
    errors = (0.1, 1.0, 1.0, 1.0)
    for _ in range(runs):
        # Effects differ by as much as most sites err.
        values = rng.normal(0.0, 1.0, 4) + rng.normal(0.0, errors)
        sites = [site(float(value), sampling=0.0, privacy=error) for value, error in zip(values, errors, strict=True)]
        low, high = combine(sites, model="random", people="disjoint").interval()
        held += low <= 0.0 <= high
    assert held / runs > 0.93
