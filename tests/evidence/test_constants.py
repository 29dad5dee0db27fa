"""What is counted as a choice of somebody's, and that numbers say what they are."""

import textwrap

import pytest

from evidence import constants

LABELLED = [
    "estimators/_effect_allocation.py",
    "estimators/clustering.py",
    "estimators/measurements/cap.py",
    "estimators/planning/expected.py",
    "estimators/planning/plan.py",
    "estimators/registry/__init__.py",
    "estimators/uplift.py",
    "postprocessing/polynomials.py",
    "postprocessing/segment_intervals.py",
    "postprocessing/segment_means.py",
    "postprocessing/segment_smoothing.py",
    "releases/segments.py",
]


@pytest.fixture
def found(tmp_path):
    """Counts numbers of a module that is written down here: each with its kind."""

    def count(source):
        module = tmp_path / "module.py"
        module.write_text(textwrap.dedent(source))
        return [(each.value, each.kind) for each in constants.numbers(module)]

    return count


@pytest.mark.parametrize("module", LABELLED)
def test_every_number_says_what_kind_it_is(module):
    unlabelled = [
        f"{each.line}: {each.value:g}" for each in constants.numbers(constants.SOURCE / module) if not each.labelled
    ]
    assert not unlabelled


@pytest.mark.parametrize("module", LABELLED)
def test_every_choice_says_how_it_was_chosen(module):
    silent = [
        each
        for each in constants.numbers(constants.SOURCE / module)
        if each.kind == constants.CHOICE and "Chosen" not in each.comment
    ]
    assert not silent


def test_a_number_is_a_choice_unless_the_comment_above_says_otherwise(found):
    source = """
    # Numerical: of the whole paragraph.
    _STEPS = 60
    _LEAST, _MOST = 1e-9, 1e9
    # A number.
    _SHARE = 0.3
    # Whatever it is.
    # Unit: the last line that says a kind counts.
    _SCALE: float = 100.0

    _ONE = 1
    """
    kinds = [
        (60.0, "Numerical"),
        (1e-9, "Numerical"),
        (1e9, "Numerical"),
        (0.3, "Choice"),
        (100.0, "Unit"),
        (1.0, "Choice"),
    ]
    assert found(source) == kinds


def test_a_number_in_a_table_may_have_a_comment_of_its_own(found):
    source = """
    # Choice: a table. Chosen by hand.
    RULE = Rule(
        part=0.1,
        # Theory: a bound.
        most=4.0,
        name="a rule",
        even=True,
    )
    """
    assert found(source) == [(0.1, "Choice"), (4.0, "Theory")]


def test_numbers_inside_functions_count_but_for_plain_ones_and_places(found):
    source = '''
    def scaled(values, decay=0.7, alpha=0.05, *, power=1.5, offset=1.0):
        """Eleven (11.0) words."""
        rest = 0.5 * values[3] + 1.0 - 2 * values.reshape(4, 7)
        # Numerical: no division by zero.
        rest = rest / max(rest, -1e-9)
        return rest**3 if rest > 5 else np.clip(rest, -0.2, 1)

    class Rule:
        least: int = 12

        def wide(self):
            return self.least * 0.9
    '''
    choices = [0.7, 1.5, 3.0, 5.0, 0.2, 12.0, 0.9]
    counted = found(source)
    assert sorted(value for value, kind in counted if kind == constants.CHOICE) == sorted(choices)
    assert [value for value, kind in counted if kind == "Numerical"] == [1e-9]


def test_plain_operands_at_the_top_of_a_module_are_not_counted_but_plain_values_are(found):
    assert found("_GRID = 1.4 / 2.0 ** np.arange(3)\n_SD = 1.0\n_LAST = found[-1]\n") == [
        (1.4, "Choice"),
        (3.0, "Choice"),
        (1.0, "Choice"),
    ]


def test_the_command_prints_every_module_and_what_is_wanted(capsys):
    constants.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == list(constants.KINDS)
    counts = dict(constants.table())
    assert {line.split()[0] for line in lines if ".py" in line} == set(counts)
    (whole,) = [line.split() for line in lines if line.startswith("all ")]
    assert int(whole[1]) == sum(kinds[constants.CHOICE] for kinds in counts.values())
    assert any(line.split() == ["wanted", "at", "most", str(constants.AIM)] for line in lines)
