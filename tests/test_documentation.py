"""What the documentation shows runs, and what it points to exists."""

import re
from pathlib import Path

import pytest

import discreet
from discreet.testing import seeded_noise

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGES = [page for page in PAGES if "_build" not in page.parts]
# Tutorials have tests of their own, which compare what they print.
SHOWN = [page for page in PAGES if "```python" in page.read_text() and page.parent.name != "tutorials"]
# A page whose blocks need a service: tests/client/test_how_to.py runs them against one.
SHOWN = [page for page in SHOWN if page.name != "ask-a-service.md"]
# Pages that run another library beside ours, and which: not all of those are in the extras for development.
BESIDE = {"docs/how-to/coming-from.md": "econml"}


def name_of(page):
    """The page as the test's name shows it."""
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_python_blocks_run_in_order(page, tmp_path, monkeypatch, capsys):
    if name_of(page) in BESIDE:
        pytest.importorskip(BESIDE[name_of(page)])
    monkeypatch.chdir(tmp_path)
    source = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    with seeded_noise(0):
        exec(compile(source, page.name, "exec"), {"__name__": "documentation"})
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(page):
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text())
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_the_reference_names_everything_that_is_public():
    text = (ROOT / "docs" / "reference" / "api.md").read_text()
    blocks = dict(re.findall(r"autoclass:: (\w+)\n((?: +:members:.*\n(?: +\w.*\n)*)?)", text))
    public = [getattr(discreet, name) for name in discreet.__all__ if name not in {"__version__", "audit"}]
    functions = set(re.findall(r"autofunction:: (\w+)\n", text))
    for thing in public:
        if not isinstance(thing, type):
            assert thing.__name__ in functions
            continue
        if issubclass(thing, Exception):
            continue
        listed = set(re.findall(r"\w+", blocks[thing.__name__])) - {"members"}
        if not hasattr(thing, "get_params"):
            # A release shows all of itself.
            assert not listed, thing
            continue
        own = {name for name, value in vars(thing).items() if name[0] != "_" and callable(value)}
        assert own | {"guarantee_"} <= listed, thing


def test_the_citation_and_the_changes_name_this_version():
    assert f"version: {discreet.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {discreet.__version__}" in (ROOT / "CHANGELOG.md").read_text()
