"""Loaders of real observational studies and trials: what their files say."""

import os
from pathlib import Path

import numpy as np
import pytest

from discreet.datasets import ihdp, nsw, rhc
from discreet.datasets.observational import IHDP_OUTCOME, NSW_OUTCOME, RHC_RANGES
from discreet.exceptions import InvalidInput
from tests.datasets.helpers import inside

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("DISCREET_DATA", ROOT.parent / "shared" / "data"))
real = pytest.mark.skipif(not DATA.is_dir(), reason="real studies are no part of this project; set DISCREET_DATA")


@real
def test_the_catheter_study():
    study = rhc(DATA)
    assert study.X.shape == (5735, len(RHC_RANGES))
    assert study.T.sum() == 2184
    assert study.bounds.names == tuple(RHC_RANGES)
    inside(study)
    assert rhc(DATA, outcome="dth30").Y.mean() < study.Y.mean() < rhc(DATA, outcome="death_any").Y.mean()


@real
def test_the_supported_work_trial():
    study = nsw(DATA)
    assert (study.n, study.T.sum()) == (722, 297)
    inside(study)
    # The published difference in means is 886; one man earned more than the bounds allow.
    assert study.Y[study.T == 1].mean() - study.Y[study.T == 0].mean() == pytest.approx(886, abs=2)
    assert study.bounds.outcome == NSW_OUTCOME
    assert nsw(DATA, re74=True).bounds.names == (*study.bounds.names, "re74")


@real
@pytest.mark.parametrize("realisation", [1, 7, 20])
def test_the_infant_health_simulations(realisation):
    study = ihdp(realisation, DATA)
    assert study.X.shape == (747, 25)
    assert study.T.sum() == 139
    inside(study)
    assert study.bounds.outcome == IHDP_OUTCOME
    # The files fix the average effect on the treated.
    assert study.effects[study.T == 1].mean() == pytest.approx(4)
    assert study.ate == pytest.approx(study.effects.mean())


@real
def test_the_first_infant_health_simulation_has_the_known_average_effect():
    assert ihdp(1, DATA).ate == pytest.approx(4.016, abs=1e-3)


@real
def test_the_environment_names_the_folder(monkeypatch):
    monkeypatch.setenv("DISCREET_DATA", str(DATA))
    assert nsw().n == 722


def test_loaders_read_small_files_of_the_same_shape(tmp_path):
    (tmp_path / "trial.csv").write_text(
        "treat,age,educ,black,hisp,married,nodegr,re75,re78\n1,33,12,0,0,1,0,90000,70000.5\n0,12,8,1,0,0,1,0,0\n"
    )
    study = nsw(tmp_path / "trial.csv")
    np.testing.assert_array_equal(study.X, [[33, 12, 0, 0, 1, 0, 40_000], [16, 8, 1, 0, 0, 1, 0]])
    np.testing.assert_array_equal(study.Y, [60_000, 0])
    (tmp_path / "ihdp.csv").write_text(",".join(["1", "99", "0", "1", "5", "-9"] + ["0"] * 12 + ["2"] + ["1"] * 11))
    with pytest.raises(InvalidInput, match="lacks the columns treat"):
        nsw(tmp_path / "ihdp.csv")
    study = ihdp(path=tmp_path / "ihdp.csv")
    assert (study.Y[0], study.X[0, 0], study.X[0, 13], study.ate) == (40, -6, 1, 4)


def test_files_that_are_missing_or_wrong_are_refused_without_showing_them(tmp_path, monkeypatch):
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    with pytest.raises(InvalidInput, match="path is missing: give the data folder"):
        rhc()
    with pytest.raises(InvalidInput, match="There is no file"):
        rhc(tmp_path)
    (tmp_path / "rhc.csv").write_text("T,Y_death180\n1,0\n")
    with pytest.raises(InvalidInput, match="lacks the columns age, meanbp1"):
        rhc(tmp_path / "rhc.csv")
    header = ",".join(["T", "Y_death180", *RHC_RANGES])
    (tmp_path / "rhc.csv").write_text(f"{header}\n1,0,secret,1,1,1,1,1,1,1\n")
    with pytest.raises(InvalidInput, match="nothing but numbers") as caught:
        rhc(tmp_path / "rhc.csv")
    assert "secret" not in str(caught.value)
    (tmp_path / "ihdp.csv").write_text("1,2,3\n")
    with pytest.raises(InvalidInput, match="30 columns"):
        ihdp(path=tmp_path / "ihdp.csv")
    for wrong in (0, -1, True, "1"):
        with pytest.raises(InvalidInput, match="realisation must be a positive integer"):
            ihdp(wrong, tmp_path)
    with pytest.raises(InvalidInput, match="outcome must be one of"):
        rhc(tmp_path, outcome="T")
