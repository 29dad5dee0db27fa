"""What the budget page says is left, against what the ledger admits, over random histories of requests."""

from __future__ import annotations

import random
import tempfile
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from discreet import Budget, Ledger
from discreet.exceptions import BudgetExceeded, LedgerRefused
from discreet.ledger import Account, Cost
from discreet.serve.domain import budgets
from discreet.serve.domain.requests import LEAST

ABOVE = 1.01


@dataclass(slots=True)
class Agreement:
    """How often page and ledger agree."""

    histories: int = 0
    requests: int = 0
    questions: int = 0
    nothing_left: int = 0
    left_admitted: int = 0
    more_refused: int = 0
    what_if_right: int = 0
    what_ifs: int = 0


def compare(histories: int, seed: int = 0) -> dict[str, Any]:
    """Ask the page and the ledger the same, for every analyst in each of so many histories."""
    found = Agreement()
    with tempfile.TemporaryDirectory() as folder, closing(Ledger(f"sqlite:///{Path(folder)}/budget.db")) as ledger:
        service: Any = SimpleNamespace(ledger=ledger, settings=SimpleNamespace(database=folder))
        for number in range(histories):
            _one(service, f"data-{number}", random.Random(f"{seed}-{number}"), found)
            found.histories += 1
    return asdict(found)


def _one(service: Any, name: str, draw: random.Random, found: Agreement) -> None:
    ledger: Ledger = service.ledger
    pure = draw.random() < 0.2
    cap = Budget(epsilon=10 ** draw.uniform(-0.5, 1.5), delta=None if pure else 10 ** draw.uniform(-9, -3))
    composition = "plain" if pure else draw.choice(("either", "either", "either", "gaussian", "plain"))
    people = [f"analyst-{k}" for k in range(draw.randint(1, 3))]
    quotas = {each: Budget(epsilon=cap.epsilon * draw.uniform(0.2, 1.2), delta=cap.delta) for each in people}
    ledger.open(name, epsilon=cap.epsilon, delta=cap.delta, composition=composition, analysts=quotas)
    for _ in range(draw.randint(0, 8)):
        with suppress(BudgetExceeded):
            number = ledger.reserve(name, _cost(draw, cap), analyst=draw.choice(people))
            found.requests += 1
            # As requests end: waiting, given back, failed, or released.
            fate = draw.random()
            if fate < 0.15:
                ledger.cancel(number)
            elif fate < 0.8:
                with suppress(BudgetExceeded, LedgerRefused):
                    ledger.charge(number)
                    ledger.fail(number) if fate < 0.3 else ledger.settle(number)
    for number, analyst in enumerate(people):
        # The delta that pages show, and any other that somebody may type.
        shown = cap.pure or number % 2 == 0
        _ask(service, name, analyst, budgets.shown_delta(cap) if shown else 10 ** draw.uniform(-10, -5), found)


def _cost(draw: random.Random, cap: Budget) -> Cost:
    epsilon = max(LEAST, cap.epsilon * 10 ** draw.uniform(-2.5, -0.2))
    delta = None if cap.pure or draw.random() < 0.2 else (cap.delta or 0.0) * 10 ** draw.uniform(-4, -0.5)
    return Cost.of(Budget(epsilon=epsilon, delta=delta), one_gate=draw.random() < 0.8)


def _ask(service: Any, name: str, analyst: str, delta: float | None, found: Agreement) -> None:
    ledger: Ledger = service.ledger
    account: Account = ledger.account(name)
    left = budgets.left_of(service, account, analyst, delta)
    found.questions += 1
    found.nothing_left += left == 0.0
    more = LEAST if left == 0.0 else left * ABOVE
    found.more_refused += not _admitted(ledger, name, analyst, more, delta)
    if left == 0.0:
        found.left_admitted += 1
        return
    # A part of what is left, so that the next question finds something.
    part = Cost.of(Budget(epsilon=max(LEAST, left / 3), delta=delta), one_gate=True)
    found.left_admitted += _admitted(ledger, name, analyst, left, delta)
    expected = account.after(part, analyst=analyst).largest(delta, analyst=analyst)
    ledger.charge(ledger.reserve(name, part, analyst=analyst))
    found.what_ifs += 1
    found.what_if_right += expected == ledger.account(name).largest(delta, analyst=analyst)


def _admitted(ledger: Ledger, name: str, analyst: str, epsilon: float, delta: float | None) -> bool:
    """Whether the ledger admits it; what it admitted is given back."""
    try:
        number = ledger.reserve(name, Cost.of(Budget(epsilon=epsilon, delta=delta), one_gate=True), analyst=analyst)
    except BudgetExceeded:
        return False
    ledger.cancel(number)
    return True
