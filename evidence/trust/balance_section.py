"""What the page shows of released differences of the arms."""

from __future__ import annotations

from typing import Any

import pandas as pd

from evidence.average.report import grid
from evidence.average.targets import Verdict
from evidence.trust.figures import proportion
from evidence.trust.sections import Found, Section

# Differences are to lie within two standard deviations this often.
TARGET, DEVIATIONS = 0.95, 2.0
_DESIGNS = ("observational", "trial", "stratified trial")


def differences(found: Found) -> pd.DataFrame:
    """A row for each difference of each study."""
    names = ["level", "before", "before_sd", "exact", "after", "after_sd", "exact_after"]
    rows = [
        {"study": job.number, "design": row["design"], "n": row["n"], "p": row["p"], "epsilon": row["epsilon"]}
        | dict(zip(names, each, strict=True))
        for job, row in found
        for each in row["differences"]
    ]
    return pd.DataFrame(rows, columns=["study", "design", "n", "p", "epsilon", *names])


def section(found: Found) -> Section:
    """How often differences lie within two standard deviations of the exact ones, and how large these are."""
    table = differences(found)
    head = ["", "differences", "within two sd, before", "sd, median", "within two sd, after", "sd, median"]
    lines = [_line("**all**", table)]
    lines += [_line(design, table[table["design"] == design]) for design in _DESIGNS]
    lines += [_line("ranges", table[~table["level"].astype(bool)]), _line("levels", table[table["level"].astype(bool)])]
    inside = _inside(table, "before", "exact")
    verdict = Verdict(
        target="Differences of the arms before adjustment within two sd of the exact ones",
        limit=f"at least {TARGET:g}",
        figure=f"{inside.mean():.3f} of {len(inside):,}" if len(inside) else "none",
        reached=bool(inside.mean() >= TARGET) if len(inside) else None,
    )
    words = (
        "Standardised differences of ranges, and differences in the shares of levels, as releases of `ATE` give them "
        "and as the records have them, before adjustment and with weights by the fitted propensity. They cost no "
        "budget: all of it is computed from moments that the models need anyway. Trials count where `ATE` fits models."
    )
    return Section(verdicts=[verdict], parts=[words, grid(head, lines)], table=table)


def _inside(table: pd.DataFrame, when: str, exact: str) -> Any:
    some = table[table[when].notna() & table[exact].notna()]
    return (some[when].astype(float) - some[exact].astype(float)).abs() <= DEVIATIONS * some[f"{when}_sd"].astype(float)


def _line(name: str, table: pd.DataFrame) -> list[str]:
    cells = [name, f"{len(table):,}"]
    for when, exact in (("before", "exact"), ("after", "exact_after")):
        inside = _inside(table, when, exact)
        sds = table[f"{when}_sd"].dropna().astype(float)
        cells += [proportion(inside), f"{sds.median():.2g}"] if len(inside) else ["", ""]
    return cells
