"""The page of the service, in Markdown."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import os
import platform
from datetime import date
from typing import Any

import discreet

# Two-sided level of the test that two kinds of refusals take equally long.
LEVEL = 0.01
_PHONE = ("plan-phone", "release-phone", "explore-phone", "explore-outside-phone", "public-phone")


def page(kept: dict[str, Any]) -> str:
    """The page."""
    found = {name: each["found"] for name, each in kept.items()}
    busy = ", ".join(f"{name} {each['busy']:.1f}" for name, each in kept.items())
    rows = _targets(found)
    lines = [
        "# The curator's service, measured",
        "",
        f"Written by `python -m evidence.service` on {date.today()} with discreet {discreet.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores. Other work shared them: load averages before each part were {busy}.",
        "",
        "| what | wanted | found | |",
        "|---|---|---|---|",
        *(f"| {what} | {wanted} | {seen} | {'met' if met else '**missed**'} |" for what, wanted, seen, met in rows),
        "",
        f"The dependency audit: pip-audit {found['dependencies']}.",
        "",
        *_load(found["load"], found["fuzz"]),
        *_restarts(found),
        *_times(found),
        *_journey(),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _targets(found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """What was wanted, what was found, and whether it is met."""
    function, plans, fuzzed = found["load"]["function"], found["load"]["plans"], found["fuzz"]
    walked, queue, slow = found["journey"], found["restart"], max(found["pages"].values(), key=lambda pair: pair[0])
    failures = sum(count for status, count in fuzzed["statuses"].items() if int(status) >= 500)
    same = [min(each["mann_whitney"], each["ks"]) for each in found["refusals"].values()]
    return [
        (
            "questions to a released function, two server processes",
            "≥ 300/s, p99 < 100 ms",
            f"{function['rate']:.0f}/s, p99 {function['p99']:.0f} ms",
            function["rate"] >= 300 and function["p99"] < 100,
        ),
        (
            "plans, two server processes",
            "≥ 150/s, p99 < 100 ms",
            f"{plans['rate']:.0f}/s, p99 {plans['p99']:.0f} ms",
            plans["rate"] >= 150 and plans["p99"] < 100,
        ),
        (
            "requests that schemathesis made up",
            "10,000 without a 500",
            f"{sum(fuzzed['statuses'].values()):,}, {failures} of them a 500",
            failures == 0 and sum(fuzzed["statuses"].values()) >= 10_000,
        ),
        (
            "refusals with and without records behind them",
            f"no difference at the {100 * LEVEL:g} % level (corrected for {2 * len(same)} tests)",
            f"smallest p = {min(same):.2g}",
            min(same) > LEVEL / (2 * len(same)),
        ),
        ("the slowest page, first time", "< 300 ms", f"{slow[0]:.0f} ms", slow[0] < 300),
        (
            "clicks from login to a downloaded release",
            "≤ 8",
            str(walked["clicks"]),
            walked["passed"] and (walked["clicks"] or 99) <= 8,
        ),
        (
            "serious violations by axe",
            "none",
            f"none on {walked['pages']} views" if walked["passed"] else "some: see the test",
            walked["passed"],
        ),
        (
            "clicks and choices to register a data set by the wizard",
            "≤ 12",
            str(walked.get("registration")),
            walked["passed"] and (walked.get("registration") or 99) <= 12,
        ),
        (
            "the analyst's journey in Firefox, desktop and phone",
            "no error",
            *_firefox(found["firefox"]),
        ),
        (
            "jobs whose server was killed with -9",
            "none forgotten, none charged twice",
            f"{queue['jobs']} jobs, {queue['kills']} kills: {queue['done']} released, {queue['lost']} failed and charged",
            queue["done"] + queue["lost"] == queue["jobs"] == queue["charged"] and queue["intact"],
        ),
        *_operating(found),
    ]


def _operating(found: dict[str, Any]) -> list[tuple[str, str, str, bool]]:
    """The same of restarts, of one analyst beside another, and of the soak."""
    rows = []
    for name, seen in found["restarts"].items():
        drained = name.startswith("SIGTERM")
        ended = seen["requests"] == sum(seen["ended"].get(each, 0) for each in ("done", "lost-charged"))
        kept = seen["charged_twice"] == 0 and seen["budget_adds_up"] and seen["intact"] and ended
        rows.append(
            (
                f"{name}, at {seen['points']} random points of work",
                "lost budget 0, every request released" if drained else "none forgotten, none charged twice",
                f"{seen['requests']} requests: {seen['ended'].get('done', 0)} released, {seen['back_in_queue']} of them after going back into the queue; {seen['lost']} failed and charged",
                kept and (not drained or seen["lost"] == 0),
            )
        )
    beside, soak = found["neighbours"], found["soak"]
    ratio, grown = beside["crowded_p95"] / beside["idle_p95"], soak["late"] / soak["early"] - 1
    return [
        *rows,
        (
            f"a colleague's pages beside {beside['connections']} connections on plans and {beside['queued']} queued requests",
            "p95 ≤ 3 times idle",
            f"p95 {beside['crowded_p95']:.0f} ms, {ratio:.1f} times the idle {beside['idle_p95']:.0f} ms",
            ratio <= 3,
        ),
        (
            "a colleague's small request beside the same queue",
            "starts within two jobs",
            f"after {beside['jobs_before']}",
            beside["jobs_before"] <= 2,
        ),
        (
            f"memory of a server after {soak['requests']:,} requests",
            "within 10 % of that after 1,000",
            f"{soak['late']:.0f} MB, {100 * grown:+.0f} % of {soak['early']:.0f} MB",
            abs(grown) <= 0.1 and soak["requests"] >= 100_000,
        ),
    ]


def _firefox(found: dict[str, Any]) -> tuple[str, bool]:
    """What Firefox found, in words, and whether all is well."""
    if "left_out" in found:
        return found["left_out"], False
    words = f"{len(found['views'])} views in {found['version']}, {len(found['problems'])} errors"
    return words, not found["problems"] and len(found["views"]) == 8


def _load(found: dict[str, Any], fuzzed: dict[str, Any]) -> list[str]:
    function, plans = found["function"], found["plans"]
    return [
        "## Load",
        "",
        f"Clients on the same machine keep eight connections open and ask one question at a time over each. A question to a function: one person, with an interval; {function['requests']:,} answers in {function['seconds']:.0f} s, median {function['p50']:.1f} ms, all with status {', '.join(map(str, function['statuses']))}. A plan: an epsilon that was not asked before; {plans['requests']:,} answers in {plans['seconds']:.0f} s, median {plans['p50']:.1f} ms.",
        "",
        "## Requests that nobody thought of",
        "",
        f"Half of them fit the description and half break it, on {fuzzed['operations']} operations, as analyst and as curator; half of the names exist. Answers: "
        + ", ".join(f"{count:,} × {status}" for status, count in sorted(fuzzed["statuses"].items()))
        + f". Afterwards the service answers (status {fuzzed['alive']}) and the log is {'intact' if fuzzed['intact'] else 'NOT intact'}.",
        "",
    ]


def _restarts(found: dict[str, Any]) -> list[str]:
    soak = found["soak"]
    return [
        "## Restarts",
        "",
        "Workers of a queue with at least two requests are sent a signal at a random moment of their work, and are started again. SIGTERM drains: what was charged is ended, anything else goes back into the queue. SIGKILL ends all processes of a worker at once. What the ledger said of the request at that moment:",
        "",
        "| signal | points | reserved | charged | settled | back in the queue | failed and charged | longest end |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {name} | {seen['points']} | {seen['caught'].get('reserved', 0)} | {seen['caught'].get('charged', 0)} | {seen['caught'].get('settled', 0)} | {seen['back_in_queue']} | {seen['lost']} | {seen['seconds_to_end']:.1f} s |"
            for name, seen in found["restarts"].items()
        ),
        "",
        "## Soak",
        "",
        f"One server process answers questions to a function, plans and pages over eight connections: {soak['requests']:,} requests in {soak['seconds']:.0f} s, p99 {soak['p99']:.0f} ms, statuses {', '.join(map(str, soak['statuses']))}. Memory on the way: "
        + ", ".join(f"{rss:.0f} MB after {count:,}" for count, rss in soak["samples"])
        + ".",
        "",
    ]


def _times(found: dict[str, Any]) -> list[str]:
    return [
        "## Time of refusals",
        "",
        "Calls alternate between a data set with 20,000 records and one whose file has been deleted. No request reads a record before it is charged, and answers leave on a grid of 100 ms.",
        "",
        "| refused for | calls | median with records | median without | Mann–Whitney p | Kolmogorov–Smirnov p |",
        "|---|---|---|---|---|---|",
        *(
            f"| {kind} | {each['calls']:,} | {1e3 * each['median'][0]:.2f} ms | {1e3 * each['median'][1]:.2f} ms | {each['mann_whitney']:.2g} | {each['ks']:.2g} |"
            for kind, each in found["refusals"].items()
        ),
        "",
        "## Pages",
        "",
        "| page | first time | median |",
        "|---|---|---|",
        *(f"| `{path}` | {first:.0f} ms | {median:.0f} ms |" for path, (first, median) in found["pages"].items()),
        "",
    ]


def _journey() -> list[str]:
    return [
        "## The journey, in screenshots",
        "",
        *(
            f"![{name}](service/{name}.png)\n"
            for name in (
                "sign-in",
                "data-sets",
                "plan",
                "request",
                "release",
                "explore",
                "compare",
                "register-source",
                "register-columns",
                "register-bounds",
                "register-preview",
                "curator",
                "approval",
                "manage",
                "log",
                "audit",
            )
        ),
        "On a phone, in the dark:",
        "",
        *(f"![{name}](service/{name}.png)\n" for name in _PHONE),
        "In Firefox:",
        "",
        *(f"![{name}](service/firefox-{name}.png)\n" for name in ("explore-desktop", "explore-phone")),
    ]
