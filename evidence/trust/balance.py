"""Whether released differences of the arms' covariates are those of the records: noise and all, at no further budget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from discreet import ATE
from discreet.data.bounds import Levels
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import Study
from discreet.datasets.study import Float
from discreet.estimators.measurements.nuisances import Propensity
from discreet.postprocessing.kernel_basis import CodedTables
from discreet.releases.average import Release
from discreet.testing import seeded_noise
from evidence.average.report import grid
from evidence.average.targets import Verdict
from evidence.population import random_study
from evidence.trust.figures import proportion
from evidence.trust.sections import Found, Section

Row = dict[str, Any]
# Differences are to lie within two standard deviations this often.
TARGET, DEVIATIONS = 0.95, 2.0
# Studies have this many records at most.
LARGEST = 20_000
_DESIGNS = ("observational", "trial", "stratified trial")


def balance(largest: int, number: int) -> Row:
    """Released and exact differences of a random study, by `ATE` at the study's budget."""
    made = random_study(number, largest=largest)
    facts, study = made.facts, made.study
    row: Row = {"design": facts.design, "n": facts.n, "p": facts.p, "epsilon": facts.epsilon, "differences": []}
    if not facts.p:
        return row
    release, propensity = _fitted(study, number, facts.epsilon, facts.delta, made.known)
    if release is None or "balance" not in (release.diagnostics or {}):
        return row
    table = release.balance()
    exact = list(_exact(study, table, propensity))
    for told, (before, after) in zip(table, exact, strict=True):
        row["differences"].append(
            [told["level"] is not None, told["before"], told["before_sd"], before, told["after"], told["after_sd"], after]
        )
    return row


def _fitted(study: Study, seed: int, epsilon: float, delta: float, known: Any) -> tuple[Release | None, Any]:
    """The release, and the model of treatment behind it, which releases do not hold."""
    estimator = ATE(epsilon=epsilon, delta=delta, bounds=study.bounds, propensity=known)
    records = ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds, propensity=known)
    with seeded_noise(seed):
        release, _, models = estimator._measure_with_models(estimator._open_gate(records, None))
    return release, models.propensity


def _encoded(study: Study) -> list[Float]:
    """Covariates as estimators see them."""
    x = study.X
    columns = [x[name] for name in x.columns] if hasattr(x, "columns") else list(np.asarray(x).T)
    return [spec.encode(np.asarray(own)) for spec, own in zip(study.bounds.columns, columns, strict=True)]


def _exact(study: Study, table: list[Row], model: Propensity) -> Iterator[tuple[float, float | None]]:
    """Differences of the records themselves, before and with weights by the fitted model."""
    columns, t = _encoded(study), np.asarray(study.T, dtype=np.float64)
    e = None
    if not model.known:
        e = model.trimmed(CodedTables(model.setting.basis, model.theta)(np.column_stack(columns)))
    names, specs = study.bounds.names, study.bounds.columns
    for row in table:
        j = names.index(row["covariate"])
        spec = specs[j]
        if isinstance(spec, Levels):
            values = (columns[j] == spec.levels.index(row["level"])).astype(np.float64)
        else:
            values = (columns[j] - columns[j].mean()) / max(float(columns[j].std()), 1e-12)
        ones = np.ones(len(t))
        after = None if e is None else _difference(values, t, 1.0 / e, 1.0 / (1.0 - e))
        yield _difference(values, t, ones, ones), after


def _difference(values: Float, t: Float, treated: Float, control: Float) -> float:
    return float(np.average(values, weights=t * treated) - np.average(values, weights=(1.0 - t) * control))


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
        "Standardised differences of ranges, and differences in the shares of levels, as releases of `ATE` give them and "
        "as the records have them, before adjustment and with weights by the fitted propensity. They cost no budget: "
        "all of it is computed from moments that the models need anyway."
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
