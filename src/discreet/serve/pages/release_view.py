"""A release in words and numbers, as its page shows it."""

from __future__ import annotations

from typing import Any

from discreet.releases import report
from discreet.releases import report as effect_report
from discreet.releases.average import Release
from discreet.releases.function import EffectRelease
from discreet.releases.report import guarantee_facts, guess
from discreet.releases.segments import UpliftRelease
from discreet.serve.pages.rendering import minus


def described(made: Any) -> dict[str, Any]:
    """What a page about a release says."""
    shared: dict[str, Any] = {
        "guarantee": guarantee_facts(made.guarantee),
        "guess": guess(made.guarantee),
        "notes": made.notes,
        "bounds": made.bounds,
        "estimate": None,
        "interval": None,
        "sources": [],
        "table": None,
        "numbers": [],
        "methods": None,
    }
    if isinstance(made, Release):
        numbers = [(f"{100 - 100 * a:g} % interval", made.interval_text(a)) for a in (0.2, 0.1, 0.05, 0.01)]
        parts = made.uncertainty
        numbers += [("sampling error (sd)", f"{parts.sampling:.3g}"), ("privacy noise (sd)", f"{parts.privacy:.3g}")]
        numbers += [("noise in the adjustment (sd)", f"{parts.nuisance:.3g}"), ("records", made.records)]
        numbers += [(name.replace("_", " "), f"{value:.4g}") for name, value in made.reference.items()]
        return shared | {
            "finding": report.finding(made),
            "estimate": minus(made.text(made.estimate)),
            "interval": minus(made.interval_text()),
            "sources": report._sources(made),
            "numbers": numbers,
            "methods": made.methods(),
        }
    if isinstance(made, EffectRelease | UpliftRelease):
        low, high = made.ate_interval()
        numbers = [("average effect", f"{made.ate():.4g}"), ("95 % interval", f"{low:.4g} to {high:.4g}")]
        numbers += [("records", made.records)]
        if isinstance(made, EffectRelease):
            finding, table = effect_report.effect_finding(made), None
        else:
            finding, table = effect_report.segments_finding(made), made.shown()
        return shared | {
            "finding": finding,
            "estimate": minus(f"{made.ate():.3g}"),
            "interval": minus(f"{low:.3g} to {high:.3g}"),
            "table": table,
            "numbers": numbers,
            "methods": made.methods(),
        }
    settings = [(name, str(value)) for name, value in made.settings.items()]
    return shared | {"finding": f"{made.method}.", "numbers": settings}
