"""Plans of estimators with plans of their own: ``python -m evidence.plans`` writes docs/evidence/plans.md.

Planned over released widths of `LATE`, `DifferenceInDifferences`, `SurvivalEffect` and `PolicyValue` on random studies.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import date
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import discreet as dc
from discreet.data.columns import Levels
from discreet.data.partition import Partition
from discreet.datasets import survival_trial
from discreet.testing import seeded_noise
from evidence.cache import ROOT
from evidence.population import REPORTING, RandomStudy, available, random_study

FACTOR = 2.0
_HOME = ROOT / "docs" / "evidence"


class Case(NamedTuple):
    """A fit and a plan of one study."""

    release: Callable[[], Any]
    plan: Callable[[], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What was found in one study."""

    estimator: str
    study: int
    n: int
    p: int
    epsilon: float
    design: str
    planned: float
    released: float


def _known(made: RandomStudy) -> dict[str, Any]:
    """What an earlier report would state: the share with an event, or mean and deviation, and the share of treated."""
    y, bounds = made.study.Y, made.study.bounds
    mean, sd = float(np.mean(y)), float(np.std(y))
    found = {"treated": min(max(round(float(np.mean(made.study.T)), 2), 0.01), 0.99)}
    if bounds.outcome == (0.0, 1.0):
        return found | {"prevalence": min(max(mean, 0.001), 0.999)}
    low, high = bounds.outcome
    return found | (
        {"outcome_mean": mean, "outcome_sd": sd} if low < mean < high and 0.0 < sd < (high - low) / 2 else {}
    )


def _paid(made: RandomStudy) -> dict[str, Any]:
    return {"epsilon": made.facts.epsilon, "delta": made.facts.delta, "bounds": made.study.bounds}


def _late(made: RandomStudy, rng: Any) -> Case:
    study, n = made.study, made.facts.n
    compliance = round(float(rng.uniform(0.2, 0.9)), 2)
    keen, z = rng.random(n), np.asarray(study.T)
    takes = (keen < 0.1) | ((keen < 0.1 + compliance) & (z > 0.5))
    return Case(
        lambda: dc.LATE(**_paid(made), propensity=made.known).fit(study.Y, takes.astype(float), Z=z, X=study.X),
        lambda: dc.plan("late", n=n, **_paid(made), **_known(made), propensity=made.known, compliance=compliance),
    )


def _did(made: RandomStudy, rng: Any) -> Case:
    study, n = made.study, made.facts.n
    same = round(float(rng.uniform(0.2, 0.9)), 2)
    before = np.where(rng.random(n) < same, study.Y, np.asarray(study.Y)[rng.permutation(n)])
    kind = dc.DifferenceInDifferences
    return Case(
        lambda: kind(**_paid(made), propensity=made.known).fit(study.Y, study.T, before=before, X=study.X),
        lambda: dc.plan(
            "difference-in-differences", n=n, **_paid(made), **_known(made), propensity=made.known, correlation=same
        ),
    )


def _policy(made: RandomStudy, rng: Any) -> Case | None:
    study, n = made.study, made.facts.n
    if study.X is None:
        return None
    name, spec = study.bounds.names[0], study.bounds.columns[0]
    by = {name: "levels" if isinstance(spec, Levels) else 2}
    flags = [k % 2 == 0 for k in range(Partition.of(by, study.bounds).count)]
    policy = dc.Policy.declare(bounds=study.bounds, by=by, treated=flags)
    share = float(np.mean(policy.assign(study.X)))
    if not 20.0 / n < share < 1.0:
        return None
    return Case(
        lambda: dc.PolicyValue(policy=policy, **_paid(made), propensity=made.known).fit(study.Y, study.T, X=study.X),
        lambda: dc.plan("policy-value", n=n, **_paid(made), **_known(made), propensity=made.known, share=share),
    )


def _survival(made: RandomStudy, rng: Any) -> Case:
    observed = made.facts.design == "observational"
    confounding, effect = (float(rng.uniform(0.2, 1.5)) if observed else 0.0), float(rng.uniform(0.0, 0.8))
    study = survival_trial(
        made.facts.n, made.facts.number, effect=effect, confounding=confounding, censoring=float(rng.uniform(0.05, 0.6))
    )
    given: dict[str, Any] = {"epsilon": made.facts.epsilon, "delta": made.facts.delta, "bounds": study.bounds}
    given |= {"horizon": study.horizon, "measure": ("rmst", "risk")[int(rng.integers(2))]}
    known = None if observed else 0.5
    within = study.time <= study.horizon
    known_of: dict[str, Any] = {
        "events": min(max(float(np.mean(within & (study.event > 0.5))), 0.01), 0.98),
        "lost": min(max(float(np.mean(within & (study.event < 0.5))), 0.01), 0.98),
    }
    return Case(
        lambda: dc.SurvivalEffect(**given, propensity=known).fit(study.time, study.T, event=study.event, X=study.X),
        lambda: dc.plan("survival", n=made.facts.n, **given, **known_of, propensity=known),
    )


CASES: dict[str, Callable[[RandomStudy, Any], Case | None]] = {
    "LATE": _late,
    "DifferenceInDifferences": _did,
    "SurvivalEffect": _survival,
    "PolicyValue": _policy,
}


def measured(number: int, largest: int, name: str) -> Line | None:
    """One study of one estimator."""
    made = random_study(number, largest=largest)
    case = CASES[name](made, np.random.default_rng([number, list(CASES).index(name)]))
    if case is None:
        return None
    with threadpool_limits(1), seeded_noise(number):
        low, high = case.release().release_.interval()
    return Line(
        estimator=name,
        study=number,
        n=made.facts.n,
        p=made.facts.p,
        epsilon=made.facts.epsilon,
        design=made.facts.design,
        planned=case.plan().width,
        released=high - low,
    )


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=60, help="random studies of each estimator")
    parser.add_argument("--first", type=int, default=REPORTING + 900_000, help="number of the first")
    parser.add_argument("--largest", type=int, default=20_000, help="most records of a study")
    parser.add_argument("--estimators", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path, default=_HOME)
    asked = parser.parse_args()
    if asked.first < REPORTING and asked.out == _HOME:
        parser.error("studies below 1,000,000 are for choosing and are never reported: name another folder by --out")
    numbers = available(range(asked.first, asked.first + asked.studies))
    lines = [line for name in asked.estimators for number in numbers if (line := measured(number, asked.largest, name))]
    command = f"python -m evidence.plans --studies {asked.studies} --first {asked.first} --largest {asked.largest}"
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "plans.md").write_text(page(lines, command))
    with (asked.out / "plans.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [each.name for each in fields(Line)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(line) for line in lines)
    print(page(lines, command))


def page(lines: list[Line], command: str) -> str:
    """The page."""
    text = [
        "# Plans of further estimators",
        "",
        f"Written by `{command}` on {date.today():%d %B %Y}, with discreet {dc.__version__}; one line for each study is in plans.csv.",
        "",
        "Width that `discreet.plan` expects, divided by the width that was then released, on studies of the [population](trust.md) with an instrument, a period before or a policy added, and on generated survival studies of the",
        "same sizes and budgets. A plan is told what an earlier report would state: the outcome's mean and deviation or the share of events, the share of treated, and its own option (compliance, correlation, the share whom the policy treats,",
        "shares with the event and lost). 1 is a plan that came true, below 1 a promise that was not kept. Unbounded intervals of `LATE` are counted apart, and where plan or release is unbounded there is no ratio.",
        "",
        f"| estimator | design | studies | median | 10 % to 90 % | within a factor of {FACTOR:g} | unbounded: both, only planned, only released |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        own = [line for line in lines if line.estimator == name]
        groups = [("all", own)]
        groups += [
            (design, [line for line in own if line.design == design]) for design in sorted({x.design for x in own})
        ]
        text += [_row(name, design, some) for design, some in groups if some]
    return "\n".join([*text, ""])


def _row(name: str, design: str, some: list[Line]) -> str:
    ends = [(isfinite(line.planned), isfinite(line.released)) for line in some]
    ratios = [line.planned / line.released for line, end in zip(some, ends, strict=True) if all(end)]
    figures = "| | | "
    if ratios:
        low, middle, high = np.quantile(ratios, (0.1, 0.5, 0.9))
        close = float(np.mean(np.abs(np.log(ratios)) <= np.log(FACTOR)))
        figures = f"| {middle:.2f} | {low:.2f} to {high:.2f} | {close:.2f} "
    unbounded = f"{ends.count((False, False))}, {ends.count((False, True))}, {ends.count((True, False))}"
    return f"| `{name}` | {design} | {len(some)} {figures}| {unbounded if name == 'LATE' else ''} |"


if __name__ == "__main__":
    main()
