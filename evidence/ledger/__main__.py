"""Numbers behind the ledger: ``tests/with-postgres.sh python -m evidence.ledger`` writes docs/evidence/ledger.md.

Races for the last unit of a budget, requests that are killed, rows that are changed, and what a charge takes; in SQLite
and in PostgreSQL.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from evidence.cache import ROOT
from evidence.ledger.crashes import crash
from evidence.ledger.page import page
from evidence.ledger.races import race
from evidence.ledger.tampering import tamper
from evidence.ledger.timing import durations

PAGE = ROOT / "docs" / "evidence" / "ledger.md"
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
