"""What commands load: a library that is not used costs more time than a small study takes."""

import pytest

from tests.cli.helpers import ESTIMATE, python

# What takes a tenth of a second and more, or stands for something that does.
HEAVY = {
    "dp_accounting",
    "econml",
    "interpret",
    "jinja2",
    "joblib",
    "matplotlib",
    "opendp.prelude",
    "pandas",
    "polars",
    "pyspark",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
}
FILES = {"duckdb", "pyarrow.dataset", "pyarrow.parquet"}
NOISE = {"opendp"}
ARRAYS = {"numpy", "pyarrow", "scipy"}
PUBLIC = ["--bounds", "bounds.toml", "--epsilon", "5", "--delta", "1e-6"]


def loaded(*command: str) -> set[str]:
    """The modules that a command leaves behind, which has to succeed."""
    script = (
        "import sys\nfrom discreet.cli import app\n"
        "try: app(sys.argv[1:])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print('LOADED', *sys.modules)"
    )
    done = python("-c", script, *command)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.partition("LOADED")[2].split())


def test_importing_the_library_loads_no_other():
    done = python("-c", "import sys, discreet; print(*sys.modules)")
    assert (HEAVY | FILES | NOISE | ARRAYS) & set(done.stdout.split()) == set()


@pytest.mark.parametrize("estimator", ["ate", "cate", "uplift"])
def test_a_plan_loads_neither_models_nor_files_nor_noise(here, estimator):
    more = ["--by", "age=4"] if estimator == "uplift" else []
    assert (HEAVY | FILES | NOISE) & loaded("plan", estimator, "--n", "2000", *PUBLIC, *more) == set()


@pytest.mark.parametrize("estimator", ["ate", "cate", "uplift"])
def test_a_small_study_loads_no_models_and_no_second_library_of_frames(here, estimator):
    more = ["--by", "age=4"] if estimator == "uplift" else []
    assert HEAVY & loaded(estimator, "study.csv", *ESTIMATE, *more) == set()
