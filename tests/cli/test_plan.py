"""The commands that plan."""

import sys
import types

from tests.cli.helpers import BOUNDS, run


def test_a_plan_gets_every_option_and_prints_its_summary(here, monkeypatch):
    asked = {}
    module = types.ModuleType("discreet.estimators.planning")

    def plan(kind, **options):
        asked.update(options, kind=kind)
        return types.SimpleNamespace(summary=lambda: "the width will be 0.3")

    module.plan = plan  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "discreet.estimators.planning", module)
    result = run("plan", "ate", "--n", 5735, "--bounds", "bounds.toml", "--delta", "1e-6", "--width", "0.3")
    assert result.exit_code == 0
    assert result.stdout == "the width will be 0.3\n"
    assert (asked["kind"], asked["n"], asked["width"], asked["delta"]) == ("ate", 5735, 0.3, 1e-6)
    assert asked["bounds"] == BOUNDS
    assert asked["epsilon"] is None


def test_plans_take_a_prevalence_and_segments(here):
    given = ("--n", 5735, "--bounds", "bounds.toml", "--epsilon", 1, "--delta", "1e-6")
    result = run("plan", "ate", *given, "--prevalence", 0.1)
    assert result.exit_code != 0
    assert "prevalence belongs to an outcome of two values" in " ".join(result.stderr.split())
    assert run("plan", "ate", *given, "--outcome-sd", 2).exit_code == 0
    assert run("plan", "cate", *given).exit_code == 0
    assert "segments are equally large" in run("plan", "uplift", *given, "--by", "age=4").stdout
