"""Which tests are meant to protect which modules of the privacy core.

Few and fast: every mutant of a module is run against these alone, and a survivor is a gap in them. A file or a single
test, as pytest names it. None may start threads while it is imported, as polars does when it is first used: the process
that has imported them is forked.
"""

from __future__ import annotations

from typing import NamedTuple


class Group(NamedTuple):
    """Modules that the same tests protect; their tests are imported and measured once."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


_LEARNERS = "tests/privacy/test_learners_replay.py"
_SAMPLES = "tests/privacy/test_samples_replay.py"
_BASE = "tests/data/backends/test_base.py"
_CAPS = "tests/estimators/measurements/test_cap.py"

GROUPS = (
    Group(
        ("privacy/accountant.py", "privacy/budget.py", "privacy/loss_distributions.py"),
        (
            "tests/privacy/test_accountant.py",
            "tests/privacy/test_conversions.py",
            "tests/privacy/test_budget.py",
            "tests/privacy/test_accounting_values.py",
        ),
    ),
    Group(
        (
            "privacy/gate.py",
            "privacy/query.py",
            "privacy/sensitivity/fixed_point.py",
            "privacy/sensitivity/sets.py",
            "privacy/sensitivity/table.py",
        ),
        (
            "tests/privacy/test_gate.py",
            "tests/privacy/test_geometries.py",
            "tests/privacy/test_units.py",
            "tests/privacy/test_gate_values.py",
            _CAPS,
            f"{_SAMPLES}::test_a_gate_on_a_sample_knows_how_many_rows_a_unit_has",
            f"{_SAMPLES}::test_a_gate_on_a_sample_does_not_answer_from_what_was_prepared_for_all_records",
            f"{_SAMPLES}::test_recorded_sums_name_the_samples_count_first",
        ),
    ),
    Group(
        ("ledger/state.py", "ledger/composition.py", "ledger/charging.py", "ledger/account.py"),
        (
            "tests/ledger/test_ledger.py",
            "tests/ledger/test_costs.py",
            "tests/ledger/test_fits.py",
            "tests/ledger/test_kept_keys.py",
            "tests/ledger/test_admission_values.py",
        ),
    ),
    Group(
        ("privacy/noise.py",),
        ("tests/privacy/test_noise.py", "tests/privacy/test_drawn_noise.py", "tests/privacy/test_noise_values.py"),
    ),
    Group(("privacy/guarantee.py",), ("tests/privacy/test_guarantee.py", "tests/privacy/test_guarantee_values.py")),
    Group(
        (
            "data/records.py",
            "data/in_memory.py",
            "data/columns.py",
            "data/sampling.py",
            "data/views/capped.py",
            "data/views/coded.py",
            "data/views/within.py",
            "privacy/gate_within.py",
        ),
        (
            "tests/privacy/test_compiled.py",
            "tests/data/test_records.py",
            "tests/data/test_columns.py",
            "tests/data/test_split_by_hash.py",
            "tests/privacy/test_record_values.py",
            "tests/privacy/test_units.py",
            "tests/privacy/test_policy_replay.py",
            _CAPS,
            f"{_SAMPLES}::test_a_gate_on_a_sample_knows_how_many_rows_a_unit_has",
            f"{_SAMPLES}::test_a_replaced_record_moves_no_sum_of_a_sample_further_than_stated",
            f"{_SAMPLES}::test_leaving_a_sample_is_covered_too",
            f"{_BASE}::test_a_sample_is_the_same_whether_it_is_kept_or_looked_for_in_every_pass",
            f"{_BASE}::test_a_sample_of_no_rows_adds_up_to_zeros",
        ),
    ),
    Group(
        (
            "data/expressions.py",
            "data/backends/cells.py",
            "data/backends/group_by.py",
            "data/backends/sql.py",
            "data/backends/scan.py",
            "data/backends/base.py",
        ),
        (
            "tests/data/test_expressions.py",
            "tests/data/test_filters.py",
            "tests/data/backends/test_group_by.py",
            "tests/data/backends/test_duckdb_and_polars.py",
            "tests/data/backends/test_strict_engine.py",
            "tests/data/backends/test_base.py",
            "tests/data/backends/test_scan.py",
            "tests/data/backends/test_files.py",
            "tests/privacy/test_backend_values.py",
        ),
    ),
    Group(
        ("papers/meta_learners/stages.py", "papers/common/sample_splitting.py"),
        (
            f"{_LEARNERS}::test_parts_share_no_record_and_lose_none",
            f"{_LEARNERS}::test_the_rounds_are_those_of_the_proof_with_the_shares_that_it_states",
            f"{_LEARNERS}::test_parts_compose_in_parallel_and_no_part_spends_more_than_the_budget",
            "tests/privacy/test_private_ci_replay.py",
            "tests/privacy/test_split_values.py",
            "tests/papers/meta_learners/test_base_learner.py",
            "tests/papers/meta_learners/test_estimators.py",
            "tests/papers/private_ate/test_estimator.py",
            "tests/data/test_split_by_hash.py",
        ),
    ),
)

MODULES = {module: group for group in GROUPS for module in group.modules}
