"""What is measured of the service: load, made-up requests, refusals, pages, restarts, the journey, dependencies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlencode

import numpy as np
from scipy.stats import ks_2samp, mannwhitneyu

from discreet.datasets._demo import PUBLIC
from discreet.serve import demo
from discreet.serve.settings import Settings
from evidence.cache import ROOT
from evidence.service import operating
from evidence.service.fuzz import fuzz
from evidence.service.site import PERSON, Load, Server, load

SCREENSHOTS = ROOT / "docs" / "evidence" / "service"
DATASET = "clinic-stays"


def site(folder: Path, *, workers: int = 1, n: int = 20_000, **more: Any) -> Server:
    """A service with the demonstration's data sets."""
    settings = Settings(database=f"sqlite:///{folder}/service.db", data=str(folder), spends=1e9, **more)
    return Server(settings, demo.prepare(settings, n=n), workers)


def function_load(quick: bool) -> dict[str, Any]:
    """Questions to a released function, over two server processes."""
    with tempfile.TemporaryDirectory() as folder:
        server = site(Path(folder), workers=2)
        try:
            name = server.release(DATASET, kind="cate", epsilon=1.0, delta=1e-6)
            bodies = [{"rows": [PERSON | {"age": 18 + k % 77, "severity": k % 20}]} for k in range(200)]
            path = f"/api/v1/releases/{name}/effects"
            load(server, path, bodies, 4, 2.0)
            found = load(server, path, bodies, 8, 3.0 if quick else 20.0)
            plans = [{"epsilon": 0.1 + k / 997, "delta": 1e-6} for k in range(9_000)]
            path = f"/api/v1/datasets/{DATASET}/plan"
            load(server, path, plans, 4, 1.0)
            planned = load(server, path, plans[1_000:], 8, 3.0 if quick else 15.0)
        finally:
            server.end()
    return {"function": _plain(found), "plans": _plain(planned)}


def _plain(found: Load) -> dict[str, Any]:
    """What the page says of a burst."""
    facts = {"requests": found.requests, "seconds": found.seconds, "rate": found.rate}
    return facts | {"p50": found.quantile(0.5), "p99": found.quantile(0.99), "statuses": sorted(found.statuses)}


def made_up_requests(quick: bool) -> dict[str, Any]:
    """Ten thousand requests of schemathesis."""
    with tempfile.TemporaryDirectory() as folder:
        server = site(Path(folder), n=2_000, grid=0.0)
        try:
            name = server.release(DATASET, kind="uplift", epsilon=1.0, by={"severity": 4})
            description = server.call("/api/openapi.json")[1]

            def send(method: str, path: str, parameters: Any, query: Any, body: Any, headers: dict[str, str]) -> int:
                filled = path
                for key, value in parameters.items():
                    filled = filled.replace("{" + key + "}", quote(str(value), safe="") or "-")
                if query:
                    filled += "?" + urlencode({key: str(value) for key, value in query.items()})
                return _send(server, method, filled, body, "curator" if "/curator/" in path else "analyst", headers)

            known = {"dataset": [DATASET, "home-trial"], "release": [name], "person": ["analyst", "colleague"]}
            found = fuzz(description, send, 500 if quick else 10_000, known)
            alive = server.call("/health")[0]
            intact = server.call("/api/v1/curator/log/verification", person="curator")[1]["intact"]
        finally:
            server.end()
    statuses: dict[int, int] = {}
    for (_, status), count in found.items():
        statuses[status] = statuses.get(status, 0) + count
    return {"statuses": statuses, "operations": len({label for label, _ in found}), "alive": alive, "intact": intact}


def _send(
    server: Server, method: str, path: str, body: Any, person: str, more: Mapping[str, str] = MappingProxyType({})
) -> int:
    import http.client

    from schemathesis.core import NotSet

    content = None if isinstance(body, NotSet) or body is None else json.dumps(body, default=repr).encode()
    headers = dict(more) | {"Authorization": f"Bearer {server.tokens[person]}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def refusals(quick: bool) -> dict[str, Any]:
    """Time of refusals on a data set with its records, and on one whose records are gone, in turn."""
    with tempfile.TemporaryDirectory() as folder:
        server = site(Path(folder))
        kinds: dict[str, dict[str, Any]] = {
            "budget": {"kind": "ate", "epsilon": 50.0, "delta": 1e-6},
            "bounds": {"kind": "uplift", "epsilon": 0.1, "by": {"severity": [30, 40]}},
            "schema": {"kind": "ate", "epsilon": 0.1, "delta": 1e-6, "covariates": ["height"]},
        }
        try:
            facts = {"title": "A copy", "source": "copy.parquet", "outcome": "days", "treatment": "treated"}
            (Path(folder) / "copy.parquet").write_bytes((Path(folder) / "clinic.parquet").read_bytes())
            facts |= {"bounds": PUBLIC.to_dict(), "id": "without-data"}  # type: ignore[dict-item]
            made = server.call("/api/v1/curator/datasets", facts | {"epsilon": 6.0, "delta": 1e-5}, "curator")[1]
            # A copy of registered records, as the second curator has to say.
            server.call(f"/api/v1/curator/approvals/{made['proposal']}?again=true", {}, "second")
            _put(server, "/api/v1/curator/datasets/without-data/analysts/analyst", {"epsilon": 4.0, "delta": 1e-5})
            waits = server.call("/api/v1/curator/approvals", person="curator")[1]
            server.call(f"/api/v1/curator/approvals/{waits[-1]['id']}", {}, "second")
            (Path(folder) / "copy.parquet").unlink()
            out = {}
            calls = (60 if quick else 2_000) // len(kinds) // 2 + 1
            for kind, asked in kinds.items():
                taken: dict[str, list[float]] = {DATASET: [], "without-data": []}
                for k in range(2 * calls):
                    name = (DATASET, "without-data")[(k + k // 2) % 2]
                    started = time.perf_counter()
                    status, body = server.call(f"/api/v1/datasets/{name}/requests", asked)
                    taken[name].append(time.perf_counter() - started)
                    assert status in (409, 422), (status, body)
                with_, without = (np.array(each) for each in taken.values())
                out[kind] = {
                    "calls": 2 * calls,
                    "median": (float(np.median(with_)), float(np.median(without))),
                    "mann_whitney": float(mannwhitneyu(with_, without).pvalue),
                    "ks": float(ks_2samp(with_, without).pvalue),
                }
        finally:
            server.end()
    return out


def _put(server: Server, path: str, body: Any) -> None:
    status = _send(server, "PUT", path, body, "curator")
    assert status == 200, status


def pages(quick: bool) -> dict[str, tuple[float, float]]:
    """Milliseconds that pages take: the first time, and the median."""
    with tempfile.TemporaryDirectory() as folder:
        server = site(Path(folder))
        try:
            average = server.release(DATASET, kind="ate", epsilon=0.5, delta=1e-6)
            function = server.release(DATASET, kind="cate", epsilon=1.0, delta=1e-6)
            segments = server.release(DATASET, kind="uplift", epsilon=0.5, by={"severity": 4, "sex": "levels"})
            analyst = ["/datasets", f"/datasets/{DATASET}", f"/datasets/{DATASET}/plan", "/datasets/home-trial/plan"]
            analyst += [f"/datasets/{DATASET}/request?kind=ate&epsilon=0.5&delta=1e-7", "/requests", "/releases"]
            analyst += [f"/releases/{name}" for name in (average, function, segments)]
            analyst += [f"/releases/{function}/explore", "/audit", "/interface"]
            curator = ["/curator", f"/curator/datasets/{DATASET}", "/curator/datasets/new", "/curator/people"]
            curator += ["/curator/log", "/curator/log?anchor="]
            labels = {average: "ate", function: "cate", segments: "uplift"}
            # Every page anew: nothing is in the memory of this server but what its start put there.
            server.end()
            server.start()
            out = {}
            for person, paths in (("analyst", analyst), ("curator", curator)):
                for path in paths:
                    taken = []
                    for _ in range(3 if quick else 15):
                        started = time.perf_counter()
                        status, _ = server.call(path, person=person)
                        taken.append(1e3 * (time.perf_counter() - started))
                        assert status == 200, path
                    label = path
                    for name, word in labels.items():
                        label = label.replace(name, f"({word})")
                    out[label] = (taken[0], float(np.median(taken)))
        finally:
            server.end()
    return out


def restart(quick: bool) -> dict[str, Any]:
    """Jobs that were queued or running when their server was killed."""
    with tempfile.TemporaryDirectory() as folder:
        server = site(Path(folder), lease=2.0)
        rounds, ended, charged, lost = (2 if quick else 6), 0, 0.0, 0
        try:
            count = 0
            for k in range(rounds):
                jobs = []
                for j in range(4):
                    asked = {"kind": "ate", "epsilon": 0.02 + (4 * k + j) / 10_000, "delta": 1e-8}
                    jobs.append(server.call(f"/api/v1/datasets/{DATASET}/requests", asked)[1]["job"])
                time.sleep(0.1 + 0.4 * k)
                server.end(signal.SIGKILL)
                server.start()
                for job in jobs:
                    found = server.ended(job)
                    count += 1
                    ended += found["state"] == "done"
                    lost += found["failure"] == "lost-charged"
            account = server.call(f"/api/v1/datasets/{DATASET}", person="curator")[1]["budget"]
            charged = account["requests"].get("settled", 0) + account["requests"].get("failed", 0)
            intact = server.call("/api/v1/curator/log/verification", person="curator")[1]["intact"]
        finally:
            server.end()
    return {"kills": rounds, "jobs": count, "done": ended, "lost": lost, "charged": charged, "intact": intact}


def journey(quick: bool) -> dict[str, Any]:
    """The tests in Chromium, with screenshots kept; how many clicks a release took."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "tests/serve/test_browser.py",
            "-q",
            "-p",
            "no:randomly",
            "-o",
            "junit_family=xunit1",
        ]
        environment = os.environ | ({} if quick else {"DISCREET_SCREENSHOTS": str(SCREENSHOTS)})
        done = subprocess.run([*command, f"--junitxml={results}"], cwd=ROOT, env=environment, check=False)
        tree = ET.parse(results).getroot()
    clicks = [int(each.get("value", "0")) for each in tree.iter("property") if each.get("name") == "clicks"]
    steps = [each for each in tree.iter("property") if each.get("name") == "registration-clicks"]
    checked = [int(each.get("value", "0")) for each in tree.iter("property") if each.get("name") == "pages"]
    return {"passed": done.returncode == 0, "clicks": clicks[0] if clicks else None, "pages": sum(checked)} | {
        "registration": int(steps[0].get("value", "0")) if steps else None
    }


def firefox(quick: bool) -> dict[str, Any]:
    """The analyst's journey in Firefox, desktop and phone; or why it was left out."""
    browser = shutil.which("firefox-esr") or shutil.which("firefox")
    folder = Path(os.environ.get("PUPPETEER", ""))
    if browser is None or not (folder / "node_modules" / "puppeteer-core").is_dir():
        return {"left_out": "there is no Firefox, or no puppeteer-core: run it through tests/with-firefox.sh"}
    (folder / "package.json").exists() or (folder / "package.json").write_text("{}")
    with tempfile.TemporaryDirectory() as data:
        server = site(Path(data), n=2_000)
        try:
            shots = data if quick else str(SCREENSHOTS)
            script = str(Path(__file__).parent / "firefox.mjs")
            command = ["node", script, f"http://127.0.0.1:{server.port}", server.tokens["analyst"], shots, browser]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        finally:
            server.end()
    lines = done.stdout.strip().splitlines()
    return dict(json.loads(lines[-1])) if lines else {"left_out": f"the script ended with code {done.returncode}"}


def dependencies(quick: bool) -> str:
    """What pip-audit says of everything that is installed."""
    del quick
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--skip-editable"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:
        return "took too long: run `pip-audit` where there is a network"
    nowhere = "could not reach its database of advisories from here: run `pip-audit` where there is a network"
    if "could not be audited" in done.stdout + done.stderr:
        return nowhere
    if "No known vulnerabilities found" in done.stdout + done.stderr:
        return "no known vulnerabilities found"
    if done.returncode == 1 and done.stdout.strip().startswith("Name"):
        return f"{len(done.stdout.splitlines()) - 2} advisories"
    if "No module named" in done.stderr:
        return "is not installed here: run `pip-audit` where there is a network"
    return nowhere


MEASURES: dict[str, Callable[[bool], Any]] = {
    "load": function_load,
    "fuzz": made_up_requests,
    "refusals": refusals,
    "pages": pages,
    "restart": restart,
    "restarts": operating.restarts,
    "neighbours": operating.neighbours,
    "soak": operating.soak,
    "journey": journey,
    "firefox": firefox,
    "dependencies": dependencies,
}
