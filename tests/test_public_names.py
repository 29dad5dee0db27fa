"""The package's front door: every name is there, and it opens at once."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import discreet


def test_every_public_name_can_be_imported() -> None:
    # `audit` is a package that can be called.
    assert set(discreet._HOME) | {"__version__", "audit"} == set(discreet.__all__) <= set(dir(discreet))
    assert callable(discreet.audit)
    for name in discreet._HOME:
        assert getattr(discreet, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        discreet.Nonsense  # noqa: B018


def test_importing_the_package_loads_no_library() -> None:
    script = (
        "import sys, discreet; print({'numpy', 'pyarrow', 'duckdb', 'opendp', 'sklearn', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_paper_can_be_imported_and_none_is_loaded_before_it_is_asked_for() -> None:
    import discreet.papers as papers

    assert papers._HOME.keys() | papers._MODULES.keys() == set(papers.__all__) <= set(dir(papers))
    for name in papers._HOME:
        assert getattr(discreet.papers, name).__name__ == name
    assert discreet.papers.baselines.standard.__name__ == "standard"
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        papers.Nonsense  # noqa: B018
    script = "import sys, discreet.papers; print({'numpy', 'sklearn', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_pickle_of_an_earlier_version_is_refused_in_a_sentence():
    # A fitted estimator of version 0.1, as protocol 0 names its class.
    old = b"cdiscreet.ate\nATE\n."
    with pytest.raises(ModuleNotFoundError, match="unpickle it with the version that wrote it"):
        pickle.loads(old)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere'"):
        import_module("nowhere")
