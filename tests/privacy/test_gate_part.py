"""A part of a gate's budget: the same noise, the same account, other names."""

import numpy as np
import pytest

from discreet import Bounds, InvalidInput
from discreet.data.in_memory import ArrayRecords
from discreet.exceptions import BudgetExceeded
from discreet.privacy.budget import Budget
from discreet.privacy.gate import Gate
from discreet.privacy.gate_part import GatePart
from discreet.privacy.query import Query
from discreet.privacy.sensitivity.sets import Interval
from discreet.testing import seeded_noise

N = 200


def gate(**given):
    rng = np.random.default_rng(0)
    records = ArrayRecords.of(rng.random(N), np.arange(N) % 2, None, bounds=Bounds(outcome=(0, 1)))
    return Gate(records, budget=Budget(epsilon=1.0, delta=1e-6), **given)


def treated(share, name="treated"):
    return Query(name, share, Interval(0, 1), lambda c: c.t)


def test_a_part_has_the_noise_of_its_part_of_the_budget():
    whole = gate()
    part = GatePart(whole, 0.25, "inner: ")
    assert part.mu == pytest.approx(whole.mu / 2.0)
    assert part.noise_sd(Interval(0, 1), 0.4) == whole.noise_sd(Interval(0, 1), 0.1)
    assert (part.n, part.bounds, part.most_rows, part.pure) == (whole.n, whole.bounds, 1, False)


def test_the_whole_gate_is_charged_under_the_name_of_the_part():
    whole = gate()
    first, second = GatePart(whole, 0.3, "inner: "), GatePart(whole, 0.7)
    with seeded_noise(0):
        first.ask(treated(0.5))
        second.ask(treated(1.0))
        first.ask(treated(0.5))
        assert whole.spent == pytest.approx(1.0)
        assert (first.spent, first.left, second.left) == (1.0, 0.0, 0.0)
    assert [event.name for event in whole.events] == ["inner: treated", "treated", "inner: treated"]
    assert first.events == whole.events
    spent = [event.mu**2 for event in whole.events]
    assert spent == pytest.approx([0.15 * whole.mu**2, 0.7 * whole.mu**2, 0.15 * whole.mu**2], rel=1e-6)
    assert first.guarantee("gate.md") == whole.guarantee("gate.md")


def test_no_part_spends_more_than_it_has_whatever_the_whole_has_left():
    part = GatePart(gate(), 0.3)
    with seeded_noise(0):
        part.ask(treated(0.8))
        with pytest.raises(BudgetExceeded, match="of a part of the budget"):
            part.ask(treated(0.3))
        assert part.spent == 0.8


def test_parts_together_cannot_spend_more_than_the_whole():
    whole = gate()
    with seeded_noise(0):
        GatePart(whole, 0.6).ask(treated(1.0))
        with pytest.raises(BudgetExceeded):
            GatePart(whole, 0.6).ask(treated(1.0))
    assert whole.spent == pytest.approx(0.6)


def test_what_was_prepared_is_recognised():
    whole = gate()
    part, question, passes = GatePart(whole, 0.5, "inner: "), treated(1.0), []
    whole._progress = passes.append
    part.prepare(question)
    read = sum(passes)
    with seeded_noise(0):
        (answer,) = part.ask(question)
    assert sum(passes) == read == N
    assert float(answer.value) == pytest.approx(N / 2, abs=5 * float(answer.sd))


def test_a_private_number_of_records_is_that_of_the_whole():
    whole = gate(neighbours="add-remove")
    with seeded_noise(0):
        count = whole.count(0.1)
    part = GatePart(whole, 0.5)
    assert part.counts_rows
    assert part.count(0.1) == part.n == count
    assert part.spent == 0.0


@pytest.mark.parametrize("part", [0.0, -0.1, 1.5])
def test_a_part_is_a_part(part):
    with pytest.raises(InvalidInput, match="part must lie"):
        GatePart(gate(), part)
