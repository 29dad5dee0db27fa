"""What monitoring reads: counts and times of answers by this service's processes, and the state of its queue."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector

from discreet import __version__
from discreet.serve.domain import jobs as queue
from discreet.serve.operations import fleet
from discreet.serve.service import Service
from discreet.serve.storage.schema import jobs, reading

CONTENT = "text/plain; version=0.0.4; charset=utf-8"
_SHARED = "PROMETHEUS_MULTIPROC_DIR"
_here = CollectorRegistry()
# Routes, and not paths: these are few, and hold no names.
answers = Counter("discreet_answers", "Answers by route and status.", ("method", "route", "status"), registry=_here)
seconds = Histogram(
    "discreet_answer_seconds",
    "Seconds until an answer was complete.",
    ("method", "route"),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.5, 10.0),
    registry=_here,
)


def share(environment: Any = os.environ) -> None:
    """Have all processes of one service count together; called before any of them counts."""
    environment.setdefault(_SHARED, tempfile.mkdtemp(prefix="discreet-metrics-"))


def text(service: Service) -> bytes:
    """All metrics, in the format of Prometheus."""
    registry = CollectorRegistry()
    if _SHARED in os.environ:
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    counted = generate_latest(registry if _SHARED in os.environ else _here)
    now = CollectorRegistry()
    now.register(_Queue(service))
    return counted + generate_latest(now)


class _Queue:
    """Jobs and workers, as the database has them now."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        service, now = self._service, self._service.clock.now()
        count = sa.select(jobs.c.state, sa.func.count(), sa.func.min(jobs.c.created)).group_by(jobs.c.state)
        with reading(service.engine).begin() as connection:
            found = {state: (number, oldest) for state, number, oldest in connection.execute(count)}
        by_state = GaugeMetricFamily("discreet_requests", "Requests by state.", labels=["state"])
        for state in ("queued", "running", "done", "failed", "stopped"):
            by_state.add_metric([state], found.get(state, (0, 0.0))[0])
        yield by_state
        oldest = max(0.0, now - found["queued"][1]) if "queued" in found else 0.0
        yield GaugeMetricFamily("discreet_queue_oldest_seconds", "Age of the oldest queued request.", value=oldest)
        beyond = queue.beyond(service)
        yield GaugeMetricFamily("discreet_queue_beyond", "Queued requests that need a newer version.", value=beyond)
        there = GaugeMetricFamily("discreet_workers", "Workers heard of lately, by version.", labels=["version"])
        versions = [worker["version"] for worker in fleet.present(service)]
        for version in sorted({*versions, __version__}):
            there.add_metric([version], versions.count(version))
        yield there
        head = service.ledger.head.seq
        yield GaugeMetricFamily("discreet_ledger_lines", "Lines of the ledger's log.", value=head)
        free = fleet.free_megabytes(service)
        if free is not None:
            yield GaugeMetricFamily("discreet_disk_free_bytes", "Free beside the database's file.", value=free * 1e6)
        yield GaugeMetricFamily("discreet_time_seconds", "The service's clock.", value=now)
        skew = now - time.time()
        yield GaugeMetricFamily("discreet_clock_ahead_seconds", "How far it is ahead of this machine's.", value=skew)
