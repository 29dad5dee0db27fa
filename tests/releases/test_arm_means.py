"""Means of both arms and their ratios, from the level and the effect of one release."""

import json
from math import inf

import numpy as np
import pytest

import discreet as dc
from discreet import Bounds, InvalidInput, Release, Uncertainty
from discreet.releases.parts.arm_means import ArmMeans
from tests.releases.test_average import a_release

RISKS = Bounds(outcome=[0, 1])


def arms(level=0.3, part=0.5, sampling=0.004, privacy=0.003, covariance=(0.0, 0.0), **more):
    return ArmMeans(
        level=level,
        part=part,
        uncertainty=Uncertainty(sampling=sampling, privacy=privacy, **more),
        covariance=covariance,
    )


def release(effect=0.1, bounds=RISKS, error=None, **more):
    error = error or Uncertainty(sampling=0.008, privacy=0.006)
    return a_release(estimate=effect, uncertainty=error, bounds=bounds, arms=arms(**more), cap=None)


def test_means_differ_by_the_estimate():
    means = release(0.1, level=0.3, part=0.25).means()
    assert means["control"][0] == pytest.approx(0.275)
    assert means["treated"][0] == pytest.approx(0.375)
    for mean, low, high in means.values():
        assert low < mean < high


def test_means_stay_inside_the_range_of_the_outcome():
    means = release(0.1, level=0.02).means()
    assert means["control"] == (0.0, 0.0, pytest.approx(0.0, abs=0.05))


@pytest.mark.parametrize("part", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("correlation", [-0.6, 0.0, 0.6])
def test_intervals_of_means_and_ratios_cover_where_level_and_effect_are_normal(part, correlation):
    rng, runs = np.random.default_rng(7), 1_500
    m0, m1, sampling, noise = 0.2, 0.26, (0.006, 0.011), (0.004, 0.008)
    covariance = correlation * sampling[0] * sampling[1]
    square = [[sampling[0] ** 2, covariance], [covariance, sampling[1] ** 2]]
    off = rng.multivariate_normal([0.0, 0.0], square, runs) + rng.normal(0, 1, (runs, 2)) * noise
    held = {"control": 0, "treated": 0, "risk ratio": 0, "odds ratio": 0}
    truths = {"risk ratio": m1 / m0, "odds ratio": m1 / (1 - m1) / (m0 / (1 - m0)), "control": m0, "treated": m1}
    for level, effect in off:
        found = a_release(
            estimate=m1 - m0 + effect,
            uncertainty=Uncertainty(sampling=sampling[1], privacy=noise[1]),
            bounds=RISKS,
            cap=None,
            arms=arms(part * m1 + (1 - part) * m0 + level, part, sampling[0], noise[0], (covariance, covariance)),
        )
        answers = found.means() | {"risk ratio": found.risk_ratio(), "odds ratio": found.odds_ratio()}
        for name, truth in truths.items():
            held[name] += answers[name][1] <= truth <= answers[name][2]
    # Five standard errors of a share of .95.
    for name, count in held.items():
        assert abs(count / runs - 0.95) < 5 * np.sqrt(0.95 * 0.05 / runs), (name, count / runs)


@pytest.mark.parametrize(("m0", "m1"), [(0.97, 0.99), (0.98, 0.5)])
def test_ratios_cover_where_noise_puts_a_mean_outside_the_range(m0, m1):
    rng, runs, held = np.random.default_rng(8), 600, 0
    error = Uncertainty(sampling=0.0, privacy=0.01)
    for level, effect in rng.normal(0, 1, (runs, 2)) * (0.02, 0.01):
        own = arms((m0 + m1) / 2.0 + level, 0.5, 0.0, 0.02)
        found = a_release(estimate=m1 - m0 + effect, uncertainty=error, bounds=RISKS, cap=None, arms=own)
        _, low, high = found.risk_ratio()
        held += low <= m1 / m0 <= high
    # Four standard errors of a share of .95.
    assert held / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs), held / runs


def test_what_noise_hides_of_the_covariance_widens_intervals():
    exact, unknown = (release(covariance=(-doubt, doubt)) for doubt in (0.0, 3e-5))
    for name in ("control", "treated"):
        assert np.diff(unknown.means()[name][1:]) > np.diff(exact.means()[name][1:])
    assert unknown.risk_ratio()[2] > exact.risk_ratio()[2]


def test_a_ratio_has_no_upper_end_where_the_mean_of_controls_may_be_zero():
    value, low, high = release(0.02, level=0.012, error=Uncertainty(sampling=0.002, privacy=0.001)).risk_ratio()
    assert high == inf
    assert 1.0 < low < value
    assert value > 5.0
    assert release(0.02, level=0.001).risk_ratio()[0] == inf


def test_ratios_near_one_are_as_sharp_as_the_difference():
    # The level does not matter to a ratio of one.
    _, low, high = release(0.0, level=0.3, error=Uncertainty(sampling=0.008, privacy=0.006)).risk_ratio()
    assert high - low == pytest.approx(2 * 1.96 * 0.01 / 0.3, rel=0.05)


def test_numbers_needed_to_treat_are_those_of_the_difference():
    found = release(0.1)
    low, high = found.interval()
    assert found.nnt() == pytest.approx((10.0, 1 / high, 1 / low))
    assert release(0.001).nnt()[1:] == (-inf, inf)


def test_e_values_are_those_of_the_risk_ratio():
    # VanderWeele and Ding (2017): a risk ratio of 3.9 has an E-value of 7.26, and limits of 1.8 one of 3.0.
    from discreet.releases.parts.arm_means import _e_value

    assert _e_value(3.9) == pytest.approx(7.26, abs=0.01)
    assert _e_value(1.8) == pytest.approx(3.0, abs=0.01)
    assert _e_value(1 / 3.9) == pytest.approx(_e_value(3.9))
    value, near, far = release(0.1).e_value()
    assert near < value < far
    assert release(0.001).e_value()[1] == 1.0


@pytest.mark.parametrize("name", ["means", "relative_effect", "risk_ratio", "odds_ratio", "nnt", "e_value"])
def test_levels_are_checked(name):
    with pytest.raises(InvalidInput, match="alpha must lie between 0 and 1"):
        getattr(release(), name)(2)


@pytest.mark.parametrize("name", ["risk_ratio", "odds_ratio", "nnt", "e_value"])
def test_risks_belong_to_outcomes_of_two_values(name):
    with pytest.raises(InvalidInput, match="belongs to an outcome of two values"):
        getattr(release(bounds=Bounds(outcome=(0, 7))), name)()


def test_relative_effects_belong_to_outcomes_that_cannot_be_negative():
    assert release(bounds=Bounds(outcome=(0, 7))).relative_effect()[0] == pytest.approx(0.35 / 0.25)
    with pytest.raises(InvalidInput, match="relative_effect needs an outcome that cannot be negative"):
        release(bounds=Bounds(outcome=(-1, 7))).relative_effect()


def test_a_release_without_arms_says_so():
    bare = a_release(bounds=RISKS, cap=None)
    with pytest.raises(InvalidInput, match="this release has no means of its arms"):
        bare.means()
    assert bare.arm_rows() == []
    assert "mean, control" not in bare.summary()


def test_arms_are_written_and_read_back():
    found = release(covariance=(-1e-5, 2e-5))
    assert Release.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    plain = found.to_dict()
    plain["arms"] = plain["arms"] | {"more": 1}
    with pytest.raises(InvalidInput, match="arms of a release must have"):
        Release.from_dict(plain)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"part": 1.5}, "part must lie"),
        ({"level": float("nan")}, "finite"),
        ({"covariance": (1.0, 0.0)}, "part must lie"),
    ],
)
def test_impossible_arms_are_refused(wrong, words):
    with pytest.raises(InvalidInput, match=words):
        arms(**wrong)


def test_summary_methods_page_and_display_name_the_means():
    found = release()
    for text in (found.summary(), found.methods(), dc.render_page(found), found._repr_html_(), str(found.display())):
        assert "risk ratio" in text
        assert "control" in text
