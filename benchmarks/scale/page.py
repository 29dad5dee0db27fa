"""The page about large tables, its table (CSV) and its figure, from measurements alone."""

# ruff: noqa: E501 (the page's sentences)

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import discreet
from benchmarks.scale.data import CUT, FEATURES, SEED, TREATED
from benchmarks.scale.measure import CORES, ENGINES, Plan
from benchmarks.scale.paper import on_paper
from benchmarks.scale.rivals.environments import RIVALS
from benchmarks.scale.targets import GB, Found, judge, peak, seconds
from benchmarks.scale.tasks import DELTA, EPSILON
from discreet.data.backends.scan import MANY_ROWS
from discreet.datasets import criteo_shaped
from evidence.reproduce.pages import axes, grid

_NAMES = {"duckdb": "DuckDB", "polars": "polars", "spark": f"Spark, local[{CORES}]", "postgresql": "PostgreSQL"}
_LIBRARIES = ("numpy", "duckdb", "polars", "pyarrow", "pyspark", "psycopg")


def page(found: Found, plan: Plan, command: str, figure: str) -> str:
    """Everything in Markdown."""
    libraries = ", ".join(f"{name} {_version(name)}" for name in _LIBRARIES)
    parts = [
        "# Large tables",
        f"Written by `{command}` on {date.today().isoformat()}; do not edit. Seconds depend on the machine: trust the ratios. "
        f"discreet {discreet.__version__}, Python {platform.python_version()}, {libraries}; {CORES} cores, {_memory()}.",
        f"Records are made up in the shape of Criteo's uplift trial (`discreet.datasets.criteo_shaped`, seeds from {SEED:,}): "
        f"{len(FEATURES)} features, 85 % treated, visits and conversions raised by the treatment; Parquet with row groups of a quarter of a million. "
        "Every job runs in a process of its own. Jobs of a table take turns in one run, after a first time that is not counted "
        "(unless it takes more than two minutes, where warming up does not matter); seconds are medians. Memory is the peak of the process "
        "and all that it has started (resident memory, pages that several share being shared out, read ten times a second); PostgreSQL's server is not in it.",
        "## What was to be reached",
        grid(
            ["aim", "wanted", "figure", ""],
            [[v.target, v.limit, v.figure, v.word] for v in judge(found, plan)],
        ),
        *_uplift(found.get("uplift", {})),
        *_averages(found, plan),
        *_processes(found.get(f"average-{plan.averages[1]}", {})),
        *_growth(found, plan, figure),
        *_by_terms(found.get("terms", {})),
        *_bits(found.get("bits", {})),
        *on_paper(found, plan),
    ]
    return "\n\n".join(parts) + "\n"


def rows(found: Found) -> Iterator[list[Any]]:
    """Every repetition of every job, for the CSV file."""
    yield ["piece", "job", "repetition", "seconds", "peak_bytes", "reason"]
    for name, piece in found.items():
        for job, one in piece["jobs"].items():
            for k, took in enumerate(one["seconds"], 1):
                yield [name, job, k, f"{took:.4f}", one["peak"], ""]
            if one["reason"]:
                yield [name, job, "", "", one["peak"], one["reason"]]


def write(found: Found, plan: Plan, folder: Path, *, stem: str, command: str) -> None:
    """The page, the table and the figure."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{stem}.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows(found))
    draw(found, plan, folder / f"{stem}.png")
    (folder / f"{stem}.md").write_text(page(found, plan, command, f"{stem}.png"), encoding="utf-8")


def _uplift(piece: Mapping[str, Any]) -> list[str]:
    if not piece:
        return []
    cells = " × ".join(f"{parts} cuts of {name}" for name, parts in CUT.items())
    ours = seconds(piece, "duckdb, ours")
    engines = [
        [
            _NAMES[engine],
            _seconds(piece, f"{engine}, raw"),
            _seconds(piece, f"{engine}, ours"),
            _smoothing(piece, f"{engine}, ours"),
            _times(seconds(piece, f"{engine}, ours"), seconds(piece, f"{engine}, raw")),
            _gigabytes(peak(piece, f"{engine}, raw")),
            _gigabytes(peak(piece, f"{engine}, ours")),
        ]
        for engine in ENGINES
    ]
    rivals = [
        [
            rival.title,
            rival.package,
            _seconds(piece, name),
            _times(ours, seconds(piece, name)),
            _gigabytes(peak(piece, name)),
        ]
        for name, rival in RIVALS.items()
    ]
    return [
        f"## Uplift: {piece['rows']:,} rows, 100 cells and two arms",
        f"Cells are {cells}. Without privacy an engine counts records and adds up outcomes by cell and arm (one `GROUP BY` with `COUNT` and `SUM`). "
        f"Ours is `Uplift(epsilon={EPSILON:g}).fit_table(...)` on the same engine and then `table()`: checks of every record, the private sums, smoothing, intervals; smoothing takes as long whatever the number of rows.",
        grid(
            [
                "engine",
                "without privacy, s",
                "`Uplift`, s",
                "of which `table()`",
                "ratio",
                "peak without",
                "peak of `Uplift`",
            ],
            engines,
        ),
        _agree(piece),
        "Other systems release a noisy count and a noisy sum for the same cells and arms at the same ε, without checks, smoothing or intervals, each in an environment "
        "of its own. Tumult Analytics is spared its own binning, which runs in Python: Spark finds the cells. The ratio is that of `Uplift` on DuckDB.",
        grid(["system", "installed", "seconds", "`Uplift` over it", "peak"], rivals),
        *_reasons(piece),
        _repetitions(piece),
    ]


def _agree(piece: Mapping[str, Any]) -> str:
    groups = [job["found"] for name, job in piece["jobs"].items() if name.endswith(", raw") and job["seconds"]]
    same = all(each == groups[0] for each in groups)
    return f"Without privacy, {len(groups)} engines find {'the same groups' if same else '**different groups**'}."


def _averages(found: Found, plan: Plan) -> list[str]:
    pieces = [found[f"average-{count}"] for count in plan.averages if f"average-{count}" in found]
    if not pieces:
        return []
    names = {
        "ate": "`ATE`",
        "ate, all rows": "`ATE`, all rows",
        "ate, all rows, few terms": "`ATE`, all rows, few terms",
    }
    names |= {
        "ate, all rows, few terms, compiled": "the same, compiled",
        "ate, design known": "`ATE`, design known, all rows",
    }
    names |= {"cate": "`CATE`"}
    lines = [
        [
            f"{piece['rows']:,}",
            _seconds(piece, "decode"),
            words,
            _seconds(piece, name),
            _times(seconds(piece, name), seconds(piece, "decode")),
            _gigabytes(peak(piece, name)),
            _terms(piece, name),
            str(len(piece["jobs"].get(name, {}).get("seconds", ()))),
            _interval(piece, name),
        ]
        for piece in pieces
        for name, words in names.items()
        if name in piece["jobs"]
    ]
    return [
        f"## ATE and CATE: {len(FEATURES)} covariates, streamed from Parquet",
        f"ε = {EPSILON:g}, δ = {DELTA:g}. *Decode* is the time in which Arrow reads the {len(FEATURES) + 2} columns once and does nothing with them. "
        f"Nothing is known about treatment, or its probability is (`propensity={TREATED:g}`, as in a trial). From a million rows on models are fitted to a sample by place "
        "and the effect is estimated from all rows; fits of *all rows* use every record in every pass. "
        f"More than {MANY_ROWS:,} rows are read by two processes. The last column is the last repetition's 95 % interval of the average effect; the truth is {_truth():.4f}. "
        f"The {plan.averages[-1]:,} rows are the file of {min(plan.averages[1], plan.averages[-1]):,} under several names, and part of it: intervals there take the copies for other people, and are too narrow for the truth.",
        grid(
            ["rows", "decode, s", "estimator", "seconds", "× decode", "peak", "terms", "repetitions", "interval"], lines
        ),
        *_arithmetic(found),
        *(reason for piece in pieces for reason in _reasons(piece)),
    ]


def _arithmetic(found: Found) -> list[str]:
    floor = found.get("floor", {})
    took = seconds(floor, "gram")
    if took is None:
        return []
    return [
        f"What the arithmetic takes by itself: `ATE` adjusts for {floor['terms']} terms in {floor['rounds']} rounds over the records. The second moments of so many columns alone, "
        f"a plain float64 matrix product in NumPy with the columns ready in memory and one thread, take {took:.1f} s for {floor['rows']:,} rows; decoding takes "
        f"{_plain(seconds(found.get(_average(floor['rows']), {}), 'decode'))}."
    ]


def _average(count: int) -> str:
    return f"average-{count}"


def _processes(piece: Mapping[str, Any]) -> list[str]:
    names = {"one": "ate, design known, one process", "two": "ate, design known"}
    one = seconds(piece, names["one"])
    if one is None:
        return []
    lines = [
        [words, _seconds(piece, job), _times(one, seconds(piece, job)), _gigabytes(peak(piece, job))]
        for words, job in names.items()
    ]
    return [
        f"## Processes: `ATE`, design known, {piece['rows']:,} rows",
        grid(["processes", "seconds", "times as fast as one", "peak of all together"], lines),
    ]


def _growth(found: Found, plan: Plan, figure: str) -> list[str]:
    piece = found.get("growth")
    if not piece:
        return []
    lines = [
        [f"{n:,}", str(p), f"{took:.2f}", f"{took / n * 1e6:.2f}", _gigabytes(most)]
        for n, p, took, most in _points(found, plan)
    ]
    return [
        "## Growth of `ATE` with rows and covariates, all rows in every pass",
        grid(["rows", "covariates", "seconds", "seconds a million rows", "peak"], lines),
        f"![Time and memory of ATE by rows and covariates]({figure})",
        *_reasons(piece),
        "The adjustment has more terms where the records support them (a public rule), so that time per row grows with the rows at first.",
    ]


def _by_terms(piece: Mapping[str, Any]) -> list[str]:
    if not piece:
        return []
    lines = [
        [_terms(piece, job), _seconds(piece, job), _times(seconds(piece, job), seconds(piece, "decode"))]
        for job in piece["jobs"]
        if job != "decode"
    ]
    return [
        f"## Growth of `ATE` with its terms: {piece['rows']:,} rows, all in every pass",
        grid(["terms", "seconds", "× decode"], lines),
    ]


def _terms(piece: Mapping[str, Any], job: str) -> str:
    found = piece["jobs"].get(job, {}).get("found") or {}
    return str(found.get("terms", "")) if isinstance(found, dict) else ""


def _bits(piece: Mapping[str, Any]) -> list[str]:
    if not piece:
        return []
    kinds = ("uplift", "ate")
    lines = [
        [_NAMES[engine], *(str(piece["jobs"][f"{engine}, {kind}"]["found"] or "") for kind in kinds)]
        for engine in ENGINES
    ]
    return [
        f"## The same integers: {piece['rows']:,} rows",
        "A digest of every sum before its noise, the noise being frozen so that later rounds can be compared, too.",
        grid(["engine", "`Uplift`", "`ATE`"], lines),
        *_reasons(piece),
    ]


def draw(found: Found, plan: Plan, path: Path) -> None:
    """Time and memory by rows, and time by covariates."""
    figure, (time, memory, wide) = axes(3, 11.0, 3.2)
    points = _points(found, plan)
    by_rows = sorted((n, took, most) for n, p, took, most in points if p == len(FEATURES))
    by_width = sorted((p, took) for n, p, took, _ in points if n == plan.features_at)
    time.loglog([n for n, _, _ in by_rows], [took for _, took, _ in by_rows], marker="o")
    time.set(xlabel="rows", ylabel="seconds", title=f"{len(FEATURES)} covariates")
    memory.semilogx([n for n, _, _ in by_rows], [most / GB for _, _, most in by_rows], marker="o")
    memory.set(xlabel="rows", ylabel="peak memory, GB", ylim=(0, None), title=f"{len(FEATURES)} covariates")
    wide.plot([p for p, _ in by_width], [took for _, took in by_width], marker="o")
    wide.set(xlabel="covariates", ylabel="seconds", ylim=(0, None), title=f"{plan.features_at:,} rows")
    figure.tight_layout()
    figure.savefig(path, dpi=150, bbox_inches="tight", metadata={"Software": None})


def _points(found: Found, plan: Plan) -> list[tuple[int, int, float, int]]:
    """Rows, covariates, seconds and peak memory of ATE, wherever it was measured on its own."""
    points: dict[tuple[int, int], tuple[float, int]] = {}
    for count in plan.averages:
        piece = found.get(f"average-{count}", {})
        took, most = seconds(piece, "ate, all rows"), peak(piece, "ate, all rows")
        if took is not None and most is not None:
            points[count, len(FEATURES)] = took, most
    for name in found.get("growth", {}).get("jobs", {}):
        count, p = (int(word) for word in name.split(", "))
        took, most = seconds(found["growth"], name), peak(found["growth"], name)
        if took is not None and most is not None:
            points.setdefault((count, p), (took, most))
    return [(n, p, *points[n, p]) for n, p in sorted(points, key=lambda cell: (cell[1], cell[0]))]


def _seconds(piece: Mapping[str, Any], job: str) -> str:
    times: Sequence[float] = piece["jobs"].get(job, {}).get("seconds", ())
    if not times:
        return "not run"
    middle = seconds(piece, job)
    extremes = f" ({min(times):.2f} to {max(times):.2f})" if len(times) > 1 else ""
    return f"{middle:.2f}{extremes}"


def _interval(piece: Mapping[str, Any], job: str) -> str:
    found = piece["jobs"].get(job, {}).get("found") or {}
    return "{:.4f} to {:.4f}".format(*found["interval"]) if "interval" in found else ""


def _truth() -> float:
    found = criteo_shaped(10, SEED).ate
    assert found is not None
    return found


def _smoothing(piece: Mapping[str, Any], job: str) -> str:
    found = piece["jobs"].get(job, {}).get("found") or {}
    return f"{found['smoothing']:.2f}" if "smoothing" in found else ""


def _plain(took: float | None) -> str:
    return "an unknown time" if took is None else f"{took:.1f} s"


def _times(ours: float | None, other: float | None) -> str:
    return "" if ours is None or other is None else f"{ours / other:.2f}"


def _gigabytes(most: int | None) -> str:
    return "" if most is None else f"{most / GB:.2f} GB"


def _reasons(piece: Mapping[str, Any]) -> list[str]:
    lines = [f"* {name}: {job['reason']}" for name, job in piece["jobs"].items() if job["reason"]]
    return ["Not run or not finished:", "\n".join(lines)] if lines else []


def _repetitions(piece: Mapping[str, Any]) -> str:
    counts = {name: len(job["seconds"]) for name, job in piece["jobs"].items() if job["seconds"]}
    if len(set(counts.values())) == 1:
        return f"Repetitions: {next(iter(counts.values()))} each."
    return f"Repetitions: {', '.join(f'{name} {count}' for name, count in counts.items())}."


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / GB:.0f} GB of memory"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
