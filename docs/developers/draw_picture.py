"""Draw the picture of the front page: ``python docs/developers/draw_picture.py`` writes docs/picture.svg.

A test compares the picture with what this draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parent.parent / "picture.svg"
FONT = "font-family='DejaVu Sans, Verdana, sans-serif' font-size='14'"
WIDTH, HEIGHT, TOP, TALL = 920, 250, 66, 110
INK, PALE = "#222222", "#777777"
# Left edge, width, colour, heading and two lines of each box.
BOXES = (
    (34, 150, "#f6d9c4", "records", ("outcome, treatment,", "covariates")),
    (250, 190, "#f2b5a0", "the gate", ("clip, sum exactly,", "add noise")),
    (534, 150, "#cfe6d4", "a release", ("effect, interval,", "guarantee: a file")),
    (750, 140, "#d8e2f0", "answers", ("any level, anybody,", "for ever")),
)
ARROWS = ((184, 250, "bounds"), (440, 538, "noisy sums"), (684, 750, "free"))


def draw() -> str:
    """The picture as SVG."""
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img' {FONT}>",
        "<title>Records stay inside. They pass the gate as sums with noise, and a release answers everything</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' rx='8' fill='#ffffff'/>",
        f"<rect x='16' y='36' width='440' height='190' rx='10' fill='none' stroke='{PALE}' stroke-dasharray='6 5'/>",
        _text(30, 27, "inside: nobody who reads a release sees this", PALE, "start"),
        _text(712, 27, "outside: may be published", PALE, "middle"),
        _text(440, 212, "a ledger is charged before noise is drawn", PALE, "end", 12),
        _text(609, 212, "nothing else leaves", PALE, "middle", 12),
    ]
    for left, width, colour, heading, lines in BOXES:
        parts += _box(left, width, colour, heading, lines)
    for start, end, words in ARROWS:
        parts += _arrow(start, end, words)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _box(left: int, width: int, colour: str, heading: str, lines: tuple[str, ...]) -> Iterator[str]:
    middle = left + width // 2
    yield (
        f"<rect x='{left}' y='{TOP}' width='{width}' height='{TALL}' rx='7' fill='{colour}' stroke='#888888'/>"
        f"<text x='{middle}' y='{TOP + 36}' text-anchor='middle' font-weight='bold' font-size='17' "
        f"fill='{INK}'>{escape(heading)}</text>"
    )
    for place, line in enumerate(lines):
        yield _text(middle, TOP + 64 + 20 * place, line, INK, "middle", 12)


def _arrow(start: int, end: int, words: str) -> Iterator[str]:
    y = TOP + TALL // 2
    yield f"<path d='M{start + 5} {y} H{end - 9}' stroke='{INK}' stroke-width='1.6' fill='none'/>"
    yield f"<path d='M{end - 4} {y} l-10 -5 v10 z' fill='{INK}'/>"
    yield _text((start + end) // 2 + 2, y - 9, words, INK, "middle", 11)


def _text(x: int, y: int, words: str, colour: str, anchor: str, size: int = 13) -> str:
    return f"<text x='{x}' y='{y}' text-anchor='{anchor}' font-size='{size}' fill='{colour}'>{escape(words)}</text>"


if __name__ == "__main__":
    PICTURE.write_text(draw())
    print(f"Written: {PICTURE}")
