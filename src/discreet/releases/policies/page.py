"""The page about what a policy gains, and what the service says of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from discreet.data._arrays import Float
from discreet.releases.page import bounds_rows, guarantee_facts, guess, inline_figure, page
from discreet.releases.plots import segments_figure
from discreet.releases.policies.value import PolicyValueRelease
from discreet.releases.wording import rounds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CAPTION = "What the policy gains per person of all, and the effect among those whom it treats; 95 % intervals."


def render_policy_value(release: PolicyValueRelease, *, title: str | None = None) -> str:
    """The page about what a policy gains: HTML with its style and figures inside, so that it needs no network."""
    return page(
        "effect.html",
        title=title or release.title,
        finding=policy_finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        figures=[(_CAPTION, inline_figure(_figure(release), "The gain with its interval"))],
        table=(["treated"], [[name] for name in release.policy.treats]),
        notes=release.notes,
        methods=release.methods(),
        numbers=release.rows(),
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(release.to_dict(), indent=1, ensure_ascii=False),
    )


def policy_finding(release: PolicyValueRelease) -> str:
    """The result in one sentence."""
    least = release.lower()
    if least <= 0:
        return (
            f"The data do not show that the policy gains anything: its gain per person is estimated as "
            f"{release.estimate:.3g}, and may be as small as {least:.3g} (95 %, one-sided)."
        )
    return (
        f"The policy treats about {100 * release.share:.0f} % of the people and gains about {release.estimate:.3g} per "
        f"person of all, and at least {least:.3g} (95 %, one-sided)."
    )


def policy_facts(release: PolicyValueRelease) -> dict[str, Any]:
    """What a page of the service says about what a policy gains."""
    low, high = release.interval()
    return {
        "finding": policy_finding(release),
        "estimate": f"{release.estimate:.3g}",
        "interval": f"{low:.3g} to {high:.3g}",
        "numbers": release.rows(),
        "methods": release.methods(),
    }


def policy_figures(release: PolicyValueRelease, most: int) -> list[tuple[str, Figure]]:
    """Captions and figures: one, however many are wanted."""
    return [(_CAPTION, _figure(release))][:most]


def _figure(release: PolicyValueRelease) -> Figure:
    import numpy as np

    values: Float = np.array([release.estimate, release.effect_among])
    ends = np.array([release.interval(), release.uncertainty.interval(release.effect_among)])
    names = ["gain per person", "effect among treated"]
    return segments_figure(names, values, (ends[:, 0], ends[:, 1]), "in the outcome's unit (95 % intervals)")
