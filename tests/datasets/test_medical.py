"""Data of the DP-CATE paper: its generators, and loaders on tiny files of the real formats."""

import csv
import gzip
from datetime import datetime, timedelta

import numpy as np
import pytest

from discreet import InvalidInput
from discreet.datasets import dp_cate, mimic, tcga
from discreet.datasets.medical import MIMIC_RANGES, TCGA_RANGE


@pytest.mark.parametrize(("which", "p"), [(1, 2), (2, 30)])
def test_synthetic_data_follow_the_supplement(which, p):
    study = dp_cate(which, 20_000, 3)
    assert study.X.shape == (20_000, p)
    theta = np.exp(2 * study.X[:, 0]) + 3 * np.sin(4 * study.X[:, which - 1])
    np.testing.assert_array_equal(study.effects, theta)
    low, high = study.bounds.outcome
    assert low <= study.Y.min()
    assert study.Y.max() <= high
    assert study.ate == pytest.approx(theta.mean(), abs=5 * theta.std() / np.sqrt(20_000))
    treated = study.T[study.propensity > np.median(study.propensity)].mean()
    assert treated > study.T.mean()
    assert study.propensity.min() >= 0.1
    # Without treatment, outcomes are linear in the covariates with noise from [-1, 1].
    control = study.T == 0
    design = np.column_stack([np.ones(control.sum()), study.X[control]])
    weights, *_ = np.linalg.lstsq(design, study.Y[control], rcond=None)
    residual = study.Y[control] - design @ weights
    assert residual.std() == pytest.approx(1 / np.sqrt(3), rel=0.03)
    assert (np.abs(weights[1:]) > 0.1).sum() <= (2 if which == 1 else 6)


def test_other_data_sets_are_refused_and_seeds_repeat():
    with pytest.raises(InvalidInput, match="1 or 2"):
        dp_cate(3, 100, 0)
    np.testing.assert_array_equal(dp_cate(1, 50, 7).Y, dp_cate(1, 50, 7).Y)


COLUMNS = {
    "ICUSTAYS": ["ROW_ID", "SUBJECT_ID", "HADM_ID", "ICUSTAY_ID", "INTIME", "OUTTIME"],
    "PATIENTS": ["ROW_ID", "SUBJECT_ID", "GENDER", "DOB"],
    "CHARTEVENTS": ["ROW_ID", "SUBJECT_ID", "ICUSTAY_ID", "ITEMID", "CHARTTIME", "VALUE", "VALUENUM"],
    "LABEVENTS": ["ROW_ID", "SUBJECT_ID", "HADM_ID", "ITEMID", "CHARTTIME", "VALUENUM"],
    "PROCEDUREEVENTS_MV": ["ROW_ID", "SUBJECT_ID", "ICUSTAY_ID", "STARTTIME", "ENDTIME", "ITEMID"],
}


def mimic_tables(stays=40, seed=0):
    """Rows of the five tables of MIMIC-III: hourly values of made-up people, every third of them ventilated."""
    rng = np.random.default_rng(seed)
    tables = {name: [] for name in COLUMNS}
    for k in range(stays):
        subject, stay, start = 100 + k, 200_000 + k, datetime(2130, 1, 1) + timedelta(days=3 * k)
        end = start + timedelta(hours=48)
        born = start - timedelta(days=int(365.25 * (300 if k == 1 else 40 + k)))
        tables["ICUSTAYS"].append([k, subject, 1, stay, start, end])
        tables["PATIENTS"].append([k, subject, "M" if k % 2 else "F", born])
        for hour in range(48):
            when = start + timedelta(hours=hour)
            tables["CHARTEVENTS"].append([k, subject, stay, 220045, when, "80", 80 + rng.normal(0, 5)])
            tables["CHARTEVENTS"].append([k, subject, stay, 618, when, "18", 18 + rng.normal(0, 2)])
            tables["CHARTEVENTS"].append([k, subject, stay, 999, when, "text", ""])
            for item, level in ((50983, 140), (51279, 4 + k % 3), (50931, 120), (51221, 35)):
                if k != 2 or item != 50983:  # one person has no sodium
                    tables["LABEVENTS"].append([k, subject, 1, item, when, level])
        if k % 3 == 0:
            tables["PROCEDUREEVENTS_MV"].append([k, subject, stay, start, end, 225792])
        else:
            tables["PROCEDUREEVENTS_MV"].append([k, subject, stay, start, end, 225459])
    return tables


def write_mimic(folder, tables, packed=True):
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        path = folder / f"{name}.csv{'.gz' if packed else ''}"
        with gzip.open(path, "wt", newline="") if packed else path.open("w", newline="") as file:
            csv.writer(file).writerows([COLUMNS[name], *rows])


@pytest.mark.parametrize("packed", [True, False])
def test_mimic_is_read_from_the_files_of_its_publisher(packed, tmp_path):
    write_mimic(tmp_path / "mimic-iii", mimic_tables(), packed)
    study = mimic(tmp_path)
    assert study.X.shape == (39, 8)  # the one without sodium is left out
    column = dict(zip(MIMIC_RANGES, study.X.T, strict=True))
    assert column["heart_rate"] == pytest.approx(np.full(39, 80), abs=10)
    assert column["respiratory_rate"] == pytest.approx(np.full(39, 18), abs=4)
    assert column["sodium"] == pytest.approx(np.full(39, 140))
    assert column["age"].max() == 90  # shifted dates of birth
    assert set(column["male"]) == {0.0, 1.0}
    people = [k for k in range(40) if k != 2]
    np.testing.assert_array_equal(study.T, [float(k % 3 == 0) for k in people])
    np.testing.assert_allclose(study.Y, [4.0 + k % 3 for k in people])
    np.testing.assert_array_equal(mimic(tmp_path / "mimic-iii", seed=0).X, study.X)
    assert study.bounds.outcome == (1.0, 8.0)
    assert study.effects is None


def test_another_seed_looks_at_another_hour(tmp_path):
    write_mimic(tmp_path, mimic_tables())
    assert not np.array_equal(mimic(tmp_path, seed=0).X[:, 0], mimic(tmp_path, seed=1).X[:, 0])


def test_mimic_files_that_are_missing_or_different_are_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no file"):
        mimic(tmp_path)
    write_mimic(tmp_path, mimic_tables(5))
    (tmp_path / "PATIENTS.csv.gz").unlink()
    (tmp_path / "PATIENTS.csv").write_text("a,b\n1,secret\n")
    with pytest.raises(InvalidInput, match="check them") as caught:
        mimic(tmp_path)
    assert "secret" not in str(caught.value)


def write_tcga(path, genes=30, samples=60, seed=0, packed=False):
    rng = np.random.default_rng(seed)
    variances = np.linspace(0.05, 3, genes)
    values = 2 ** (6 + variances[:, None] * rng.standard_normal((genes, samples)))
    lines = ["\t".join(["gene_id", *(f"TCGA-OR-A5{j:02}-01A-11R" for j in range(samples))])]
    for j in range(genes):
        numbers = [f"{value:.4f}" for value in values[j]]
        if j == 3:
            numbers[5] = "NA"
        if j == 4:
            numbers[0] = "-0.5"
        lines.append("\t".join([f"G{j}|{1000 + j}", *numbers]))
    lines.append("\t".join(["G0|1000", *numbers]))  # a name that occurs twice
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(lines) + "\n"
    if packed:
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)


def test_tcga_is_read_from_the_pan_cancer_matrix(tmp_path):
    write_tcga(tmp_path / "tcga" / "EBPlusPlusAdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.tsv")
    study = tcga(tmp_path, genes=12)
    assert study.X.shape == (60, 12)
    variances = study.X.var(axis=0)
    assert np.all(np.diff(variances) <= 0)
    assert "G29|1029" in study.bounds.names
    assert "G1|1001" not in study.bounds.names
    assert study.X.min() >= TCGA_RANGE[0]
    np.testing.assert_array_equal(study.effects, np.ones(60))
    assert set(study.T) == {0.0, 1.0}
    np.testing.assert_array_equal(tcga(tmp_path, genes=12).Y, study.Y)
    assert not np.array_equal(tcga(tmp_path, genes=12, seed=1).Y, study.Y)
    assert "G3|1003" not in tcga(tmp_path, genes=29).bounds.names


def test_tcga_may_be_packed(tmp_path):
    write_tcga(tmp_path / "matrix.tsv.gz", packed=True)
    assert tcga(tmp_path / "matrix.tsv.gz", genes=10).n == 60


def test_tcga_files_that_are_different_are_refused(tmp_path):
    (tmp_path / "matrix.tsv").write_text("gene_id\tA\nG1\tsecret\n")
    with pytest.raises(InvalidInput, match="a gene in each row") as caught:
        tcga(tmp_path / "matrix.tsv")
    assert "secret" not in str(caught.value)
    write_tcga(tmp_path / "good.tsv")
    with pytest.raises(InvalidInput, match="genes must lie"):
        tcga(tmp_path / "good.tsv", genes=400)
