"""What an operator wants to know: restarts, one analyst who asks a great deal beside a colleague, and many requests."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

from discreet.serve import demo
from discreet.serve.settings import Settings
from discreet.serve.storage.schema import jobs as table
from evidence.cache import ROOT
from evidence.service.restarts import DATASET, at_random_points
from evidence.service.site import PERSON, Server, load

# Points of one run of workers; runs are kept as they end, so that a measurement that is interrupted goes on.
_RUN = 10
_KEPT = ROOT / ".evidence-cache" / "service-restarts.json"
POINTS = {
    "SIGTERM, one worker": 200,
    "SIGTERM, two workers": 200,
    "SIGKILL, one worker": 50,
    "SIGKILL, two workers": 50,
}
# Requests of the soak, or minutes where somebody asked for them.
REQUESTS, EARLY = 100_000, 1_000
MINUTES: float | None = None
CONNECTIONS, QUEUED = 40, 199
PAGES = (f"/datasets/{DATASET}", f"/datasets/{DATASET}/plan", "/datasets", "/requests", "/releases")


def restarts(quick: bool) -> dict[str, Any]:
    """Signals at random points of fits, in runs that are added up."""
    kept: dict[str, list[Any]] = {} if quick or not _KEPT.exists() else json.loads(_KEPT.read_text())
    while missing := [name for name, points in POINTS.items() if _points(kept, name) < (2 if quick else points)]:
        # In turn, so that an interrupted measurement knows something of each.
        name = min(missing, key=lambda each: _points(kept, each))
        runs, workers = kept.setdefault(name, []), 2 if "two" in name else 1
        how = signal.Signals[name.partition(",")[0]]
        runs.append(vars(at_random_points(2 if quick else _RUN, workers, how, seed=len(runs))))
        if not quick:
            _KEPT.parent.mkdir(exist_ok=True)
            _KEPT.write_text(json.dumps(kept))
        print(f"{name}: {_points(kept, name)} points", flush=True)
    return {name: _added(runs) for name, runs in kept.items()}


def _points(kept: dict[str, list[Any]], name: str) -> int:
    return int(sum(run["points"] for run in kept.get(name, [])))


def _added(runs: list[Any]) -> dict[str, Any]:
    added: dict[str, Any] = {
        key: sum(run[key] for run in runs) for key in ("points", "requests", "back_in_queue", "lost", "charged_twice")
    }
    for key in ("caught", "ended"):
        added[key] = dict(sum((Counter(run[key]) for run in runs), Counter()))
    added["seconds_to_end"] = max(run["seconds_to_end"] for run in runs)
    return added | {key: all(run[key] for run in runs) for key in ("budget_adds_up", "intact")}


def neighbours(quick: bool) -> dict[str, Any]:
    """A colleague's pages and request while one analyst plans over 40 connections and has 200 requests in the queue."""
    queued, seconds = (20, 4.0) if quick else (QUEUED, 30.0)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database=f"sqlite:///{folder}/service.db", data=folder, spends=1e9, asks=1e9, processes=2, workers=1
        )
        server = Server(settings, demo.prepare(settings), 2)
        try:
            _paced(server, 2.0)
            idle = _paced(server, seconds)
            asked = [{"kind": "ate", "epsilon": 0.005 + k / 1e6, "delta": 1e-9} for k in range(queued)]
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda each: server.call(f"/api/v1/datasets/{DATASET}/requests", each), asked))
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
                busy = other.submit(_plan, server.port, server.tokens, seconds + 10.0)
                time.sleep(5.0)
                crowded = _paced(server, seconds)
                between = _jobs_before(server, settings)
                planned = busy.result()
        finally:
            server.end()
    return {
        "queued": queued,
        "connections": CONNECTIONS,
        "idle_p95": _p95(idle),
        "crowded_p95": _p95(crowded),
        "pages": len(crowded),
        "plans": planned,
        "jobs_before": between,
    }


def _paced(server: Server, seconds: float) -> list[float]:
    """Milliseconds of a colleague's pages, one after the other, as somebody who reads opens them."""
    until, taken = time.monotonic() + seconds, []
    while time.monotonic() < until:
        for path in PAGES:
            started = time.perf_counter()
            status, _ = server.call(path, person="colleague")
            taken.append(1e3 * (time.perf_counter() - started))
            assert status == 200, (path, status)
            time.sleep(0.05)
    return taken


def _plan(port: int, tokens: dict[str, str], seconds: float) -> int:
    """How many plans were answered over many connections, asked by a process of its own."""

    class There:
        def __init__(self) -> None:
            self.port, self.tokens = port, tokens

    bodies = [{"epsilon": 0.1 + k / 997, "delta": 1e-6} for k in range(9_000)]
    return load(There(), f"/api/v1/datasets/{DATASET}/plan", bodies, CONNECTIONS, seconds).requests  # type: ignore[arg-type]


def _jobs_before(server: Server, settings: Settings) -> int:
    """How many requests of the other analyst begin between a colleague's request and its own beginning."""
    small = {"kind": "ate", "epsilon": 0.01, "delta": 1e-9, "covariates": ["age"]}
    status, made = server.call(f"/api/v1/datasets/{DATASET}/requests", small, "colleague")
    assert status == 202, made
    server.ended(made["job"], "colleague")
    engine = sa.create_engine(settings.database)
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(sa.select(table)).mappings()]
    engine.dispose()
    (mine,) = [row for row in rows if row["id"] == made["job"]]
    others = [row["started"] for row in rows if row["person"] != "colleague" and row["started"]]
    return sum(mine["created"] < started < mine["started"] for started in others)


def soak(quick: bool) -> dict[str, Any]:
    """Questions to a function, plans and pages, for so many requests or minutes; memory of the server on the way."""
    requests = 3_000 if quick else REQUESTS
    early = 300 if quick else EARLY
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database=f"sqlite:///{folder}/service.db",
            data=folder,
            spends=1e9,
            asks=1e9,
            processes=1,
            workers=1,
            access_log=False,
        )
        server = Server(settings, demo.prepare(settings), 1)
        try:
            name = server.release(DATASET, kind="cate", epsilon=1.0, delta=1e-6)
            parts: list[tuple[str, list[Any]]] = [
                (f"/api/v1/releases/{name}/effects", [{"rows": [PERSON | {"age": 18 + k % 77}]} for k in range(200)]),
                (f"/api/v1/datasets/{DATASET}/plan", [{"epsilon": 0.1 + k / 997, "delta": 1e-6} for k in range(9_000)]),
            ]
            started, done, statuses, samples = time.monotonic(), 0, Counter[int](), []
            latencies: list[float] = []
            while _goes_on(done, requests, started):
                for path, bodies in parts:
                    found = load(server, path, bodies[done % 7 :], 8, 0.5 if done < early else 5.0)
                    done += found.requests
                    statuses.update(found.statuses)
                    latencies += list(found.latencies)
                for path in (*PAGES, f"/releases/{name}"):
                    statuses.update([server.call(path)[0]])
                    done += 1
                samples.append((done, _resident(server.process.pid)))
        finally:
            server.end()
    first = next(rss for count, rss in samples if count >= early)
    return {
        "requests": done,
        "seconds": time.monotonic() - started,
        "early": first,
        "late": samples[-1][1],
        "samples": samples[:: max(1, len(samples) // 20)],
        "p99": float(1e3 * np.quantile(latencies, 0.99)),
        "statuses": sorted(statuses),
    }


def _goes_on(done: int, requests: int, started: float) -> bool:
    """Until enough requests, or for the minutes that were asked for; never for more than a day."""
    taken = time.monotonic() - started
    return taken < min(60.0 * MINUTES, 86_400.0) if MINUTES is not None else done < requests and taken < 3_600.0


def _resident(process: int) -> float:
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _p95(taken: list[float]) -> float:
    return float(np.quantile(taken, 0.95))
