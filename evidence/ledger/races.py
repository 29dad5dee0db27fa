"""Threads and processes that race for the last unit of a budget."""

from __future__ import annotations

import multiprocessing
import threading
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from discreet import BudgetExceeded, Ledger
from discreet.ledger import Cost

UNIT = Cost(epsilon=1.0)
CAP = 3


@dataclass(frozen=True, slots=True)
class Races:
    """What came of all rounds."""

    rounds: int
    contenders: int
    one_winner: int
    refused: int
    worst: float
    """largest sum that was ever charged, as a share of the cap"""
    verified: bool
    seconds: float


def race(url: str, *, rounds: int, processes: int = 4, threads: int = 16) -> Races:
    """In every round all contenders start together, one unit is left, and each tries to reserve and charge it."""
    start = time.monotonic()
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(processes + 1), context.Queue()
    with closing(Ledger(url)) as ledger:
        workers = [
            context.Process(target=_contend, args=(url, rounds, threads, barrier, results)) for _ in range(processes)
        ]
        for worker in workers:
            worker.start()
        for number in range(rounds):
            name = f"round {number}"
            ledger.open(name, epsilon=CAP)
            for _ in range(CAP - 1):
                ledger.charge(ledger.reserve(name, UNIT))
            barrier.wait()
            barrier.wait()
        counts = [results.get() for _ in workers]
        for worker in workers:
            worker.join()
        totals = [ledger.account(f"round {number}").spent.epsilon for number in range(rounds)]
        wins = [sum(count["wins"][number] for count in counts) for number in range(rounds)]
        return Races(
            rounds=rounds,
            contenders=processes * threads,
            one_winner=wins.count(1),
            refused=sum(count["refused"] for count in counts),
            worst=max(totals) / CAP,
            verified=ledger.verify() == ledger.head,
            seconds=time.monotonic() - start,
        )


def _contend(url: str, rounds: int, threads: int, barrier: Any, results: Any) -> None:
    wins, refused = [0] * rounds, 0
    lock, gate = threading.Lock(), threading.Barrier(threads + 1)

    def contender(ledger: Ledger) -> None:
        nonlocal refused
        for number in range(rounds):
            gate.wait()
            try:
                ledger.charge(ledger.reserve(f"round {number}", UNIT))
                with lock:
                    wins[number] += 1
            except BudgetExceeded:
                with lock:
                    refused += 1
            gate.wait()

    with closing(Ledger(url)) as ledger:
        crowd = [threading.Thread(target=contender, args=(ledger,)) for _ in range(threads)]
        for each in crowd:
            each.start()
        for _ in range(rounds):
            barrier.wait()
            gate.wait()
            gate.wait()
            barrier.wait()
        for each in crowd:
            each.join()
    results.put({"wins": wins, "refused": refused})
