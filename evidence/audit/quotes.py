"""What warnings quote from the audit's page, and whether it stands there."""

from __future__ import annotations

import re

from discreet.papers.dp_cate.function import MEASURED as FUNCTION
from discreet.papers.dp_cate.pointwise import MEASURED as DP_CATE
from discreet.papers.meta_learners.ebm import MEASURED as EBM

WARNINGS = {"dp_cate.py": DP_CATE, "dp_cate_function.py": FUNCTION, "learners_ebm.py": EBM}
QUOTED = re.compile(r"a claimed epsilon of [\d.]*\d is at least [\d.e+]*\d")


def stale(page: str) -> list[str]:
    """Phrases of warnings that a page does not print (any more), and where they stand."""
    return [
        f"papers/{file}: {phrase}"
        for file, warning in WARNINGS.items()
        for phrase in QUOTED.findall(warning)
        if phrase not in page
    ]
