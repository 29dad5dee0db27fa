"""Cards: a few rows of HTML in which everything is escaped, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Longer texts have their middle left out in a short description.
_LONG = 120


class Carded:
    """Something that notebooks show as a card: its own text, unless it says otherwise."""

    __slots__ = ()

    def card_text(self) -> str:
        """What the card holds, its first line as the title."""
        return str(self)

    def _repr_html_(self) -> str:
        title, _, text = self.card_text().strip().partition("\n")
        return card(f"{type(self).__name__}: {title}", (), text.strip("\n"))


class Summarised(Carded):
    """Something with a summary, which is what notebooks show, and whose first line describes it."""

    __slots__ = ()

    def summary(self) -> str:
        """A table in plain text."""
        raise NotImplementedError

    def card_text(self) -> str:
        """The summary."""
        return self.summary()

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return brief(type(self).__name__, self.summary().strip().partition("\n")[0])


def brief(name: str, words: str) -> str:
    """A description in one line."""
    return f"<{name}: {words if len(words) <= _LONG else f'{words[:_LONG]}...'}>"


def card(title: str, rows: Iterable[tuple[str, str]], text: str = "", folded: str = "") -> str:
    """A title, names with values, and text as it stands, folded away under a name if there is one."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    head = f'<table><caption style="text-align:left">{escape(title)}</caption>{cells}</table>'
    body = f"<pre>{escape(text)}</pre>" if text else ""
    if body and folded:
        body = f"<details><summary>{escape(folded)}</summary>{body}</details>"
    return head + body
