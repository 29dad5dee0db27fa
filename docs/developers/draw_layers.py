"""Draw the layers of the library: ``python docs/developers/draw_layers.py`` writes docs/developers/layers.svg.

The order is that of tests/test_layers.py, which the tests enforce. A test compares the picture with what this draws.
"""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
RULE = HERE.parent.parent / "tests" / "test_layers.py"
PICTURE = HERE / "layers.svg"

WIDTH, HEIGHT, GAP, MARGIN, NAMES = 860, 34, 6, 24, 170
FONT = "font-family='DejaVu Sans, Verdana, sans-serif' font-size='13'"


class Role(NamedTuple):
    """What a layer may see, and its colour."""

    words: str
    colour: str


RECORDS = Role("handles records", "#f6d9c4")
GATE = Role("the gate: what leaves it is noisy", "#f2b5a0")
PUBLIC = Role("sees released numbers and public facts only", "#cfe6d4")
AROUND = Role("built on the others", "#d8e2f0")

LAYERS = {
    "exceptions": (PUBLIC, "one family of errors, which never print data"),
    "data": (RECORDS, "declared facts; records, clipped and encoded by them"),
    "data.backends": (RECORDS, "where rows live: memory, files, DuckDB, polars, PostgreSQL, Spark"),
    "privacy": (GATE, "budget, sensitivity sets, noise, accounting, guarantee, and the gate"),
    "postprocessing": (PUBLIC, "models and estimates from noisy sums"),
    "releases": (PUBLIC, "what is published: files, summaries, plots, pages"),
    "ledger": (AROUND, "what was spent on which data set, on disk"),
    "estimators": (AROUND, "ATE, CATE, Uplift, ...: which questions to ask, and in which order"),
    "papers": (AROUND, "published methods, as their authors wrote them"),
    "datasets": (AROUND, "generators and loaders, for examples and evidence"),
    "testing": (AROUND, "seeded noise for simulations and tests"),
    "audit": (AROUND, "attacks on all of this: replay, closed form, black box"),
    "client": (AROUND, "a service, asked from Python"),
    "serve": (AROUND, "the curator's service"),
    "cli": (AROUND, "the command line"),
}


def order() -> tuple[str, ...]:
    """The layers, each of which imports from those before it, as the test of the layers has them."""
    for node in ast.parse(RULE.read_text()).body:
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["ORDER"]:
            return tuple(ast.literal_eval(node.value))
    raise LookupError(f"{RULE.name} has no ORDER: say in draw_layers.py where the order of layers is kept now.")


def draw() -> str:
    """The picture as SVG: the first layer at the bottom."""
    names = order()
    roles = list(dict.fromkeys(LAYERS[name][0] for name in names))
    bottom = MARGIN + len(names) * (HEIGHT + GAP)
    height = bottom + 30 + len(roles) * 22 + MARGIN
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img' {FONT}>",
        "<title>The layers of discreet, from the command line at the top to exceptions at the bottom</title>",
        f"<rect width='{WIDTH}' height='{height}' fill='#ffffff'/>",
    ]
    for place, name in enumerate(reversed(names)):
        role, words = LAYERS[name]
        parts += _box(MARGIN + place * (HEIGHT + GAP), role, name, words)
    x = WIDTH - MARGIN - 14
    parts += [
        f"<path d='M{x} {MARGIN + 8} V{bottom - 14}' stroke='#555555' fill='none'/>",
        f"<path d='M{x - 5} {bottom - 22} L{x} {bottom - 12} L{x + 5} {bottom - 22}' stroke='#555555' fill='none'/>",
        f"<text x='{WIDTH - MARGIN}' y='{bottom + 12}' text-anchor='end' fill='#555555'>imports point down</text>",
    ]
    for place, role in enumerate(roles):
        y = bottom + 24 + place * 22
        parts += [
            f"<rect x='{MARGIN}' y='{y}' width='18' height='14' fill='{role.colour}' stroke='#888888'/>",
            f"<text x='{MARGIN + 28}' y='{y + 12}' fill='#222222'>{escape(role.words)}</text>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(y: int, role: Role, name: str, words: str) -> list[str]:
    middle, width = y + HEIGHT // 2 + 5, WIDTH - 2 * MARGIN - 36
    return [
        f"<rect x='{MARGIN}' y='{y}' width='{width}' height='{HEIGHT}' rx='5' fill='{role.colour}' stroke='#888888'/>",
        f"<text x='{MARGIN + 14}' y='{middle}' fill='#222222' font-weight='bold'>{escape(name)}</text>",
        f"<text x='{MARGIN + NAMES}' y='{middle}' fill='#222222'>{escape(words)}</text>",
    ]


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"Written: {PICTURE}")
