"""What people meet before the code: workflows, forms, hooks and targets fit together."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
YAML = [*WORKFLOWS, *(ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"), ROOT / ".pre-commit-config.yaml"]


def read(path: Path) -> Any:
    """A YAML file."""
    return yaml.safe_load(path.read_text())


def targets() -> set[str]:
    """What the Makefile can be asked for."""
    text = (ROOT / "Makefile").read_text()
    return set(re.findall(r"^([a-z][a-z-]*):.*## ", text, re.MULTILINE))


def commands() -> list[str]:
    """All commands that the workflows run."""
    jobs = [job for path in WORKFLOWS for job in read(path)["jobs"].values()]
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("path", YAML, ids=lambda path: path.name)
def test_a_yaml_file_can_be_read(path: Path) -> None:
    assert isinstance(read(path), dict)


def test_workflows_do_nothing_but_call_targets_of_the_makefile() -> None:
    called = [re.fullmatch(r"make ([a-z-]+) PYTHON=python", command) for command in commands()]
    assert all(called), commands()
    assert {match[1] for match in called if match} == {"lint", "test", "coverage", "docs", "build"} <= targets()


def test_the_tests_run_on_every_version_that_is_supported() -> None:
    (checks,) = WORKFLOWS
    versions = read(checks)["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={versions[0]}"


def test_workflows_may_only_read() -> None:
    assert all(read(path)["permissions"] == {"contents": "read"} for path in WORKFLOWS)


def test_every_target_is_phony_and_explained() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert set(phony[1].split()) == targets()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_an_issue_form_has_what_the_host_demands(path: Path) -> None:
    form = read(path)
    assert {"name", "description", "body"} <= form.keys()
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["attributes"]["label"] for field in fields)
    ids = [field["id"] for field in fields]
    assert len(ids) == len(set(ids)) > 0


def test_the_forms_are_the_four_that_the_guide_names_and_privacy_points_to_a_private_channel() -> None:
    assert [path.stem for path in FORMS] == ["backend", "bug", "estimand", "privacy"]
    for name in ("bug", "privacy"):
        assert "SECURITY.md" in (ROOT / ".github" / "ISSUE_TEMPLATE" / f"{name}.yml").read_text()


def test_hooks_use_the_projects_own_environment() -> None:
    repos = read(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook for repo in repos for hook in repo["hooks"]]
    assert [repo["repo"] for repo in repos] == ["local"]
    assert {"ruff-check", "ruff-format", "mypy", "end-of-file-fixer", "check-yaml", "check-toml"} <= {
        hook["id"] for hook in hooks
    }
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)


def test_every_package_of_the_extras_is_pinned() -> None:
    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=;! ]", name)[0]).lower()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(each for extra in project["optional-dependencies"].values() for each in extra),
    ]
    pinned = {plain(line) for line in (ROOT / "constraints.txt").read_text().split()}
    assert {plain(each) for each in wanted} <= pinned


def test_the_floor_of_coverage_is_95_lines_in_a_hundred() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert settings["report"]["fail_under"] >= 95
    assert settings["run"]["source_pkgs"] == ["discreet"]
