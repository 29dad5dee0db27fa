"""What was to be reached on large tables, judged by the run's own numbers."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from benchmarks.scale.measure import Plan
from evidence.average.targets import Verdict

GB = 1e9
# At most so many times the other's seconds, and at least so many times as fast with two processes.
RAW_RATIO, OPENDP_RATIO, TUMULT_RATIO, SPARK_RATIO, WORKERS_GAIN = 1.1, 0.5, 0.1, 2.0, 1.8
# Over decoding: with models from a sample, and with all passes over all rows, by NumPy and by compiled loops.
SAMPLE_RATIO, ALL_RATIO, COMPILED_RATIO = 4.0, 15.0, 10.0
# How many times as wide an interval may be whose models are from a sample.
WIDER = 1.1
# Seconds of CATE on the middle table, and of ATE and CATE on the largest.
CATE_SECONDS, LARGEST_SECONDS = 30.0, {"ate": 25.0, "cate": 90.0}
MOST_MEMORY = 1 * GB
# The same peak is one that differs by no more than this.
_SAME = 1.1

Found = Mapping[str, Mapping[str, Any]]


def seconds(piece: Mapping[str, Any], job: str) -> float | None:
    """The median time of a job, or None if it was not measured."""
    times = piece.get("jobs", {}).get(job, {}).get("seconds")
    return median(times) if times else None


def peak(piece: Mapping[str, Any], job: str) -> int | None:
    """The peak memory of a job that was completed."""
    found = piece.get("jobs", {}).get(job, {})
    return int(found["peak"]) if found.get("seconds") else None


def judge(found: Found, plan: Plan) -> list[Verdict]:
    """All verdicts; what a run left out, or could not do, says so."""
    uplift = found.get("uplift", {})
    _, middle, largest = (found.get(f"average-{rows}", {}) for rows in plan.averages)
    rows, streamed = f"{plan.uplift:,} rows", f"{plan.averages[1]:,} rows"
    ours = seconds(uplift, "duckdb, ours")
    return [
        _ratio(f"Uplift, {rows}, over DuckDB's own GROUP BY", RAW_RATIO, ours, seconds(uplift, "duckdb, raw")),
        _ratio(f"Uplift, {rows}, over OpenDP's polars interface", OPENDP_RATIO, ours, seconds(uplift, "opendp")),
        _ratio(f"Uplift, {rows}, over Tumult Analytics", TUMULT_RATIO, ours, seconds(uplift, "tumult")),
        _memory(f"Uplift, {rows}, peak memory", peak(uplift, "duckdb, ours")),
        _ratio(
            f"Uplift on Spark, {rows}, over Spark's own aggregation",
            SPARK_RATIO,
            seconds(uplift, "spark, ours"),
            seconds(uplift, "spark, raw"),
        ),
        _bits(found.get("bits", {}), plan),
        _ratio(
            f"ATE, 12 covariates, {streamed}, over decoding the columns once",
            SAMPLE_RATIO,
            seconds(middle, "ate"),
            seconds(middle, "decode"),
        ),
        *(
            _ratio(
                f"The same, all rows in every pass, at {_terms(middle, job)} terms, {how}",
                limit,
                seconds(middle, job),
                seconds(middle, "decode"),
            )
            for job, how, limit in (
                ("ate, all rows, few terms", "NumPy", ALL_RATIO),
                ("ate, all rows, few terms, compiled", "compiled loops", COMPILED_RATIO),
            )
        ),
        _wider(found, plan),
        _at_most(f"CATE, {streamed}, seconds", CATE_SECONDS, seconds(middle, "cate")),
        _memory(f"ATE, {streamed}, peak memory", peak(middle, "ate")),
        _memory("The same, all rows in every pass", peak(middle, "ate, all rows, few terms")),
        *(
            _at_most(f"{job.upper()}, {plan.averages[2]:,} rows, seconds", most, seconds(largest, job))
            for job, most in LARGEST_SECONDS.items()
        ),
        *(
            _memory(f"{job.upper()}, {plan.averages[2]:,} rows, peak memory", peak(largest, job))
            for job in LARGEST_SECONDS
        ),
        _same_memory(plan, middle, largest),
        _gain(middle, plan),
    ]


def _ratio(target: str, limit: float, ours: float | None, other: float | None) -> Verdict:
    wanted = f"≤ {limit:g} ×"
    if ours is None or other is None:
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    figure = f"{ours / other:.2f} × ({ours:.2f} s against {other:.2f} s)"
    return Verdict(target=target, limit=wanted, figure=figure, reached=ours / other <= limit)


def _at_most(target: str, limit: float, took: float | None) -> Verdict:
    wanted = f"≤ {limit:g} s"
    if took is None:
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    return Verdict(target=target, limit=wanted, figure=f"{took:.1f} s", reached=took <= limit)


def _terms(piece: Mapping[str, Any], job: str) -> str:
    return str((piece.get("jobs", {}).get(job, {}).get("found") or {}).get("terms", "few"))


def _wider(found: Found, plan: Plan) -> Verdict:
    """On the smallest table, where both are measured: the larger a table, the less a sample leaves unknown."""
    small = found.get(f"average-{plan.averages[0]}", {})
    target = f"ATE, {plan.averages[0]:,} rows, width of the interval over that of models from all rows"
    wanted, widths = f"≤ {WIDER:g} ×", []
    for job in ("ate", "ate, all rows"):
        interval = (small.get("jobs", {}).get(job, {}).get("found") or {}).get("interval")
        if interval is None:
            return Verdict(target=target, limit=wanted, figure="", reached=None)
        widths.append(interval[1] - interval[0])
    ratio = widths[0] / widths[1]
    return Verdict(target=target, limit=wanted, figure=f"{ratio:.2f} ×", reached=ratio <= WIDER)


def _memory(target: str, most: int | None) -> Verdict:
    wanted = f"< {MOST_MEMORY / GB:g} GB"
    if most is None:
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    return Verdict(target=target, limit=wanted, figure=f"{most / GB:.2f} GB", reached=most < MOST_MEMORY)


def _same_memory(plan: Plan, middle: Mapping[str, Any], largest: Mapping[str, Any]) -> Verdict:
    """Both in the same way: in the first of two that finished on both tables."""
    wanted = f"finished, ≤ {_SAME:g} ×"
    target = f"ATE, {plan.averages[2]:,} rows, peak memory over that at {plan.averages[1]:,}"
    ways = {"ate": "; models from a sample", "ate, design known": "; the design known"}
    for job, words in ways.items():
        few, many = peak(middle, job), peak(largest, job)
        if few is not None and many is not None:
            figure = f"{many / few:.2f} × ({many / GB:.2f} GB against {few / GB:.2f} GB{words})"
            return Verdict(target=target, limit=wanted, figure=figure, reached=many / few <= _SAME)
    return Verdict(target=target, limit=wanted, figure="", reached=None)


def _gain(middle: Mapping[str, Any], plan: Plan) -> Verdict:
    one, two = (seconds(middle, f"ate, design known{words}") for words in (", one process", ""))
    target, wanted = f"ATE, {plan.averages[1]:,} rows, two processes over one", f"≥ {WORKERS_GAIN:g} × as fast"
    if one is None or two is None:
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    figure = f"{one / two:.2f} × ({two:.1f} s against {one:.1f} s)"
    return Verdict(target=target, limit=wanted, figure=figure, reached=one / two >= WORKERS_GAIN)


def _bits(bits: Mapping[str, Any], plan: Plan) -> Verdict:
    digests = {name: job["found"] for name, job in bits.get("jobs", {}).items() if job["seconds"]}
    pairs = [(digests.get(f"duckdb, {kind}"), digests.get(f"spark, {kind}")) for kind in ("uplift", "ate")]
    target, wanted = f"Spark's exact sums beside DuckDB's, {plan.bits:,} rows", "the same bits"
    if any(None in pair for pair in pairs):
        return Verdict(target=target, limit=wanted, figure="", reached=None)
    same = sum(left == right for left, right in pairs)
    figure = f"the same for {same} of {len(pairs)} estimators"
    return Verdict(target=target, limit=wanted, figure=figure, reached=same == len(pairs))
