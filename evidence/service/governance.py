"""Numbers behind the service's governance: ``python -m evidence.service.governance`` writes docs/evidence/governance.md.

A database of the first version, written by its own code, with 10,000 lines in its log, becomes one of this version; and
what the budget page says is left is asked of the ledger, over 1,000 random histories.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import closing
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import discreet
from discreet import Ledger
from discreet.ledger import Head
from discreet.serve.domain import datasets as catalogue
from discreet.serve.domain import jobs, users
from discreet.serve.domain.administration import verified
from discreet.serve.domain.requests import asked_of
from discreet.serve.domain.users import Identity
from discreet.serve.service import Service
from discreet.serve.settings import Settings
from discreet.serve.worker import work
from evidence.cache import ROOT
from evidence.service.histories import compare

PAGE = ROOT / "docs" / "evidence" / "governance.md"
# The last state of the first version, before Alembic kept its tables.
FIRST = "232a7f1"
HISTORIES, PARTS = 1_000, 20


def migrate(*, requests: int, lines: int) -> dict[str, Any]:
    """Write a database with the first version's own code, open it with this one's, and ask for everything again."""
    with tempfile.TemporaryDirectory() as made:
        folder, source = Path(made) / "data", Path(made) / "source"
        folder.mkdir()
        packed = subprocess.run(["git", "archive", FIRST, "src"], cwd=ROOT, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(source, filter="data")
        writer = [sys.executable, str(ROOT / "evidence" / "service" / "version_one.py"), str(folder)]
        counts = ["--requests", str(requests), "--lines", str(lines)]
        subprocess.run([*writer, *counts], env={"PYTHONPATH": str(source / "src")}, check=True)
        address = f"sqlite:///{folder}/service.db"
        with closing(Ledger(address)) as old:
            head, spent = old.verify(), old.account("clinic").spent
        started = time.monotonic()
        service = Service.of(Settings(database=address, data=str(folder), first_tick=1e-3))
        seconds = time.monotonic() - started
        try:
            return _asked_again(service, head) | {
                "lines": head.seq,
                "seconds": seconds,
                "spent_kept": service.ledger.account("clinic").spent.epsilon >= spent.epsilon,
            }
        finally:
            service.close()


def _asked_again(service: Service, head: Head) -> dict[str, Any]:
    scopes = users.ALLOWED["analyst"]
    analyst = Identity(person="analyst", name="analyst", role="analyst", scopes=scopes, token="", expires=float("inf"))
    dataset = catalogue.find(service.engine, analyst, "clinic")
    settled = [request for request in service.ledger.requests("clinic", state="settled") if request.release]
    free = 0
    for request in settled:
        plain = {name: value for name, value in request.about.items() if name != "job"}
        free += not jobs.submit(service, analyst, dataset, asked_of(plain))["charged"]
    waiting = jobs.claim(service)
    ended = None
    if waiting is not None:
        work(service, waiting)
        ended = service.ledger.request(int(waiting["reservation"])).state
    check = verified(service, str(head))
    return {"intact": check["intact"], "paid": len(settled), "free": free, "waiting_ended": ended}


def page(moved: dict[str, Any], agreed: dict[str, Any]) -> str:
    """The page in Markdown."""
    held = [
        moved["intact"] and moved["spent_kept"],
        moved["free"] == moved["paid"],
        moved["waiting_ended"] == "settled",
        agreed["left_admitted"] == agreed["questions"],
        agreed["more_refused"] == agreed["questions"],
        agreed["what_if_right"] == agreed["what_ifs"],
    ]
    words = ["met" if each else "**missed**" for each in held]
    return f"""# Governance of the service, measured

Written by `python -m evidence.service.governance` on {date.today()} with discreet {discreet.__version__}; do not edit. That one curator alone gets nothing loosened is tested deed by deed in `tests/serve/test_governance.py`.

| what | found | |
|---|---|---|
| a database of the first version, written by its own code, opens, its log of {moved["lines"]:,} lines verifies against the head that was kept before, and what was spent is spent | {"yes" if held[0] else "no"}, in {moved["seconds"]:.1f} s | {words[0]} |
| requests that were paid for before are answered again for free | {moved["free"]} of {moved["paid"]} | {words[1]} |
| a request that waited when the first version stopped is ended by this one | {moved["waiting_ended"]} | {words[2]} |
| what the budget page says is left is admitted by the ledger | {agreed["left_admitted"]:,} of {agreed["questions"]:,} | {words[3]} |
| 1 % more is refused | {agreed["more_refused"]:,} of {agreed["questions"]:,} | {words[4]} |
| what a request would leave is what it leaves | {agreed["what_if_right"]:,} of {agreed["what_ifs"]:,} | {words[5]} |

The budgets: {agreed["histories"]:,} random histories of {agreed["requests"]:,} admitted requests, caps with and without a delta under all three ways of adding up, one to three analysts with caps of their own, requests that wait, were given back, failed or were released; each analyst is asked about the δ that pages show, or another one. In {agreed["nothing_left"]:,} questions nothing was left: there the smallest request that the service takes, ε = 0.001, has to be refused.
"""


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a few of each; the page is printed and not written")
    given = parser.parse_args()
    moved = migrate(requests=3 if given.quick else 60, lines=60 if given.quick else 10_000)
    print(json.dumps(moved), flush=True)
    agreed: Counter[str] = Counter()
    for part in range(1 if given.quick else PARTS):
        agreed.update(compare(10 if given.quick else HISTORIES // PARTS, seed=part))
        print(json.dumps(agreed), flush=True)
        text = page(moved, agreed)
        # A page of fewer says so: whoever interrupts this keeps what was found by then.
        print(text) if given.quick else PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
