"""One self-contained page about a release, for readers who have never heard of differential privacy."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.exceptions import UnsupportedRelease
from discreet.releases.arms.page import arm_facts, arm_figures, render_arms
from discreet.releases.arms.release import ArmsRelease
from discreet.releases.arms.segments import ArmSegmentsRelease
from discreet.releases.arms.segments_page import arm_segments_facts, arm_segments_figures, render_arm_segments
from discreet.releases.average import Release
from discreet.releases.combined.page import combined_facts, combined_figures, render_combined
from discreet.releases.combined.release import CombinedRelease
from discreet.releases.diagnostics.figures import diagnostic_figures, diagnostic_section
from discreet.releases.function import EffectRelease
from discreet.releases.function_plots import gains_figure, importance_figure
from discreet.releases.local_effects import page as local_effects
from discreet.releases.local_effects.release import LocalEffectRelease
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.parts import charts
from discreet.releases.parts.average_page import facts, figures, render
from discreet.releases.parts.charts import Charts
from discreet.releases.parts.labels import effect_axis, titled
from discreet.releases.plots import effect_figure, segments_figure
from discreet.releases.policies.page import policy_facts, policy_figures, render_policy_value
from discreet.releases.policies.value import PolicyValueRelease
from discreet.releases.protocol import AnyRelease
from discreet.releases.segments import UpliftRelease
from discreet.releases.suggested.page import render_suggestion, suggestion_facts, suggestion_figures
from discreet.releases.suggested.release import SuggestedBounds
from discreet.releases.survival import report as survival
from discreet.releases.wording import rounds

if TYPE_CHECKING:
    pass

# A figure each for the covariates that matter most, while they have this share of the effect's variance.
_MOST_FIGURES, _LEAST = 4, 0.01
# Segments whose effects differ by so many standard deviations differ; their variances are estimates.
_SEGMENTS = "The effect in each segment; each 95 % interval is one for its own segment, not for all at once."
_APART = 2.2


def render_effect(release: EffectRelease, *, title: str | None = None) -> str:
    """The page about an effect function: HTML with its style and figures inside, so that it needs no network."""
    ranked = sorted(release.importance, key=lambda name: -release.importance[name])
    drawn = [name for name in ranked[:_MOST_FIGURES] if release.importance[name] >= _LEAST] or ranked[:1]
    figures_: list[tuple[str, Any]] = []
    if _differs(release):
        shares = inline_figure(importance_figure(release.importance), "Shares of the effect's variance by covariate")
        figures_.append(("What the effect goes with: the share of its variance that each covariate has.", shares))
    figures_ += [
        (
            f"The effect along {release.bounds.label(name)}, the other covariates averaged. Bands are 95 % and "
            "80 % intervals at each point.",
            inline_figure(effect_figure(release, name), f"The effect along {release.bounds.label(name)}"),
        )
        for name in drawn
    ]
    numbers = [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    numbers += [
        (f"share of {release.bounds.label(name)}", f"{100 * share:.0f} %") for name, share in release.importance.items()
    ]
    numbers += release.arms_in_words()
    # Thousands of numbers that nobody reads: the file has them.
    plain = release.to_dict() | {"factor": "see the file"}
    found = effect_finding(release)
    return _page(release, title, found, figures_, numbers, None, plain, diagnostics=diagnostic_section(release))


def render_segments(release: UpliftRelease, *, title: str | None = None) -> str:
    """The page about effects by segment: HTML with its style and figures inside, so that it needs no network."""
    effects = segments_figure(
        release.partition.labels(),
        release.effects,
        release.interval(),
        f"{effect_axis(release.bounds)} (95 % intervals)",
    )
    figures_ = [
        (_SEGMENTS, inline_figure(effects, "The effect in each segment")),
        (
            "What it is worth to treat the segments with the largest effects first, per person of all, treated or not. "
            "The band is a 95 % interval at each point.",
            inline_figure(
                gains_figure(release.uplift_curve(), "95 %"), "What treating the best segments first is worth"
            ),
        ),
    ]
    numbers = [("segments", str(release.partition.count))]
    numbers += [(name, str(value)) for name, value in release.settings.items() if name != "segments"]
    return _page(release, title, segments_finding(release), figures_, numbers, release.shown(), release.to_dict())


def effect_facts(release: EffectRelease) -> dict[str, Any]:
    """What a page of the service says about an effect function."""
    found = _facts(release)
    return found | {"finding": effect_finding(release), "numbers": [*found["numbers"], *release.arms_in_words()]}


def segment_facts(release: UpliftRelease) -> dict[str, Any]:
    """What a page of the service says about effects by segment."""
    return _facts(release) | {"finding": segments_finding(release), "table": release.shown()}


def _facts(release: EffectRelease | UpliftRelease) -> dict[str, Any]:
    low, high = release.ate_interval()
    numbers = [("average effect", f"{release.ate():.4g}"), ("95 % interval", f"{low:.4g} to {high:.4g}")]
    return {
        "estimate": f"{release.ate():.3g}",
        "interval": f"{low:.3g} to {high:.3g}",
        "numbers": [*numbers, ("records", release.records)],
        "methods": release.methods(),
    }


def effect_figures(release: EffectRelease, most: int) -> list[tuple[str, Any]]:
    """Captions and figures of an effect function: along the covariates that matter most, and what matters how much."""
    ranked = sorted(release.importance, key=lambda name: -release.importance[name])[:most]
    along = [
        (
            f"The effect along {release.bounds.label(name)}, the other covariates averaged; bands are 95 % and "
            "80 % intervals.",
            effect_figure(release, name),
        )
        for name in ranked
    ]
    if most == 1:
        return along
    caption = "What the effect goes with: each covariate's share of its variance."
    shares = [(caption, importance_figure(release.importance))] if release.varies else []
    return [*along, *shares, *diagnostic_figures(release)]


def segment_figures(release: UpliftRelease, most: int) -> list[tuple[str, Any]]:
    """Captions and figures of effects by segment, and of what treating the best first is worth."""
    words = f"{effect_axis(release.bounds)} (95 % intervals)"
    effects = segments_figure(release.partition.labels(), release.effects, release.interval(), words)
    gains = gains_figure(release.uplift_curve(), "95 %")
    return [
        (_SEGMENTS, effects),
        ("What treating the segments that gain most first is worth.", gains),
    ][:most]


def effect_finding(release: EffectRelease) -> str:
    """What an effect function says, in one sentence or two."""
    if not _differs(release):
        return f"{_average(release)} The data do not show that it differs between people."
    name = max(release.importance, key=lambda name: release.importance[name])
    return f"{_average(release)} It differs between people, most of all with {release.bounds.label(name)}."


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
    on = titled(release.bounds, "effect", "{effect}")
    return f"On average, the {on} is {release.ate():.3g} (95 % interval {low:.3g} to {high:.3g})."


def _page(
    release: EffectRelease | UpliftRelease,
    title: str | None,
    found: str,
    figures_: Sequence[tuple[str, Any]],
    numbers: Sequence[tuple[str, str]],
    table: tuple[list[str], list[list[str]]] | None,
    plain: dict[str, Any],
    diagnostics: dict[str, Any] | None = None,
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
        figures=figures_,
        table=table,
        diagnostics=diagnostics,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How releases of one kind are shown.

    Parameters
    ----------
    release
        The class.
    page
        Makes a page of a release, given a title.
    figures
        Draws a release: captions and figures, no more than so many of what there may be any number of.
    facts
        What a page of the service says about a release.
    charts
        The numbers of what a page that can be touched draws.
    """

    release: Any
    page: Callable[..., str]
    figures: Callable[[Any, int], list[tuple[str, Any]]]
    facts: Callable[[Any], dict[str, Any]]
    charts: Callable[[Any], Charts] = lambda _: Charts()


KINDS = (
    Kind(
        release=Release,
        page=render,
        figures=figures,
        facts=facts,
        charts=charts.diagnosed,
    ),
    Kind(
        release=EffectRelease,
        page=render_effect,
        figures=effect_figures,
        facts=effect_facts,
        charts=charts.effect_function,
    ),
    Kind(
        release=UpliftRelease,
        page=render_segments,
        figures=segment_figures,
        facts=segment_facts,
        charts=charts.segments,
    ),
    Kind(
        release=PolicyValueRelease,
        page=render_policy_value,
        figures=policy_figures,
        facts=policy_facts,
        charts=charts.policy,
    ),
    Kind(
        release=CombinedRelease,
        page=render_combined,
        figures=combined_figures,
        facts=combined_facts,
        charts=charts.sites,
    ),
    Kind(
        release=survival.SurvivalRelease,
        page=survival.render,
        figures=survival.figures,
        facts=survival.facts,
        charts=charts.survival,
    ),
    Kind(
        release=LocalEffectRelease,
        page=local_effects.render,
        figures=local_effects.figures,
        facts=local_effects.facts,
        charts=charts.one_effect,
    ),
    Kind(
        release=ArmsRelease,
        page=render_arms,
        figures=arm_figures,
        facts=arm_facts,
        charts=charts.several_arms,
    ),
    Kind(
        release=ArmSegmentsRelease,
        page=render_arm_segments,
        figures=arm_segments_figures,
        facts=arm_segments_facts,
        charts=charts.arm_segments,
    ),
    Kind(
        release=SuggestedBounds,
        page=render_suggestion,
        figures=suggestion_figures,
        facts=suggestion_facts,
    ),
)
_BY_CLASS = {kind.release: kind for kind in KINDS}


def kind_of(release: object) -> Kind | None:
    """The kind of a release; None for releases of papers, which have neither page nor figures."""
    return _BY_CLASS.get(type(release))


def render_page(release: AnyRelease, *, title: str | None = None) -> str:
    """A page about a release, for readers who have never heard of differential privacy: HTML that needs no network.

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> page = dc.render_page(means.release_, title="Effect of the drug")
    >>> "<title>Effect of the drug</title>" in page
    True
    """
    kind = kind_of(release)
    if kind is None:
        raise UnsupportedRelease(
            "release must be of an estimator of the library, or combined, to become a page: print its summary instead."
        )
    return kind.page(release, title=title)


def save_page(release: AnyRelease, path: str | Path, *, title: str | None = None) -> None:
    """Write the page of `render_page` to a file (needs matplotlib and Jinja2).

    Examples
    --------
    >>> import discreet as dc
    >>> from discreet.datasets import private_ci_rct
    >>> trial = private_ci_rct(n=200, seed=1)
    >>> with dc.testing.seeded_noise(0):
    ...     means = dc.DifferenceInMeans(epsilon=1.0, bounds=trial.bounds).fit(trial.Y, trial.T, X=trial.X)
    >>> dc.save_page(means.release_, "page.html")
    """
    Path(path).write_bytes(render_page(release, title=title).encode())
