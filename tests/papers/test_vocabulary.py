"""One vocabulary over all five papers: every class that fits a table answers the same words, or says why not."""

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet import Bounds, InvalidInput, papers
from discreet.cli import app
from discreet.estimators._results import Fitted
from discreet.papers.commands import METHODS as COMMANDS
from discreet.papers.common.claims import UnprovedClaim
from discreet.testing import seeded_noise

BOUNDS = Bounds(outcome=(0, 1), covariates={"age": (0, 90), "sex": ["f", "m"]}, propensity=(0.2, 0.8))
GIVEN: dict[str, dict[str, Any]] = {
    "ADUM": {"by": {"age": 3}},
    "DPCATE": {"delta": 1e-5, "stage2": "linear"},
    "DPCATEFunction": {"delta": 1e-5, "calibration": "proved"},
    "DRLearner": {"delta": 1e-5, "base": "linear"},
    "PrivATE": {"delta": 1e-5, "calibration": "proved", "split": "private"},
    "PropensityIPTW": {"delta": 1e-5, "xi": 0.1},
    "RLearner": {"delta": 1e-5, "base": "linear"},
    "SLearner": {"delta": 1e-5, "base": "linear"},
    "TLearner": {"delta": 1e-5, "base": "linear"},
    "TwoModel": {},
    "XLearner": {"delta": 1e-5, "base": "linear"},
}
# It takes queries beside the records, which no table has, and a learner's base says what its guarantee rests on.
WITHOUT_TABLE = {"DPCATE"}
WITHOUT_WORD = {"DPCATE", "DRLearner", "RLearner", "SLearner", "TLearner", "XLearner"}
WITH_INTERVAL = {"PrivATE"}
QUERIES = np.array([[30.0, "f"], [60.0, "m"]], dtype=object)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    rng = np.random.default_rng(4)
    table = {"age": rng.uniform(0, 90, 400), "sex": rng.choice(["f", "m"], 400), "t": rng.integers(0, 2, 400)}
    file = tmp_path_factory.mktemp("study") / "study.parquet"
    pq.write_table(pa.table(table | {"y": rng.integers(0, 2, 400)}), file)
    return file


def made(name, **given):
    return getattr(papers, name)(epsilon=4.0, bounds=BOUNDS, **(GIVEN[name] | given))


@pytest.fixture(scope="module")
def fitted(study):
    """Every method, fitted once."""
    frame = pq.read_table(study).to_pandas()
    found = {}
    with warnings.catch_warnings(), seeded_noise(0):
        warnings.simplefilter("ignore", UnprovedClaim)
        for name in GIVEN:
            further = {"queries": QUERIES} if name == "DPCATE" else {}
            found[name] = made(name).fit(frame.y, frame.t, X=frame[["age", "sex"]], **further)
    return found


def test_every_class_of_a_paper_that_fits_records_is_walked_over():
    fitting = {
        name
        for name in papers.__all__
        if inspect.isclass(kind := getattr(papers, name))
        and hasattr(kind, "fit")
        and "bounds" in inspect.signature(kind).parameters
    }
    assert fitting == set(GIVEN)


@pytest.mark.parametrize("name", GIVEN)
def test_a_method_has_a_release_a_guarantee_and_a_summary(name, fitted, tmp_path):
    model = fitted[name]
    release = model.release_
    assert model.guarantee_ == release.guarantee
    assert "Privacy" in model.summary()
    assert isinstance(model, Fitted) or {"release_", "guarantee_", "summary"} <= set(dir(model))
    release.save(tmp_path / "release.json")
    assert discreet.load(tmp_path / "release.json").to_dict() == release.to_dict()


@pytest.mark.parametrize("name", GIVEN)
def test_a_guarantee_lists_what_is_public(name, fitted):
    public = " ".join(fitted[name].guarantee_.public)
    assert "bounds" in public
    # With replace-one neighbours the number of records is public, too.
    assert re.search("numbers? .*of records", public)
    if fitted[name].guarantee_.epsilon is not None:
        assert fitted[name].guarantee_.epsilon <= 4.0


@pytest.mark.parametrize("name", GIVEN)
def test_a_method_fits_a_table_or_is_known_not_to(name, study):
    assert hasattr(getattr(papers, name), "fit_table") is (name not in WITHOUT_TABLE)
    if name in WITHOUT_TABLE:
        return
    with warnings.catch_warnings(), seeded_noise(1):
        warnings.simplefilter("ignore", UnprovedClaim)
        columns = {"outcome": "y", "treatment": "t", "covariates": ["age", "sex"]}
        assert made(name).fit_table(str(study), **columns).release_


@pytest.mark.parametrize("name", GIVEN)
def test_one_word_says_what_a_guarantee_rests_on(name):
    signature = inspect.signature(getattr(papers, name)).parameters
    if name in WITHOUT_WORD:
        assert "calibration" not in signature
        return
    statuses = {}
    for word in ("published", "proved"):
        model = made(name, calibration=word)
        assert model.get_params()["calibration"] == word
        statuses[word] = model
    with pytest.raises(InvalidInput, match="calibration"):
        made(name, calibration="perhaps").fit([0, 1] * 20, [0, 1] * 20, X=[[30.0, "f"]] * 40)


@pytest.mark.parametrize("name", GIVEN)
def test_an_average_has_an_interval_or_a_sentence_why_not(name, fitted):
    model = fitted[name]
    if name in WITH_INTERVAL:
        low, high = model.ate_interval(alpha=0.1)
        assert low <= model.ate_ <= high
        return
    with pytest.raises(InvalidInput, match=rf"ate_interval: {name} has none, because .* discreet.ATE") as caught:
        model.ate_interval(alpha=0.1)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", GIVEN)
def test_a_method_draws_itself(name, fitted):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    model = fitted[name]
    ax = Figure().subplots()
    along = "feature" in inspect.signature(model.plot).parameters
    assert (model.plot("age", ax=ax) if along else model.plot(ax=ax)) is ax
    assert ax.has_data() or ax.child_axes
    if along:
        assert model.plot("sex", ax=Figure().subplots()).has_data()
        with pytest.raises(DiscreetErrorOrKey):
            model.plot("weight", ax=Figure().subplots())
    if name in WITH_INTERVAL:
        return  # releases of averages are drawn by discreet.plots
    own = Figure().subplots()
    assert (model.release_.plot("age", ax=own) if along else model.release_.plot(ax=own)) is own


DiscreetErrorOrKey = (discreet.exceptions.DiscreetError, KeyError)


def test_an_effect_is_drawn_along_one_covariate_with_the_others_in_the_middle(fitted):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    model = fitted["TwoModel"]
    line = model.plot("age", ax=Figure().subplots()).lines[0]
    ages, heights = line.get_data()
    assert (ages[0], ages[-1], len(ages)) == (0.0, 90.0, 101)
    assert heights[50] == pytest.approx(model.effect(np.array([[45.0, "f"]], dtype=object))[0])
    levels = model.plot("sex", ax=Figure().subplots()).lines[0].get_data()[1]
    wanted = model.effect(np.array([[45.0, "f"], [45.0, "m"]], dtype=object))
    assert levels == pytest.approx(wanted)
    with pytest.raises(InvalidInput, match="feature must be one of age, sex"):
        model.plot(7)


def test_the_command_knows_every_method_that_fits_a_table():
    assert {method.name for method in COMMANDS.values()} == set(GIVEN) - WITHOUT_TABLE
    shown = CliRunner().invoke(app, ["paper", "--help"]).output
    assert "calibration" in shown


def test_the_page_on_published_methods_names_all_of_them():
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "run-a-published-method.md").read_text()
    assert all(name in text for name in GIVEN)
