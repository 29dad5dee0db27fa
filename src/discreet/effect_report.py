"""A page about an effect function, for readers who have never heard of differential privacy."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.effect_release import FORMAT, EffectRelease
from discreet.plots import effect_figure
from discreet.publishing import read_json, rounds
from discreet.release import Release
from discreet.report import bounds_rows, guarantee_facts, guess, page, picture, save_report

# A picture each for the covariates that matter most.
_PICTURES = 4


def render_effect(release: EffectRelease, *, title: str | None = None) -> str:
    """The page as text: HTML with its style and pictures inside, so that it needs no network."""
    ranked = sorted(release.importance, key=lambda name: -release.importance[name])[:_PICTURES]
    low, high = release.ate_interval()
    numbers = [("average effect", f"{release.ate():.4g}"), ("95 % interval", f"{low:.4g} to {high:.4g}")]
    numbers += [("records", release.records)]
    numbers += [(name.replace("_", " "), f"{value:.4g}") for name, value in release.reference.items()]
    numbers += [(f"share of {name}", f"{100 * share:.0f} %") for name, share in release.importance.items()]
    plain = release.to_dict()
    # Thousands of numbers that nobody reads: the file has them.
    plain["factor"] = "see the file"
    return page(
        "effect.html",
        title=title or release.title,
        finding=finding(release),
        records=release.records.capitalize(),
        design="an observational study" if release.design == "observational" else "treatment assigned by design",
        guarantee=guarantee_facts(release.guarantee),
        guess=guess(release.guarantee),
        pictures=[(f"The effect along {name}", picture(effect_figure(release, name), name)) for name in ranked],
        notes=release.notes,
        methods=release.methods(),
        numbers=numbers,
        rounds=[
            (name, f"{count:,}" if count else "", "" if share is None else f"{100 * share:.3g} %")
            for name, count, share in rounds(release.guarantee.events)
        ],
        bounds=bounds_rows(release.bounds),
        json=json.dumps(plain, indent=1, ensure_ascii=False),
    )


def finding(release: EffectRelease) -> str:
    """The result in one sentence or two."""
    low, high = release.ate_interval()
    average = f"On average, the effect is {release.ate():.3g} (95 % interval {low:.3g} to {high:.3g})."
    if not release.varies or release.reference["chance_that_it_varies"] < 0.5:
        return f"{average} The data do not show that it differs between people."
    name = max(release.importance, key=lambda name: release.importance[name])
    return f"{average} It differs between people, most of all with {name}."


def save_effect_report(release: EffectRelease, path: str | Path, *, title: str | None = None) -> None:
    """Write the page of `render_effect` to a file."""
    Path(path).write_bytes(render_effect(release, title=title).encode())


def save_any_report(release: str | Path, path: str | Path, *, title: str | None = None) -> None:
    """Write the page about a release file, whichever kind of release it holds."""
    plain = read_json(release, "Release.save")
    if isinstance(plain, dict) and plain.get("format") == FORMAT:
        save_effect_report(EffectRelease.from_dict(plain), path, title=title)
    else:
        save_report(Release.from_dict(plain), path, title=title)
