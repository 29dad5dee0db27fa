"""The page of policies, in Markdown."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import platform
from collections import defaultdict
from datetime import date

import numpy as np

import discreet
from discreet.data._arrays import Float
from evidence.average.report import grid
from evidence.policies.runs import (
    ALPHA,
    EPSILON,
    FUNCTION,
    MADE_UP,
    NOISE_SEED,
    PRIVATE,
    SAME,
    SAME_FUNCTION,
    SMALL,
    STUDY_SEED,
    TRIALS,
    WANTED,
    Bound,
    Line,
    cases,
)

LEARNERS = ("T-learner, logistic", "T-learner, boosted")


class Found:
    """All lines, by what they measure."""

    def __init__(self, lines: list[Line]) -> None:
        self.by: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        for line in lines:
            self.by[line.trial, line.case, line.method, line.measure].append(line.value)

    def mean(self, trial: str, case: str, method: str, measure: str = "value") -> float:
        """Mean over splits."""
        return float(np.mean(self.by[trial, case, method, measure]))

    def ratio(self, trial: str, case: str, method: str, other: str) -> tuple[float, float]:
        """Ratio of two methods' mean values over splits, and its standard error by leaving out a split at a time."""
        one, two = (np.array(self.by[trial, case, each, "value"]) for each in (method, other))
        k = len(one)
        left: Float = (one.sum() - one) / (two.sum() - two) if k > 1 else np.zeros(1)
        return float(one.sum() / two.sum()), float(np.sqrt((k - 1) / k * np.sum((left - left.mean()) ** 2)))


def page(found: Found, bounds: list[Bound], runs: dict[str, int], seconds: float) -> str:
    """The page, in Markdown."""
    rows, aims = _values(found, PRIVATE, SAME)
    functions, _ = _values(found, FUNCTION, SAME_FUNCTION) if runs["functions"] else ([], [])
    held, more = _bounds(bounds)
    aims += more
    reached = sum(aim[-1] == "reached" for aim in aims)
    parts = [
        "# Policies: whom to treat",
        f"Written by `python -m evidence.policies` on {date.today().isoformat()} in {seconds:.0f} seconds; do not edit. "
        f"{runs['splits']} splits of each trial into two halves, {runs['functions']} of them with functions; {runs['bounds']} made-up trials for bounds; seeds from {STUDY_SEED:,} on, "
        f"noise from {NOISE_SEED:,} on. discreet {discreet.__version__}, Python {platform.python_version()}. Every number of every split is in `policies.csv`.",
        "## Aims",
        f"{reached} of {len(aims)} reached.",
        grid(["aim", "wanted", "figure", ""], aims),
        "## What policies gain",
        f"The protocol of targeting from aggregates: one half of the records goes through `Uplift` at a pure ε of {EPSILON:g}, and its noisy table alone chooses whom to treat; the other half, without "
        "noise, says what treating these people gains per person of all. Beside it stand the same estimator without privacy (same records, same segments), two learners that see every record "
        "(a model for each arm; whoever they rank highest is treated), and treating by lot. *Capacity* is the largest share of people that may be treated, at no cost; at a *cost* of about the average effect whoever gains more is "
        "treated. Segments: three equal parts each of f6, f8 and f9 (27); bought men's, bought women's, new customer, and four parts of the time since the last purchase (32); voted in each of three primaries, and four "
        "parts of age (32). Costs and segments were written down before any policy was seen, but for that time: on two splits with other seeds, the other eight segments of customers were too few and too large to fill a fifth of the capacity with whole ones. On these "
        f"splits a rule that took segments one by one gave way to the best set that fits. The Criteo-shaped trial is made up ({MADE_UP:,} people), and its gains are those of true effects; in real trials they are differences of means on the other half, with sampling errors that all methods share. Ratios are "
        "of means over splits, with standard errors by leaving out one split at a time; splits of one trial share its records, which the errors do not know. A segment is treated as a whole.",
        grid(
            [
                "trial",
                "case",
                "share treated",
                "gain",
                "of the same without privacy",
                *(f"of {name}" for name in LEARNERS),
                "by lot",
            ],
            rows,
        ),
    ]
    if functions:
        parts += [
            "## Functions",
            f"The same with `CATE` at ε = {EPSILON:g} and δ = 1e-6, which knows no segments: whoever's estimated effect exceeds the cost, or is among the largest of the other half's people.",
            grid(
                [
                    "trial",
                    "case",
                    "share treated",
                    "gain",
                    "of the same without privacy",
                    *(f"of {name}" for name in LEARNERS),
                    "by lot",
                ],
                functions,
            ),
        ]
    parts += [
        "## Lower bounds",
        f"Made-up trials of the Criteo shape, {SMALL:,} people to choose on and as many to measure on, ε = {EPSILON:g} each. *At the choice* is `policy.gain_lower()`, from the release that chose the policy; *elsewhere* is `PolicyValue.value_lower()` on the other people. Both are one-sided at "
        f"{100 * (1 - ALPHA):g} %, and the truth is that of 400,000 people. *Promised* is the expected gain of the choosing release.",
        grid(
            [
                "case",
                "trials",
                "true gain",
                "promised",
                "at the choice: holds",
                "mean",
                "measured elsewhere",
                "elsewhere: holds",
                "mean",
            ],
            held,
        ),
        "In real trials, the same bound on the other half beside what that half says without noise:",
        grid(["trial", "case", "gain, no noise", "measured, ε = 1", "lower bound, ε = 1"], _measured(found)),
    ]
    return "\n\n".join(parts) + "\n"


def _values(found: Found, method: str, same: str) -> tuple[list[list[str]], list[list[str]]]:
    rows, aims = [], []
    for name, trial in TRIALS.items():
        for case in map(str, cases(trial)):
            if not found.by[name, case, method, "value"]:
                continue
            ratio, error = found.ratio(name, case, method, same)
            others = [f"{_ratio(found, name, case, method, other):.3f}" for other in LEARNERS]
            share, value = (found.mean(name, case, method, measure) for measure in ("share", "value"))
            lot = found.mean(name, case, "by lot")
            rows.append(
                [trial.title, case, f"{share:.2f}", f"{value:.5f}", f"{ratio:.3f} ± {error:.3f}", *others, f"{lot:.5f}"]
            )
            aims.append(
                [
                    f"gain of the policy without privacy, {trial.title}, {case}",
                    f"≥ {WANTED:g}",
                    f"{ratio:.3f} ± {error:.3f}",
                    _word(ratio >= WANTED),
                ]
            )
    return rows, aims


def _ratio(found: Found, name: str, case: str, method: str, other: str) -> float:
    """On the splits that both have."""
    k = len(found.by[name, case, method, "value"])
    return float(np.mean(found.by[name, case, method, "value"]) / np.mean(found.by[name, case, other, "value"][:k]))


def _bounds(bounds: list[Bound]) -> tuple[list[list[str]], list[list[str]]]:
    rows, aims = [], []
    for case in dict.fromkeys(each.case for each in bounds):
        own = [each for each in bounds if each.case == case]
        truth, promised, choice, measured, other = (np.array(part) for part in list(zip(*own, strict=True))[1:])
        held = [float(np.mean(part <= truth)) for part in (choice, other)]
        means = [f"{part.mean():.5f}" for part in (truth, promised, choice, measured, other)]
        rows.append([case, str(len(own)), *means[:2], f"{held[0]:.3f}", *means[2:4], f"{held[1]:.3f}", means[4]])
        # Simulation: so many trials show a coverage to about two standard errors.
        wanted = 1 - ALPHA - 2 * float(np.sqrt(ALPHA * (1 - ALPHA) / len(own)))
        for words, share in zip(("at the choice", "elsewhere"), held, strict=True):
            aims.append([f"bound {words} holds, {case}", f"≥ {wanted:.3f}", f"{share:.3f}", _word(share >= wanted)])
    return rows, aims


def _measured(found: Found) -> list[list[str]]:
    return [
        [
            trial.title,
            case,
            *(f"{found.mean(name, case, PRIVATE, measure):.5f}" for measure in ("value", "measured", "lower bound")),
        ]
        for name, trial in TRIALS.items()
        if name != "criteo"
        for case in map(str, cases(trial))
        if found.by[name, case, PRIVATE, "measured"]
    ]


def _word(reached: bool) -> str:
    return "reached" if reached else "**not reached**"
