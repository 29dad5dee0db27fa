"""A study to run commands on."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from tests.cli.helpers import BOUNDS


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory with a study as Parquet and CSV, and its bounds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    rng = np.random.default_rng(0)
    age, drug = rng.random(3_000), rng.integers(0, 2, 3_000)
    table = pa.table(
        {
            "age": age,
            "sex": rng.choice(["f", "m"], 3_000),
            "drug": drug,
            "days": np.clip(4 + age - drug + rng.normal(size=3_000), 0, 10),
            "chance": np.full(3_000, 0.5),
        }
    )
    pq.write_table(table, "study.parquet")
    pcsv.write_csv(table, "study.csv")
    BOUNDS.save("bounds.toml")
    return tmp_path
