"""The second half of the demonstration: for whom treatment works, as a function and by segment."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.frames import encoded
from discreet.datasets._demo import HOME, TREATMENT, effect_at
from discreet.estimators.cate import CATE
from discreet.estimators.uplift import Uplift
from discreet.releases.function import EffectRelease
from discreet.releases.function_plots import gains_figure
from discreet.releases.page import inline_figure
from discreet.releases.plots import GREEN, effect_figure, segments_figure
from discreet.releases.report import save_page
from discreet.releases.segments import UpliftRelease

if TYPE_CHECKING:
    from rich.console import Console

FILES = {
    "effect": "effect.json",
    "effect_page": "effect.html",
    "segments": "segments.json",
    "segments_page": "segments.html",
    "people": "people.csv",
}
BY: dict[str, Any] = {"severity": [0, 2, 4, 7, 20], "sex": "levels"}
# Patients that anybody could ask about; none of them is in the records.
_AGES, _SEVERITIES, _SEXES, _WARDS = [45.0, 60.0, 75.0], [1.0, 4.0, 9.0], ["f", "m", "f"], ["north", "east", "south"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Two releases, and what is true of the patients and segments that they are asked about."""

    function: EffectRelease
    segments: UpliftRelease
    people: Any
    people_truth: Float
    segment_truth: Float
    along: tuple[Float, Float]
    """severity, and the true effect there"""


def people() -> Any:
    """Three patients as a table."""
    return pa.table({"age": _AGES, "severity": _SEVERITIES, "sex": _SEXES, "ward": _WARDS})


def publish_function(file: Path, bounds: Bounds, epsilon: float, delta: float, outcome: str) -> EffectRelease:
    """The effect as a function of the covariates."""
    cate = CATE(epsilon=epsilon, delta=delta, bounds=bounds)
    release: EffectRelease = cate.fit_table(str(file), outcome=outcome, treatment=TREATMENT).release_
    return release


def publish_segments(file: Path, bounds: Bounds, epsilon: float) -> UpliftRelease:
    """Effects by segment of a trial, without any delta."""
    uplift = Uplift(epsilon=epsilon, bounds=bounds, by=BY, propensity=0.5)
    release: UpliftRelease = uplift.fit_table(str(file), outcome=HOME, treatment=TREATMENT).release_.single()
    return release


def compared(function: EffectRelease, segments: UpliftRelease, trial: Any, effects: Float) -> Effects:
    """Both releases beside the truth, which is known because the patients were generated."""
    asked, bounds = people(), function.bounds
    x = encoded(trial.select(list(bounds.names)), bounds)
    cell = segments.partition.cells(x)
    counts = np.maximum(np.bincount(cell, minlength=segments.partition.count), 1)
    severity = np.linspace(0.0, 20.0, 200)
    return Effects(
        function=function,
        segments=segments,
        people=asked,
        people_truth=effect_at(np.array(_SEVERITIES)),
        segment_truth=np.bincount(cell, effects, segments.partition.count) / counts,
        along=(severity, effect_at(severity)),
    )


def save(effects: Effects, out: Path) -> None:
    """Both releases, their pages, and the patients that one may ask about."""
    import pyarrow.csv as pcsv

    effects.function.save(out / FILES["effect"])
    effects.segments.save(out / FILES["segments"])
    pcsv.write_csv(effects.people, out / FILES["people"])
    save_page(effects.function, out / FILES["effect_page"], title="Effect of treatment on days in hospital, by patient")
    save_page(effects.segments, out / FILES["segments_page"], title="Effect of treatment on days at home, by segment")


def people_rows(effects: Effects) -> list[tuple[str, str, str, str]]:
    """Each patient with an effect, an interval and the truth."""
    release, asked = effects.function, effects.people
    low, high = release.effect_interval(asked)
    rows = zip(asked.to_pylist(), release.effect(asked), low, high, effects.people_truth, strict=True)
    return [
        (
            f"{person['sex']}, {person['age']:.0f}, severity {person['severity']:.0f}, {person['ward']}",
            f"{effect:.2f}",
            f"{a:.2f} to {b:.2f}",
            f"{truth:.2f}",
        )
        for person, effect, a, b, truth in rows
    ]


def segment_rows(effects: Effects) -> list[tuple[str, str, str, str]]:
    """Each segment with an effect, an interval and the truth."""
    return [
        (row["segment"], f"{row['effect']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}", f"{truth:.2f}")
        for row, truth in zip(effects.segments.table(), effects.segment_truth, strict=True)
    ]


def show(effects: Effects, console: "Console") -> None:
    """Print both as tables."""
    say = partial(console.print, highlight=False)
    name = max(effects.function.importance, key=lambda name: effects.function.importance[name])
    share = f"{100 * effects.function.importance[name]:.0f} %"
    console.print(_table("For whom? (CATE) Effect on days in hospital", "a patient", people_rows(effects)))
    say(
        f"{effects.function.guarantee.budget}: the effect as a function, which answers any number of questions. "
        f"Of what makes effects differ, {share} goes with {name}."
    )
    console.print()
    console.print(_table("Whom first? (Uplift) Effect on days at home, in a trial", "segment", segment_rows(effects)))
    curve = effects.segments.uplift_curve()
    half = float(np.interp(0.5, curve.share, curve.value))
    say(
        f"{effects.segments.guarantee.budget}, no delta: treating half of the patients is worth {half:.2f} days per "
        f"patient of all if the best segments come first, and {curve.value[-1] / 2:.2f} at random."
    )


def figures(effects: Effects) -> dict[str, Any]:
    """Drawn for the page, the truth beside them."""
    along = effect_figure(effects.function, "severity")
    along.axes[0].plot(*effects.along, color=GREEN, linewidth=1.8, linestyle=(0, (5, 3)))
    release = effects.segments
    ends = release.interval()
    segments = segments_figure(release.partition.labels(), release.effects, ends, "effect on days at home")
    truth = effects.segment_truth
    segments.axes[0].plot(truth, range(len(truth)), "|", color=GREEN, markersize=14, markeredgewidth=2.5, zorder=4)
    return {
        "along": inline_figure(along, "The effect along severity, its bands, and the truth"),
        "segments": inline_figure(segments, "Effects by segment, their intervals, and the truth"),
        "gains": inline_figure(
            gains_figure(release.uplift_curve(), "95 %"), "What treating the best segments first is worth"
        ),
    }


def _table(title: str, first: str, rows: list[tuple[str, str, str, str]]) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in (first, "effect", "95 % interval", "truth"):
        table.add_column(heading, justify="left" if heading == first else "right")
    for row in rows:
        table.add_row(*row)
    return table
