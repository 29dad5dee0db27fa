"""Studies of uplift: what generators draw, and what loaders read."""

import os
from pathlib import Path

import numpy as np
import pytest

from discreet.datasets import adum, criteo, criteo_shaped, hillstrom
from discreet.datasets.marketing import CRITEO_RANGES, HILLSTROM_BOUNDS
from discreet.exceptions import InvalidInput
from discreet.papers import ADUM
from discreet.testing import seeded_noise

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DISCREET_DATA", ROOT.parent / "shared" / "data"))
SAMPLE = DATA / "criteo" / "criteo-uplift-v2.1.first1000.csv"
real = pytest.mark.skipif(not DATA.is_dir(), reason="real studies are no part of this project; set DISCREET_DATA")


def test_the_adum_paper_s_generator_has_the_stated_effect_and_noise():
    study = adum(40_000, 1, sigma=0.5)
    assert np.abs(study.X).max() < 1
    np.testing.assert_allclose(study.effects, np.sin(study.X[:, 0]))
    assert study.T.mean() == pytest.approx(0.5, abs=0.01)
    residual = study.Y - study.T * study.effects
    assert residual.std() == pytest.approx(0.5, rel=0.02)
    assert abs(residual.mean()) < 4 * 0.5 / 200
    assert study.bounds.outcome == (-3.0, 3.0)
    # On this range sin(x) is monotonic and sin(pi x) is not.
    order = np.argsort(study.X[:, 0])
    assert np.all(np.diff(study.effects[order]) >= 0)
    assert not np.all(np.diff(adum(40_000, 1, frequency=np.pi).effects[order]) >= 0)


def test_the_generator_has_criteo_s_shape():
    study = criteo_shaped(100_000, 1)
    assert study.X.shape == (100_000, 12)
    assert study.bounds.names == tuple(f"f{j}" for j in range(12))
    assert study.T.mean() == pytest.approx(0.85, abs=0.005)
    assert study.ate == pytest.approx(0.01034, rel=0.05)
    assert study.effects.mean() == pytest.approx(study.ate, abs=4 * 0.02 / np.sqrt(100_000))
    assert 0.03 < study.Y.mean() < 0.06
    for column, (low, high) in zip(study.X.T, CRITEO_RANGES.values(), strict=True):
        assert low <= column.min() <= column.max() <= high
    # Most features have a value that most records share.
    common = [np.unique(column, return_counts=True)[1].max() / study.n for column in study.X.T]
    assert np.median(common) > 0.7
    np.testing.assert_array_equal(study.Y, criteo_shaped(100_000, 1).Y)


@real
def test_the_e_mail_trial_has_the_published_effects():
    for treated, effect, n in (("mens", 0.0766, 42_613), ("womens", 0.0452, 42_693), ("any", 0.0609, 64_000)):
        study = hillstrom(DATA, treated=treated)
        assert study.n == n
        assert study.Y[study.T == 1].mean() - study.Y[study.T == 0].mean() == pytest.approx(effect, abs=5e-5)
    assert study.X.column_names == list(HILLSTROM_BOUNDS)
    assert hillstrom(DATA, outcome="spend").Y.max() == 499


@real
def test_the_e_mail_trial_can_be_fitted_by_its_bounds():
    study = hillstrom(DATA, treated="womens")
    by = {"womens": "levels", "channel": [["Phone"], ["Web", "Multichannel"]], "recency": [1, 4, 7, 12]}
    with seeded_noise(0):
        fitted = ADUM(epsilon=1, bounds=study.bounds, by=by).fit(study.Y, study.T, X=study.X)
    assert len(fitted.table()) == 12
    assert fitted.effect(study.X).mean() == pytest.approx(0.0452, abs=0.02)


@real
def test_the_sample_of_criteo_s_file_lies_within_its_bounds():
    study = criteo(SAMPLE)
    assert study.X.shape == (1_000, 12)
    assert (study.T.mean(), study.Y.mean()) == pytest.approx((0.863, 0.035))
    assert criteo(SAMPLE, outcome="conversion").Y.sum() == 2
    raw = np.loadtxt(SAMPLE, delimiter=",", skiprows=1)[:, :12]
    np.testing.assert_array_equal(study.X, raw)


@real
def test_criteo_s_file_is_read_a_few_thousand_rows_at_a_time(tmp_path):
    study = criteo(SAMPLE)
    given = {"epsilon": 1.0, "bounds": study.bounds, "by": {"f0": 4}}
    with seeded_noise(0):
        arrays = ADUM(**given).fit(study.Y, study.T, X=study.X)
    with seeded_noise(0):
        files = ADUM(**given).fit_table(SAMPLE, outcome="visit", treatment="treatment")
    assert arrays.release_.to_dict() == files.release_.to_dict()


def test_loaders_read_small_files_of_the_same_shape(tmp_path):
    (tmp_path / "mail.csv").write_text(
        "recency,history_segment,history,mens,womens,zip_code,newbie,channel,segment,visit,conversion,spend\n"
        "10,2) $100 - $200,142.44,1,0,Urban,0,Phone,Womens E-Mail,1,0,0\n"
        "2,2) $100 - $200,100,1,0,Rural,0,Web,No E-Mail,0,0,900\n"
        "2,2) $100 - $200,100,1,0,Rural,0,Web,Mens E-Mail,0,0,0\n"
    )
    study = hillstrom(tmp_path / "mail.csv", treated="womens")
    assert study.T.tolist() == [1.0, 0.0]
    assert study.X["channel"].to_pylist() == ["Phone", "Web"]
    assert hillstrom(tmp_path / "mail.csv", outcome="spend").Y.tolist() == [0.0, 500.0, 0.0]
    header = ",".join([*CRITEO_RANGES, "treatment", "conversion", "visit", "exposure"])
    (tmp_path / "ads.csv").write_text(f"{header}\n" + ",".join(["100"] * 12) + ",1,0,1,0\n")
    np.testing.assert_array_equal(criteo(tmp_path / "ads.csv").X[0], [high for _, high in CRITEO_RANGES.values()])


def test_files_that_are_missing_or_wrong_are_refused_without_showing_them(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    with pytest.raises(InvalidInput, match="path is missing"):
        hillstrom()
    with pytest.raises(InvalidInput, match="There is no file"):
        criteo(tmp_path)
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    for load in (hillstrom, criteo):
        with pytest.raises(InvalidInput, match="lacks the columns"):
            load(tmp_path / "a.csv")
    header = ",".join([*CRITEO_RANGES, "treatment", "visit"])
    (tmp_path / "b.csv").write_text(f"{header}\nsecret" + ",1" * 13 + "\n")
    with pytest.raises(InvalidInput, match="not a table") as caught:
        criteo(tmp_path / "b.csv")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInput, match="treated must be one of"):
        hillstrom(tmp_path, treated="all")
    with pytest.raises(InvalidInput, match="outcome must be one of"):
        criteo(tmp_path, outcome="exposure")
