"""The pages for developers speak of this tree: what they name exists, what they show runs, what they draw is so."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.test_layers import ORDER

ROOT = Path(__file__).parent.parent
HOME = ROOT / "docs" / "developers"
PAGES = sorted(HOME.rglob("*.md"))
OTHERS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs" / "proofs").glob("*.md")),
    *sorted((ROOT / "docs" / "explanation").glob("*.md")),
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    *sorted((ROOT / "docs" / "evidence").rglob("*.md")),
]
# Where names of files may begin.
PLACES = (ROOT, ROOT / "src" / "discreet")
# A block that is run (by tests/test_documentation.py), commands, and templates or errors as text.
FENCES = {"python", "sh", "text", "{toctree}"}
FILE = re.compile(r"[\w./-]+\.(?:py|pyi|md|toml|txt|sh|svg|yml|yaml|csv|cff)")
FOLDER = re.compile(r"[\w./-]+/")
DOTTED = re.compile(r"(?:discreet|evidence|benchmarks|tests)(?:\.\w+)+")


def name_of(page: Path) -> str:
    """The page as the test's name shows it."""
    return str(page.relative_to(ROOT))


def in_code(page: Path) -> list[str]:
    """What stands between single backticks outside of blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def exists(name: str, page: Path) -> bool:
    """Whether a file or a folder is there, as seen from the root, the library or the page."""
    kind = Path.is_dir if name.endswith("/") else Path.is_file
    return any(kind(place / name) for place in (*PLACES, page.parent))


def resolves(path: str) -> bool:
    """Whether a dotted name leads to a module or to something in one."""
    parts = path.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for name in parts[length:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_every_file_and_folder_that_a_page_names_exists(page):
    named = [word for word in in_code(page) if FILE.fullmatch(word) or FOLDER.fullmatch(word)]
    # Files that users write have no folder, and are no Python: `bounds.toml`.
    own = [word for word in named if "/" in word or word.endswith((".py", ".md"))]
    assert [word for word in own if not exists(word, page)] == []


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=name_of)
def test_every_dotted_name_of_ours_leads_somewhere(page):
    assert [word for word in in_code(page) if DOTTED.fullmatch(word) and not resolves(word)] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_blocks_are_run_or_are_commands_or_say_that_they_are_text(page):
    fences = re.findall(r"^ *```(\S*)$", page.read_text(), re.MULTILINE)
    assert len(fences) % 2 == 0
    assert set(fences[::2]) <= FENCES
    assert set(fences[1::2]) <= {""}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_targets_of_make_that_a_page_names_exist(page):
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    named = [found for part in (*blocks, *in_code(page)) for found in re.findall(r"\bmake ([a-z][a-z-]*)", part)]
    assert set(named) <= targets


def test_the_index_leads_to_every_page():
    for folder in (HOME, HOME / "decisions"):
        text = (folder / "index.md").read_text()
        pages = {page.name for page in folder.glob("*.md")} - {"index.md"}
        assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", text))


@pytest.mark.parametrize("page", sorted((HOME / "decisions").glob("[!i]*.md")), ids=name_of)
def test_a_decision_is_short_and_says_context_decision_and_consequences(page):
    text = page.read_text()
    assert re.findall(r"^\*\*(\w+)\.\*\*", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert len(text.splitlines()) <= 25


def drawing(name: str = "draw_layers") -> ModuleType:
    """The script that draws a picture."""
    spec = importlib.util.spec_from_file_location(f"developers_{name}", HOME / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_layers_is_what_the_script_draws():
    script = drawing()
    assert script.order() == ORDER
    assert script.LAYERS.keys() == set(ORDER)
    assert (HOME / "layers.svg").read_text() == script.draw(), "run python docs/developers/draw_layers.py"


def test_the_picture_of_the_front_page_is_what_the_script_draws():
    made = drawing("draw_picture").draw()
    assert (ROOT / "docs" / "picture.svg").read_text() == made, "run python docs/developers/draw_picture.py"


def tables(page: Path) -> list[list[list[str]]]:
    """All tables of a page, each with its head and its rows."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", page.read_text(), re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|\n ").split("|")] for line in b.splitlines()] for b in blocks]


def test_the_glossary_defines_each_word_once_and_retires_words_with_a_replacement():
    used, retired = tables(HOME / "glossary.md")
    assert used[0] == ["word", "meaning", "owned by"]
    words = [row[0] for row in used[2:]]
    assert words == sorted(set(words), key=str.lower)
    assert all(len(row) == 3 and row[2].startswith("`") for row in used[2:])
    assert retired[0] == ["retired", "means", "say instead"]
    assert all(re.fullmatch(r"`\w+`", row[0]) and len(row) == 3 and all(row) for row in retired[2:])
    pairs = [(row[0], row[1]) for row in retired[2:]]
    assert len(pairs) == len(set(pairs))
