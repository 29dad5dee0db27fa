"""Tables, for methods that hold all records in memory: the same as arrays."""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import Bounds, InvalidInput, Ledger, papers
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (0, 90), "sex": ["f", "m"]}, propensity=(0.2, 0.8))
NEEDED = {"epsilon": 2.0, "bounds": BOUNDS}
METHODS: dict[str, Any] = {
    "propensity": lambda: papers.PropensityIPTW(**NEEDED, delta=1e-5, xi=0.1, random_state=0),
    "S": lambda: papers.SLearner(**NEEDED, delta=1e-5, base="linear"),
    "T": lambda: papers.TLearner(**NEEDED, delta=1e-5, base="linear", random_state=0),
    "DR": lambda: papers.DRLearner(**NEEDED, delta=1e-5, base="linear", random_state=0),
    "R": lambda: papers.RLearner(**NEEDED, delta=1e-5, base="linear", random_state=0),
    "function": lambda: papers.DPCATEFunction(**NEEDED, delta=1e-5, calibration="proved", basis=9, random_state=0),
    "two models": lambda: papers.TwoModel(**NEEDED),
    "two logistic models": lambda: papers.TwoModel(**NEEDED, model="logistic"),
    "ADUM": lambda: papers.ADUM(**NEEDED, by={"age": 3}),
    "PrivATE": lambda: papers.PrivATE(**NEEDED, delta=1e-5, calibration="proved", split="private"),
}


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(4)
    table = {"age": rng.uniform(0, 90, 400), "sex": rng.choice(["f", "m"], 400), "t": rng.integers(0, 2, 400)}
    return pa.table(table | {"y": rng.integers(0, 2, 400)})


@pytest.mark.parametrize("method", METHODS)
def test_a_file_gives_what_its_columns_give_and_its_release_is_read_by_load(method, study, tmp_path):
    pq.write_table(study, tmp_path / "study.parquet")
    frame = study.to_pandas()
    with seeded_noise(1):
        arrays = METHODS[method]().fit(frame.y, frame.t, X=frame[["age", "sex"]])
    with seeded_noise(1):
        columns = {"outcome": "y", "treatment": "t", "covariates": ["age", "sex"]}
        table = METHODS[method]().fit_table(str(tmp_path / "study.parquet"), **columns)
    assert table.release_.to_dict() == arrays.release_.to_dict()
    table.release_.save(tmp_path / "release.json")
    assert discreet.load(tmp_path / "release.json").to_dict() == table.release_.to_dict()
    assert "Privacy" in table.summary()


def test_a_table_is_charged_to_a_ledger_and_answered_once_paid(study, tmp_path):
    ledger = Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.open("study", epsilon=10, delta=1e-3)
    columns = {"outcome": "y", "treatment": "t", "covariates": ["age", "sex"], "ledger": ledger, "dataset": "study"}
    first = METHODS["DR"]().fit_table(study, **columns)
    again = METHODS["DR"]().fit_table(study, **columns)
    assert again.release_.to_dict() == first.release_.to_dict()
    assert ledger.account("study").spent.epsilon == 2.0
    ledger.close()


def test_tables_that_cannot_be_divided_and_options_of_other_methods_are_refused(study):
    columns = {"outcome": "y", "treatment": "t", "covariates": ["age", "sex"]}
    with pytest.raises(InvalidInput, match="fit_table does not take unit="):
        METHODS["DR"]().fit_table(study, **columns, unit="t", max_rows=200)
    with pytest.raises(InvalidInput, match="unit is not for logistic models"):
        METHODS["two logistic models"]().fit_table(
            study.append_column("who", pa.array(range(400))), **columns, unit="who", max_rows=2
        )
    with warnings.catch_warnings(), pytest.raises(InvalidInput, match="epsilon"):
        papers.DRLearner(epsilon=-1, delta=1e-5, bounds=BOUNDS).fit_table("no such file", **columns)
