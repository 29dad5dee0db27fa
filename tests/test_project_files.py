"""What people meet before the code: workflows, forms, hooks and targets fit together."""

import ast
import re
import sys
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
    always, extras = requirements()
    pinned = {plain(line) for line in (ROOT / "constraints.txt").read_text().split()}
    assert always.union(*extras.values()) <= pinned


def test_the_floor_of_coverage_is_95_lines_in_a_hundred() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]
    assert settings["report"]["fail_under"] >= 95
    assert settings["run"]["source_pkgs"] == ["discreet"]


def plain(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=;! ]", name)[0]).lower()


def requirements() -> tuple[set[str], dict[str, set[str]]]:
    """What is always installed, and what each extra adds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: {plain(each) for each in listed} for name, listed in project["optional-dependencies"].items()}
    return {plain(each) for each in project["dependencies"]}, extras


def test_messages_and_pages_name_extras_that_exist() -> None:
    _, extras = requirements()
    written = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    named = {
        extra
        for path in written
        for listed in re.findall(r"discreet\[([\w,]+)\]|pip install \"?\.\[([\w,]+)\]", path.read_text())
        for extra in ",".join(filter(None, listed)).split(",")
    }
    assert {"plots", "files", "papers", "serve", "spark", "postgresql", "ebm"} <= named <= set(extras)


def raised_for_an_extra() -> list[tuple[str, str]]:
    """Every sentence of a missing extra in the source, and where it stands."""
    return [
        (path.name, ast.unparse(node.args[0]))
        for path in (ROOT / "src").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "MissingExtra"
    ]


@pytest.mark.parametrize(("place", "sentence"), raised_for_an_extra())
def test_an_extra_holds_what_its_message_names(place: str, sentence: str) -> None:
    # Of several it is the last that is missing.
    extra = re.search(r"discreet\[(?:\w+,)*(\w+)\]", sentence)
    if extra is None:
        assert "discreet-evidence" in sentence
        return
    words = {plain(word) for word in re.findall(r"\w[\w-]*", sentence)}
    words |= {"interpret-core"} & {f"{word}-core" for word in words}
    held = requirements()[1][extra[1]]
    assert words & held or (extra[1], place) == ("files", "workbooks.py")


def test_every_import_is_always_installed_or_belongs_to_an_extra() -> None:
    always, extras = requirements()
    # What is imported under another name than it is installed by, and what comes with a package that is named.
    called = {
        "sklearn": "scikit-learn",
        "interpret": "interpret-core",
        "multipart": "python-multipart",
        "markdown_it": "markdown-it-py",
    }
    beside = {"starlette": "fastapi", "anyio": "fastapi", "pydantic": "fastapi", "py4j": "pyspark", "click": "typer"}
    beside |= {"markupsafe": "jinja2"}
    # A table that is given has brought its own library.
    known = always.union({"polars"}, *(extras[name] for name in extras.keys() - {"dev", "docs", "mutants"}))
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in {each.partition(".")[0] for each in names} - {"discreet", "evidence", *sys.stdlib_module_names}:
                assert plain(called.get(name, beside.get(name, name))) in known, (path.name, name)


def test_what_is_always_installed_is_imported_somewhere_or_said_to_be_needed_by_another() -> None:
    always, _ = requirements()
    text = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    imported = {plain(name) for name in re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)}
    assert always <= imported


def test_classifiers_name_the_versions_that_are_tested() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [each.rpartition(" ")[2] for each in project["classifiers"] if each.startswith("Programming Language")]
    (checks,) = WORKFLOWS
    assert named[1:] == read(checks)["jobs"]["tests"]["strategy"]["matrix"]["python"]
