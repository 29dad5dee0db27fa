"""Effects by cell as an estimator: what it estimates, promises, keeps and refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import Bounds
from discreet.datasets import adum, criteo_shaped
from discreet.exceptions import DiscreetError, InvalidBudget, InvalidInput, MissingBounds, NotFitted, UnsupportedRelease
from discreet.papers import ADUM, PrivateKMeans, UnprovedClaim
from discreet.papers.adum.release import SegmentRelease
from discreet.privacy.budget import ClaimedEvent, LaplaceEvent
from discreet.testing import frozen_noise, seeded_noise

STUDY = adum(3_000, 0)
GIVEN = {"epsilon": 1.0, "bounds": STUDY.bounds, "by": {0: 6}}


def fit(study=STUDY, **given):
    return ADUM(**(GIVEN | given)).fit(study.Y, study.T, X=study.X)


def by_hand(study=STUDY, p=6):
    """The effect in each cell without any noise."""
    cell = np.minimum((study.X[:, 0] + 1) / 2 * p, p - 1).astype(int)
    means = [[study.Y[(cell == k) & (arm == study.T)].mean() for arm in (0, 1)] for k in range(p)]
    return cell, np.diff(np.array(means))[:, 0]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_without_noise_effects_are_differences_of_cell_means(neighbours):
    with frozen_noise():
        fitted = fit(neighbours=neighbours)
    cell, effects = by_hand()
    np.testing.assert_allclose(fitted.release_.effects, effects, atol=1e-6)
    np.testing.assert_allclose(fitted.effect(STUDY.X), effects[cell], atol=1e-6)


def test_the_noise_is_the_paper_s_under_add_remove_and_twice_that_by_default():
    with seeded_noise(0):
        paper, default = fit(epsilon=0.5, neighbours="add-remove").release_, fit(epsilon=0.5).release_
    # Lap(2 / epsilon) on counts and Lap(2 D_y / epsilon) on sums, with D_y = 5.
    assert (paper.count_scale, paper.sum_scale) == pytest.approx((4.0, 20.0))
    assert (default.count_scale, default.sum_scale) == pytest.approx((8.0, 40.0))


def test_the_drawn_noise_has_the_stated_scale():
    with frozen_noise():
        exact = fit(by={0: 200}).release_
    with seeded_noise(1):
        noisy = [fit(by={0: 200}).release_ for _ in range(10)]
    # 4,000 Laplace numbers each: their mean absolute value is known to about two per cent.
    counts = np.mean([np.abs(release.counts - exact.counts) for release in noisy])
    sums = np.mean([np.abs(release.sums - exact.sums) for release in noisy])
    assert counts == pytest.approx(exact.count_scale, rel=0.08)
    assert sums == pytest.approx(exact.sum_scale, rel=0.08)


def test_an_ocean_of_budget_drowns_the_noise():
    np.testing.assert_allclose(fit(epsilon=1e5).release_.effects, by_hand()[1], atol=0.02)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_guarantee_is_what_was_asked_for_and_proved(neighbours):
    guarantee = fit(neighbours=neighbours).guarantee_
    assert (guarantee.epsilon, guarantee.delta, guarantee.neighbours) == (1.0, 0.0, neighbours)
    assert (guarantee.status, guarantee.proof) == ("proved", "adum.md")
    assert all(isinstance(event, LaplaceEvent) for event in guarantee.events)
    # Half of the budget for either, and all of it used.
    assert [event.diameter / event.scale for event in guarantee.events] == pytest.approx([0.5, 0.5])
    assert ("the number of records" in guarantee.public) == (neighbours == "replace-one")
    assert "the partition" in guarantee.public


def test_a_private_partition_has_half_of_the_budget():
    study = criteo_shaped(2_000, 1)
    fitted = fit(study, bounds=study.bounds, by=PrivateKMeans(clusters=4, rounds=3))
    shares = [event.diameter / event.scale for event in fitted.guarantee_.events]
    assert sum(shares[:6]) == pytest.approx(0.5)
    assert shares[6:] == pytest.approx([0.25, 0.25])
    assert (fitted.guarantee_.status, fitted.guarantee_.epsilon) == ("proved", 1.0)
    assert "the partition" not in fitted.guarantee_.public
    assert len(fitted.table()) == 4
    assert fitted.effect(study.X).shape == (2_000,)


def test_the_range_reading_is_claimed_warns_and_has_its_noise():
    bounds = Bounds(outcome=(10, 11), covariates=[(-1, 1)])
    given = {"bounds": bounds, "calibration": "published", "neighbours": "add-remove"}
    with pytest.warns(UnprovedClaim, match="claimed, not proved.*a claimed epsilon is 6 epsilon") as caught:
        fitted = ADUM(**(GIVEN | given)).fit(STUDY.Y + 10.5, STUDY.T, X=STUDY.X)
    assert caught[0].filename == __file__
    assert (fitted.guarantee_.status, fitted.guarantee_.neighbours) == ("claimed", "add-remove")
    assert isinstance(fitted.guarantee_.events[0], ClaimedEvent)
    assert (fitted.release_.count_scale, fitted.release_.sum_scale) == pytest.approx((2.0, 2.0))
    assert "Claimed, not proved" in fitted.summary()
    with pytest.warns(UnprovedClaim), frozen_noise():
        exact = ADUM(**(GIVEN | {"calibration": "published"})).fit(STUDY.Y, STUDY.T, X=STUDY.X)
    np.testing.assert_allclose(exact.release_.effects, by_hand()[1], atol=1e-9)
    assert exact.release_.sum_scale == pytest.approx(2 * 2 * 10.0)


def test_a_table_has_a_row_for_each_cell_and_says_how_noisy_it_is():
    with seeded_noise(0):
        fitted = fit()
    rows = fitted.table()
    assert [row["cell"] for row in rows][:2] == ["x0 [-1, -0.666667)", "x0 [-0.666667, -0.333333)"]
    assert rows[0]["effect"] == pytest.approx(rows[0]["treated_mean"] - rows[0]["control_mean"])
    # Two sums with Lap(20), each over about 250 records.
    assert rows[0]["noise_sd"] == pytest.approx(2 * 20 / 250, rel=0.3)
    assert len(pd.DataFrame(rows)) == 6


def test_an_empty_cell_is_noise_and_not_distinguished_from_a_small_one():
    x = np.abs(STUDY.X)
    with seeded_noise(3):
        fitted = ADUM(**GIVEN).fit(STUDY.Y, STUDY.T, X=x)
    assert np.isfinite(fitted.release_.effects).all()
    assert np.all(fitted.release_.counts[:3] != 0.0)
    with frozen_noise():
        nothing = ADUM(**GIVEN).fit(STUDY.Y, STUDY.T, X=x)
    np.testing.assert_array_equal(nothing.release_.effects[:3], 0.0)


def test_clipped_means_stay_inside_the_outcome_s_range():
    with seeded_noise(3):
        ratio, clipped = (fit(by={0: 500}, epsilon=0.2, means=means) for means in ("ratio", "clipped"))
    assert np.abs(ratio.release_.effects).max() > 10
    assert np.abs(clipped.release_.effects).max() <= 10
    assert clipped.guarantee_.status == "test"


def test_frames_and_files_give_the_same_release(tmp_path):
    bounds = Bounds(outcome=(-5, 5), covariates={"x": (-1, 1), "s": ["a", "b"]})
    frame = pd.DataFrame({"y": STUDY.Y, "t": STUDY.T, "x": STUDY.X[:, 0], "s": np.where(STUDY.X[:, 0] > 0, "a", "b")})
    frame.to_csv(tmp_path / "records.csv", index=False)
    given = {"epsilon": 1.0, "bounds": bounds, "by": {"x": 3, "s": "levels"}}
    with seeded_noise(1):
        arrays = ADUM(**given).fit(frame["y"], frame["t"], X=frame[["s", "x"]])
    with seeded_noise(1):
        files = ADUM(**given).fit_table(tmp_path / "records.csv", outcome="y", treatment="t")
    assert arrays.release_.to_dict() == files.release_.to_dict()
    assert arrays.effect(frame[["x", "s"]]).shape == (3_000,)


@pytest.mark.parametrize("by", [{0: 5}, PrivateKMeans(clusters=3)])
def test_a_release_is_written_and_read_back(by, tmp_path):
    with seeded_noise(2):
        fitted = fit(by=by)
    fitted.release_.save(tmp_path / "effects.json")
    again = SegmentRelease.load(tmp_path / "effects.json")
    assert again.to_dict() == fitted.release_.to_dict()
    np.testing.assert_array_equal(again.effect(STUDY.X), fitted.effect(STUDY.X))
    assert str(again) == fitted.summary()


def test_files_that_are_no_release_are_refused(tmp_path):
    path = tmp_path / "effects.json"
    with pytest.raises(InvalidInput, match="no release file"):
        SegmentRelease.load(path)
    for text in ("{", "[]", '{"format": "something else"}'):
        path.write_text(text)
        with pytest.raises(UnsupportedRelease):
            SegmentRelease.load(path)
    with seeded_noise(2):
        plain = fit().release_.to_dict()
    with pytest.raises(InvalidInput, match="exactly the fields"):
        SegmentRelease.from_dict(plain | {"more": 1})
    with pytest.raises(InvalidInput, match="two finite numbers per cell"):
        SegmentRelease.from_dict(plain | {"counts": [[1.0, 2.0]]})


def test_a_summary_shows_cells_privacy_and_notes():
    with seeded_noise(0):
        text = fit(by={0: 30}).summary()
    assert "x0 [-1, -0.933333)" in text
    assert "and 18 cells more" in text
    assert "no interval" in text
    assert "seeded noise" in text


@pytest.mark.parametrize("cells", [4, 40])
def test_a_release_draws_itself(cells):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    with seeded_noise(0):
        ax = fit(by={0: cells}).plot()
    assert [label.get_text()[:2] for label in ax.get_yticklabels()] == ["x0"] * 4 or cells == 40
    assert ("segment" in ax.get_xlabel()) == (cells == 40)
    pyplot.close("all")


@pytest.mark.parametrize("by", [{0: 5}, PrivateKMeans(clusters=3)])
def test_after_fit_nothing_but_the_release_is_kept(by):
    fitted = fit(by=by)
    assert set(vars(fitted)) - set(fitted.get_params()) == {"release_"}
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.effect(STUDY.X), fitted.effect(STUDY.X))
    assert "release_" not in vars(clone(fitted))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"epsilon": 0}, InvalidBudget, "epsilon must be positive"),
        ({"epsilon": -1.0}, InvalidBudget, "epsilon must be positive"),
        ({"epsilon": float("nan")}, InvalidBudget, "epsilon must be a finite number"),
        ({"bounds": None}, MissingBounds, "ADUM needs bounds"),
        ({"by": {"age": 20}}, InvalidInput, "covariate 'age' that the bounds do not declare"),
        ({"by": {0: [-1, 0.5]}}, InvalidInput, "do not cover"),
        ({"by": {0: 10**6}}, InvalidInput, "too many cells"),
        ({"by": None}, InvalidInput, "by must map"),
        ({"by": PrivateKMeans(clusters=2, columns=["age"])}, InvalidInput, "do not declare"),
        ({"neighbours": "both"}, InvalidInput, "neighbours must be"),
        ({"outcome_bound": "max"}, InvalidInput, "outcome_bound must be"),
        ({"means": "median"}, InvalidInput, "means must be"),
    ],
)
def test_bad_parameters_are_refused_before_records_are_read(given, error, words):
    with pytest.raises(error, match=words):
        ADUM(**(GIVEN | given)).fit(None, None, X=None)


def test_a_forgotten_outcome_range_is_missing_bounds():
    with pytest.raises(MissingBounds, match="outcome"):
        ADUM(epsilon=1, bounds=Bounds(covariates=[(-1, 1)]), by={0: 2})


def test_unusable_records_are_refused_without_showing_them():
    secret = STUDY.Y.copy()
    secret[5] = np.inf
    for Y, T, X, words in (
        (STUDY.Y, np.ones(3_000), STUDY.X, "One arm is empty"),
        (secret, STUDY.T, STUDY.X, "infinite"),
        (STUDY.Y, STUDY.T, STUDY.X[:10], "align their lengths"),
        (STUDY.Y[:5], STUDY.T[:5], STUDY.X[:5], "fewer than 10 records"),
    ):
        with pytest.raises(InvalidInput, match=words):
            ADUM(**GIVEN).fit(Y, T, X=X)


def test_results_before_fit_are_refused():
    for ask in (lambda e: e.effect(STUDY.X), lambda e: e.table(), lambda e: e.guarantee_, lambda e: e.summary()):
        with pytest.raises(NotFitted, match="call fit first"):
            ask(ADUM(**GIVEN))


def test_a_refused_fit_leaves_no_earlier_release_behind():
    with seeded_noise(0):
        fitted = fit()
    fitted.set_params(epsilon=2.0)
    with pytest.raises(DiscreetError):
        fitted.fit(STUDY.Y, np.ones(3_000), X=STUDY.X)
    assert not hasattr(fitted, "release_")


def test_a_cell_that_may_be_empty_is_named_from_what_was_released():
    with seeded_noise(1):
        sparse, full = (fit(by={0: edges}) for edges in ([-1, 0, 0.99999, 1], [-1, 0, 1]))
    assert "1 of 3 cells may have an empty arm" in sparse.summary()
    assert "empty arm" not in full.summary()


@pytest.mark.parametrize(("depends_on", "right"), [("the cell", True), ("x inside it", False)])
def test_a_partition_that_is_an_adjustment_set_needs_no_trial(depends_on, right):
    # The remark of section 2.2: it is enough that X and T are independent given the cell.
    rng = np.random.default_rng(0)
    n = 40_000
    x = rng.uniform(-1, 1, (n, 1))
    place = np.where(x[:, 0] > 0, 0.5, -0.5) if depends_on == "the cell" else x[:, 0]
    t = (rng.random(n) < 0.5 + 0.6 * place) * 1.0
    y = np.clip(2 * x[:, 0] + t, *STUDY.bounds.outcome)
    with frozen_noise():
        effects = ADUM(epsilon=1.0, bounds=STUDY.bounds, by={0: 2}).fit(y, t, X=x).release_.effects
    # Inside a cell x has a standard deviation of .29: means of some 10,000 records err by .006.
    assert bool(np.all(np.abs(effects - 1.0) < 0.03)) is right
