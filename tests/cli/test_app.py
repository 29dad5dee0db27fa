"""The command line as a whole: it starts at once, says its version, and never prints records."""

import discreet
from discreet.estimators import ate as ate_module
from tests.cli.helpers import ESTIMATE, plain, python, run


def test_version_and_help_are_there():
    assert run("--version").stdout == f"discreet {discreet.__version__}\n"
    text = plain(run("--help").stdout)
    for command in ("ate", "plan", "bounds", "report", "demo"):
        assert f" {command} " in text


def test_help_loads_no_heavy_library():
    script = (
        "import sys; from discreet.cli import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'opendp', 'sklearn', 'scipy', 'matplotlib', 'jinja2'}\n"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    done = python("-c", script)
    assert done.stdout.rstrip().endswith("LOADED []")


def test_the_package_runs_as_a_module():
    done = python("-m", "discreet", "--version")
    assert done.stdout == f"discreet {discreet.__version__}\n"


def test_unexpected_errors_print_a_fixed_sentence_and_no_data(here, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("record 17 is 31337")

    monkeypatch.setattr(ate_module.ATE, "fit_table", fail)
    result = run("ate", "study.csv", *ESTIMATE)
    assert result.exit_code == 1
    assert "31337" not in result.output
    assert "something went wrong" in result.stderr
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    debugged = run("ate", "study.csv", *ESTIMATE)
    assert isinstance(debugged.exception, RuntimeError)


def test_no_traceback_reaches_the_terminal(here):
    script = (
        "from discreet import cli\nfrom discreet.estimators import ate\n"
        "def fail(*_, **__): raise RuntimeError('31337')\n"
        "ate.ATE.fit_table = fail\n"
        "cli.app()\n"
    )
    done = python("-c", script, "ate", "study.csv", *ESTIMATE)
    assert done.returncode == 1
    assert "31337" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
