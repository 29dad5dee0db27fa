"""The command line's audits."""

import json
import re

import pytest
from typer.testing import CliRunner

from discreet.cli import app

RUN = CliRunner()


def test_the_list_names_attacks_and_estimators():
    done = RUN.invoke(app, ["audit", "list"])
    assert done.exit_code == 0
    assert "dp_cate_forest" in done.output
    assert re.search(r"Estimators: ate, .*cate, .*papers\.DPCATE", done.output)


def test_an_estimator_is_audited_shown_and_written(tmp_path):
    out, page = tmp_path / "audit.json", tmp_path / "audit.html"
    asked = ["audit", "difference-in-means", "--epsilon", "1", "--trials", "20", "--neighbours", "add-remove"]
    done = RUN.invoke(app, [*asked, "--json", str(out), "--report", str(page)])
    assert done.exit_code == 0, done.output
    assert "no violation found" in done.output
    found = json.loads(out.read_text())
    assert (found["format"], found["neighbours"], found["violated"]) == ("discreet-audit", "add-remove", False)
    text = page.read_text()
    assert "DifferenceInMeans: no violation found." in text
    assert text.count("<svg") == 2
    assert "arms and ends of the outcome" in text


def test_an_attack_is_run_by_its_name(tmp_path):
    page = tmp_path / "audit.html"
    done = RUN.invoke(
        app,
        [
            "audit",
            "numpy.random.Generator.laplace",
            "--attack",
            "float_laplace",
            "--trials",
            "500",
            "--report",
            str(page),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "the claim is refuted" in done.output
    assert "The claim is refuted." in page.read_text()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["nonsense", "--epsilon", "1"], "there is no estimator 'nonsense'"),
        (["ate"], "--epsilon is needed"),
        (["ate", "--attack", "dp_cate_forest"], "is on papers.DPCATE, not on ate"),
        (["ate", "--attack", "nonsense"], "there is no attack"),
        (["papers.ADUM", "--epsilon", "1", "--delta", "1e-6"], "papers.ADUM has no delta"),
        (["uplift", "--epsilon", "1", "--trials", "1"], "trials must be"),
        (["uplift", "--epsilon", "1", "--trials", "-5"], "trials must be"),
        (["interpret.DPExplainableBoostingRegressor"], "choose --attack ebm_offset_target or"),
        (
            ["papers.DPCATE", "--attack", "dp_cate_forest", "--neighbours", "add-remove"],
            "--neighbours cannot be chosen",
        ),
        (["papers.DPCATE", "--attack", "dp_cate_forest", "--bounds", "x.toml"], "--bounds cannot be chosen"),
        (["papers.DPCATE", "--epsilon", "1", "--neighbours", "add-remove"], "knows replace-one only"),
        (["uplift", "--epsilon", "-1"], "epsilon must be"),
        (["uplift", "--epsilon", "1", "--json", "/nowhere/x.json"], "--json"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_sentence(asked, words):
    done = RUN.invoke(app, ["audit", *asked])
    assert done.exit_code == 2
    assert words in done.output
    assert done.output.count("\n") == 1


def test_the_estimators_that_the_command_knows_can_be_made():
    from discreet.cli.audit import _KNOWN, _made

    for name in _KNOWN:
        made = _made(name, 1.0, None, None, None, None)
        assert type(made).__name__.lower().startswith(name.split(".")[-1].replace("-", "").lower())


def test_what_is_left_out_is_the_claim_of_the_attack_or_what_gaussian_noise_needs():
    from discreet.cli.audit import _known, _made

    asked = _made("papers.DPCATE", 2.0, None, "dp_cate_forest", None, None)
    assert (asked.epsilon, asked.delta) == (2.0, 1e-5)
    asked = _made("papers.DPCATE", None, 1e-7, "dp_cate_forest", None, None)
    assert (asked.epsilon, asked.delta) == (1.0, 1e-7)
    assert _made("ate", 1.0, None, None, None, None).delta == 1e-6
    assert _made("uplift", 1.0, None, None, None, None).delta is None
    assert _known("ATE", None) == ("ate", None)
    assert _known("DifferenceInMeans", None) == ("difference-in-means", None)
    assert _known("numpy.random.Generator.laplace", None)[1] == "float_laplace"
