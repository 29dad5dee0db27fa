"""The audit's page, in Markdown, its figures and its table."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import discreet
from discreet.audit._black_box import most_epsilon
from discreet.audit._configurations import Configuration
from discreet.audit.api import PROVED_CONFIDENCE
from discreet.audit.attacks import ATTACKS, Attack
from discreet.audit.result import AuditResult, Moved, rounded_down
from discreet.privacy.guarantee import AUDIT_VERSION
from evidence.audit.runs import ATTACK_SEED, EPSILON, SEED
from evidence.planted import PLANTED
from evidence.reproduce.cache import LIBRARIES
from evidence.reproduce.pages import axes, grid

TIGHT = 0.9
OPEN = "open: what enters was computed from records, so that only few could be tried, by fitting again"


def explained(moved: Moved) -> str:
    """Why a round stays below its diameter, from what was measured."""
    if moved.geometry == "Statistic":
        return (
            "a bound on a minimiser over all data sets, from strong convexity: it is attained in the limit where the other records' losses have no curvature, and "
            "those of these studies have some"
        )
    if moved.reach is not None and moved.reach < 0.97:
        return (
            f"no record fills more than {moved.reach:.2f} of the declared set at the answers of these studies; the set has "
            "to hold for all answers"
        )
    if moved.reach is not None:
        return "records fill the set, but no two that were found lie opposite each other in it"
    return OPEN


@dataclass(frozen=True)
class Found:
    """Results of attacks by their names, and of every proved configuration."""

    attacks: dict[str, AuditResult]
    configurations: list[tuple[Configuration, AuditResult]]


def wanted(
    results: dict[str, AuditResult], configurations: list[tuple[Configuration, AuditResult]]
) -> Iterator[list[str]]:
    """What was to be shown, and what was."""

    def part(name: str, instrument: str) -> AuditResult:
        found = results[name]
        return next(one for one in (found.parts or (found,)) if one.instrument == instrument)

    def line(what: str, least: float, value: float) -> list[str]:
        return [what, f"≥ {least:g}", rounded_down(value), "reached" if value >= least else "**not reached**"]

    yield line(
        "DP-CATE forest, claimed 1, black box with fresh seeds: ε", 5, part("dp_cate_forest", "black box").epsilon_lower
    )
    yield line("DP-CATE forest, claimed 1, closed form: ε", 100, part("dp_cate_forest", "closed form").epsilon_lower)
    yield line(
        "300 identical queries, linear regression, claimed 1, black box: ε",
        4,
        part("dp_cate_identical_queries", "black box").epsilon_lower,
    )
    yield line("PrivATE, Table 1's setting, closed form: δ", 0.4, part("private_ci_width", "closed form").delta_lower)
    yield line(
        "PrivATE, one treated unit, claimed 0.5, closed form: ε",
        8,
        part("private_ci_few_treated", "closed form").epsilon_lower,
    )
    yield line(
        "DP-EBM, y in [100, 101], claimed 1, black box: ε", 3, part("ebm_offset_target", "black box").epsilon_lower
    )
    yield line(
        "ADUM with the range, y in [10, 11], claimed 1, black box: ε",
        1.5,
        part("adum_range_for_max", "black box").epsilon_lower,
    )
    near = min(results["float_laplace"].picture["values"])
    yield line("float64 Laplace noise: outputs near the mode that betray the data set, %", 30, near)
    boxes = [part for _, result in configurations for part in result.parts if part.instrument == "black box"]
    refuted = [c.name for c, result in configurations if result.violated or any(one.violated for one in result.parts)]
    yield [
        f"proved estimators that an instrument puts above their claim at {100 * PROVED_CONFIDENCE:g} %, of {len(configurations)} configurations",
        "0",
        f"{len(refuted)}; black boxes could show an ε of {_between([_power(part) for part in boxes], '{:.1f}')}",
        "reached" if not refuted else "**not reached**",
    ]
    rounds = worst_rounds(configurations)
    slack = [explained(moved) for moved in rounds.values() if moved.ratio < TIGHT]
    still = slack.count(OPEN)
    yield [
        f"rounds that some neighbours move by at least {TIGHT:g} of the diameter, of {len(rounds)}",
        "all, or explained",
        f"{len(rounds) - len(slack)}; {len(slack) - still} explained below, {still} open",
        "**not reached**" if still else "reached",
    ]


def worst_rounds(configurations: list[tuple[Configuration, AuditResult]]) -> dict[tuple[str, str], Moved]:
    """The largest ratio of each round of each family."""
    rounds: dict[tuple[str, str], Moved] = {}
    for configuration, result in configurations:
        for moved in result.rounds:
            key = configuration.family, moved.name
            if key not in rounds or moved.ratio > rounds[key].ratio:
                rounds[key] = moved
    return rounds


def page(found: Found, bugs: list[list[str]], figures: Path, seconds: float) -> str:
    """The page, in Markdown, and its figures."""
    aims = [*wanted(found.attacks, found.configurations), _caught(bugs)]
    reached = sum(aim[-1] == "reached" for aim in aims)
    parts = [
        "# Audit: what really leaks",
        *_introduction(seconds),
        _after_seeing_results(),
        "## What was to be shown",
        f"{reached} of {len(aims)} reached.",
        grid(["what", "wanted", "found", ""], aims),
        *_published(found.attacks, figures),
        *_proved(found.configurations, figures),
        "## Planted bugs",
        "One at a time in the code that all proved estimators share (`evidence/planted.py`), and what the instrument says that has to catch it.",
        grid(["bug", "instrument", "", "it says"], bugs),
    ]
    return "\n\n".join(parts) + "\n"


def _introduction(seconds: float) -> list[str]:
    return [
        f"Written by `python -m evidence.audit` on {date.today().isoformat()}, from {seconds:.0f} seconds of computing; do not edit. "
        f"Audit version {AUDIT_VERSION}, seed {ATTACK_SEED} for attacks and {SEED} for replays, discreet {discreet.__version__}, Python {platform.python_version()}, "
        + ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
        + ". Every line is also in `audit.csv`.",
        "A claim of privacy can be refuted by a single pair of data sets, and no number of audits can prove one. Three instruments: *replay* holds all "
        "released values fixed and compares exact sums on neighbours with the stated diameter; *closed form* computes what an attacker proves from the laws of "
        "two releases; *black box* runs a mechanism many times, chooses an event on one half of the runs and counts it on the other (Clopper-Pearson bounds; for "
        "expensive fits, canaries: many secrets in one run). Bounds are lower bounds: what is really spent may be more. `discreet audit list` names the attacks, and "
        "`discreet audit papers.DPCATE --epsilon 1 --delta 1e-5 --attack dp_cate_forest` runs one.",
        "Published mechanisms run with the settings of their papers; what their texts leave open, and what was inferred, stands with each attack. Every claim is stated for "
        "all data sets, so that an attack may choose its own.",
    ]


def _published(results: dict[str, AuditResult], figures: Path) -> list[str]:
    claims, sections = [], []
    for name, attack in ATTACKS.items():
        result = results[name]
        claims += [_claim_row(name, part) for part in result.parts or (result,)]
        sections.append(_attack_section(name, attack, result))
        _figure(result, figures / f"{name}.png")
    return [
        "## Published mechanisms",
        grid(
            [
                "mechanism",
                "claimed",
                "status",
                "attack",
                "instrument",
                "shown",
                "confidence",
                "runs",
                "verdict",
            ],
            claims,
        ),
        *sections,
    ]


def _proved(configurations: list[tuple[Configuration, AuditResult]], figures: Path) -> list[str]:
    families: dict[str, list[tuple[Configuration, AuditResult]]] = {}
    for configuration, result in configurations:
        families.setdefault(configuration.family, []).append((configuration, result))
    rows, shown = [], []
    rounds = worst_rounds(configurations)
    for family, members in families.items():
        rows.append(_family_row(family, members))
        own = [moved for (name, _), moved in rounds.items() if name == family]
        stem = family.replace(".", "-").lower()
        _figure(_joined(members[0][1], own), figures / f"{stem}.png")
        shown.append(f"![Rounds of {family}](audit/{stem}.png)")
    slack = [
        [family, name, f"{moved.ratio:.2f}", moved.geometry, explained(moved)]
        for (family, name), moved in rounds.items()
        if moved.ratio < TIGHT
    ]
    return [
        "## Proved estimators",
        f"Every configuration is replayed on a made-up study (ordinary, concentrated, lopsided, steep or with a single treated record) against adversarial neighbours and a search without gradients, and then "
        f"run as a black box, with real noise, on the neighbours that were furthest apart, at {100 * PROVED_CONFIDENCE:g} %. *Largest ratio*: of exact movement to stated diameter, over all rounds; 1 "
        "is tight, more would be a bug. *Share of ε*: the epsilon of the worst neighbours, at the answers of one fit, over the claimed one. *ε, black box*: the largest lower bound that any "
        f"configuration's releases proved, where {EPSILON:g} is claimed (0.01 for one): estimators with larger claims run with ε = {EPSILON:g} here, on the same neighbours, because no affordable number of runs refutes an "
        "ε of 20. *Its runs*: on either data set, for each configuration, half of which are counted. *It could show*: the largest ε that so many runs can prove at this level, for a mechanism that gives "
        "everything away. So a black box would find noise that is missing, repeated or far too small; it cannot see a few per cent, which is what replays are for.",
        grid(
            [
                "mechanism",
                "claimed",
                "status",
                "configurations",
                "fits",
                "largest ratio",
                "share of ε, replay",
                "ε, black box",
                "its runs",
                "it could show",
                "verdict",
            ],
            rows,
        ),
        *shown,
        "## Slack",
        f"Rounds that no neighbours moved by {TIGHT:g} of their diameter, and why.",
        grid(["mechanism", "round", "ratio", "set", "why"], slack),
    ]


def _claim_row(name: str, part: AuditResult) -> list[str]:
    return [
        f"`{part.mechanism}`",
        f"{part.claimed}",
        part.status,
        name + (", control" if "control" in part.worst else ""),
        part.instrument,
        part.shown(),
        "exact" if part.confidence == 1 else f"{100 * part.confidence:g} %",
        f"{part.trials:,}",
        part.verdict,
    ]


def _caught(bugs: list[list[str]]) -> list[str]:
    caught = sum(row[2] == "caught" for row in bugs)
    clean = all(row[2] == "nothing found" for row in bugs if row[0] == "none")
    word = "reached" if caught == len(PLANTED) and clean else "**not reached**"
    return ["planted bugs that are caught, and nothing where none is planted", str(len(PLANTED)), str(caught), word]


def _after_seeing_results() -> str:
    """What was chosen after results had been seen, and with what else it was then measured."""
    named = "; ".join(f"{attack.chosen} (`{name}`)" for name, attack in ATTACKS.items() if attack.chosen)
    return (
        f"*Chosen after results were seen.* Some settings were chosen by what an attack showed in trials with seed 0: {named}. What stands here was then measured once, with data, "
        f"models and noise of seed {ATTACK_SEED}, which had not been used before; with another seed `discreet.audit(None, attack=..., random_state=...)` does the same. "
        "Which event is counted is always chosen on runs that are not counted."
    )


def _attack_section(name: str, attack: Attack, result: AuditResult) -> str:
    lines = [
        f"* *{part.instrument}*: {_shown(part)}. Neighbours: {part.worst}. {' '.join(_sentence(note) for note in part.notes)}"
        for part in result.parts or (result,)
    ]
    figure = f"![{name}](audit/{name}.png)"
    return "\n\n".join([f"### {name}", f"{attack.title} {attack.setting}", "\n".join(lines), figure])


def _shown(part: AuditResult) -> str:
    """What a result shows, in the words that warnings quote."""
    words = []
    if part.epsilon_lower > part.claimed.epsilon:
        words.append(f"a claimed epsilon of {part.claimed.epsilon:g} is at least {rounded_down(part.epsilon_lower)}")
    if part.delta_lower > (part.claimed.delta or 0.0):
        words.append(
            f"a delta of at least {rounded_down(part.delta_lower)} where {part.claimed.delta or 0:g} is claimed"
        )
    return ", and ".join(words) or f"nothing beyond the claim ({part.shown()})"


def _sentence(note: str) -> str:
    return f"{note[0].upper()}{note[1:]}"


def _family_row(family: str, members: list[tuple[Configuration, AuditResult]]) -> list[str]:
    results = [result for _, result in members]
    boxes = [part for result in results for part in result.parts if part.instrument == "black box"]
    claims = sorted({str(result.claimed) for result in results})
    ratio = max(moved.ratio for result in results for moved in result.rounds)
    violated = any(result.violated or any(part.violated for part in result.parts) for result in results)
    return [
        f"`{family}`",
        " / ".join(claims),
        "proved",
        str(len(members)),
        f"{sum(part.trials for result in results for part in result.parts):,}",
        f"{ratio:.4f}",
        f"{max(result.epsilon_lower / result.claimed.epsilon for result in results):.2f}",
        f"{max(part.epsilon_lower for part in boxes):.2f}",
        _between([part.trials // 2 for part in boxes], "{:,}"),
        _between([_power(part) for part in boxes], "{:.1f}"),
        "**a violation**" if violated else "no violation found",
    ]


def _power(part: AuditResult) -> float:
    return most_epsilon(part.trials // 2, part.claimed.delta or 0.0, part.confidence)


def _between(values: list[float] | list[int], form: str) -> str:
    """The least and the largest, or one number if they read the same."""
    ends = list(dict.fromkeys(form.format(end) for end in (min(values), max(values))))
    return " to ".join(ends)


def _joined(result: AuditResult, rounds: list[Moved]) -> AuditResult:
    picture = {"kind": "ratios", "names": [moved.name for moved in rounds], "ratios": [moved.ratio for moved in rounds]}
    return AuditResult.from_dict(result.to_dict() | {"picture": picture})


def _figure(result: AuditResult, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = len(result.picture.get("names", ()))
    figure, (ax,) = axes(width=7.2, height=max(2.6, 0.8 + 0.2 * rows))
    result.plot(ax)
    if rows:
        ax.set_title(result.mechanism, loc="left", fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})


def table(
    results: dict[str, AuditResult], configurations: list[tuple[Configuration, AuditResult]]
) -> Iterator[list[Any]]:
    """Every line of every result."""
    yield [
        "mechanism",
        "configuration",
        "attack",
        "instrument",
        "neighbours",
        "epsilon",
        "delta",
        "epsilon_lower",
        "delta_lower",
        "confidence",
        "runs",
        "violated",
        "round",
        "ratio",
    ]
    for words, result in [*results.items(), *((c.words, r) for c, r in configurations)]:
        for part in result.parts or (result,):
            head = [
                part.mechanism,
                words,
                part.attack,
                part.instrument,
                part.neighbours,
                part.claimed.epsilon,
                part.claimed.delta or 0.0,
            ]
            yield [
                *head,
                f"{part.epsilon_lower:.6g}",
                f"{part.delta_lower:.6g}",
                part.confidence,
                part.trials,
                part.violated,
                "",
                "",
            ]
            for moved in part.rounds:
                yield [*head, "", "", "", "", "", moved.name, f"{moved.ratio:.6f}"]
