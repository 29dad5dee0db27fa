"""The page of the ledger, in Markdown."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import discreet
from discreet import Budget
from discreet.ledger import Cost
from discreet.ledger.composition import Total, admits
from evidence.ledger.crashes import Crashes
from evidence.ledger.races import Races
from evidence.ledger.tampering import Tampering
from evidence.ledger.timing import Times

STAGES = ("races", "crashes", "tampering", "timing")


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
        *_races(races),
        *_crashes(crashes),
        *_tampering(tampered),
        *_costs(timed),
    ]
    return "\n".join(lines) + "\n"


def _races(races: dict[str, Races]) -> list[str]:
    return [
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
    ]


def _crashes(crashes: dict[str, Crashes]) -> list[str]:
    return [
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
    ]


def _tampering(tampered: dict[str, Tampering]) -> list[str]:
    return [
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
    ]


def _costs(timed: dict[str, Times]) -> list[str]:
    lines = [
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
    return lines
