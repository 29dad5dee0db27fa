"""The page about effects by segment: its arithmetic, and that a miss is printed as a miss."""

import numpy as np
import pytest

from discreet import Uplift
from discreet.datasets import adum
from discreet.testing import seeded_noise
from evidence.uplift import page as pages
from evidence.uplift import runs


def made_up(ratio, auuc):
    """Lines as a run would give them, ADUM's error being 1 with eight cells and 2 with any other number."""
    measures = (*pages._COVER, "width", "segments")

    def of(table, case, epsilon, method, **values):
        return [
            runs.Line(table, case, epsilon, method, k, name, value) for name, value in values.items() for k in (0, 1)
        ]

    lines = []
    for epsilon in (*runs.EPSILONS, runs.OPEN):
        for cells in runs.ADUM_CELLS:
            lines += of("generator", "sin(x)", epsilon, f"ADUM {cells}", **{"root-PEHE": 1.0 if cells == 8 else 2.0})
        for name in runs.VARIANTS:
            lines += of("generator", "sin(x)", epsilon, name, **{"root-PEHE": ratio}, **dict.fromkeys(measures, 0.9))
    for name in runs.SHAPES:
        for epsilon in runs.SHAPE_EPSILONS:
            lines += of("shapes", name, epsilon, "8 cells", **{"root-PEHE": 0.1}, **dict.fromkeys(measures, 0.9))
    for trial in runs.TRIALS:
        for method, _, _ in runs.METHODS:
            lines += of("ranking", trial, 1.0, method, AUUC=auuc)
        for method, value in (("T-learner, logistic", 0.9), ("T-learner, boosted", 1.0), ("random", 0.5)):
            lines += of("ranking", trial, 1.0, method, AUUC=value)
    return pages.Found(lines)


def aims(found):
    page = pages.page(found, {"generator": 2, "shapes": 2, "ranking": 2}, 1.0)
    return [line for line in page.splitlines() if line.endswith("reached |") or line.endswith("reached** |")]


def test_errors_are_judged_beside_the_best_rival_and_rankings_beside_the_best_learner():
    good, bad = aims(made_up(0.3, 0.95)), aims(made_up(0.35, 0.85))
    assert len(good) == len(bad) == 2 * len(runs.EPSILONS) + 2 * len(runs.TRIALS)
    assert not any("not reached" in line for line in good)
    missed = [line for line in bad if "not reached" in line]
    # At epsilon 1 and 2 a larger share of the rival's error was allowed.
    assert len(missed) == 2 * 4 + 2 * len(runs.TRIALS)
    assert sum("| 0.350 |" in line for line in bad) == 2 * len(runs.EPSILONS)
    assert sum("| 0.850 |" in line for line in missed) == 2 * len(runs.TRIALS)


def test_what_is_gained_over_a_random_ranking_is_measured_from_it():
    page = pages.page(made_up(0.3, 0.75), {"generator": 2, "shapes": 2, "ranking": 2}, 1.0)
    (line,) = [line for line in page.splitlines() if line.startswith("| women's e-mail | Uplift, add-remove")]
    assert line.endswith("| 0.750 | 0.50 |")


def test_intervals_of_an_estimate_that_is_right_cover_and_of_a_wrong_one_do_not():
    study = adum(20_000, 5)
    with seeded_noise(3):
        found = Uplift(epsilon=50.0, bounds=study.bounds, by={0: 8}, propensity=0.5).fit(study.Y, study.T, X=study.X)
    truth = np.sin(runs._GRID[:, 0])
    right, wrong = runs.coverage(found, truth), runs.coverage(found, truth + 1.0)
    for measure in pages._COVER:
        assert right[measure] > 0.6
        assert wrong[measure] == 0.0
    assert right["width"] == pytest.approx(wrong["width"])
