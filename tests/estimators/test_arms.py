"""Several arms: what is released of them, and what is refused before any budget is spent."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import ATE, ATT, CATE, ArmsRelease, Bounds, DifferenceInMeans, load, plan, render_page
from discreet.data.records import Chunk
from discreet.estimators.arms.scores import DesignScore
from discreet.exceptions import InvalidInput, MissingBounds
from discreet.postprocessing.tails import Clip
from discreet.testing import record_sums, seeded_noise

ARMS = ["placebo", "low", "high"]
BOUNDS = Bounds(outcome=(-3, 8), covariates={"age": (0, 1), "sex": ["f", "m"]}, treatment=ARMS)
SHARES = {"placebo": 0.5, "low": 0.25, "high": 0.25}
MEANS = {"placebo": 1.75, "low": 2.25, "high": 2.75}


def study(n=12_000, seed=3):
    rng = np.random.default_rng(seed)
    age, sex = rng.random(n), rng.choice(["f", "m"], n)
    arm = rng.choice(ARMS, n, p=list(SHARES.values()))
    effect = np.select([arm == "low", arm == "high"], [0.5, 1.0], 0.0)
    y = 1.0 + age + 0.5 * (sex == "m") + effect * (0.5 + age) + rng.normal(0, 0.5, n)
    return pd.DataFrame({"y": y, "arm": arm, "age": age, "sex": sex, "person": np.arange(n) // 2})


def fit(made, table=None, seed=1, **options):
    with seeded_noise(seed):
        return made.fit_table(study() if table is None else table, outcome="y", treatment="arm", **options).release_


MADE: dict[str, Callable[..., Any]] = {
    "means": lambda **given: DifferenceInMeans(epsilon=2.0, delta=1e-6, bounds=BOUNDS, **given),
    "known means": lambda **given: DifferenceInMeans(
        epsilon=2.0, delta=1e-6, bounds=BOUNDS, propensity=SHARES, **given
    ),
    "pure means": lambda **given: DifferenceInMeans(epsilon=2.0, bounds=BOUNDS, **given),
    "trial": lambda **given: ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS, propensity=[0.5, 0.25, 0.25], **given),
    "observational": lambda **given: ATE(epsilon=2.0, delta=1e-6, bounds=BOUNDS, **given),
}


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("kind", MADE)
def test_intervals_of_all_contrasts_and_means_hold_the_truth(kind, relation):
    release = fit(MADE[kind](neighbours=relation))
    assert isinstance(release, ArmsRelease)
    # Six deviations are never missed by chance.
    for row in release.contrasts(alpha=1e-6):
        assert row.low < MEANS[row.arm] - MEANS[row.against] < row.high
        assert row.high - row.low < 1.5
    for arm, (mean, low, high) in release.means(alpha=1e-6).items():
        assert low < MEANS[arm] < high
        assert low < mean < high
    assert sum(share or 0.0 for _, _, share in release.rounds()) == pytest.approx(1.0)


def test_simultaneous_intervals_are_wider_and_any_pair_can_be_asked_for():
    release = fit(MADE["means"]())
    one, all_ = release.contrasts(), release.contrasts(simultaneous=True)
    assert [(row.arm, row.against) for row in one] == [("low", "placebo"), ("high", "placebo"), ("high", "low")]
    assert all(both.low < row.low and both.high > row.high for row, both in zip(one, all_, strict=True))
    back = release.contrast("placebo", "high")
    assert back.effect == -one[1].effect
    assert back.low == pytest.approx(-one[1].high)
    assert [row.against for row in release.contrasts(against="low")] == ["low", "low"]
    # Two comparisons need less than three.
    few = release.contrasts(simultaneous=True, against="placebo")
    assert few[0].high - few[0].low < all_[0].high - all_[0].low
    parts = release.uncertainty("high", "placebo")
    assert parts.interval(one[1].effect) == pytest.approx(one[1][3:])


@pytest.mark.parametrize(
    ("arm", "against", "words"),
    [
        ("middle", "placebo", "arm must be one of"),
        ("low", "nobody", "against must be"),
        ("low", "low", "two different"),
    ],
)
def test_contrasts_of_unknown_arms_are_refused(arm, against, words):
    with pytest.raises(InvalidInput, match=words):
        fit(MADE["pure means"]()).contrast(arm, against)


def test_several_arms_have_no_single_effect():
    made = MADE["pure means"]()
    fit(made)
    with pytest.raises(InvalidInput, match=r"contrasts\(\)"):
        _ = made.ate_
    with pytest.raises(InvalidInput, match=r"contrasts\(\)"):
        made.ate_interval()


def test_a_release_survives_its_file_and_becomes_a_page(tmp_path):
    release = fit(MADE["trial"]())
    release.save(tmp_path / "arms.json")
    assert load(tmp_path / "arms.json") == release
    assert ArmsRelease.load(tmp_path / "arms.json") == release
    page = render_page(release, title="Doses")
    assert "high against placebo" in page
    assert "Compared with placebo" in page
    for text in (str(release), release.methods(), json.dumps(release.to_dict())):
        assert "placebo" in text
    assert release.display().head == ("arm", "against", "effect", "95 % interval", "all at once")
    release.plot()


@pytest.mark.parametrize(
    ("propensity", "words"),
    [
        ({"placebo": 0.5, "low": 0.25}, "must name every arm"),
        ({"placebo": 0.5, "low": 0.25, "tall": 0.25}, "no arm 'tall'"),
        ([0.5, 0.25, 0.3], "add up to one"),
        ([0.5, 0.5], "a probability for each"),
        (0.5, "a probability for each"),
        ("column", "a probability for each"),
        ({"placebo": 0.5, "low": "x", "high": 0.25}, "must hold numbers"),
        ([0.99, 0.005, 0.005], "declared Bounds"),
        ([0.5, float("nan"), 0.25], "declared Bounds"),
    ],
)
@pytest.mark.parametrize("kind", [ATE, DifferenceInMeans])
def test_probabilities_that_do_not_belong_to_the_arms_are_refused(kind, propensity, words):
    with pytest.raises(InvalidInput, match=words):
        fit(kind(epsilon=1.0, delta=1e-6, bounds=BOUNDS, propensity=propensity))


def test_an_undeclared_arm_and_an_empty_one_are_refused_without_data():
    table = study(600)
    with pytest.raises(InvalidInput, match="one of the labels") as refused:
        fit(MADE["means"](), table.assign(arm=np.where(table.arm == "high", "enormous", table.arm)))
    assert "enormous" not in str(refused.value)
    two = table[table.arm != "low"]
    for made in (MADE["means"](), MADE["observational"]()):
        with pytest.raises(InvalidInput, match="is empty"):
            fit(made, two)
    with pytest.raises(InvalidInput, match="is empty"), seeded_noise(1):
        MADE["means"]().fit(two["y"], two["arm"], X=two[["age", "sex"]])


@pytest.mark.parametrize(
    "made",
    [CATE(epsilon=1.0, delta=1e-6, bounds=BOUNDS), ATT(epsilon=1.0, delta=1e-6, bounds=BOUNDS)],
    ids=["CATE", "ATT"],
)
def test_estimators_of_two_arms_refuse_several(made):
    with pytest.raises(InvalidInput, match="compares two arms"):
        fit(made)
    with pytest.raises(MissingBounds, match="two arms"):
        plan("ate", n=1_000, bounds=BOUNDS, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("treatment", [["only"], [], "ab", list(range(40)), ["a", "a", "b"]])
def test_labels_that_are_none_are_refused(treatment):
    with pytest.raises(InvalidInput, match="treatment"):
        Bounds(outcome=(0, 1), treatment=treatment)


def test_bounds_of_several_arms_survive_their_file():
    assert Bounds.from_toml(BOUNDS.to_toml()) == BOUNDS
    with pytest.raises(InvalidInput, match="treatment"):
        Bounds.from_dict({"outcome": {"low": 0, "high": 1}, "treatment": {"arms": "abc"}})


@pytest.mark.parametrize("kind", ["pure means", "trial", "observational"])
def test_arrays_frames_and_files_have_the_same_sums(kind, tmp_path):
    table = study(3_000)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    found = []
    for source in (table, str(tmp_path / "t.parquet"), str(tmp_path / "t.csv")):
        with seeded_noise(3), record_sums() as recorded:
            made = MADE[kind]().fit_table(source, outcome="y", treatment="arm")
        found.append((made.release_.estimates, [sums.tolist() for _, _, sums, _ in recorded]))
    with seeded_noise(3), record_sums() as recorded:
        made = MADE[kind]().fit(table["y"], table["arm"], X=table[["age", "sex"]])
    found.append((made.release_.estimates, [sums.tolist() for _, _, sums, _ in recorded]))
    assert all(each == found[0] for each in found)


def test_a_cap_units_and_a_sample_belong_to_several_arms_too():
    capped = fit(MADE["means"](cap=2.5))
    assert capped.cap == 2.5
    assert max(capped.estimates) < 2.5
    auto = fit(MADE["trial"](cap="auto"))
    assert "chosen by a noisy histogram" in auto.notes[0]
    for kind in ("means", "observational"):
        units = fit(MADE[kind](), unit="person", max_rows=2)
        assert "as if all 2 rows of one person were alike" in units.notes[-1]
        assert units.guarantee.unit == "one person with at most 2 rows"
    with_names = fit(MADE["trial"](), sample_by="person")
    assert with_names.guarantee.epsilon == 2.0


def test_arms_that_are_numbers_may_be_given_in_any_order():
    bounds = Bounds(outcome=(-3, 8), treatment=[0, 10, 20])
    table = study(3_000).replace({"arm": {"placebo": 0, "low": 10, "high": 20}})
    table["arm"] = table["arm"].astype(int)
    made = DifferenceInMeans(epsilon=2.0, bounds=bounds, propensity={20: 0.25, 0: 0.5, 10: 0.25})
    release = fit(made, table)
    assert release.contrast(20, 0).effect == pytest.approx(1.0, abs=0.3)


def test_a_design_that_the_arms_do_not_follow_is_said():
    made = DifferenceInMeans(epsilon=5.0, bounds=BOUNDS, propensity=[0.25, 0.5, 0.25])
    assert any("far from the declared probability" in note for note in fit(made).notes)


def test_a_ledger_knows_a_request_of_several_arms_again(tmp_path):
    from discreet import Ledger

    ledger = Ledger(f"sqlite:///{tmp_path / 'l.db'}")
    ledger.open("trial", epsilon=5, delta=1e-5)
    # Real noise: what is drawn with a seed is never an answer.
    table, releases = study(2_000), []
    for _ in range(2):
        made = MADE["known means"]()
        made.fit_table(table, outcome="y", treatment="arm", ledger=ledger, dataset="trial")
        releases.append(made.release_)
    assert releases[0] == releases[1]


def test_a_broken_file_is_refused():
    plain = fit(MADE["pure means"]()).to_dict()
    for change in (
        {"estimates": plain["estimates"][:2]},
        {"clipping": -1.0},
        {"kind": "other"},
        {"covariances": {"sampling": [[1.0]]}},
        {"cap": 1e6},
        {"n": float("inf")},
    ):
        with pytest.raises(InvalidInput):
            ArmsRelease.from_dict(plain | change)


@pytest.mark.parametrize("offset", [0.0, 0.3, 5.0, -5.0])
def test_offsets_are_taken_away_and_added_again_wherever_a_prognosis_is_held(offset):
    rng = np.random.default_rng(2)
    t = rng.integers(0, 3, 400).astype(float)
    chunk = Chunk(rng.choice([-1.0, 1.0], 400, p=[0.97, 0.03]), t, np.empty((400, 0)), None)
    shares, offsets = np.array([0.5, 0.25, 0.25]), np.array([0.0, offset, 0.01])
    centre, limits = -0.94, (-1.0, -0.8)
    score = DesignScore(shares=shares, offsets=offsets, prognosis=lambda c: np.full(len(c.y), centre), limits=limits)
    far = max(score.reach) / shares.min()
    own = np.abs(score.residuals(chunk).own)
    assert own.max() <= max(score.reach)
    found = score.vectors(chunk, Clip(far, far, 0.0, 0.0)).mean(axis=0) + score.constants
    inside = t[:, None] == np.arange(3)
    expected = offsets + np.mean(inside * (chunk.y[:, None] - centre - offsets) / shares, axis=0)
    np.testing.assert_allclose(found, expected)


def test_noise_is_as_large_as_stated_where_outcomes_are_rare():
    rng = np.random.default_rng(4)
    arm = rng.choice(ARMS, 4_000, p=list(SHARES.values()))
    table = pd.DataFrame({"y": (rng.random(4_000) < 0.02).astype(int), "arm": arm})
    bounds = Bounds(outcome=[0, 1], treatment=ARMS)
    made = DifferenceInMeans(epsilon=0.5, delta=1e-6, bounds=bounds, propensity=SHARES)
    found = []
    for seed in range(40):
        release = fit(made, table, seed)
        found.append(release.contrast("high", "placebo").effect / release.uncertainty("high", "placebo").privacy)
    # 40 draws: a standard deviation of one is found within a third of it but for one in a thousand.
    assert np.std(found) < 1.4
