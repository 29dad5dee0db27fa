"""The indexes of the five papers: what they name exists, no page is missing, and verdicts are those of the pages."""

import ast
import re
from functools import cache
from importlib import import_module

import pytest

from evidence.reproduce import index, papers
from evidence.reproduce.cache import ROOT

# What each text numbers: an index that leaves one out is incomplete.
NUMBERED = {
    "adum": ("Proposition 1", "Corollary 1", "Algorithm 1", "Figure 1", "Figure 2", "Figure 3", "Remark"),
    "dp_cate": (
        *("Theorem 1", "Theorem 2", "Lemma 1", "Lemmas 2 and 2b", "Lemma 3", "Lemma 4", "Lemma 5", "Definition 3"),
        *("Definition 4", "Algorithm 1", "Algorithm 2", "Supplement B", "Supplement D", "Supplement E.2", "Kernels"),
        *(f"Figure {number}" for number in (3, 4, 5, 6, 7, 9, 10, 11, 13, 14, 15)),
        "Figures 1, 2 and 8",
    ),
    "meta_learners": (
        *("Algorithm 1", "Algorithm 2", "Theorem 6", "Lemma 10", "Table 1", "Figure 1", "Figure 2", "Figure 3"),
        *(f"Remark {number}" for number in (4, 5, 7, 8, 9)),
    ),
    "private_ate": (
        *("Lemma 4.2", "Remark", "Theorem 4.3", "Lemma 4.4", "Theorem 4.5", "Theorem 4.6", "Lemmas A.1 and A.2"),
        *("Table 1", "Table 2", "Table 3", "Figures 1 to 3", "Figure 4", "Figure 5", "Figure 6", "Definition 4.1"),
    ),
    "propensity": (
        "Definition 1",
        "Definition 2",
        "Lemma 3",
        "Lemma 4",
        "Theorem 5",
        "Table 1",
        "Figure 1",
        "Figure 2",
    ),
}
ITEMS = [(paper, item) for paper in index.PAPERS for item in index.contents(paper).items]
IDS = [f"{paper}, {item.name}" for paper, item in ITEMS]


@cache
def functions(file):
    tree = ast.parse((ROOT / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("paper", "item"), ITEMS, ids=IDS)
def test_code_tests_and_pages_that_an_index_names_are_there(paper, item):
    for name in item.code:
        parts = name.split(".")
        found = None
        for k in range(len(parts), 0, -1):
            try:
                found = import_module(".".join(parts[:k]))
            except ModuleNotFoundError:
                continue
            for part in parts[k:]:
                found = getattr(found, part)
            break
        assert found is not None, name
    for name in item.tests:
        file, _, function = name.partition("::")
        assert (ROOT / file).is_file(), file
        assert not function or function in functions(file), name
    assert item.says
    assert item.verdict or item.page
    # What has neither code nor a test says why.
    assert (item.code and item.tests) or item.verdict
    if item.page:
        assert (index.PAGES / index.PAPERS[paper] / f"{item.page}.md").is_file()


@pytest.mark.parametrize("paper", index.PAPERS)
def test_nothing_that_a_text_numbers_is_missing(paper):
    names = [item.name for item in index.contents(paper).items]
    for wanted in NUMBERED[paper]:
        assert any(re.search(rf"{re.escape(wanted)}(?![\d.]*\d)", name) for name in names), wanted
    assert len(names) == len(set(names))


@pytest.mark.parametrize("paper", index.PAPERS)
def test_every_page_and_every_target_of_a_paper_is_in_its_index(paper):
    folder = index.PAPERS[paper]
    given = index.contents(paper)
    named = {item.page for item in given.items} | set(given.further)
    # A page is pending until it has been written, and is then to be listed like any other.
    assert not named & set(given.pending)
    pages = {path.stem for path in (index.PAGES / folder).glob("*.md")} - {"index"}
    assert pages == named - {""}
    assert set(papers()[folder]) <= named | set(given.pending)


@pytest.mark.parametrize("paper", index.PAPERS)
def test_an_index_is_what_its_list_and_its_pages_make(paper):
    written = (index.PAGES / index.PAPERS[paper] / "index.md").read_text(encoding="utf-8")
    assert written == index.page(paper), "write the indexes anew: python -m evidence.reproduce.index"


def test_verdicts_are_counted_on_the_page(tmp_path):
    text = "# T\n\n`c`. Replications: 20. Seeds: s.\n\n* Reached: a (b).\n* Not reached: c (d).\n* Reached: e (f).\n"
    (tmp_path / "fig.md").write_text(text)
    assert index.counted(tmp_path / "fig.md") == "[fig](fig.md): 2 of 3 reached; 20 replications."
    (tmp_path / "once.md").write_text(text.replace("Replications: 20", "Replications: 1"))
    assert index.counted(tmp_path / "once.md").endswith("; 1 replication.")
    (tmp_path / "plain.md").write_text("# T\n")
    assert index.counted(tmp_path / "plain.md") == "[plain](plain.md): numbers only."
