"""Parts of the page that go cell by cell: trials, shapes, and the responses of ACIC 2016."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd

from evidence.average.report import grid
from evidence.trust import designs
from evidence.trust.figures import EFFICIENT, intervals, proportion, refused, shown
from evidence.trust.sections import Found, Section
from evidence.trust.targets import (
    ADJUSTED_WIDTH,
    LARGE_SHAPE,
    LARGE_SHAPE_WIDTH,
    at_most,
    cells_cover,
    cells_narrow,
)


def trials(found: Found) -> Section:
    """Trials of known arms."""
    frames = {method: _placed(found, method, ("outcome", "share", "n")) for method in ("DifferenceInMeans", "ATE")}
    means, adjusted = (_cells(frames[method]) for method in ("DifferenceInMeans", "ATE"))
    beside = {
        name: float(np.median(adjusted[name]["width"]) / np.median(means[name]["width"]))
        for name in adjusted
        if name in means
    }
    verdicts = [
        cells_cover(f"{method}: coverage in every cell", {name: cell["covered"] for name, cell in cells.items()})
        for method, cells in (("DifferenceInMeans", means), ("ATE", adjusted))
    ]
    verdicts.append(cells_narrow("ATE: median width over DifferenceInMeans'", beside, ADJUSTED_WIDTH))
    failed = [reason for method in frames for reason in refused((row for _, row in found), method)]
    verdicts.append(at_most("trials that a fit refused", float(len(failed)) if found else None, 0.0))
    lines = [
        [
            name,
            f"{len(cell)}",
            proportion(cell["covered"]),
            shown(cell["relative"]),
            *_adjusted(adjusted.get(name), beside.get(name)),
        ]
        for name, cell in means.items()
    ]
    head = ["outcome, share of treated, n", "trials", "DifferenceInMeans", "width", "ATE", "width", "ATE's over"]
    parts = [
        f"Trials whose share of treated is known, ε = {designs.EPSILON:g}, δ = {designs.DELTA:g}; events are the share "
        "among controls, and treatment adds a fifth. Each cell shows the coverage of 95 % intervals and their median "
        "width over that of the non-private difference of means (2 × 1.96 standard errors by theory); `ATE` adjusts "
        "for one covariate or three, and the last column is its width over that of `DifferenceInMeans`, which says "
        "nothing about `ATE` where the other interval is too narrow.",
        "### By outcome",
        grid(["outcome", "trials", "DifferenceInMeans", "ATE"], _by(frames, "outcome")),
        "### By share of treated",
        grid(["share", "trials", "DifferenceInMeans", "ATE"], _by(frames, "share")),
        "### By n",
        grid(["n", "trials", "DifferenceInMeans", "ATE"], _by(frames, "n")),
        "### Cells",
        grid(head, lines),
    ]
    return Section(verdicts=verdicts, parts=parts, table=_summary(frames))


def shapes(found: Found) -> Section:
    """Confounding of hard shapes."""
    frame = _placed(found, "ATE", ("shape", "n"))
    cells = _cells(frame)
    large = {name: float(np.median(cell["ratio"])) for name, cell in cells.items() if cell["n"].iloc[0] >= LARGE_SHAPE}
    verdicts = [
        cells_cover("coverage in every cell", {name: cell["covered"] for name, cell in cells.items()}),
        cells_narrow(f"median width over the bound's, n from {LARGE_SHAPE:,} on, every cell", large, LARGE_SHAPE_WIDTH),
    ]
    parts = [
        "Observational studies with five covariates, of which one or two confound by a function that straight lines "
        f"and squares do not fit; ε = {designs.EPSILON:g}, δ = {designs.DELTA:g}. Each cell shows the coverage of "
        "`ATE`'s 95 % intervals, their median width over the efficiency bound's, and the bias in standard errors.",
        grid(
            ["shape, n", "studies", "coverage", "width", "bias", "seconds"],
            [
                [
                    name,
                    f"{len(cell)}",
                    proportion(cell["covered"]),
                    shown(cell["ratio"]),
                    f"{float(np.mean((cell['estimate'] - cell['truth']) / cell['efficiency'])):+.2f}",
                    shown(cell["seconds"]),
                ]
                for name, cell in cells.items()
            ],
        ),
    ]
    return Section(verdicts=verdicts, parts=parts, table=_summary({"ATE": frame}))


def acic(found: Found) -> Section:
    """The responses of ACIC 2016."""
    ours = _placed(found, "ATE", ("response", "epsilon"), kind="response")
    rows = [(job, row | {"boosted": row}) for job, row in found if job.kind == "response boosted"]
    boosted = _placed(rows, "boosted", ("response",), kind="response boosted")
    by_budget = {f"ε = {epsilon:g}": cell for epsilon, cell in ours.groupby("epsilon")} if len(ours) else {}
    lines = [
        [name, f"{len(cell)}", proportion(cell["covered"]), shown(cell["width"])] for name, cell in by_budget.items()
    ]
    if len(boosted):
        own = [f"{len(boosted)}", proportion(boosted["covered"]), shown(boosted["width"])]
        lines.append(["boosted AIPW, not private", *own])
    verdicts = [
        cells_cover("ATE: coverage at every budget", {name: cell["covered"] for name, cell in by_budget.items()})
    ]
    columns = [frame for frame in (*by_budget.values(), boosted) if len(frame)]
    each = [
        [f"{which}", *(proportion(frame[frame["response"] == which]["covered"]) for frame in columns)]
        for which in sorted(set(ours["response"]) if len(ours) else ())
    ]
    parts = [
        "ACIC 2016: 4,802 births, 58 real covariates, ten simulated responses; `ATE` with several draws of noise for "
        "each, boosted AIPW with several draws of folds. The truth is the mean effect of these births, so that "
        "intervals for a population are a little wider than they need be; replications share a response's records.",
        grid(["", "intervals", "coverage", "median width"], lines) if lines else "The files were not there.",
        grid(["response", *by_budget, "boosted AIPW"][: len(columns) + 1], each) if each else "",
    ]
    table = _summary({"ATE": ours, "boosted AIPW": boosted})
    return Section(verdicts=verdicts, parts=[part for part in parts if part], table=table)


def _placed(found: Found, method: str, names: tuple[str, ...], kind: str | None = None) -> pd.DataFrame:
    """Intervals of a method, with the names of their cells."""
    rows = [row | dict(zip(names, job.place, strict=True)) for job, row in found if kind is None or job.kind == kind]
    frame = intervals(rows, method)
    if len(frame):
        places = frame[list(names)].itertuples(index=False)
        frame["cell"] = [", ".join(_word(value) for value in place) for place in places]
        if "unadjusted" in frame:
            frame["relative"] = frame["width"] / (EFFICIENT * frame["unadjusted"])
    return frame


def _adjusted(cell: pd.DataFrame | None, beside: float | None) -> list[str]:
    """Coverage and width of `ATE` in a cell, where it was run."""
    if cell is None or beside is None:
        return ["", "", ""]
    return [proportion(cell["covered"]), shown(cell["relative"]), f"{beside:.3g}"]


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | np.integer) else f"{value}"


def _cells(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Lines of each cell, in the order in which cells were listed."""
    if frame.empty:
        return {}
    lists: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(frame["cell"]):
        lists[name].append(place)
    return {name: frame.iloc[places] for name, places in lists.items()}


def _by(frames: dict[str, pd.DataFrame], name: str) -> list[list[str]]:
    means, adjusted = frames["DifferenceInMeans"], frames["ATE"]
    lines = []
    for value in dict.fromkeys(means[name]) if len(means) else ():
        some = [frame[frame[name] == value] if len(frame) else frame for frame in (means, adjusted)]
        figures = [proportion(frame["covered"]) if len(frame) else "" for frame in some]
        lines.append([_word(value), f"{len(some[0]):,}", *figures])
    return lines


def _summary(frames: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One line for each cell and method."""
    lines = []
    for method, frame in frames.items():
        for name, cell in _cells(frame).items():
            error = cell["estimate"] - cell["truth"]
            line = {"cell": name, "method": method, "intervals": len(cell), "coverage": cell["covered"].mean()}
            line |= {"median_width": cell["width"].median(), "bias": error.mean(), "rmse": np.sqrt((error**2).mean())}
            lines.append(line | {"truth": cell["truth"].mean(), "median_over_bound": cell["ratio"].median()})
    return pd.DataFrame(lines)
