"""Numbers behind the curator's service: ``python -m evidence.service`` writes docs/evidence/service.md.

Load on two server processes, requests that schemathesis makes up, the time of refusals with and without records behind
them, pages, a queue that survives ``kill -9``, workers that are ended or killed at random points of their work, one
analyst who asks a great deal beside a colleague, a soak, and the journey of a newcomer in Chromium, whose screenshots
it keeps. ``--only soak --minutes 240`` goes on for hours.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from datetime import date
from typing import Any

from evidence.cache import ROOT
from evidence.service import operating
from evidence.service.measures import MEASURES
from evidence.service.page import page

PAGE = ROOT / "docs" / "evidence" / "service.md"
KEPT = ROOT / ".evidence-cache" / "service.json"


def main() -> None:
    """Measure, and write the page; one measurement can be made again while the others are kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a short run; the page is printed and not written")
    parser.add_argument("--only", choices=list(MEASURES), help="make this measurement again, and keep the others")
    parser.add_argument("--minutes", type=float, help="with --only soak: for so long, instead of 100,000 requests")
    given = parser.parse_args()
    operating.MINUTES = given.minutes
    found: dict[str, Any] = json.loads(KEPT.read_text()) if given.only and KEPT.exists() else {}
    for name, measure in MEASURES.items():
        if given.only in (None, name):
            started, busy = time.monotonic(), os.getloadavg()[0]
            made = measure(given.quick)
            # As it will be read back.
            found[name] = json.loads(json.dumps({"found": made, "busy": busy, "on": str(date.today())}))
            print(f"{name} ({time.monotonic() - started:.0f} s, load {busy:.1f} before): {made}", flush=True)
            if not given.quick:
                KEPT.parent.mkdir(parents=True, exist_ok=True)
                KEPT.write_text(json.dumps(found))
    if found.keys() == MEASURES.keys():
        text = page(found)
        print(text) if given.quick else PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
