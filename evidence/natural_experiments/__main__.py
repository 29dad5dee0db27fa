"""Numbers behind `LATE` and `DifferenceInDifferences`: ``python -m evidence.natural_experiments``.

Writes docs/evidence/natural-experiments.md and natural-experiments.csv: how often intervals hold the effect of
generated studies, and how wide they are beside those of regressions without privacy.
"""

from __future__ import annotations

import argparse
import csv
from math import isfinite, sqrt
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.testing import seeded_noise
from evidence.natural_experiments.designs import DESIGNS, Study

# Studies from here on were used for nothing else.
FIRST = 1_000_000
EPSILON, DELTA = 1.0, 1e-6
FIELDS = ("design", "study", "estimate", "low", "high", "effect", "rival_low", "rival_high")


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200, help="of each design")
    parser.add_argument("--design", choices=list(DESIGNS), help="run this one alone, and keep the lines of the others")
    parser.add_argument("--first", type=int, default=FIRST, help="number of the first study, below it for choosing")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    table = wanted.out / "natural-experiments.csv"
    lines = [] if wanted.design is None or not table.exists() else list(csv.DictReader(table.open()))
    names = list(DESIGNS) if wanted.design is None else [wanted.design]
    lines = [line for line in lines if line["design"] not in names]
    for name in names:
        lines += [run(name, wanted.first + k) for k in range(wanted.studies)]
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(lines)
    (wanted.out / "natural-experiments.md").write_text(page(lines))
    print(page(lines))


def run(name: str, number: int) -> dict[str, Any]:
    """One study, estimated with seeded noise."""
    method, n, generate = DESIGNS[name]
    study = generate(np.random.default_rng([number, list(DESIGNS).index(name)]), n)
    kind: Any = {"LATE": dc.LATE, "DifferenceInDifferences": dc.DifferenceInDifferences}[method]
    with seeded_noise(number):
        made = kind(epsilon=EPSILON, delta=DELTA, bounds=study.bounds, propensity=study.propensity)
        made.fit(study.Y, study.T, X=study.X, **study.further)
    low, high = made.interval()
    found = {"design": name, "study": number, "estimate": made.estimate_, "low": low, "high": high}
    rival = regression(study)
    return found | {"effect": study.effect, "rival_low": rival[0], "rival_high": rival[1]}


def regression(study: Study) -> tuple[float, float]:
    """A 95 % interval without privacy: least squares, in two stages where there is an instrument; robust errors."""
    z = study.further.get("Z")
    y = study.Y - study.further["before"] if z is None else study.Y
    columns = np.column_stack([np.ones(len(y)), study.X, study.X**2])
    regressors = np.column_stack([study.T, columns])
    instruments = regressors if z is None else np.column_stack([z, columns])
    bread = np.linalg.inv(instruments.T @ regressors)
    beta = bread @ (instruments.T @ y)
    scores = instruments * (y - regressors @ beta)[:, None]
    se = sqrt((bread @ (scores.T @ scores) @ bread.T)[0, 0])
    return beta[0] - 1.96 * se, beta[0] + 1.96 * se


def page(lines: list[dict[str, Any]]) -> str:
    """The page."""
    out = [
        "# Instruments and two periods",
        "",
        "Written by `python -m evidence.natural_experiments`. Generated studies "
        f"(`evidence/natural_experiments/designs.py`), ε = {EPSILON:g}, δ = {DELTA:g}, two covariates. Each line: how "
        "often 95 % intervals of `LATE` or `DifferenceInDifferences` held the true effect (with the standard error of "
        "that share), how many of them were unbounded, and the median width of those that were not, over that of a "
        "regression without privacy on the same records (least squares, in two stages with an instrument, with squares "
        "of the covariates and robust errors), whose coverage stands in the last column.",
        "",
        "| design | estimator | n | studies | coverage | unbounded | median width | over the regression's | "
        "its coverage |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, (method, n, _) in DESIGNS.items():
        own = [{key: float(line[key]) for key in FIELDS[2:]} for line in lines if line["design"] == name]
        if own:
            out.append(_row(name, method, n, own))
    out += ["", "Studies have numbers from 1,000,000 on; no constant was chosen on them.", ""]
    return "\n".join(out)


def _row(name: str, method: str, n: int, own: list[dict[str, float]]) -> str:
    held = np.mean([line["low"] <= line["effect"] <= line["high"] for line in own])
    rival = np.mean([line["rival_low"] <= line["effect"] <= line["rival_high"] for line in own])
    bounded = [line for line in own if isfinite(line["high"] - line["low"])]
    widths = [line["high"] - line["low"] for line in bounded]
    ratios = [(line["high"] - line["low"]) / (line["rival_high"] - line["rival_low"]) for line in bounded]
    width, ratio = (f"{np.median(each):.3g}" if each else "" for each in (widths, ratios))
    error = sqrt(held * (1.0 - held) / len(own))
    return (
        f"| {name} | `{method}` | {n:,} | {len(own)} | {held:.3f} ± {error:.3f} | "
        f"{1 - len(bounded) / len(own):.0%} | {width} | {ratio} | {rival:.3f} |"
    ).replace("%", " %")


if __name__ == "__main__":
    main()
