"""The registry of estimators: what it says of each is true, and an entry is all that a new estimator needs."""

from dataclasses import replace
from typing import get_args

import pytest
import typer
from typer.testing import CliRunner

from discreet.cli import estimate
from discreet.estimators.registry import COVARIATES, REGISTRY, Planned
from discreet.releases.report import KINDS

COMMANDS = [entry for entry in REGISTRY.values() if entry.command]


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_every_class_can_be_loaded_and_takes_what_the_entry_offers(entry):
    parameters = set(entry.load()._get_param_names())
    # Covariates restrict the bounds, and a number of clusters is one way to say what segments there are.
    offered = {option.name for option in entry.options} - {COVARIATES.name, "clusters"}
    assert offered | set(entry.audited or {}) <= parameters
    assert entry.name == entry.name.strip()
    assert entry.help.endswith(".")


def test_only_what_can_be_planned_says_so():
    assert {entry.name for entry in REGISTRY.values() if entry.planned_as == entry.name} == set(get_args(Planned))
    assert all(entry.plan_note for entry in REGISTRY.values() if entry.planned_as not in (None, entry.name))


def test_what_answers_has_a_release_that_can_be_asked():
    asked = ("effect", "effect_interval", "effect_with_interval")
    answering = [kind.release for kind in KINDS if all(hasattr(kind.release, name) for name in asked)]
    assert len(answering) == sum(entry.answers for entry in COMMANDS)


def test_a_new_entry_becomes_a_command(monkeypatch):
    new = replace(REGISTRY["ate"], name="att", help="Estimate the effect on the treated.", samples=False, level=False)
    monkeypatch.setattr(estimate, "REGISTRY", {"att": new, "ate": REGISTRY["ate"]})
    app = typer.Typer()
    estimate.add_estimators(app)
    shown = CliRunner().invoke(app, ["att", "--help"], env={"COLUMNS": "200"}).stdout
    assert "Estimate the effect on the treated." in shown
    assert "--neighbours" in shown
    assert "--sample-by" not in shown
    assert "--alpha" not in shown
