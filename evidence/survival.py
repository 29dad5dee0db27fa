"""Numbers behind `SurvivalEffect`: ``python -m evidence.survival`` writes docs/evidence/survival.md, in minutes.

How often intervals and bands hold on generated censored studies, and what privacy costs on a real trial, ACTG 175. Its
file is in the package lifelines, whose wheel is read without being installed:
``pip download --no-deps lifelines==0.30.3 --dest .evidence-cache``.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import platform
import time
import zipfile
from dataclasses import dataclass
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import discreet as dc
from discreet.data._arrays import Float
from discreet.datasets.survival import SurvivalStudy, survival_at, survival_trial
from discreet.exceptions import InvalidInput
from evidence.average.report import grid
from evidence.cache import CACHE

# Studies from here on were drawn for nothing else; noise has the same number as its study.
SEED, NOISE = 1_600_000, 2_600_000
# The protocol's first three years, less what few are followed through.
ACTG_HORIZON, ACTG_LONGEST, ACTG_TREATED = 1_000.0, 1_300.0, 0.75
ACTG_COVARIATES: dict[str, Any] = {
    "age": (12, 90),
    "karnof": (0, 100),
    "str2": [0, 1],
    "symptom": [0, 1],
    "cd40": (0, 1_500),
}


@dataclass(frozen=True)
class Design:
    """A kind of study, and how it is estimated."""

    name: str
    n: int
    epsilon: float
    measure: str = "rmst"
    known: bool = False
    confounding: float = 0.0
    covariates: bool = False
    effect: float = 0.4
    neighbours: str = "replace-one"


DESIGNS = (
    Design("trial, known design", 1_000, 1.0, known=True),
    Design("trial, known design, risk", 1_000, 1.0, "risk", known=True),
    Design("trial", 1_000, 1.0),
    Design("trial, number of records private", 1_000, 1.0, neighbours="add-remove"),
    Design("trial, small budget", 1_000, 0.2),
    Design("trial, no effect", 1_000, 1.0, effect=0.0),
    Design("trial", 4_000, 1.0),
    Design("trial, risk", 4_000, 1.0, "risk"),
    Design("trial", 20_000, 1.0),
    Design("trial, known design, covariates", 20_000, 1.0, known=True, covariates=True),
    Design("confounded", 4_000, 1.0, confounding=1.0, covariates=True),
    Design("confounded, risk", 4_000, 1.0, "risk", confounding=1.0, covariates=True),
    Design("confounded", 20_000, 1.0, confounding=1.0, covariates=True),
)


class Line(NamedTuple):
    """What one study gave."""

    covered: bool
    width: float
    plain_width: float
    error: float
    points: float
    at_once: bool


class Plain(NamedTuple):
    """Without privacy: area below the product-limit curve, risk, and their standard errors."""

    rmst: float
    rmst_se: float
    risk: float
    risk_se: float


def product_limit(time_: Float, event: Float, horizon: float) -> Plain:
    """Kaplan and Meier's estimate of one arm, with Greenwood's variance."""
    times = np.unique(time_[(event > 0.5) & (time_ <= horizon)])
    died = np.array([np.sum((time_ == each) & (event > 0.5)) for each in times])
    at_risk = len(time_) - np.searchsorted(np.sort(time_), times, side="left")
    curve = np.cumprod(1.0 - died / at_risk)
    ends = np.diff(np.append(times, horizon))
    area = np.cumsum((curve * ends)[::-1])[::-1]
    jumps = died / (at_risk * np.maximum(at_risk - died, 1.0))
    return Plain(
        float(times[0] + area[0]), float(np.sqrt(np.sum(area**2 * jumps))), float(1 - curve[-1]),
        float(curve[-1] * np.sqrt(jumps.sum())),
    )  # fmt: skip


def difference(time_: Float, event: Float, t: Float, horizon: float, measure: str) -> tuple[float, float]:
    """Difference of the arms without privacy, and its standard error."""
    control, treated = (product_limit(time_[t == arm], event[t == arm], horizon) for arm in (0.0, 1.0))
    one, other = (
        (each.rmst, each.rmst_se) if measure == "rmst" else (each.risk, each.risk_se) for each in (control, treated)
    )
    return other[0] - one[0], float(np.hypot(one[1], other[1]))


def run(design: Design, number: int) -> Line:
    """One study of a design."""
    study = survival_trial(design.n, SEED + number, effect=design.effect, confounding=design.confounding)
    found = fitted(study, design, number)
    low, high = found.interval()
    truth = study.rmst if design.measure == "rmst" else study.risk
    _, se = difference(study.time, study.event, study.T, study.horizon, design.measure)
    # Of a record with a whole number of days, as those of the grid are rarely.
    curves = [survival_at(np.floor(np.array(found.times)), arm, design.effect) for arm in (0.0, 1.0)]
    inside = [
        np.array(
            [
                (band.low[1:] <= curve) & (curve <= band.high[1:])
                for band, curve in zip(bands.values(), curves, strict=True)
            ]
        )
        for bands in (found.curves(), found.curves(simultaneous=True))
    ]
    return Line(
        low <= truth <= high,
        high - low,
        2 * 1.96 * se,
        found.estimate - truth,
        float(inside[0].mean()),
        bool(inside[1].all()),
    )


def fitted(study: SurvivalStudy, design: Design, number: int) -> dc.SurvivalRelease:
    """The release of one study."""
    covariates = study.bounds.columns if design.covariates else None
    made = dc.SurvivalEffect(
        epsilon=design.epsilon,
        delta=1e-6,
        bounds=dc.Bounds(outcome=study.bounds.outcome, covariates=covariates, propensity=(0.1, 0.9)),
        horizon=study.horizon,
        measure=design.measure,  # type: ignore[arg-type]
        propensity=0.5 if design.known else None,
        neighbours=design.neighbours,  # type: ignore[arg-type]
    )
    with dc.testing.seeded_noise(NOISE + number):
        return made.fit(study.time, study.T, event=study.event, X=study.X if design.covariates else None).release_


def actg() -> Any:
    """The trial's file, from lifelines' wheel in the cache."""
    import pandas

    wheels = sorted(CACHE.glob("lifelines-*.whl"))
    if not wheels:
        raise InvalidInput("ACTG 175 is not here: run pip download --no-deps lifelines==0.30.3 --dest .evidence-cache.")
    with zipfile.ZipFile(wheels[-1]) as wheel:
        return pandas.read_csv(BytesIO(wheel.read("lifelines/datasets/ACTG175.csv")))


def on_actg(frame: Any, draws: int, measure: str, covariates: bool, known: bool) -> tuple[list[str], float, float]:
    """A line of the page for one way to estimate, over draws of the noise; which share holds, and the ratio of widths."""
    u, d, t = (frame[name].to_numpy(np.float64) for name in ("days", "cens", "treat"))
    plain, se = difference(u, d, t, ACTG_HORIZON, measure)
    bounds = dc.Bounds(
        outcome=(0, ACTG_LONGEST), covariates=ACTG_COVARIATES if covariates else None, propensity=(0.1, 0.9)
    )
    held, widths, estimates, reach = [], [], [], []
    for number in range(draws):
        made = dc.SurvivalEffect(
            epsilon=1.0, delta=1e-6, bounds=bounds, horizon=ACTG_HORIZON, measure=measure,  # type: ignore[arg-type]
            propensity=ACTG_TREATED if known else None,
        )  # fmt: skip
        with dc.testing.seeded_noise(NOISE + number):
            made.fit(u, t, event=d, X=frame[list(ACTG_COVARIATES)] if covariates else None)
        low, high = made.interval()
        held.append(low <= plain <= high)
        widths.append(high - low)
        estimates.append(made.estimate_)
        reach += [float(band.high[-1] - band.low[-1]) for band in made.curves().values()]
    ratio = float(np.median(widths) / (2 * 1.96 * se))
    digits = 1 if measure == "rmst" else 3
    words = "known" if known else "estimated" if covariates else "released"
    return (
        [
            measure, words, "yes" if covariates else "no", f"{plain:.{digits}f} ± {se:.{digits}f}",
            f"{np.mean(estimates):.{digits}f} ± {np.std(estimates):.{digits}f}", f"{np.mean(held):.3f}", f"{ratio:.2f}",
            f"{np.median(reach[0::2]):.3f}, {np.median(reach[1::2]):.3f}",
        ],
        float(np.mean(held)),
        ratio,
    )  # fmt: skip


def page(
    lines: dict[Design, list[Line]], trial: list[tuple[list[str], float, float]], draws: int, seconds: float
) -> str:
    """The page, in Markdown."""
    rows, aims = [], []
    for design, found in lines.items():
        covered, points, at_once = (np.array([line[k] for line in found], dtype=float) for k in (0, 4, 5))
        errors = np.array([line.error for line in found])
        rows.append(
            [
                design.name, f"{design.n:,}", f"{design.epsilon:g}", str(len(found)), f"{covered.mean():.3f}",
                f"{np.median([line.width / line.plain_width for line in found]):.2f}",
                f"{errors.mean() / errors.std():+.2f}",
                "" if design.confounding else f"{points.mean():.3f}, {at_once.mean():.3f}",
            ]
        )  # fmt: skip
    pooled = np.concatenate([[line.covered for line in found] for found in lines.values()])
    least = min(float(np.mean([line.covered for line in found])) for found in lines.values())
    aims.append(["intervals cover, all designs", "≥ .94", f"{pooled.mean():.3f}", _word(pooled.mean() >= 0.94)])
    aims.append(["intervals cover, each design", "≥ .91", f"{least:.3f}", _word(least >= 0.91)])
    if trial:
        _, held, ratio = trial[0]
        aims.append(
            [
                "ACTG 175, RMST, ε = 1: draws that hold the non-private estimate",
                "≥ .95",
                f"{held:.3f}",
                _word(held >= 0.95),
            ]
        )
        aims.append(
            ["ACTG 175, RMST, ε = 1: width over the non-private one", "≤ 1.7", f"{ratio:.2f}", _word(ratio <= 1.7)]
        )
    parts = [
        "# Times to an event",
        f"Written by `python -m evidence.survival` on {date.today().isoformat()} in {seconds:.0f} seconds; do not edit. Studies from seed {SEED:,} on, noise from "
        f"{NOISE:,} on: neither was used for anything else. Earlier runs, with other seeds, showed that the adjusted comparison needs to see that most records of both arms end at the horizon. discreet {dc.__version__}, Python {platform.python_version()}.",
        "## Aims",
        grid(["aim", "wanted", "figure", ""], aims),
        "## Generated studies",
        "Weibull times with two covariates that matter, follow-up that ends by a hazard of its own in each arm (`datasets.survival_trial`), a horizon of one year. *Width* is the median ratio to the interval of the "
        "product-limit estimate, which in confounded studies estimates something else and is narrower for it. *Bias* is in standard deviations of the estimate. *Bands*: how often a band holds the true curve at a time, and "
        "simultaneous bands all times of both arms.",
        grid(["design", "n", "ε", "studies", "covered", "width", "bias", "bands"], rows),
    ]
    if trial:
        parts += [
            "## A real trial: ACTG 175",
            f"2,139 people with HIV, zidovudine alone against three other treatments; days to a fall of CD4 cells by half, AIDS or death, up to {ACTG_HORIZON:g}; ε = 1, δ = 1e-6, {draws} draws of the noise on the same "
            "records. *Held*: draws whose 95 % interval holds the estimate without privacy. *Width*: median ratio of interval widths. Covariates are used where they pay (a public rule). *Bands*: median "
            "width of the 95 % band at the horizon, control and treated.",
            grid(
                ["measure", "design", "covariates", "without privacy", "released", "held", "width", "bands"],
                [line for line, *_ in trial],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _word(reached: bool) -> str:
    return "reached" if reached else "**missed**"


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=300, help="of each design; a quarter where there are covariates")
    parser.add_argument("--draws", type=int, default=300, help="of the noise on ACTG 175")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence"))
    wanted = parser.parse_args()
    start = time.monotonic()
    lines = {}
    for design in DESIGNS:
        count = max(2, wanted.studies // (4 if design.covariates else 1))
        lines[design] = [run(design, number) for number in range(count)]
        print(f"{design.name}, n = {design.n:,}: {time.monotonic() - start:.0f} s", flush=True)
    trial = []
    try:
        frame = actg()
        ways = (("rmst", False, True), ("rmst", False, False), ("risk", False, True), ("rmst", True, False))
        trial = [
            on_actg(frame, wanted.draws if not more else max(2, wanted.draws // 4), measure, more, known)
            for measure, more, known in ways
        ]
    except InvalidInput as missing:
        print(f"No real trial: {missing}")
    (wanted.out / "survival.md").write_text(page(lines, trial, wanted.draws, time.monotonic() - start))


if __name__ == "__main__":
    main()
