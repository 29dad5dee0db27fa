"""The yardstick of several sites: what its cells measure, and what its page says."""

import pytest

import discreet as dc
from evidence.sites import EQUAL, NUMBERS, Line, beside_pooled, main, overlapping, page, random_effects


def test_a_cell_measures_coverage_and_width_and_gives_the_same_again():
    line = random_effects(NUMBERS, dc.DifferenceInMeans, EQUAL[:3], 0.1, 3)
    assert line == random_effects(NUMBERS, dc.DifferenceInMeans, EQUAL[:3], 0.1, 3)
    assert 0.0 <= line.covered <= 1.0
    assert line.width > 0.0


def test_events_in_three_places_are_nearly_as_good_as_in_one():
    line = beside_pooled("events", dc.DifferenceInMeans, 10_000, 1.0, 2)
    assert 1.0 <= line.over_pooled <= 1.1


def test_people_who_overlap_make_wider_intervals():
    assert overlapping(0.5, "overlapping", 2).width > overlapping(0.5, "disjoint", 2).width


def line(part, **more):
    plain = {"part": part, "design": "d", "estimator": "e", "sites": "3", "epsilon": 1.0, "tau": 0.1, "runs": 10}
    return Line(**(plain | {"covered": 0.95, "width": 1.0, "over_pooled": 1.0} | more))


@pytest.mark.parametrize(("covered", "over", "words"), [(0.95, 1.0, 3), (0.9, 1.0, 1), (0.95, 1.2, 2)])
def test_the_page_says_what_was_reached(covered, over, words):
    found = [line("random", covered=covered), line("fixed", over_pooled=over), line("overlap")]
    assert page(found, "a command").count("| reached |") == words


def test_a_part_of_the_runs_is_not_written_over_the_page():
    with pytest.raises(SystemExit):
        main(["--part", "0.5"])
