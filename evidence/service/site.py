"""A service in processes of its own, for measurements: started, asked, killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.serve.settings import Settings

PERSON = {"age": 50, "severity": 5, "sex": "f", "ward": "north"}


@dataclass
class Server:
    """A server; ``workers`` processes answer at one port."""

    settings: Settings
    tokens: dict[str, str]
    workers: int = 1
    port: int = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        code = (
            "from discreet.cli.serve import run\nfrom discreet.serve.settings import Settings\n"
            f"run(Settings.from_environment(), '127.0.0.1', {self.port}, {self.workers})\n"
        )
        self.settings.to_environment()
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], env=dict(os.environ), start_new_session=True, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            try:
                self.call("/health")
                return
            except OSError:
                time.sleep(0.1)
        raise RuntimeError("the server did not start")

    def end(self, how: int = signal.SIGTERM) -> None:
        """End the process and those that it started."""
        os.killpg(self.process.pid, how)
        self.process.wait(30)

    def call(self, path: str, body: Any = None, person: str = "analyst") -> tuple[int, Any]:
        """Status and JSON (or text) of an answer."""
        headers = {"Authorization": f"Bearer {self.tokens[person]}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, _read(answer)
        except urllib.error.HTTPError as error:
            return error.code, _read(error)

    def ended(self, job: str, person: str = "analyst", seconds: float = 300.0) -> dict[str, Any]:
        """A job when it has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found: dict[str, Any] = self.call(f"/api/v1/requests/{job}", person=person)[1]
            if found["state"] not in ("queued", "running"):
                return found
            time.sleep(0.1)
        raise RuntimeError("the job did not end")

    def release(self, dataset: str, **asked: Any) -> str:
        """The release of a request."""
        _, made = self.call(f"/api/v1/datasets/{dataset}/requests", asked)
        name: str = made["release"] or self.ended(made["job"])["release"]
        return name


def _read(answer: Any) -> Any:
    body = answer.read()
    return json.loads(body) if answer.headers.get_content_type() == "application/json" else body.decode()


@dataclass(frozen=True)
class Load:
    """What a burst of requests found."""

    requests: int
    seconds: float
    latencies: Any
    statuses: dict[int, int]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds

    def quantile(self, q: float) -> float:
        """Milliseconds."""
        return float(1e3 * np.quantile(self.latencies, q))


def load(server: Server, path: str, bodies: list[Any], connections: int, seconds: float) -> Load:
    """Ask over so many connections at once, each with one question at a time, for so many seconds."""
    token = server.tokens["analyst"]
    texts = []
    for body in bodies:
        data = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        texts.append(head.encode() + data)
    return asyncio.run(_load(server.port, texts, connections, seconds))


async def _load(port: int, texts: list[bytes], connections: int, seconds: float) -> Load:
    latencies: list[float] = []
    statuses: dict[int, int] = {}
    place = 0
    started = time.perf_counter()

    async def one() -> None:
        nonlocal place
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() - started < seconds:
            text = texts[place % len(texts)]
            place += 1
            before = time.perf_counter()
            writer.write(text)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(length)
            latencies.append(time.perf_counter() - before)
            status = int(head[9:12])
            statuses[status] = statuses.get(status, 0) + 1
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return Load(len(latencies), time.perf_counter() - started, np.array(latencies), statuses)
