"""The command for times to an event."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet import Bounds, SurvivalRelease
from discreet.datasets import survival_trial
from tests.cli.helpers import plain, refused, run

ASKED = ["survival", "trial.parquet", "--outcome", "days", "--event", "died", "--treatment", "drug"]
ASKED += ["--bounds", "bounds.toml", "--epsilon", "2"]


@pytest.fixture
def trial(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study = survival_trial(n=1_500, seed=2)
    table = {"days": study.time, "died": study.event.astype(np.int64), "drug": study.T.astype(np.int64)}
    pq.write_table(pa.table(table), "trial.parquet")
    Bounds(outcome=(0, 730), propensity=(0.1, 0.9)).save("bounds.toml")


@pytest.mark.usefixtures("trial")
def test_an_effect_on_a_time_is_estimated_shown_and_saved_with_its_page(tmp_path):
    more = ["--delta", "1e-6", "--horizon", "365", "--times", "100,200", "--out", "r.json", "--report", "page.html"]
    result = run(*ASKED, *more, "--measure", "risk")
    assert result.exit_code == 0
    release = SurvivalRelease.load("r.json")
    assert (release.times, release.measure, release.guarantee.status) == ((100.0, 200.0, 365.0), "risk", "proved")
    text = plain(result.stdout)
    assert release.interval_text() in text
    assert "without the event at 365, treated" in text
    assert "Effect of drug on the time to days" in (tmp_path / "page.html").read_text()


@pytest.mark.usefixtures("trial")
@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--delta", "1e-6"], "horizon must be a time above zero and up to 730"),
        (["--delta", "1e-6", "--horizon", "900"], "horizon must be a time above zero and up to 730"),
        (["--horizon", "365"], "SurvivalEffect needs delta"),
        (["--delta", "1e-6", "--horizon", "365", "--times", "a,b"], "--times takes numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(more, sentence):
    refused(run(*ASKED, *more), sentence)
