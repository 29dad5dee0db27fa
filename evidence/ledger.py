"""Numbers behind the ledger: ``tests/with-postgres.sh python -m evidence.ledger`` writes docs/evidence/ledger.md.

Races for the last unit of a budget, requests that are killed, rows that are changed, and what a charge takes; in SQLite
and in PostgreSQL.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import json
import os
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import discreet
from discreet import Budget, Ledger
from discreet.ledger import Cost
from discreet.ledger.composition import Total, admits
from evidence.ledger_crashes import Crashes, crash
from evidence.ledger_races import Races, race
from evidence.ledger_tampering import Tampering, tamper

PAGE = Path(__file__).parent.parent / "docs" / "evidence" / "ledger.md"
KEPT = PAGE.with_suffix(".json")


def addresses(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """An empty database of each kind."""
    yield "SQLite", f"sqlite:///{folder}/{name}.db"
    server = os.environ.get("DISCREET_TEST_POSTGRES")
    if server:
        import psycopg

        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {name}")
        yield "PostgreSQL", re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", rf"\1/{name}", server)


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of a charge, and of a whole request without its fit; medians."""

    charge: float
    request: float


def durations(url: str, requests: int) -> Times:
    """What a request takes when nobody else asks."""
    charges, wholes = [], []
    with closing(Ledger(url)) as ledger:
        ledger.open("timed", epsilon=float(requests))
        for _ in range(requests):
            start = time.perf_counter()
            number = ledger.reserve("timed", Cost(epsilon=1.0))
            before = time.perf_counter()
            ledger.charge(number)
            charges.append(time.perf_counter() - before)
            ledger.settle(number)
            wholes.append(time.perf_counter() - start)
    return Times(1e3 * median(charges), 1e3 * median(wholes))


def admitted(epsilon: float, delta: float) -> dict[str, int]:
    """How many equal requests fit under a cap of (2, 1e-5), by the way in which they add up."""
    cost, cap = Cost.of(Budget(epsilon=epsilon, delta=delta), one_gate=True), Budget(epsilon=2, delta=1e-5)
    found = {}
    for composition in ("plain", "either", "gaussian"):
        count = 0
        while admits(cap, composition, Total.of([cost] * (count + 1))):
            count += 1
        found[composition] = count
    return found


def page(found: dict[str, Any]) -> str:
    """The page in Markdown."""
    parts = {stage: found.get(stage, {"found": {}})["found"] for stage in STAGES}
    races = {name: Races(**values) for name, values in parts["races"].items()}
    crashes = {name: Crashes(**values) for name, values in parts["crashes"].items()}
    tampered = {name: Tampering(**values) for name, values in parts["tampering"].items()}
    timed = {name: Times(**values) for name, values in parts["timing"].items()}
    missing = [stage for stage in STAGES if stage not in found]
    seconds = sum(stage["seconds"] for stage in found.values())
    held = [
        *(r.one_winner == r.rounds and r.worst <= 1 and r.verified for r in races.values()),
        *(c.drawn_uncounted == c.lost_lines == 0 and c.lines + c.moments >= 200 for c in crashes.values()),
        *(t.detected == t.tried and t.refused_by_triggers == 2 * t.rows for t in tampered.values()),
    ]
    lines = [
        "# The ledger: races, crashes, tampering",
        "",
        f"Written by `tests/with-postgres.sh python -m evidence.ledger` on {max(stage['date'] for stage in found.values())} in {seconds} seconds; do not edit. Every number is also in `ledger.json`. "
        f"discreet {discreet.__version__}, Python {platform.python_version()}, SQLAlchemy {version('sqlalchemy')}. "
        "[The proof](../proofs/ledger.md) says what should come out.",
        "",
        f"{sum(held)} of {len(held)} as it should be." + (f" Not run yet: {', '.join(missing)}." if missing else ""),
        "",
        "## Races for the last unit",
        "",
        "In every round one unit of a budget is left, and all contenders try at the same moment to reserve and charge it, "
        "64 threads in 4 processes. Exactly one may succeed.",
        "",
        "| database | rounds | contenders | rounds with exactly one winner | refusals | most that was spent, of the cap | log verifies | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {r.rounds:,} | {r.contenders} | {r.one_winner:,} | {r.refused:,} | {r.worst:.0%} | {'yes' if r.verified else '**no**'} | {r.seconds:.0f} |"
            for name, r in races.items()
        ),
        "",
        "## Crashes",
        "",
        "A process makes one request, from the reservation over the fit with its noise to the settlement, and is ended by `kill -9`: at a line of "
        "discreet's code chosen by lot among all that a request runs through, or at a moment chosen by lot, which may be in the middle of a write. Every "
        "draw leaves a mark just before it. After each kill the ledger is opened anew: all earlier lines must be there, the chain must verify, and "
        "every request that left a mark must count as spent. (It is requests that are killed, not machines: PostgreSQL runs with `fsync = off` here.)",
        "",
        "| database | killed at a line | lines in a request | killed at a moment | had drawn | of these not counted as spent | logs that lost a line or do not verify | states that were left |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {c.lines} | {c.steps:,} | {c.moments} | {c.drawn} | {c.drawn_uncounted} | {c.lost_lines} | "
            f"{', '.join(f'{count} {state}' for state, count in sorted(c.states.items()))} |"
            for name, c in crashes.items()
        ),
        "",
        "## Tampering",
        "",
        "Every field of every row is changed, every row is removed, and neighbouring rows are swapped, one after the other, by somebody who has first "
        "switched the triggers off; `verify` with a head that was kept elsewhere must refuse each. (With triggers on, the database refuses.)",
        "",
        "| database | rows | fields changed | rows removed | rows swapped | detected | refused by triggers |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {name} | {t.rows} | {t.changed} | {t.removed} | {t.swapped} | {t.detected} of {t.tried} | {t.refused_by_triggers} of {2 * t.rows} |"
            for name, t in tampered.items()
        ),
        "",
        "## What it takes, and what it saves",
        "",
        "| database | a charge, ms | a request without its fit, ms |",
        "| --- | --- | --- |",
        *(f"| {name} | {t.charge:.1f} | {t.request:.1f} |" for name, t in timed.items()),
        "",
        "How many equal requests of `ATE`, `CATE` or `Uplift` fit under a cap of ε = 2, δ = 1e-5:",
        "",
        "| each | plain sums | either (default) | squares only |",
        "| --- | --- | --- | --- |",
    ]
    for epsilon, delta in ((0.5, 1e-6), (0.1, 1e-7), (0.05, 1e-8)):
        counts = admitted(epsilon, delta)
        lines.append(
            f"| ε = {epsilon:g}, δ = {delta:g} | {counts['plain']} | {counts['either']} | {counts['gaussian']} |"
        )
    return "\n".join(lines) + "\n"


STAGES: dict[str, Callable[[str, Path, bool], Any]] = {
    "races": lambda url, folder, quick: race(url, rounds=3 if quick else 1_000),
    "crashes": lambda url, folder, quick: crash(url, folder, lines=5 if quick else 120, moments=5 if quick else 100),
    "tampering": lambda url, folder, quick: tamper(url, requests=2 if quick else 20),
    "timing": lambda url, folder, quick: durations(url, 10 if quick else 300),
}


def main() -> None:
    """Run everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few of each, printed; proves nothing")
    parser.add_argument("--only", choices=STAGES, help="one stage; the others are taken from ledger.json")
    given = parser.parse_args()
    found: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() and not given.quick else {}
    with tempfile.TemporaryDirectory() as made:
        for stage in [given.only] if given.only else STAGES:
            start = time.monotonic()
            results = {}
            for name, url in addresses(Path(made), stage):
                results[name] = asdict(STAGES[stage](url, Path(made), given.quick))
                print(stage, name, results[name], flush=True)
            if KEPT.exists() and not given.quick:
                # Another stage may have run at the same time.
                found |= json.loads(KEPT.read_text())
            found[stage] = {"date": str(date.today()), "seconds": round(time.monotonic() - start), "found": results}
            if not given.quick:
                KEPT.write_text(json.dumps(found, indent=1) + "\n")
    text = page(found)
    print(text) if given.quick else PAGE.write_text(text)


if __name__ == "__main__":
    main()
