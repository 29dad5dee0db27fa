"""A page about an audit."""

from __future__ import annotations

from pathlib import Path

from discreet.audit.result import AuditResult
from discreet.releases.page import inline_figure, page
from discreet.releases.plots import require


def render(result: AuditResult) -> str:
    """The page as text: HTML with its style and figures inside."""
    require()
    from matplotlib.figure import Figure

    figures = []
    for part in result.parts or (result,):
        rows = len(part.picture.get("names", ()))
        figure = Figure(figsize=(8.2, max(3.0, 0.8 + 0.22 * rows)))
        part.plot(figure.subplots())
        figure.tight_layout()
        caption = f"{part.instrument}: {part.shown()}. Neighbours: {part.worst}."
        figures.append((caption, inline_figure(figure, caption)))
    facts = [
        ("Claimed", f"{result.claimed} ({result.neighbours}, {result.status})"),
        ("Attack", f"{result.attack} ({result.instrument})"),
        ("Shown", result.shown()),
        ("Confidence", "exact" if result.confidence == 1 else f"{100 * result.confidence:g} %"),
        ("Runs", f"{result.trials:,}"),
        ("Worst neighbours", result.worst),
    ]
    return page(
        "audit.html",
        title=f"Audit of {result.mechanism}",
        result=result,
        finding=f"{result.mechanism}: {result.verdict}.",
        facts=facts,
        figures=figures,
        notes=[(part.instrument, note) for part in result.parts or (result,) for note in part.notes],
        rounds=[(moved.name, f"{moved.ratio:.3f}", moved.neighbours) for moved in result.rounds],
        json=result.to_json(),
    )


def save_page(result: AuditResult, path: str | Path) -> None:
    """Write the page of `render` to a file."""
    Path(path).write_bytes(render(result).encode())
