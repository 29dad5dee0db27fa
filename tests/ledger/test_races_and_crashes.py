"""A little of what docs/evidence/ledger.md does at length: races, crashes and tampering."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from threading import Barrier

import numpy as np
import pytest

from discreet import Bounds, Budget, DifferenceInMeans, InvalidInput, Ledger, LedgerRefused
from discreet.ledger import Cost
from discreet.ledger import charging as ledger_fits
from evidence.ledger.crashes import crash
from evidence.ledger.page import page
from evidence.ledger.races import race
from evidence.ledger.tampering import tamper


def test_exactly_one_of_many_contenders_gets_the_last_unit(url):
    found = race(url, rounds=4, processes=2, threads=16)
    assert (found.one_winner, found.refused, found.worst, found.verified) == (4, 4 * 31, 1.0, True)


BOUNDS = Bounds(outcome=(0, 1), propensity=(0.1, 0.9))
Y, T = np.arange(80) % 3 / 2, np.arange(80) % 2


def fit_with(ledger, number, gate=None):
    """A fit with a reservation; ``gate`` holds it between its checks and its charge."""
    if gate is not None:
        gate.wait()
    return DifferenceInMeans(epsilon=1, delta=1e-6, bounds=BOUNDS).fit(Y, T, ledger=ledger, reservation=number)


@pytest.mark.parametrize("shared", [True, False], ids=["one ledger", "a ledger each"])
def test_of_five_threads_with_one_reservation_one_gets_its_release_and_the_others_a_refusal(url, shared):
    with closing(Ledger(url)) as ledger, ThreadPoolExecutor(5) as pool:
        ledger.open("icu", epsilon=100, delta=1e-3)
        others = [ledger if shared else Ledger(url) for _ in range(5)]
        for _ in range(8):
            number, start = ledger.reserve("icu", Cost.of(Budget(epsilon=1, delta=1e-6), one_gate=True)), Barrier(5)
            running = [pool.submit(fit_with, other, number, start) for other in others]
            refusals = [each.exception() for each in running if each.exception() is not None]
            assert [type(each) for each in refusals] == [InvalidInput] * 4
            assert all("reservation is already used" in str(each) for each in refusals)
            (won,) = (each.result() for each in running if each.exception() is None)
            assert ledger.request(number).state == "settled"
            assert ledger.release(number) == won.release_.to_dict()
        assert ledger.account("icu").requests == {"settled": 8}
        ledger.verify()
        for other in others if not shared else ():
            other.close()


def test_whoever_comes_second_to_a_charge_leaves_the_request_of_the_first_alone(url, monkeypatch):
    """The same without luck: the second fit is held until the first has charged, and gives up before it settles."""
    with closing(Ledger(url)) as ledger:
        ledger.open("icu", epsilon=100, delta=1e-3)
        number = ledger.reserve("icu", Cost.of(Budget(epsilon=1, delta=1e-6), one_gate=True))
        real, seen = Ledger.charge, []

        def charged_by_another(self, request):
            real(self, request)
            seen.append(ledger.request(request).state)
            real(self, request)

        monkeypatch.setattr(Ledger, "charge", charged_by_another)
        with pytest.raises(InvalidInput, match="reservation is already used"):
            fit_with(ledger, number)
        assert seen == ["charged"]
        assert ledger.request(number).state == "charged"


def test_a_fit_that_goes_wrong_after_its_own_charge_says_so(url, monkeypatch):
    with closing(Ledger(url)) as ledger:
        ledger.open("icu", epsilon=100, delta=1e-3)
        number = ledger.reserve("icu", Cost.of(Budget(epsilon=1, delta=1e-6), one_gate=True))
        purchase = ledger_fits._Purchase(ledger, number)
        with suppress(MemoryError), purchase.made():
            purchase.charge()
            raise MemoryError
        assert ledger.request(number).state == "failed"
        with pytest.raises(LedgerRefused):
            ledger.cancel(number)


@pytest.mark.skipif(sys.gettrace() is not None, reason="lines are counted by tracing, which a debugger has taken")
def test_whoever_is_killed_has_counted_as_spent_what_was_drawn(url, tmp_path):
    found = crash(url, tmp_path, lines=10, moments=3)
    assert (found.lines, found.moments) == (10, 3)
    assert found.verified >= 13
    assert found.drawn > 0
    assert found.drawn_uncounted == found.lost_lines == 0


def test_every_changed_removed_or_swapped_row_is_detected(url):
    found = tamper(url, requests=2)
    assert found.rows == 7
    assert found.detected == found.tried == 7 * 8 + 7 + 6
    assert found.refused_by_triggers == 14


def test_the_page_counts_what_is_not_as_it_should_be():
    kept = {"rounds": 9, "contenders": 256, "refused": 9, "worst": 1.0, "verified": True, "seconds": 1.0}
    counted = {"lines": 200, "moments": 9, "steps": 9, "drawn": 9, "drawn_uncounted": 0, "lost_lines": 0, "verified": 9}
    rows = {"rows": 1, "changed": 8, "removed": 1, "swapped": 0, "detected": 9, "refused_by_triggers": 2}
    good = {
        "races": {"SQLite": kept | {"one_winner": 9}},
        "crashes": {"SQLite": counted | {"states": {"charged": 1}}},
        "tampering": {"SQLite": rows},
        "timing": {"SQLite": {"charge": 1.0, "request": 2.0}},
    }
    bad = good | {"races": {"SQLite": kept | {"one_winner": 8}}, "tampering": {"SQLite": rows | {"detected": 8}}}
    for found, said in ((good, "3 of 3 as it should be"), (bad, "1 of 3 as it should be")):
        text = page({name: {"date": "2026-01-01", "seconds": 1, "found": part} for name, part in found.items()})
        assert said in text
        assert "| ε = 0.5, δ = 1e-06 | 4 |" in text
