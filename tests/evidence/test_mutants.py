"""The table of the mutation tests fits the tree; the mutants themselves are run by ``make mutants``."""

from pathlib import Path

import pytest

from evidence.mutants.reasons import REASONS
from evidence.mutants.table import GROUPS, MODULES, Group

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.modules[0])
def test_modules_and_tests_of_a_group_exist(group: Group) -> None:
    assert all((ROOT / "src" / "discreet" / module).is_file() for module in group.modules)
    for test in group.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text()


def test_no_module_is_in_two_groups() -> None:
    assert len(MODULES) == sum(len(group.modules) for group in GROUPS)


def test_every_reason_is_about_a_function_that_still_exists() -> None:
    for module, function, change in REASONS:
        text = (ROOT / "src" / "discreet" / module).read_text()
        assert function == "(module)" or f"def {function.split('.')[-1]}(" in text, (module, function)
        assert " -> " in change


def test_every_reason_is_one_sentence() -> None:
    assert all(reason.endswith(".") and len(reason) > 20 for reason in REASONS.values())
