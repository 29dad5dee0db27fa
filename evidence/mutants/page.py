"""The page of the mutation tests."""

# ruff: noqa: E501 (the page's sentences)
from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version

import discreet
from evidence.mutants.changes import Mutant
from evidence.mutants.reasons import REASONS
from evidence.mutants.runs import LONGEST

AIM = 0.95
# How a reason begins that is none: the survivor did harm, and a test was written for it.
SINCE = "Not harmless"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the mutants of one module."""

    module: str
    mutants: int
    by_status: dict[str, list[Mutant]]
    seen: frozenset[str] = frozenset()
    """keys of those that were in an earlier sample"""

    def count(self, *statuses: str) -> int:
        """How many ended that way."""
        return sum(len(self.by_status.get(status, ())) for status in statuses)

    def unseen(self, *statuses: str) -> int:
        """How many of these were in no earlier sample."""
        return sum(mutant.key not in self.seen for status in statuses for mutant in self.by_status.get(status, ()))

    @property
    def run(self) -> int:
        """How many were run."""
        return self.count("killed", "timed out", "survived", "no test")

    @property
    def noticed(self) -> int:
        """How many made a test fail, or run for ever."""
        return self.count("killed", "timed out")

    @property
    def survivors(self) -> list[Mutant]:
        """Those that no test noticed, by line."""
        found = [*self.by_status.get("survived", ()), *self.by_status.get("no test", ())]
        return sorted(found, key=lambda mutant: (mutant.line, mutant.change))

    @property
    def unexplained(self) -> list[Mutant]:
        """Survivors without a reason."""
        return [each for each in self.survivors if not reason(each)]


def reason(mutant: Mutant) -> str:
    """Why a survivor does no harm, or nothing."""
    return REASONS.get((mutant.module, mutant.function, mutant.change), "")


def page(outcomes: list[Outcome], seed: int) -> str:
    """The page in Markdown."""
    return "\n".join([*_head(outcomes, seed), *_table(outcomes), *_survivors(outcomes), *_by_hand()]) + "\n"


def _percent(noticed: int, run: int) -> str:
    return f"{noticed / run:.1%}" if run else "not run"


def _head(outcomes: list[Outcome], seed: int) -> Iterator[str]:
    run, noticed = sum(each.run for each in outcomes), sum(each.noticed for each in outcomes)
    mutants = sum(each.mutants for each in outcomes)
    survivors, open_ = (
        sum(len(each.survivors) for each in outcomes),
        sum(len(each.unexplained) for each in outcomes),
    )
    new = sum(each.unseen("killed", "timed out", "survived", "no test") for each in outcomes)
    known = sum(each.unseen("killed", "timed out") for each in outcomes)
    since = sum(reason(mutant).startswith(SINCE) for each in outcomes for mutant in each.survivors)
    reached = "reached" if run and noticed >= AIM * run else "**not reached**"
    yield "# Mutants: whether the tests of the privacy core notice a bug"
    yield ""
    yield (
        f"Written by `make mutants` (`python -m evidence.mutants`; `--sample K` and `--minutes N` bound it) on {date.today()}; do not edit. discreet {discreet.__version__}, Python {platform.python_version()}, "
        f"mutmut {version('mutmut')} (its operators), coverage {version('coverage')}, pytest {version('pytest')}, {platform.system()} {platform.machine()}."
    )
    yield ""
    part = (
        "all of them"
        if run == mutants
        else f"a random sample (seed {seed}) of {mutants:,}; what was not run counts as nothing, least of all as killed"
    )
    yield (
        f"{run:,} mutants were run, {part}. Tests noticed {noticed:,}: **{_percent(noticed, run)}**. The aim, 95 %, is {reached}. "
        f"{survivors} survived: {survivors - open_ - since} are harmless for the reasons below, {since} are noticed by tests that were written after this sample was run, and {open_} have no reason yet."
    )
    yield ""
    yield (
        "A mutant is the core with one small change: a number plus one, `<` for `<=`, `+` for `-`, `and` for `or`, a condition that always or never holds, an argument left out, a `not` removed. "
        "It is killed if one of the module's tests fails, and survives if all of them pass. A test that takes more than five times the processor time that it should, and three seconds more, is ended, and its mutant counts as noticed. "
        "Only the test files that are meant to protect a module are run against it, and of these the tests that execute the changed lines, so a survivor may still be noticed by the rest of the suite."
    )
    yield ""
    yield (
        "Many tests, among them all in files whose names end in '_values', were written after looking at survivors of earlier samples, which were drawn with other seeds. None that counts here was written after looking at this one: those that were are named beside the survivors that they notice now. "
        f"It was drawn from all mutants alike, so that some of them had been in an earlier sample too; {new:,} had been in none of those just before it, and tests noticed {known:,} of these: {_percent(known, new)}."
    )
    yield ""
    yield (
        "Left out, by configuration: docstrings and other words (but not words that are compared, nor the text of SQL), `raise` statements with their messages, warnings, annotations and signatures, decorators, `__repr__`, "
        "fields of classes, `strict=` of `zip`; functions that draw pictures (`plot_`), from which nothing is released; six constants that say how much is kept in memory or read at once, and from where on levels are searched or processes started "
        "(`KEPT_NUMBERS`, `BATCH_ROWS`, `MANY_ROWS`, `_MOST_NUMBERS`, `_SLICE`, `_FEW_LEVELS`: both sides of each give the same integers, and tests take both); numbers so large that one more is the same float; and the replacement of a value by `None`, which fails wherever it is executed and would only flatter the score. "
        f"Tests that need PostgreSQL or Spark are not run, nor, for one mutant, more than the fastest that together take {LONGEST:.0f} seconds. Tests that start Python anew see the original."
    )
    yield ""


def _table(outcomes: list[Outcome]) -> Iterator[str]:
    yield "| module | mutants | run | killed | timed out | survived | no test executes it | score |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for each in outcomes:
        yield (
            f"| `{each.module}` | {each.mutants - each.count('invalid')} | {each.run} | {each.count('killed')} | {each.count('timed out')} "
            f"| {each.count('survived')} | {each.count('no test')} | {_percent(each.noticed, each.run)} |"
        )
    sums = [
        sum(found)
        for found in zip(
            *(
                (
                    each.mutants - each.count("invalid"),
                    each.run,
                    each.count("killed"),
                    each.count("timed out"),
                    each.count("survived"),
                    each.count("no test"),
                )
                for each in outcomes
            ),
            strict=True,
        )
    ]
    noticed = sum(each.noticed for each in outcomes)
    yield "| **all** | " + " | ".join(f"{each:,}" for each in sums) + f" | **{_percent(noticed, sums[1])}** |"
    yield ""


def _survivors(outcomes: list[Outcome]) -> Iterator[str]:
    yield "## Survivors"
    yield ""
    if not any(each.survivors for each in outcomes):
        yield "None."
        yield ""
    for outcome in outcomes:
        if outcome.survivors:
            yield f"### {outcome.module}"
            yield ""
            yield "| line | function | the change | why it is harmless, or what notices it since |"
            yield "| --- | --- | --- | --- |"
            for each in outcome.survivors:
                why = reason(each) or "*no reason yet: a test is missing*"
                yield f"| {each.line} | `{each.function}` | {_code(each.old)} → {_code(each.new)} | {why} |"
            yield ""


def _code(text: str) -> str:
    shown = text if len(text) <= 160 else text[:157] + "..."
    return f"`{shown}`".replace("|", "\\|") if shown else "(nothing)"


def _by_hand() -> Iterator[str]:
    from tests.privacy.test_mutants import MUTANTS

    yield "## Written by hand"
    yield ""
    yield (
        f"Operators know nothing of privacy. {len(MUTANTS)} bugs that somebody could really write are in `tests/privacy/test_mutants.py`, "
        "each beside the tests that must notice it; they run in every `make test`."
    )
    yield ""
    yield "| the bug | function | instead of | stands |"
    yield "| --- | --- | --- | --- |"
    for name, mutant in MUTANTS.items():
        function = mutant.function
        where = f"{function.__module__.removeprefix('discreet.')}.{function.__qualname__}"
        yield f"| {name} | `{where}` | {_code(' '.join(mutant.old.split()))} | {_code(' '.join(mutant.new.split()))} |"
