"""Records in two parts that do not depend on what they hold: by their order, or by a hash of a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from discreet.data.backends import TableSpec, open_table
from discreet.data.backends.base import Options
from discreet.data.backends.text.format import TEXT_OPTIONS
from discreet.data.filters import Half
from discreet.data.records import Chunk
from discreet.estimators._base import Progress
from discreet.exceptions import InvalidInput
from discreet.papers.common.arrays import gather, take


class SampleSplit(NamedTuple):
    """Records in two parts."""

    first: Chunk
    second: Chunk

    @classmethod
    def by_order(cls, rows: Chunk | SampleSplit) -> SampleSplit:
        """By their order, unless they are in two parts already."""
        if isinstance(rows, cls):
            return rows
        assert isinstance(rows, Chunk)
        middle = len(rows.t) // 2
        return cls(take(rows, slice(middle)), take(rows, slice(middle, None)))

    @classmethod
    def by_hash(
        cls, source: Any, column: str, key: int, progress: Progress | None, **options: Any
    ) -> tuple[SampleSplit, tuple[str, ...]]:
        """By a keyed hash of a column, the same on every engine; and what is public of the table."""
        engine = Options.of({name: options.pop(name, None) for name in ("relation", "query", "workers", *TEXT_OPTIONS)})

        def part(which: int, text: bool) -> tuple[Chunk, tuple[str, ...]]:
            spec = TableSpec(**options, half=(column, Half(key, which, text)))
            with open_table(source, spec, engine) as records:
                return gather(records, progress), records.public

        try:
            (first, public), text = part(0, False), False
        except InvalidInput as refusal:
            if f"{column!r} must hold numbers" not in str(refusal):
                raise
            (first, public), text = part(0, True), True
        return cls(first, part(1, text)[0]), public

    @property
    def whole(self) -> Chunk:
        """Both together."""
        first, second = self
        e = None if first.e is None or second.e is None else np.concatenate([first.e, second.e])
        y, t, x = (np.concatenate([getattr(part, name) for part in self]) for name in ("y", "t", "x"))
        return Chunk(y, t, x, e)
