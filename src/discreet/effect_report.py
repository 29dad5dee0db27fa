"""Pages about effects that differ between people, for readers who have never heard of differential privacy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.effect_plots import gains_figure, importance_figure
from discreet.effect_release import EffectRelease
from discreet.plots import effect_figure, segments_figure
from discreet.publishing import rounds
from discreet.report import bounds_rows, guarantee_facts, guess, page, picture
from discreet.uplift_release import UpliftRelease

# A picture each for the covariates that matter most, while they have this share of the effect's variance.
_PICTURES, _LEAST = 4, 0.01
# Segments whose effects differ by so many standard deviations differ; their variances are estimates.
_APART = 2.2


def render_effect(release: EffectRelease, *, title: str | None = None) -> str:
    """The page about an effect function: HTML with its style and pictures inside, so that it needs no network."""
    ranked = sorted(release.importance, key=lambda name: -release.importance[name])
    drawn = [name for name in ranked[:_PICTURES] if release.importance[name] >= _LEAST] or ranked[:1]
    pictures: list[tuple[str, Any]] = []
    if _differs(release):
        shares = picture(importance_figure(release.importance), "Shares of the effect's variance by covariate")
        pictures.append(("What the effect goes with: the share of its variance that each covariate has.", shares))
    pictures += [
        (
            f"The effect along {name}, the other covariates averaged. Bands are 95 % and 80 % intervals at each point.",
            picture(effect_figure(release, name), f"The effect along {name}"),
        )
        for name in drawn
    ]
    numbers = [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    numbers += [(f"share of {name}", f"{100 * share:.0f} %") for name, share in release.importance.items()]
    # Thousands of numbers that nobody reads: the file has them.
    plain = release.to_dict() | {"factor": "see the file"}
    return _page(release, title, finding(release), pictures, numbers, None, plain)


def render_segments(release: UpliftRelease, *, title: str | None = None) -> str:
    """The page about effects by segment: HTML with its style and pictures inside, so that it needs no network."""
    effects = segments_figure(
        release.partition.labels(), release.effects, release.interval(), "effect of treatment (95 % intervals)"
    )
    pictures = [
        ("The effect in each segment, with 95 % intervals.", picture(effects, "The effect in each segment")),
        (
            "What it is worth to treat the segments with the largest effects first, per person of all, treated or not. "
            "The band is a 95 % interval at each point.",
            picture(gains_figure(release.uplift_curve(), "95 %"), "What treating the best segments first is worth"),
        ),
    ]
    numbers = [("segments", str(release.partition.count))]
    numbers += [(name, str(value)) for name, value in release.settings.items() if name != "segments"]
    return _page(release, title, segments_finding(release), pictures, numbers, release.shown(), release.to_dict())


def finding(release: EffectRelease) -> str:
    """What an effect function says, in one sentence or two."""
    if not _differs(release):
        return f"{_average(release)} The data do not show that it differs between people."
    name = max(release.importance, key=lambda name: release.importance[name])
    return f"{_average(release)} It differs between people, most of all with {name}."


def _differs(release: EffectRelease) -> bool:
    return release.varies and release.reference.get("chance_that_it_varies", 1.0) >= 0.5


def segments_finding(release: UpliftRelease) -> str:
    """What effects by segment say, in one sentence or two."""
    most, least = int(np.argmax(release.effects)), int(np.argmin(release.effects))
    if release.effects[most] - release.effects[least] <= _APART * release.difference_sd(most, least):
        return f"{_average(release)} The data do not show that it differs between segments."
    labels, effects = release.partition.labels(), release.effects
    return (
        f"{_average(release)} It is largest where {labels[most]}: about {effects[most]:.2g}; and smallest where "
        f"{labels[least]}: about {effects[least]:.2g}."
    )


def _average(release: EffectRelease | UpliftRelease) -> str:
    low, high = release.ate_interval()
    return f"On average, the effect is {release.ate():.3g} (95 % interval {low:.3g} to {high:.3g})."


def _page(
    release: EffectRelease | UpliftRelease,
    title: str | None,
    found: str,
    pictures: Sequence[tuple[str, Any]],
    numbers: Sequence[tuple[str, str]],
    table: tuple[list[str], list[list[str]]] | None,
    plain: dict[str, Any],
) -> str:
    low, high = release.ate_interval()
    first = [("average effect", f"{release.ate():.4g}"), ("95 % interval", f"{low:.4g} to {high:.4g}")]
    first += [("records", release.records)]
    return page(
        "effect.html",
        title=title or release.title,
        finding=found,
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        pictures=pictures,
        table=table,
        notes=release.notes,
        methods=release.methods(),
        numbers=[*first, *numbers],
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(plain, indent=1, ensure_ascii=False),
    )
