"""What the audit found, summed up from the table that the evidence command writes."""

from __future__ import annotations

import csv
from functools import lru_cache
from pathlib import Path
from typing import Any

from discreet.privacy.guarantee import AUDIT_VERSION

TABLE = Path(__file__).parent / "audit.csv"


@lru_cache(maxsize=1)
def summary() -> dict[str, Any]:
    """Claims that were refuted, and proved configurations in which no violation was found."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    whole = [row for row in rows if not row["round"]]
    attacks: dict[str, dict[str, Any]] = {}
    proved: dict[str, dict[str, Any]] = {}
    for row in whole:
        # A published claim is attacked under the attack's own name; a proved configuration has a name of its own.
        if row["attack"] != row["configuration"]:
            _add_proved(proved, row)
        elif row["violated"] == "True":
            _add_attack(attacks, row)
    for row in rows:
        if row["round"] and row["ratio"] and row["mechanism"] in proved:
            line = proved[row["mechanism"]]
            line["ratio"] = max(line["ratio"], float(row["ratio"]))
    kept = [line | {"configurations": len(line["configurations"])} for line in proved.values()]
    return {"version": AUDIT_VERSION, "refuted": list(attacks.values()), "proved": kept}


def _add_attack(attacks: dict[str, dict[str, Any]], row: dict[str, str]) -> None:
    line = attacks.setdefault(
        row["configuration"],
        {
            "mechanism": row["mechanism"],
            "attack": row["configuration"].replace("_", " "),
            "epsilon": float(row["epsilon"]),
            "delta": float(row["delta"]),
            "epsilon_lower": 0.0,
            "delta_lower": 0.0,
            "instruments": [],
        },
    )
    line["epsilon_lower"] = max(line["epsilon_lower"], float(row["epsilon_lower"] or 0.0))
    line["delta_lower"] = max(line["delta_lower"], float(row["delta_lower"] or 0.0))
    if row["instrument"] not in line["instruments"]:
        line["instruments"].append(row["instrument"])


def _add_proved(proved: dict[str, dict[str, Any]], row: dict[str, str]) -> None:
    line = proved.setdefault(
        row["mechanism"],
        {
            "mechanism": row["mechanism"],
            "configurations": set(),
            "runs": 0,
            "ratio": 0.0,
            "share": 0.0,
            "violated": False,
        },
    )
    line["configurations"].add(row["configuration"])
    line["runs"] += int(row["runs"] or 0)
    line["violated"] = line["violated"] or row["violated"] == "True"
    if row["instrument"] == "replay":
        line["share"] = max(line["share"], float(row["epsilon_lower"] or 0.0) / float(row["epsilon"]))
