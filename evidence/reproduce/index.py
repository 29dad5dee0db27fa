"""What each of the five papers contains, and what stands for it here: ``python -m evidence.reproduce.index``.

The lists are beside each paper's pages in this package (``contents.toml``). Verdicts on tables and figures are counted
on the pages as they are, so that an index is written anew whenever one of them is.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evidence.reproduce.cache import ROOT
from evidence.reproduce.pages import grid

PAGES = ROOT / "docs" / "evidence"
_HERE = Path(__file__).parent
# Folders of pages by their papers' folders here.
PAPERS = {
    "adum": "adum",
    "dp_cate": "dp-cate",
    "meta_learners": "meta-learners",
    "private_ate": "private-ci",
    "propensity": "propensity",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An algorithm, a theorem, a lemma, a remark, a table or a figure of a text.

    Parameters
    ----------
    name, says
        What it is called, and what it says, in a few words.
    code
        What implements it: dotted names.
    tests
        What checks it: files of tests, and functions in them after "::".
    page
        Its page of evidence, if it is a table or a figure, or was measured.
    verdict
        What was found, in words, where no page counts it; or why there is no more.
    """

    name: str
    says: str
    code: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    page: str = ""
    verdict: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a paper contains; pages that are ``pending`` can be run, and have not been."""

    title: str
    lead: str
    further: tuple[str, ...]
    pending: tuple[str, ...]
    items: tuple[Item, ...]


def contents(paper: str) -> Contents:
    """The list of a paper, by its folder here."""
    plain: dict[str, Any] = tomllib.loads((_HERE / paper / "contents.toml").read_text(encoding="utf-8"))
    items = tuple(_item(entry) for entry in plain["item"])
    listed = {name: tuple(plain.get(name, ())) for name in ("further", "pending")}
    return Contents(title=plain["title"], lead=plain["lead"], items=items, **listed)


def _item(entry: dict[str, Any]) -> Item:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Item(**fields)


def page(paper: str) -> str:
    """The index of a paper, as Markdown."""
    given, folder = contents(paper), PAGES / PAPERS[paper]
    lines = [
        [
            item.name,
            item.says,
            ", ".join(f"`{name.removeprefix('discreet.')}`" for name in item.code),
            ", ".join(_test(name) for name in item.tests),
            " ".join(filter(None, (item.verdict, counted(folder / f"{item.page}.md") if item.page else ""))),
        ]
        for item in given.items
    ]
    parts = [
        f"# {given.title}",
        given.lead,
        "Written by `python -m evidence.reproduce.index` from the list beside the pages' code; *reached* counts the "
        "aims of a page, each of which repeats what the paper finds, and what is not reached has its reason there. "
        "Code is below `discreet` unless it begins with `evidence`.",
        grid(["in the text", "what it says", "implemented by", "checked by", "verdict"], lines),
    ]
    if given.further:
        parts.append("Further pages: " + ", ".join(f"[{name}]({name}.md)" for name in given.further) + ".")
    if given.pending:
        runs = ", ".join(f"`discreet reproduce {PAPERS[paper]} {name} --full`" for name in given.pending)
        parts.append(f"Not run yet: {runs}.")
    return "\n\n".join(parts) + "\n"


def counted(path: Path) -> str:
    """A link to a page, with how many of its aims were reached and how often it was run."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    reached, missed = (text.count(f"\n* {word}:") for word in ("Reached", "Not reached"))
    found = f"{reached} of {reached + missed} reached" if reached + missed else "numbers only"
    runs = text.partition("Replications: ")[2].partition(".")[0]
    return f"[{path.stem}]({path.name}): {found}" + (
        f"; {runs} replication{'' if runs == '1' else 's'}." if runs else "."
    )


def _test(name: str) -> str:
    file, _, function = name.partition("::")
    words = (function or Path(file).stem).removeprefix("test_").replace("_", " ")
    # Seen from docs/evidence/<paper>/.
    return f"[{words}](../../../{file})"


def write() -> list[Path]:
    """Write all five."""
    written = []
    for paper, folder in PAPERS.items():
        path = PAGES / folder / "index.md"
        path.write_text(page(paper), encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for file in write():
        print(file.relative_to(ROOT))
