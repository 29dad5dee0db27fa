"""The registry of estimators: what it says of each is true, and an entry is all that a new estimator needs."""

import ast
import subprocess
import sys
from dataclasses import replace
from typing import get_args

import pytest
import typer
from typer.testing import CliRunner

from discreet import estimators
from discreet.cli import estimate
from discreet.estimators.registry import COVARIATES, REGISTRY, Planned
from discreet.releases.report import KINDS
from tests.house import SOURCE

COMMANDS = [entry for entry in REGISTRY.values() if entry.command]


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_every_class_can_be_loaded_and_takes_what_the_entry_offers(entry):
    parameters = set(entry.load()._get_param_names())
    # Covariates restrict the bounds, and a number of clusters is one way to say what segments there are.
    offered = {option.name for option in entry.options} - {COVARIATES.name, "clusters"}
    assert offered | set(entry.audited or {}) <= parameters
    assert entry.name == entry.name.strip()
    assert entry.help.endswith(".")


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_a_request_may_choose_what_the_class_takes_and_must_give_what_the_class_needs(entry):
    kind = entry.load()
    # A number of clusters is one way to say what segments there are.
    assert {option.name for option in entry.asks} - {"clusters"} <= set(kind._get_param_names())
    if entry.asks:
        left_out = {name for name, each in kind._declared().items() if each.default is each.empty}
        given = {option.name for option in entry.asks if option.needed} | {"by"}
        assert left_out <= given | {"epsilon", "bounds"}
    assert all(option.label and option.help.endswith(".") for option in (*entry.asks, *entry.columns))


@pytest.mark.parametrize("entry", REGISTRY.values(), ids=REGISTRY)
def test_columns_of_an_entry_are_the_roles_of_its_class(entry):
    if not entry.name.startswith("papers."):
        roles = {role.name: role.needed for role in entry.load().roles}
        # Whether an outcome is there is nobody's column.
        assert {column.name: column.needed for column in entry.columns} == roles


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


def test_the_package_offers_the_registry_and_loads_it_on_first_use():
    script = "import sys, discreet.estimators as e; loaded = 'discreet.estimators.registry' in sys.modules; "
    script += "print(loaded, 'ate' in e.REGISTRY)"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "True"]
    with pytest.raises(AttributeError, match="NOTHING"):
        _ = estimators.NOTHING


def test_what_an_entry_says_of_samples_and_gates_is_what_its_class_says():
    for entry in REGISTRY.values():
        if not entry.name.startswith("papers."):
            assert (entry.samples, entry.one_gate) == (entry.load().samples, entry.load().one_gate)


# What was added since the registries are there; the first estimators are named where others build on them, and in the
# demonstration.
ADDED = ("att", "atc", "ato", "policy-value", "survival", "late", "difference-in-differences")


@pytest.mark.parametrize("name", ADDED)
def test_an_estimand_is_named_in_three_files_besides_its_own_and_is_no_longer_than_250_lines(name):
    module, _, class_name = REGISTRY[name].path.partition(":")
    own = SOURCE / f"{module.removeprefix('discreet.').replace('.', '/')}.py"
    assert len(own.read_text().splitlines()) <= 250
    found = set()
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        used |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
        written = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        if path != own and (class_name in used or {REGISTRY[name].path, class_name} & written):
            found.add(path.relative_to(SOURCE).as_posix())
    # One estimator may be made of another's rounds.
    others = {each for each in found if each.startswith("estimators/") and "registry" not in each}
    assert len(found - others) <= 3, found
    assert len(others) <= 1, others


def test_every_estimator_has_an_id_and_says_which_releases_answer_for_it():
    ids = {entry.load().method_id for entry in REGISTRY.values()}
    assert len(ids) == len(REGISTRY)
    for entry in COMMANDS:
        assert all(kind.format for kind in entry.load().release_types)
