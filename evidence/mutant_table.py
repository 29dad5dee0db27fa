"""Which tests are meant to protect which modules of the privacy core.

Few and fast: every mutant of a module is run against these alone, and a survivor is a gap in them.
"""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Modules that the same tests protect; their tests are imported and measured once."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = (
    Group(
        ("privacy/accountant.py", "privacy/conversions.py", "privacy/budget.py"),
        (
            "tests/test_accounting.py",
            "tests/test_conversions.py",
            "tests/test_budget.py",
            "tests/privacy/test_accounting_values.py",
        ),
    ),
    Group(
        (
            "privacy/gate.py",
            "privacy/query.py",
            "privacy/calibration.py",
            "privacy/events.py",
            "privacy/sensitivity/fixed_point.py",
            "privacy/sensitivity/sets.py",
            "privacy/sensitivity/table.py",
        ),
        (
            "tests/test_gate.py",
            "tests/privacy/test_geometries.py",
            "tests/privacy/test_units.py",
        ),
    ),
    Group(
        ("ledger/state.py", "ledger/composition.py", "ledger/charging.py", "ledger/account.py"),
        (
            "tests/ledger/test_ledger.py",
            "tests/ledger/test_costs.py",
            "tests/ledger/test_fits.py",
        ),
    ),
    Group(("privacy/noise.py",), ("tests/test_noise.py", "tests/privacy/test_drawn_noise.py")),
    Group(("privacy/guarantee.py",), ("tests/test_guarantee.py",)),
    Group(
        ("data/records.py", "data/columns.py", "data/sampling.py"),
        ("tests/test_records.py", "tests/test_columns.py", "tests/test_splits.py", "tests/test_samples.py"),
    ),
    Group(
        (
            "data/expressions.py",
            "data/backends/group_by.py",
            "data/backends/sql.py",
            "data/backends/scan.py",
            "data/backends/base.py",
        ),
        ("tests/test_formulas.py", "tests/test_engine_values.py", "tests/test_engine_ways.py"),
    ),
    Group(
        ("papers/meta_learners/stages.py", "papers/common/sample_splitting.py"),
        ("tests/privacy/test_learners_replay.py", "tests/privacy/test_private_ci_replay.py"),
    ),
)

MODULES = {module: group for group in GROUPS for module in group.modules}
