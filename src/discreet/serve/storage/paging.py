"""Lists in pages, all by one convention: so many at most, after the place that the page before has named."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import sqlalchemy as sa

from discreet.serve.errors import Refusal

T = TypeVar("T")
# What a page holds unless somebody asks otherwise, and at most.
USUAL, MOST = 50, 200
Order: TypeAlias = Sequence[tuple[sa.Column[Any], bool]]
"""Columns that lists are sorted by, the last of them unique, and whether each goes downwards."""


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list.

    Parameters
    ----------
    limit
        How many at most.
    after
        The place that the page before has named as ``next``; None for the first page.
    """

    limit: int = USUAL
    after: str | None = None


def select_page(
    connection: sa.Connection, wanted: sa.Select[Any], order: Order, page: Page
) -> tuple[list[dict[str, Any]], str | None]:
    """The rows of a page, and the place after which the next one begins; None where this is the last."""
    if page.after is not None:
        wanted = wanted.where(_beyond(order, _place(page.after, [type(column.type) for column, _ in order])))
    wanted = wanted.order_by(*(column.desc() if down else column for column, down in order)).limit(page.limit + 1)
    rows = [dict(row) for row in connection.execute(wanted).mappings()]
    if len(rows) <= page.limit:
        return rows, None
    rows = rows[: page.limit]
    return rows, written([rows[-1][column.key] for column, _ in order])


def cut(items: Sequence[T], limit: int, place: Any) -> tuple[list[T], str | None]:
    """The first of items that are in memory; ``place`` says where one stands, as `number_of` reads it."""
    kept = list(items[:limit])
    return kept, written([place(kept[-1])]) if len(items) > limit else None


def number_of(page: Page) -> int:
    """The place after which a page begins, in a list that goes by numbers from zero on."""
    if page.after is None:
        return 0
    (number,) = _place(page.after, [sa.Integer])
    return int(number)


def text_of(page: Page) -> str:
    """The place after which a page begins, in a list that goes by names."""
    if page.after is None:
        return ""
    (name,) = _place(page.after, [sa.Text])
    return str(name)


def written(values: list[Any]) -> str:
    """A place in a list, as text that fits into an address."""
    return base64.urlsafe_b64encode(json.dumps(values).encode()).rstrip(b"=").decode()


def _place(text: str, kinds: Sequence[type]) -> list[Any]:
    try:
        found = json.loads(base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    fits = isinstance(found, list) and len(found) == len(kinds) and all(map(_fits, found, kinds))
    if not fits:
        raise Refusal("malformed", "after must be the text that the page before has named as next: send it as it was.")
    return list(found)


def _fits(value: Any, kind: type) -> bool:
    if issubclass(kind, sa.Text):
        return isinstance(value, str) and "\0" not in value
    if issubclass(kind, sa.Integer):
        return type(value) is int and 0 <= value < 2**53
    return type(value) in (int, float) and abs(value) < 1e15


def _beyond(order: Order, place: list[Any]) -> sa.ColumnElement[bool]:
    """Rows behind a place: the first column that differs decides."""
    found: sa.ColumnElement[bool] = sa.false()
    for k, (column, down) in enumerate(order):
        same = [earlier == value for (earlier, _), value in zip(order[:k], place, strict=False)]
        found = found | sa.and_(*same, column < place[k] if down else column > place[k])
    return found
