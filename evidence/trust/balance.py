"""Whether released differences of the arms' covariates are those of the records, within their noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from discreet import ATE
from discreet.data.bounds import Levels
from discreet.data.in_memory import ArrayRecords
from discreet.datasets import Study
from discreet.datasets.study import Float
from discreet.estimators._allocation import models_pay
from discreet.estimators.measurements.nuisances import Propensity
from discreet.postprocessing.kernel_basis import CodedTables
from discreet.releases.average import Release
from discreet.testing import seeded_noise
from evidence.population import random_study

Row = dict[str, Any]
# Studies have this many records at most.
LARGEST = 20_000


def balance(largest: int, number: int) -> Row:
    """Released and exact differences of a random study, by `ATE` at the study's budget."""
    made = random_study(number, largest=largest)
    facts, study = made.facts, made.study
    row: Row = {"design": facts.design, "n": facts.n, "p": facts.p, "epsilon": facts.epsilon, "differences": []}
    if not facts.p:
        return row
    release, propensity = _fitted(study, number, facts.epsilon, facts.delta, made.known)
    if release is None or release.diagnostics is None or "balance" not in release.diagnostics:
        return row
    table = release.balance()
    exact = list(_exact(study, table, propensity))
    for told, (before, after) in zip(table, exact, strict=True):
        row["differences"].append(
            [
                told["level"] is not None,
                told["before"],
                told["before_sd"],
                before,
                told["after"],
                told["after_sd"],
                after,
            ]
        )
    return row


def _fitted(study: Study, seed: int, epsilon: float, delta: float, known: Any) -> tuple[Release | None, Any]:
    """The release, and the model of treatment behind it, which releases do not hold."""
    estimator = ATE(epsilon=epsilon, delta=delta, bounds=study.bounds, propensity=known)
    records = ArrayRecords.of(study.Y, study.T, study.X, bounds=study.bounds, propensity=known)
    with seeded_noise(seed):
        gate = estimator._open_gate(records, None)
        if known is not None and not models_pay(gate.n * gate.mu, gate.bounds.p, known):
            return None, None
        release, _, models = estimator._measure_with_models(gate)
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
