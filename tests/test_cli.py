"""The command line: it does what the library does, says refusals in one sentence, and never prints records."""

import json
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import discreet
from discreet.cli import app
from discreet.data.bounds import Bounds
from discreet.estimators import ate as ate_module
from discreet.releases.average import Release

BOUNDS = Bounds(outcome=(0, 10), covariates={"age": (0, 1), "sex": ["f", "m"]}, propensity=(0.1, 0.9))
ESTIMATE = ["--outcome", "days", "--treatment", "drug", "--bounds", "bounds.toml", "--epsilon", "5", "--delta", "1e-6"]


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


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def python(*arguments):
    """A fresh interpreter, wherever the test has gone to."""
    source = Path(discreet.__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": str(source)}
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=env)


def plain(text):
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|[│╭╮╰╯─]", " ", text).split())


def refused(result, sentence):
    """One sentence on standard error, nothing on standard output, exit code 2."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert sentence in result.stderr
    assert result.stderr.startswith("discreet: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["study.parquet", "study.csv"])
def test_an_effect_is_estimated_shown_and_saved_with_its_page(here, name):
    result = run("ate", name, *ESTIMATE, "--out", "release.json", "--report", "page.html")
    assert result.exit_code == 0
    release = Release.load("release.json")
    text = plain(result.stdout)
    for part in (
        release.text(release.estimate),
        release.interval_text(),
        "3,000",
        "epsilon = 5, delta = 1e-06",
        "proved",
    ):
        assert part in text
    assert "Effect of drug on days" in (here / "page.html").read_text()
    assert (release.guarantee.status, release.bounds) == ("proved", BOUNDS)


def test_a_subset_of_the_declared_covariates_can_be_chosen(here):
    assert run("ate", "study.parquet", *ESTIMATE, "--covariates", "sex", "--out", "release.json").exit_code == 0
    assert Release.load("release.json").bounds.names == ("sex",)


@pytest.mark.parametrize("propensity", ["0.5", "chance"])
def test_a_known_propensity_is_a_number_or_a_column(here, propensity):
    assert run("ate", "study.parquet", *ESTIMATE, "--propensity", propensity, "--out", "r.json").exit_code == 0
    assert Release.load("r.json").design == "known propensity"


def test_relation_and_level_can_be_chosen(here):
    result = run("ate", "study.parquet", *ESTIMATE, "--neighbours", "add-remove", "--alpha", "0.2")
    assert result.exit_code == 0
    assert "80 % interval" in result.stdout
    assert "add-remove" in result.stdout


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--epsilon", "-1"], "epsilon must be positive"),
        (["--alpha", "0"], "--alpha must lie between 0 and 1"),
        (["--outcome", "dayz"], "no column 'dayz'"),
        (["--covariates", "age,weight"], "--covariates names 'weight', which the bounds do not"),
        (["--bounds", "nothing.toml"], "There is no bounds file"),
        (["--out", "missing/release.json"], "name a file in a directory that exists"),
        (["--out", "study.csv"], "exists already"),
        (["--report", "."], "name a file in a directory that exists"),
        (["--propensity", "0.99"], "propensity"),
    ],
)
def test_refusals_are_one_sentence_and_exit_code_two(here, extra, sentence):
    refused(run("ate", "study.parquet", *ESTIMATE, *extra), sentence)


def test_a_missing_file_and_a_missing_delta_are_refused(here):
    refused(run("ate", "nothing.csv", *ESTIMATE), "There is no file")
    refused(run("ate", "study.csv", *ESTIMATE[:-2]), "delta")


def test_what_cannot_be_written_is_refused_before_anything_is_spent(here, monkeypatch):
    monkeypatch.setattr(ate_module.ATE, "fit_table", lambda *_, **__: pytest.fail("the budget was spent"))
    refused(run("ate", "study.csv", *ESTIMATE, "--out", "study.csv"), "exists already")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refused(run("ate", "study.csv", *ESTIMATE, "--report", "page.html"), "pip install 'discreet[plots]'")


def test_a_result_that_was_paid_for_is_shown_even_if_it_cannot_be_saved(here, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(Release, "save", full)
    result = run("ate", "study.csv", *ESTIMATE, "--out", "release.json")
    assert result.exit_code == 2
    assert "estimate" in result.stdout
    assert "'release.json' cannot be written" in result.stderr


def test_unexpected_errors_print_a_fixed_sentence_and_no_data(here, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("record 17 is 31337")

    monkeypatch.setattr(ate_module.ATE, "fit_table", fail)
    result = run("ate", "study.csv", *ESTIMATE)
    assert result.exit_code == 1
    assert "31337" not in result.output
    assert "something went wrong" in result.stderr
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    debugged = run("ate", "study.csv", *ESTIMATE)
    assert isinstance(debugged.exception, RuntimeError)


def test_no_traceback_reaches_the_terminal(here):
    script = (
        "from discreet import ate, cli\n"
        "def fail(*_, **__): raise RuntimeError('31337')\n"
        "ate.ATE.fit_table = fail\n"
        "cli.app()\n"
    )
    done = python("-c", script, "ate", "study.csv", *ESTIMATE)
    assert done.returncode == 1
    assert "31337" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_plan_gets_every_option_and_prints_its_summary(here, monkeypatch):
    asked = {}
    module = types.ModuleType("discreet.estimators.planning")

    def plan(kind, **options):
        asked.update(options, kind=kind)
        return types.SimpleNamespace(summary=lambda: "the width will be 0.3")

    module.plan = plan
    monkeypatch.setitem(sys.modules, "discreet.estimators.planning", module)
    result = run("plan", "ate", "--n", 5735, "--bounds", "bounds.toml", "--delta", "1e-6", "--width", "0.3")
    assert result.exit_code == 0
    assert result.stdout == "the width will be 0.3\n"
    assert (asked["kind"], asked["n"], asked["width"], asked["delta"]) == ("ate", 5735, 0.3, 1e-6)
    assert asked["bounds"] == BOUNDS
    assert asked["epsilon"] is None


def test_a_bounds_file_is_written_once(here):
    result = run("bounds", "init", "study.csv", "--out", "new.toml", "--outcome", "days", "--treatment", "drug")
    assert result.exit_code == 0
    text = (here / "new.toml").read_text()
    assert "[covariates.age]" in text
    assert "days" not in text
    (here / "new.toml").write_text("mine")
    refused(run("bounds", "init", "study.csv", "--out", "new.toml"), "exists already")
    assert (here / "new.toml").read_text() == "mine"


def test_a_page_is_written_from_a_release_file(here):
    run("ate", "study.parquet", *ESTIMATE, "--out", "release.json")
    result = run("report", "release.json", "--out", "page.html", "--title", "My <study>")
    assert result.exit_code == 0
    assert "My &lt;study&gt;" in (here / "page.html").read_text()


def test_files_that_are_no_release_are_refused(here):
    (here / "other.json").write_text(json.dumps({"format": "other"}))
    refused(run("report", "other.json", "--out", "page.html"), "holds no release of ATE, CATE or Uplift")
    refused(run("report", "nothing.json", "--out", "page.html"), "There is no release file")


def test_the_demonstration_runs_where_it_is_told_to(here, monkeypatch):
    from discreet import demo

    monkeypatch.setattr(demo.run, "__kwdefaults__", {**demo.run.__kwdefaults__, "n": 2_000})
    result = run("demo", "--out", "tour")
    assert result.exit_code == 0
    assert result.stdout.rstrip().endswith("demo.html")
    assert (here / "tour" / "demo.html").is_file()
    (here / "tour" / "thesis.tex").write_text("mine")
    refused(run("demo", "--out", "tour"), "holds other files already")


def test_release_texts_are_not_read_as_markup(here, monkeypatch):
    real = ate_module._notes
    monkeypatch.setattr(ate_module, "_notes", lambda *args: (*real(*args), "[bold]kept[/bold] [/nonsense]"))
    result = run("ate", "study.parquet", *ESTIMATE)
    assert result.exit_code == 0
    assert "[bold]kept[/bold]" in result.stdout


def test_version_and_help_are_there():
    assert run("--version").stdout == f"discreet {discreet.__version__}\n"
    text = plain(run("--help").stdout)
    for command in ("ate", "plan", "bounds", "report", "demo"):
        assert f" {command} " in text


def test_help_loads_no_heavy_library():
    script = (
        "import sys; from discreet.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'opendp', 'sklearn', 'scipy', 'matplotlib', 'jinja2'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    done = python("-c", script)
    assert done.stdout.rstrip().endswith("LOADED []")


def test_the_package_runs_as_a_module():
    done = python("-m", "discreet", "--version")
    assert done.stdout == f"discreet {discreet.__version__}\n"
