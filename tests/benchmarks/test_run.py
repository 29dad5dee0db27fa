"""The page on time and memory: parts are measured one by one, and are kept beside those of other days."""

import pytest

from benchmarks import run
from benchmarks.lines import Line, Measured, load, save
from benchmarks.parts import PARTS, noise_timed
from benchmarks.turns import in_turns
from discreet import ATE, Bounds
from discreet.privacy import gate


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    return tmp_path


def part(monkeypatch, name, *lines):
    monkeypatch.setitem(PARTS, name, PARTS[name]._replace(measure=lambda few: list(lines)))


def test_a_part_that_is_run_alone_leaves_the_others_as_they_were(folder, monkeypatch):
    part(monkeypatch, "small", Line("one", 2.0, "s", 3.0))
    part(monkeypatch, "papers", Line("two", 20.0, "s", 10.0, terms="9 terms"))
    run.main(["--only", "small"])
    assert "papers`: not measured yet" in (folder / "bench.md").read_text()
    run.main(["--only", "papers"])
    page = (folder / "bench.md").read_text()
    assert "| one |  | ≤ 3 s | 2.00 s | reached |" in page
    assert "| two | 9 terms | ≤ 10 s | 20.0 s | **not reached** |" in page
    assert set(load(folder / "bench.csv")) == {"small", "papers"}


def test_lines_are_read_as_they_were_written(tmp_path):
    lines = (Line("a, b", 1.5, "×", None, 1.7, "3 terms"), Line("c", 12_345.0))
    save(tmp_path / "bench.csv", {"small": Measured("2026-01-01", lines)}, PARTS)
    assert load(tmp_path / "bench.csv") == {"small": Measured("2026-01-01", lines)}
    assert [line.word for line in lines] == ["**not reached**", ""]
    assert load(tmp_path / "none.csv") == {}


def test_a_quick_run_prints_and_writes_nothing(folder, monkeypatch, capsys):
    part(monkeypatch, "small", Line("one", 2.0, "s", 3.0))
    run.main(["--quick", "--only", "small"])
    assert "| one |" in capsys.readouterr().out
    assert not list(folder.iterdir())


def test_every_part_says_how_long_it_takes(capsys):
    run.main(["--list"])
    printed = capsys.readouterr().out
    assert all(f"{name}: " in printed for name in PARTS)


def test_jobs_take_turns_and_the_first_is_not_counted():
    order = []
    found = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2, lambda: float(len(order)))
    assert order == ["a", "b"] * 3
    assert found == {"a": 1.0, "b": 1.0}


def test_noise_is_timed_and_drawn_as_before():
    kept, bounds = gate._drawn, Bounds(outcome=(0, 1))
    with noise_timed() as took:
        ATE(epsilon=1.0, delta=1e-6, bounds=bounds).fit([0.0, 1.0] * 50, [0, 0, 1, 1] * 25)
    assert len(took) > 2
    assert gate._drawn is kept


@pytest.mark.parametrize("name", ["small", "kept", "compiled"])
def test_fits_are_measured_with_their_terms(name):
    found = PARTS[name].measure(True)
    assert all(line.figure > 0 for line in found)
    assert name == "compiled" or any("terms" in line.terms for line in found)
