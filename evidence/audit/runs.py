"""Runs behind the audit's page, kept on disk one by one: an interrupted run continues where it stopped.

A result is used again while the mechanism, the instruments, the versions of libraries and the settings are what they
were. What a change to `discreet.estimators.cate` touches is run again; what it does not is kept.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from discreet.audit._configurations import Configuration, matrix
from discreet.audit._neighbours import Table
from discreet.audit._replay import replay
from discreet.audit.api import PROVED_CONFIDENCE
from discreet.audit.attacks import ATTACKS, Run
from discreet.audit.attacks.pairs import on_pair
from discreet.audit.mechanism import LastColumns, fitted, fresh
from discreet.audit.result import AuditResult
from evidence.cache import ROOT
from evidence.planted import PLANTED, audited, result_of
from evidence.reproduce.cache import LIBRARIES, code, fingerprint

# Replays have the seed of the tests. Attacks have one whose results nobody had seen when their settings were chosen,
# with seed 0: take another whenever such a setting changes.
SEED, ATTACK_SEED = 0, 20_261_117
# A black box of a proved configuration may take so long; runs on either data set, at least and at most.
SECONDS, LEAST_TRIALS, MOST_TRIALS = 4.0, 200, 3_000
# Larger claims than this are beyond what so many runs can refute: the same estimator then runs with this epsilon.
EPSILON = 1.0
_INSTRUMENTS = ("discreet.audit._replay", "discreet.audit.attacks.pairs")


@dataclass(frozen=True)
class Job:
    """One result to be had: an attack, or a configuration of the matrix, by its name."""

    kind: str
    name: str
    quick: bool

    def make(self) -> AuditResult:
        """Run it."""
        return _attacked(self.name, self.quick) if self.kind == "attack" else _proved(self.name, self.quick)

    def path(self, folder: Path) -> Path:
        """Where it is kept: the name says by which code and settings it was made."""
        stem = "".join(letter if letter.isalnum() else "-" for letter in self.name)
        return folder / f"{self.kind}-{stem}-{self._print()}.json"

    def _print(self) -> str:
        if self.kind == "attack":
            return _code(ATTACKS[self.name].run_.__module__, (ATTACK_SEED, self.quick))
        configuration = _configurations()[self.name]
        estimator = configuration.make()
        if isinstance(estimator, LastColumns):
            estimator = estimator.estimator
        given = sorted(estimator.get_params(deep=False).items())
        study = [(name, getattr(configuration, name)) for name in ("kind", "n", "binary", "generations", "slow")]
        settings = (SEED, self.quick, PROVED_CONFIDENCE, SECONDS, LEAST_TRIALS, MOST_TRIALS, EPSILON)
        prints = [_code(module, settings) for module in (type(estimator).__module__, *_INSTRUMENTS)]
        return fingerprint((prints, given, study), [Path(__file__)], ROOT)


@cache
def _code(module: str, settings: tuple[Any, ...]) -> str:
    versions = [f"{library} {version(library)}" for library in LIBRARIES]
    return code((platform.python_version_tuple()[:2], versions, settings), module, flagship=True)


@cache
def _configurations() -> dict[str, Configuration]:
    return {configuration.name: configuration for configuration in matrix()}


@dataclass(frozen=True)
class Kept:
    """A result, and how long it took when it was made."""

    result: AuditResult
    seconds: float


def results(
    folder: Path, *, quick: bool, processes: int = 2
) -> tuple[dict[str, Kept], list[tuple[Configuration, Kept]]]:
    """Every attack and every proved configuration, kept or new."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(_configurations())[:: 12 if quick else 1]
    attacks = [Job("attack", name, quick) for name in ATTACKS]
    proved = [Job("proved", name, quick) for name in names]
    waiting = [job for job in (*attacks, *proved) if not job.path(folder).exists()]
    _run(waiting, folder, processes)
    found = {job: _read(job.path(folder)) for job in (*attacks, *proved)}
    return (
        {job.name: found[job] for job in attacks},
        [(_configurations()[job.name], found[job]) for job in proved],
    )


def _run(jobs: list[Job], folder: Path, processes: int) -> None:
    if not jobs:
        return
    with ProcessPoolExecutor(processes) as pool:
        running = {pool.submit(_keep, job, folder): job for job in jobs}
        for number, future in enumerate(as_completed(running), 1):
            print(f"{number} of {len(jobs)}: {running[future].name}: {future.result()}", flush=True)


def _keep(job: Job, folder: Path) -> str:
    """Run a job and write its result, whole or not at all; returns what it found, in words."""
    # The code may change while it runs: what counts is the code that it started with.
    path, start = job.path(folder), time.monotonic()
    result = job.make()
    seconds = time.monotonic() - start
    half = path.with_suffix(".half")
    half.write_text(json.dumps({"seconds": round(seconds, 1), "result": result.to_dict()}))
    half.replace(path)
    return f"{result.shown()}; {result.verdict} ({seconds:.0f} s)"


def _read(path: Path) -> Kept:
    plain = json.loads(path.read_text())
    return Kept(AuditResult.from_dict(plain["result"]), plain["seconds"])


def _attacked(name: str, quick: bool) -> AuditResult:
    attack = ATTACKS[name]
    trials = attack.trials
    if quick:
        trials = 2 if trials <= 20 else max(20, trials // 20)
    # A quick run must not use the seed up.
    return attack.run(None, Run(trials, random_state=SEED if quick else ATTACK_SEED))


def _proved(name: str, quick: bool) -> AuditResult:
    """Replayed with a search, then run as a black box, with real noise, on the worst neighbours."""
    configuration = _configurations()[name]
    estimator = configuration.make()
    replayed, worst = replay(estimator, configuration.settings, random_state=SEED)
    assert worst is not None
    refutable = estimator if estimator.epsilon <= EPSILON else fresh(estimator, epsilon=EPSILON)
    simulated = _by_black_box(refutable, worst, quick)
    return AuditResult.from_dict(replayed.to_dict() | {"parts": [replayed.to_dict(), simulated.to_dict()]})


def _by_black_box(estimator: Any, worst: tuple[Table, Table, str], quick: bool) -> AuditResult:
    start = time.monotonic()
    for table in worst[:2]:
        fitted(estimator, table)
    affordable = SECONDS / (time.monotonic() - start)
    trials = LEAST_TRIALS if quick else int(min(MOST_TRIALS, max(LEAST_TRIALS, affordable)))
    return on_pair(estimator, worst, Run(trials, PROVED_CONFIDENCE))


def planted() -> Iterator[list[str]]:
    """Each bug and what the instrument that has to catch it says; then, what it says where there is none."""
    for name, bug in PLANTED.items():
        result = audited(name)
        finding = result.found[0] if result.found else result.shown()
        yield [name, bug.instrument, "caught" if result.violated else "**not caught**", finding.replace("|", "/")]
    for instrument in ("replay", "black box"):
        clean = result_of(instrument)
        yield ["none", instrument, "**accused**" if clean.violated else "nothing found", clean.shown()]
