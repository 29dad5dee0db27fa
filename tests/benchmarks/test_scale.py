"""The benchmark of large tables, on a small one: its jobs agree with each other, and a miss is printed as a miss."""

import json
import os
import sys
from dataclasses import replace

import pytest

from benchmarks.scale import measure
from benchmarks.scale import page as scale_page
from benchmarks.scale import paper as scale_paper
from benchmarks.scale import targets as scale_targets
from benchmarks.scale.data import CUT, FEATURES, ROOT, table
from benchmarks.scale.tasks import prepare
from benchmarks.scale.worker import Failed, Worker

ROWS = 20_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return str(table(ROWS, tmp_path_factory.mktemp("data")))


@pytest.fixture
def start(tmp_path):
    workers = []

    def started(command, limit=30.0):
        log = tmp_path / "log"
        workers.append(Worker(command, limit=limit, folder=ROOT, log=log, environment=os.environ))
        return workers[-1]

    yield started
    for worker in workers:
        worker.stop()


def of(path, job, engine, **more):
    return prepare({"job": job, "engine": engine, "path": path, "features": list(CUT), "estimator": "uplift", **more})()


def test_engines_without_privacy_agree_on_the_groups(path):
    groups = of(path, "raw", "duckdb")
    assert groups[1] == ROWS
    assert of(path, "raw", "polars") == groups


def test_private_jobs_end_with_the_effects(path):
    assert of(path, "ours", "polars")["cells"] == 100
    found = of(path, "ours", "duckdb", estimator="ate", features=FEATURES[:2])
    assert found["rounds"] > 1
    assert found["terms"] > 2


def test_exact_sums_have_a_digest(path):
    assert len(of(path, "bits", "duckdb", estimator="ate", features=[])) == 16


def test_a_worker_answers_as_often_as_it_is_asked_with_its_own_memory(path, start):
    spec = {"job": "decode", "path": path, "features": list(FEATURES)}
    worker = start([sys.executable, "-m", "benchmarks.scale.tasks", json.dumps(spec)])
    answers = [worker.run(30.0) for _ in range(2)]
    assert [answer["found"] for answer in answers] == [ROWS, ROWS]
    assert all(2**24 < answer["peak"] < 2**30 for answer in answers)


def test_memory_of_children_counts_and_those_who_take_too_long_are_stopped(start):
    job = "import time; held = bytearray(2**26); time.sleep({})"
    code = (
        "import subprocess, sys; from benchmarks.scale.worker import serve\n"
        f"serve(lambda: lambda: subprocess.run([sys.executable, '-c', {job!r}.format(1 if input else 0)]).returncode)"
    )
    worker = start([sys.executable, "-c", code])
    assert worker.run(30.0)["peak"] > 2**26
    with pytest.raises(Failed, match="took longer than 0 seconds"):
        worker.run(0.2)
    assert worker.process.returncode is not None


def test_a_worker_that_ends_leaves_its_last_words(start):
    with pytest.raises(Failed, match="no such thing"):
        start([sys.executable, "-c", "raise SystemExit('no such thing')"])


def made_up(ours=1.0, peak=5e8):
    """Pieces as a run would leave them."""

    def job(seconds, found=None):
        return {"seconds": [seconds] * 3, "peak": int(peak), "found": found, "reason": None}

    plan = measure.QUICK
    names = [f"{engine}, {kind}" for engine in measure.ENGINES for kind in ("raw", "ours")]
    uplift = {name: job(ours if name.endswith("ours") else 1.0) for name in names}
    uplift |= {"opendp": job(4.0), "tumult": {"seconds": [], "peak": 0, "found": None, "reason": "needs Java"}}
    found = {"uplift": {"rows": plan.uplift, "jobs": uplift}}
    for rows in plan.averages:
        seen = {"terms": 9, "rounds": 5, "interval": [0.0099, 0.01011]}
        jobs = {"decode": job(1.0), "ate": job(4.0 * ours, seen), "cate": job(9.0 * ours)}
        jobs |= {"ate, design known": job(4.0 * ours), "ate, design known, one process": job(7.5)}
        seen = {"terms": 9, "rounds": 2, "interval": [0.0099, 0.0101]}
        jobs |= {
            f"ate, all rows{words}": job(4.0 * ours, seen) for words in ("", ", few terms", ", few terms, compiled")
        }
        found[f"average-{rows}"] = {"rows": rows, "jobs": jobs}
    kinds = [f"{engine}, {kind}" for engine in measure.ENGINES for kind in ("uplift", "ate")]
    found["bits"] = {"rows": plan.bits, "jobs": {name: job(1.0, "abc") for name in kinds}}
    found["growth"] = {"jobs": {f"{rows}, {len(FEATURES)}": job(rows / 1e4) for rows in plan.growth_rows}}
    found["terms"] = {"rows": plan.features_at, "jobs": {"5": job(1.0, {"terms": 5}), "decode": job(0.1, 9)}}
    sizes = [(kind, rows) for kind in ("uplift", "ate") for rows in plan.cluster]
    found["cluster"] = {"jobs": {f"{kind}, {rows}": job(rows / 1e5) for kind, rows in sizes}}
    return found


def words(found):
    return [verdict.word for verdict in scale_targets.judge(found, measure.QUICK)]


def test_verdicts_follow_the_figures():
    assert words(made_up()).count("reached") == 18
    assert words(made_up()).count("not run") == 1  # Tumult
    assert words(made_up(ours=3.0)).count("**not reached**") == 6
    assert words(made_up(ours=8.0)).count("**not reached**") == 9
    assert words(made_up(peak=2e9)).count("**not reached**") == 5
    differing = made_up()
    differing["bits"]["jobs"]["spark, ate"]["found"] = "abd"
    assert words(differing).count("**not reached**") == 1
    assert set(words({})) == {"not run"}


def test_the_page_shows_misses_and_reasons_and_every_repetition(tmp_path):
    found = made_up(ours=3.0)
    scale_page.write(found, measure.QUICK, tmp_path, stem="scale", command="a command")
    page = (tmp_path / "scale.md").read_text()
    assert page.count("**not reached**") == 6
    assert "tumult: needs Java" in page
    lines = (tmp_path / "scale.csv").read_text().splitlines()
    repeated = sum(len(job["seconds"]) or 1 for piece in found.values() for job in piece["jobs"].values())
    assert len(lines) == 1 + repeated


def test_a_billion_rows_are_a_line_through_two_sizes():
    cost = scale_paper.cost((10, 3.0), (20, 4.0))
    assert cost is not None
    assert cost.fixed == pytest.approx(2.0)
    assert cost(1_000, 1) == pytest.approx(2.0 + 100.0 * measure.CORES)
    assert scale_paper.cost((10, 3.0), (20, 3.0)) is None


def test_pieces_are_kept_until_the_plan_changes(tmp_path):
    asked = []

    def piece(plan, patience, say):
        asked.append(plan)
        return {"jobs": {}}

    patience = measure.Patience(limit=1.0, enough=1.0)
    for plan in (measure.QUICK, measure.QUICK, replace(measure.QUICK, repeats=2)):
        measure.Pieces(plan, patience, print, tmp_path).get("one", piece)
    assert len(asked) == 2
    assert measure.Pieces(measure.QUICK, patience, print, tmp_path).get("two", piece, measured=False) == {}
