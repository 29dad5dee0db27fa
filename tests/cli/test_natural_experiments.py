"""Commands of estimators that take a column more: it has to be named, and is read like the others."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from discreet import Bounds, load
from discreet.cli import app

PUBLIC = ["--outcome", "y", "--treatment", "t", "--bounds", "bounds.toml", "--epsilon", "4", "--delta", "1e-6"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    z, before = rng.integers(0, 2, 2_000), rng.uniform(0, 1, 2_000)
    t = np.where(rng.random(2_000) < 0.6, z, 0)
    frame = pd.DataFrame({"y": before + t + rng.uniform(0, 1, 2_000), "t": t, "offer": z, "old": before})
    frame.to_csv("study.csv", index=False)
    Bounds(outcome=(0, 3)).save("bounds.toml")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "column"), [("late", "--instrument=offer"), ("difference-in-differences", "--before=old")]
)
def test_a_command_takes_the_further_column_and_writes_a_release(here: Path, name: str, column: str) -> None:
    done = CliRunner().invoke(app, [name, "study.csv", *PUBLIC, column, "--propensity", "0.5", "--out", "it.json"])
    assert done.exit_code == 0, done.output
    # With real noise one interval in twenty would miss.
    low, high = load("it.json").interval(alpha=1e-6)
    assert low < 1.0 < high
    missing = CliRunner().invoke(app, [name, "study.csv", *PUBLIC])
    assert missing.exit_code == 2
    assert column.partition("=")[0] in missing.output
