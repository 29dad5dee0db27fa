"""Bugs written into the privacy core, one at a time: the tests that are named beside each must fail.

A mutant is a text replaced in one function, whose code is exchanged for as long as its tests run. A text that is not
there exactly once is an error: whoever changes the function says here how it would go wrong now.
"""

import inspect
import textwrap
from collections.abc import Callable
from contextlib import closing
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest

from discreet import Ledger
from discreet.data import expressions as formulas
from discreet.data import in_memory
from discreet.data import sampling as samples
from discreet.data.backends import base, scan, sql
from discreet.data.views import capped, coded, viewed, within
from discreet.estimators.arms import scores as arm_scores
from discreet.estimators.measurements import coded_features, effect_function, level, score
from discreet.estimators.measurements.estimand import EVERYONE
from discreet.estimators.natural_experiments import views
from discreet.estimators.survival import seen as survival
from discreet.ledger import charging as fits
from discreet.ledger import composition as costs
from discreet.ledger import state as book
from discreet.papers import TLearner
from discreet.papers.common import sample_splitting
from discreet.papers.meta_learners import stages as learners_stages
from discreet.postprocessing import tails
from discreet.privacy import gate, gate_within, noise, query
from discreet.privacy.compiled import products
from discreet.privacy.sensitivity import fixed_point as lattice
from discreet.privacy.sensitivity import moments as arm_moments
from discreet.privacy.sensitivity import sets as geometry
from discreet.privacy.sensitivity.sets import Ball, Interval
from evidence.planted import _patched
from tests.data import test_further, test_views
from tests.data.backends import test_group_by
from tests.estimators import test_arms
from tests.estimators.measurements import test_cap, test_effect_function, test_level, test_score
from tests.estimators.natural_experiments import test_late
from tests.ledger import test_costs, test_fits, test_ledger, test_races_and_crashes
from tests.privacy import (
    test_arms_replay,
    test_compiled,
    test_gate,
    test_learners_replay,
    test_missing_replay,
    test_policy_replay,
    test_private_ci_replay,
    test_samples_replay,
    test_survival_replay,
    test_units,
)


class Mutant(NamedTuple):
    """A function, the text that is replaced in it, and tests that must notice."""

    function: Any
    old: str
    new: str
    tests: tuple[Callable[[Any], None], ...]


def with_patch(test: Callable[[Any], None]) -> Callable[[Any], None]:
    """A test that needs ``monkeypatch``."""

    def run(_: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            test(patch)

    return run


def with_ledger(test: Callable[[Any], None]) -> Callable[[Any], None]:
    """A test that needs an empty ``ledger``."""

    def run(path: Any) -> None:
        with closing(Ledger(address(path))) as ledger:
            test(ledger)

    return run


def address(path: Any) -> str:
    """Where an empty ledger is kept."""
    return f"sqlite:///{path}/{len(list(path.iterdir()))}.db"


def second_comer(path: Any) -> None:
    """A fit that comes second with a reservation."""
    with pytest.MonkeyPatch.context() as patch:
        test = test_races_and_crashes.test_whoever_comes_second_to_a_charge_leaves_the_request_of_the_first_alone
        test(address(path), patch)


def fitting_scores(_: Any) -> None:
    """Scores of both arms and any sign stay in their range."""
    rows = [(y, t, 0.5, -y) for y in (-1.0, 1.0) for t in (0.0, 1.0)]
    test_score.check_scores(rows, (0.1, 0.9), 0.5, 3.0, 0.0)


def filling_scores(_: Any) -> None:
    """And reach both of its ends."""
    test_score.check_scores_fill_their_range((0.1, 0.9), 0.5, 3.0)


def filling_moments(_: Any) -> None:
    """Moments of an effect stay in their ball, and reach its edge."""
    test_effect_function.check_rows_fill_their_ball("R")


def clipped_moments(_: Any) -> None:
    """Both arms are clipped at one residual."""
    test_effect_function.check_residuals_are_clipped_alike_in_both_arms("DR")


CHARGED = """
        account.events += tuple(events)
        account.shares += shares
        account.seeded = account.seeded or drawing_is_seeded()"""
DRAWN = """
        noisy = [_drawn(exact, grid, scale, self.pure) for (grid, scale), exact in zip(plans, sums, strict=True)]"""

MUTANTS = {
    "half of the stated noise is drawn": Mutant(
        gate._drawn,
        "return discrete_gaussian(exact, scale)",
        "return discrete_gaussian(exact, scale / 2)",
        (lambda _: test_gate.test_drawn_noise_has_the_stated_spread(Ball(1.0, test_gate.DRAWS), test_gate.BUDGET, 2),),
    ),
    "the scale is half of what the diameter needs": Mutant(
        lattice.plan_noise.__wrapped__,
        "math.nextafter(diameter / spendable, math.inf)",
        "math.nextafter(diameter / spendable / 2, math.inf)",
        (lambda _: test_gate.test_stated_noise_follows_from_diameter_and_share(),),
    ),
    "the diameter of add-remove serves replace-one": Mutant(
        geometry.Ball.grid,
        '(2 if neighbours == "replace-one" else 1)',
        "1",
        (lambda _: test_gate.test_stated_noise_follows_from_diameter_and_share(),),
    ),
    "who is in a region counts as public": Mutant(
        within.RecordsWithin.unit.fget,  # type: ignore[attr-defined]
        "each_of(self.source.unit)",
        "self.source.unit",
        (lambda _: test_policy_replay.check_leaving_is_covered(Interval(5.0, 6.0), "replace-one"),),
    ),
    "whether a record is observed depends on others": Mutant(
        within.Observed.among,
        "chunk.more[PRESENT] > 0.0",
        "chunk.more[PRESENT] >= chunk.more[PRESENT].min()",
        (lambda _: test_missing_replay.test_a_record_is_observed_or_not_whoever_else_is(),),
    ),
    "a region is answered from what was prepared for all records": Mutant(
        gate_within.gate_within,
        "RecordsWithin(gate._records, region), {}",
        "RecordsWithin(gate._records, region), gate._prepared",
        (lambda _: test_policy_replay.test_what_was_prepared_for_all_records_is_no_answer_for_a_region(),),
    ),
    "vectors are not clipped to their ball": Mutant(
        lattice.into_ball,
        "if squares.max() > edge * edge:",
        "if False:",
        (lambda _: test_gate.test_without_noise_the_gate_gives_plain_sums_of_clipped_records("replace-one"),),
    ),
    "NaN is let through": Mutant(
        geometry.Interval.grid,
        "np.fmin(np.fmax(floats(values), self.low), self.high)",
        "np.clip(floats(values), self.low, self.high)",
        (lambda _: test_gate.test_one_nan_counts_as_the_low_end_of_an_interval("replace-one"),),
    ),
    "a unit counts as one row": Mutant(
        lattice._times,
        "rows * diameter",
        "diameter",
        (
            lambda _: test_units.test_the_stated_distance_is_reached_and_that_of_single_rows_would_not_do(
                Interval(0.0, 1.0), 7
            ),
        ),
    ),
    "questions about rows have the noise of those about units": Mutant(
        gate.Gate._plan,
        "unit is not None and of_units",
        "unit is not None",
        (
            lambda _: test_units.test_a_unit_moves_the_first_rounds_of_an_estimator_no_further_than_stated(
                "means", "replace-one"
            ),
        ),
    ),
    "chunks divide units": Mutant(
        in_memory._edges,
        'edges.append(int(ends[np.searchsorted(ends, edges[-1] + CHUNK_ROWS, side="right") - 1]))',
        "edges.append(min(edges[-1] + CHUNK_ROWS, len(units)))",
        (lambda _: test_units.check_units_are_whole(),),
    ),
    "a unit with many rows is not held to its set": Mutant(
        query.rows_of,
        "return unit_sums(query.name, np.asarray(values), chunk.u)",
        "return values",
        (
            lambda _: test_units.check_units_are_whole(),
            lambda _: test_units.test_the_distance_of_sums_over_units_is_reached_and_is_that_of_one_contribution(),
        ),
    ),
    "compiled loops let records out of the ball": Mutant(
        products.Products.put,
        "_Grid(radius, edge / radius, edge, safe)",
        "_Grid(radius, edge / radius, 2.0 * edge, safe)",
        (lambda _: test_compiled.check_loops_that_were_asked_for(),),
    ),
    "codes are looked up beyond the end of a table": Mutant(
        coded_features._Coded.__init__,
        "found.size and np.any(found.max(axis=1) >= counts)",
        "False",
        (lambda _: test_compiled.test_a_code_that_no_table_has_is_refused(),),
    ),
    "outcomes kept with codes lose digits": Mutant(
        coded._short,
        "short if np.array_equal(short, values) else values",
        "short",
        (lambda _: test_compiled.check_codes_keep_numbers(),),
    ),
    "a unit counts as one row in a sample": Mutant(
        samples.each_of,
        'Unit("record", 1) if unit is None else unit',
        'Unit("record", 1)',
        (
            lambda _: test_samples_replay.test_a_gate_on_a_sample_knows_how_many_rows_a_unit_has("removed"),
            lambda _: test_samples_replay.test_a_gate_on_a_sample_knows_how_many_rows_a_unit_has("replaced"),
        ),
    ),
    "a sample is answered from what was prepared for all records": Mutant(
        gate.Gate.sampled,
        "records, {}, records.unit is not None",
        "records, self._prepared, records.unit is not None",
        (
            lambda _: (
                test_samples_replay.test_a_gate_on_a_sample_does_not_answer_from_what_was_prepared_for_all_records()
            ),
        ),
    ),
    "a gate on capped outcomes has a budget of its own": Mutant(
        gate.Gate.viewed,
        "gate = copy(self)",
        "gate = Gate(self._records, budget=self.budget, neighbours=self.neighbours)",
        (lambda _: test_cap.test_a_capped_gate_spends_from_the_same_budget(),),
    ),
    "capped outcomes are answered from what was prepared before": Mutant(
        gate.Gate.viewed,
        "ViewedRecords(self._records, view), {}",
        "ViewedRecords(self._records, view), self._prepared",
        (lambda _: test_cap.test_a_capped_gate_does_not_answer_from_what_was_prepared_before(),),
    ),
    "outcomes beyond the cap are not capped": Mutant(
        capped.Capped.__call__,
        "np.where(chunk.y >= self.at, 1.0, below)",
        "below + np.maximum(chunk.y - self.at, 0.0)",
        (lambda _: test_cap.test_what_a_missing_outcome_counts_as_is_capped_too(),),
    ),
    "an engine counts by the arms that records had before they were seen otherwise": Mutant(
        viewed.ViewedRecords.group_sums,
        "None if formulas or not self.view.keeps_arms else",
        "None if formulas else",
        (lambda _: test_views.test_an_engine_counts_only_what_a_view_leaves_as_it_is(),),
    ),
    "an engine adds up records whose further columns nobody looked at": Mutant(
        base.TableRecords.group_sums,
        "            or self.columns.further\n",
        "",
        (lambda folder: test_further.test_every_source_hands_over_the_same_numbers(folder),),
    ),
    "a further column is no part of the checksum of a pass": Mutant(
        scan._checksum,
        "*others, *chunk.more.values()",
        "*others",
        (lambda _: test_further.test_a_pass_notices_that_a_further_column_changed(),),
    ),
    "rows of a unit lose their further columns": Mutant(
        in_memory._taken,
        "(each, taken(values)) for each, values in held.more",
        "(each, values) for each, values in held.more",
        (lambda _: test_further.test_rows_of_a_unit_keep_further_columns(),),
    ),
    "the range of a remainder stays that of the outcome": Mutant(
        views.Remainder.bounds,
        "(low - max(self.guess, 0.0), high - min(self.guess, 0.0))",
        "(low, high)",
        (lambda _: test_late.test_views_are_what_they_say_they_are(),),
    ),
    "prepared sums are taken whatever their grid": Mutant(
        gate.Gate._known_sums,
        "each is not None and each.grid_bits == grid.grid_bits",
        "each is not None",
        (lambda _: test_gate.test_sums_that_were_prepared_on_another_grid_are_taken_anew(),),
    ),
    "the lattice's slack is ignored": Mutant(
        lattice._least_scale,
        "math.sqrt(grid.numbers / (24 * SLACK * share)) if aside else 0.0",
        "0.0",
        (lambda _: test_gate.test_lattices_of_all_releases_add_up_to_no_more_than_calibration_sets_aside(10**9, 20.0),),
    ),
    "shares may add up to more than the budget": Mutant(
        gate.Gate._allot,
        "if asked > left + ROUNDING or left <= 0:",
        "if left <= 0:",
        (lambda _: test_gate.test_shares_add_up_and_cannot_be_overspent(),),
    ),
    "a gate charges after it has drawn": Mutant(
        gate.Gate.ask,
        CHARGED + DRAWN,
        DRAWN + CHARGED,
        (with_patch(test_gate.test_the_budget_is_charged_before_the_first_draw),),
    ),
    "noise is drawn before the ledger is charged": Mutant(
        noise.discrete_gaussian,
        "charge_first()",
        "pass",
        (
            with_ledger(
                lambda ledger: with_patch(
                    lambda patch: test_fits.test_a_refused_charge_draws_nothing_and_a_refused_reservation_reads_nothing(
                        ledger, patch
                    )
                )(None)
            ),
        ),
    ),
    "halves share a record": Mutant(
        sample_splitting.SampleSplit.by_order.__func__,  # type: ignore[attr-defined]
        "slice(middle, None)",
        "slice(middle - 1, None)",
        (
            lambda _: test_private_ci_replay.test_halves_by_order_share_no_record_and_lose_none(40),
            lambda _: test_private_ci_replay.test_the_records_where_the_halves_meet_move_the_rounds_of_one_half_only(
                test_private_ci_replay.N // 2 - 1, {"split": "private"}, test_private_ci_replay.RECORDS[0]
            ),
        ),
    ),
    "parts of learners share a record": Mutant(
        learners_stages.partition,
        "own = places[start : start + count]",
        "own = places[max(start - 1, 0) : start + count]",
        (
            lambda _: test_learners_replay.test_parts_share_no_record_and_lose_none((0.5, 0.5), True),
            with_patch(
                lambda patch: test_learners_replay.test_a_replaced_record_moves_the_rounds_of_its_own_part_only(
                    TLearner, "logistic", patch
                )
            ),
        ),
    ),
    "what exceeds the cap is admitted": Mutant(
        costs.admits,
        "total.epsilon <= epsilon * _DIGITS",
        "total.epsilon >= epsilon * _DIGITS",
        (lambda _: test_costs.test_a_pure_cap_admits_pure_requests_up_to_their_sum(),),
    ),
    "what was charged can be cancelled": Mutant(
        book.Book._cancel,
        'self._found(entry, "reserved")',
        'self.request(entry.body["request"])',
        (with_ledger(test_ledger.test_a_reservation_counts_until_it_is_cancelled_and_a_charge_counts_for_ever),),
    ),
    "who comes second fails the request of the first": Mutant(
        fits._Purchase.give_up,
        "if self._charged:",
        'if self._ledger.request(self._request).state != "reserved":',
        (second_comer,),
    ),
    "the ends of rounded numbers are halved": Mutant(
        formulas.ends,
        "float(np.rint(known[0][0])), float(np.rint(known[0][1]))",
        "float(np.rint(known[0][0] / 2)), float(np.rint(known[0][1] / 2))",
        (lambda _: test_group_by.test_ends_of_a_rounded_number_are_whole_so_that_no_clip_is_left_out_too_early(),),
    ),
    "scores of controls are forgotten in their range": Mutant(
        tails.Strata.ends,
        "-np.maximum(low * treated, high * control), np.maximum(high * treated, low * control)",
        "-low * treated, high * treated",
        (lambda _: test_score.check_ends_are_attained((0.1, 0.9), 1.0, 5.0), fitting_scores, filling_scores),
    ),
    "scores of controls are as wide as those of the treated": Mutant(
        tails.Strata.ends,
        "1.0 if self.high >= 0.5 else self.high / (1.0 - self.high)",
        "1.0",
        (lambda _: test_score.check_ends_are_attained((0.1, 0.3), 1.0, 5.0),),
    ),
    "the range of the score is that of its narrower arm": Mutant(
        tails.Strata.ends,
        "-np.maximum(low * treated, high * control), np.maximum(high * treated, low * control)",
        "-np.minimum(low * treated, high * control), np.minimum(high * treated, low * control)",
        (lambda _: test_score.check_ends_are_attained((0.1, 0.9), 1.0, 5.0), fitting_scores, filling_scores),
    ),
    "half of the score's range is taken for all of it": Mutant(
        score.ScoreRounds.question,
        "(top - bottom) / 2.0",
        "(top - bottom) / 4.0",
        (fitting_scores, filling_scores),
    ),
    "half of the level's window is taken for all of it": Mutant(
        level.LevelRounds.queries,
        "(bottom + top) / 2.0, (top - bottom) / 2.0",
        "(bottom + top) / 2.0, (top - bottom) / 4.0",
        (lambda _: test_level.check_rows_fill_their_sets(EVERYONE, (0.1, 0.9), 0.4),),
    ),
    "the level's window forgets what residuals add": Mutant(
        vars(level.LevelRounds)["window"].fget,
        "most * self.clip.high",
        "most * self.clip.high / 4.0",
        (
            lambda _: test_level.test_levels_are_those_of_the_proof_and_none_is_cut_off(
                EVERYONE, (0.02, 0.2), 0.1, tails.Clip(100.0, 100.0, 0.0, 0.0)
            ),
        ),
    ),
    "half of the excess's ball is taken for all of it": Mutant(
        score.ScoreRounds.choose_clip,
        "radius = far / 2.0",
        "radius = far / 4.0",
        (
            lambda _: test_score.check_excesses([(0.0, 1.0, 0.5, 0.0)], (0.2, 0.8), 0.0, 4, 1e-3),
            lambda _: test_score.check_excess_fills_its_ball(),
        ),
    ),
    "half of the ball of an effect's moments is taken for all of it": Mutant(
        effect_function._ask,
        "Ball(arms.clip * selection.radius, selection.m)",
        "Ball(arms.clip * selection.radius / 2.0, selection.m)",
        (filling_moments,),
    ),
    "residuals of an effect's moments are not clipped": Mutant(
        effect_function._ask,
        "np.clip(function.residual(c, e), -most, most)",
        "function.residual(c, e)",
        (lambda _: test_effect_function.check_residuals_are_clipped_alike_in_both_arms("R"), clipped_moments),
    ),
    "an effect's moments are clipped by the residual alone": Mutant(
        effect_function._ask,
        "most = arms.clip / _reach(e, w)",
        "most = arms.clip",
        (filling_moments, clipped_moments),
    ),
    "an effect's moments forget the weight of records": Mutant(
        effect_function._ask,
        "product = w * (c.t - e)",
        "product = (c.t - e)",
        (lambda _: test_effect_function.check_rows_fill_their_ball("DR"),),
    ),
    "a time counts from that of the record beside it": Mutant(
        survival.Seen.__call__,
        "time = (chunk.y + 1.0) / (self.horizon + 1.0)",
        "time = (chunk.y - chunk.y.min()) / (self.horizon + 1.0)",
        (lambda _: test_survival_replay.check_a_record_is_seen_alike_whatever_stands_beside_it(),),
    ),
    "the cell of a time counts who is beside it": Mutant(
        survival.TimeCells.__call__,
        "cell + chunk.t * (2 * k + 1)",
        "cell + chunk.t.max() * (2 * k + 1)",
        (lambda _: test_survival_replay.check_a_record_is_seen_alike_whatever_stands_beside_it(),),
    ),
    "a view's numbers leave their range": Mutant(
        survival.Seen.__call__,
        "np.fmin(np.fmax(y, -1.0), 1.0)",
        "1.5 * y",
        (lambda _: test_survival_replay.check_a_record_is_seen_alike_whatever_stands_beside_it(),),
    ),
    "the other half of a vector's products is forgotten in their noise": Mutant(
        arm_moments.VectorMoments.grid,
        "np.where(first == second, 1.0, math.sqrt(2.0))",
        "np.where(first == second, 1.0, 3.0)",
        (lambda _: test_arms_replay.test_no_direction_leads_further_than_stated(),),
    ),
    "numbers of one arm are taken to be all that can be apart": Mutant(
        arm_moments.arm_diameter,
        "np.maximum(across, within)",
        "within",
        (lambda _: test_arms_replay.test_no_direction_leads_further_than_stated(),),
    ),
    "a number beyond its end counts in full": Mutant(
        arm_moments.ArmMoments.grid,
        "np.clip(s, -self.low, self.high)",
        "s",
        (lambda _: test_arms_replay.test_no_direction_leads_further_than_stated(),),
    ),
    "an offset that is added again was taken away in part": Mutant(
        arm_scores.DesignScore.residuals,
        "np.clip(self.prognosis(c), *self.limits) + self.offsets[c.t.astype(np.intp)]",
        "np.clip(self.prognosis(c) + self.offsets[c.t.astype(np.intp)], *self.limits)",
        (lambda _: test_arms.test_offsets_are_taken_away_and_added_again_wherever_a_prognosis_is_held(5.0),),
    ),
    "an engine rounds halves up": Mutant(
        sql.Sql.rint,
        'f"(({value} + {self.constant(_ROUNDER)}) - {self.constant(_ROUNDER)})"',
        'f"floor({value} + {self.constant(0.5)})"',
        (
            lambda _: test_group_by.test_exact_halves_become_the_even_neighbour_on_either_side_of_zero(
                test_group_by.opener("duckdb")
            ),
        ),
    ),
}


def mutated(mutant: Mutant) -> CodeType:
    """The function's code with the text replaced."""
    function: FunctionType = mutant.function
    lines, first = inspect.getsourcelines(function)
    text, module = "".join(lines), inspect.getsource(inspect.getmodule(function))
    assert text.count(mutant.old) == 1, (
        f"{function.__qualname__} has {mutant.old!r} {text.count(mutant.old)} times, not once: write the mutant anew"
    )
    every = module.splitlines(keepends=True)
    changed = text.replace(mutant.old, mutant.new)
    whole = "".join([*every[: first - 1], changed, *every[first - 1 + len(lines) :]])
    (found,) = codes(compile(whole, function.__code__.co_filename, "exec"), function)
    return found


def codes(code: CodeType, function: FunctionType) -> list[CodeType]:
    """The function's code among all that is inside a module's."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    here = (function.__qualname__, function.__code__.co_firstlineno)
    own = [each for each in inner if (each.co_qualname, each.co_firstlineno) == here]
    return own + [found for each in inner for found in codes(each, function)]


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed_by_every_test_that_is_named_beside_it(name, tmp_path):
    mutant = MUTANTS[name]
    code = mutated(mutant)
    for test in mutant.tests:
        test(tmp_path)
        with _patched((mutant.function, "__code__", code)), pytest.raises((Exception, pytest.fail.Exception)):
            test(tmp_path)


def test_a_text_that_is_not_there_once_is_an_error():
    for old in ("no such text", "exact"):
        with pytest.raises(AssertionError, match=textwrap.shorten(old, 20)):
            mutated(Mutant(gate._drawn, old, "", ()))
