"""Which columns of a table are surveyed, and how their values come: numbers as they are, categories as places.

The gate's maps put numbers into cells of public or released edges, so that nothing has to be known of them beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc

from discreet.data._arrays import Float, as_numpy, text_array
from discreet.data.backends.scan import Columns, named
from discreet.data.bounds import Bounds, Levels, Spec
from discreet.data.columns import numbers, texts
from discreet.data.records import CHUNK_ROWS, MIN_ROWS, Chunk, Names
from discreet.exceptions import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyColumns(Columns):
    """Columns that are read for themselves: no outcome, no treatment, and bounds that say what kind each is.

    Numbers come as they are, NaN where they are missing. A category comes as the place of its level among the
    candidates that ``bounds`` list, one past them if it is none of these, two if it is missing.
    """

    has_arms: ClassVar[bool] = False

    @property
    def specs(self) -> dict[str, Spec]:
        """What kind each column is."""
        return dict(zip(self.covariates, self.bounds.columns, strict=True))

    @property
    def wanted(self) -> dict[str, bool]:
        """The columns to read, in order, and whether they must hold text rather than numbers."""
        wanted = {name: isinstance(spec, Levels) and spec.is_text for name, spec in self.specs.items()}
        self.want_filters(wanted)
        return wanted

    @property
    def names(self) -> Names:
        """What errors call the columns."""
        return Names("", "", tuple(map(named, self.covariates)), "")

    def chunks(self, batch: Any, keys: Float | None = None) -> Iterator[Chunk]:
        """Those rows of a batch that are used; its columns are ``wanted``, in that order."""
        batch = self.used(batch)
        held = [batch.column(j) for j in range(self.bounds.p)]
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            rows = slice(start, start + CHUNK_ROWS)
            parts = [column[rows] for column in held]
            m = len(parts[0])
            x = np.empty((len(parts), m))
            for spec, part, name, out in zip(self.bounds.columns, parts, self.names.x, x, strict=True):
                if isinstance(spec, Levels):
                    out[:] = places(part, spec, name)
                else:
                    numbers(part, name, out)
            yield Chunk(y=np.zeros(m), t=np.zeros(m), x=x.T, e=None)

    def check_rows(self, n: int, treated: int, seen: int) -> None:
        """Refuse tables with too few records; there are no arms."""
        if n < MIN_ROWS:
            raise InvalidInput(f"There are fewer than {MIN_ROWS} records, too few for any bounds: bring more.")


def survey(ranges: Sequence[str], categories: Mapping[str, Levels], **rest: Any) -> SurveyColumns:
    """Columns of numbers, and columns of categories with candidates for their levels."""
    declared: dict[str, Any] = dict.fromkeys(ranges, (0.0, 1.0)) | dict(categories)
    bounds = Bounds(outcome=(0.0, 1.0), covariates=declared)
    return SurveyColumns(bounds=bounds, outcome="", treatment="", covariates=tuple(declared), **rest)


def places(values: Any, spec: Levels, name: str) -> Float:
    """Place of each value among the candidates; one past them for any other, two for what is missing."""
    if not spec.is_text:
        x = numbers(values, name)
        levels = np.array(spec.levels, dtype=np.float64)
        found = np.full(len(x), float(len(levels)))
        for place, level in enumerate(levels):
            found[x == level] = place
        found[np.isnan(x)] = len(levels) + 1
        return found
    column = texts(values, name)
    found = np.array(as_numpy(pc.index_in(column, value_set=text_array(spec.levels)), -1), dtype=np.float64)
    found[found < 0] = len(spec.levels)
    found[as_numpy(pc.is_null(column))] = len(spec.levels) + 1
    return found
