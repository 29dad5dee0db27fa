"""A search without gradients for the record that moves a round furthest.

With the answers of a tape fixed, a round's map is a fixed function of single records, so that a record's contribution
is computed without fitting anything again. What is found this way is then replayed in full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from discreet.audit._neighbours import Record, extremes, labelled, mutant, random_record, table_of
from discreet.audit._tape import Tape
from discreet.data._arrays import Float
from discreet.data.bounds import Bounds
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.privacy.guarantee import Neighbours
from discreet.privacy.query import Round

# Records that are drawn at random before the search begins, and children of the best pair of each round.
RANDOM, CHILDREN = 24, 6
# With very many numbers a round is searched among fewer records.
_MOST_NUMBERS = 4_000_000


@dataclass(eq=False)
class Pool:
    """Candidates, and what each of them adds to each round that sums over all records.

    Parameters
    ----------
    tape
        The tape whose answers are fixed.
    bounds
        What the candidates must respect.
    relation
        Under "replace-one" two candidates are compared, under "add-remove" one with none.
    propensity
        The known probability of treatment, if there is one.
    as_asked
        From encoded candidates to records as the estimator's questions see them.
    """

    tape: Tape
    bounds: Bounds
    relation: Neighbours
    propensity: float | None
    as_asked: Callable[[Chunk], Chunk] = lambda chunk: chunk
    records: list[Record] = field(default_factory=list)
    parts: list[list[Float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = [[] for _ in self.tape.rounds]

    def add(self, records: list[Record]) -> None:
        """Evaluate candidates."""
        chunk = self._chunk(records)
        self.records += records
        for place, each in enumerate(self.tape.rounds):
            if self.tape.sums_records[place]:
                self.parts[place] += _contributions(each, self.tape.seen(place, chunk), len(records))

    def ratios(self, place: int) -> tuple[float, int, int]:
        """Largest ratio of a round, and between which two candidates (the same one twice: with it and without)."""
        each, values = self.tape.rounds[place], np.array(self.parts[place])
        if self.relation == "add-remove":
            sizes = np.abs(values).sum(axis=1) if each.pure else np.sqrt((values**2).sum(axis=1))
            best = int(np.argmax(sizes))
            return float(sizes[best] / each.diameter), best, best
        if each.pure:
            apart = np.array([np.abs(values - row).sum(axis=1) for row in values])
        else:
            squares = (values**2).sum(axis=1)
            apart = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * values @ values.T, 0.0))
        first, second = np.unravel_index(int(np.argmax(apart)), apart.shape)
        return float(apart[first, second] / each.diameter), int(first), int(second)

    def reach(self, place: int) -> float:
        """Largest contribution of one record, over the radius of the set that it is forced into."""
        each, values = self.tape.rounds[place], np.array(self.parts[place])
        sizes = np.abs(values).sum(axis=1) if each.pure else np.sqrt((values**2).sum(axis=1))
        return float(sizes.max() / (each.diameter / 2 if self.relation == "replace-one" else each.diameter))

    def search(self, rng: Any, generations: int, binary: bool) -> None:
        """Mutate the best pair of every round, again and again."""
        self.add([*extremes(self.bounds, binary=binary), *(self._random(rng, binary) for _ in range(RANDOM))])
        for _ in range(generations):
            children = []
            for place, each in enumerate(self.tape.rounds):
                if not self.tape.sums_records[place] or len(self.records) * each.exact.size > _MOST_NUMBERS:
                    continue
                best, *pair = self.ratios(place)
                if best < 0.999:
                    parents = [self.records[k] for k in set(pair)]
                    children += [
                        mutant(parents[k % len(parents)], self.bounds, rng, binary=binary) for k in range(CHILDREN)
                    ]
            if not children:
                break
            self.add(children)

    def _random(self, rng: Any, binary: bool) -> Record:
        return random_record(self.bounds, rng, binary=binary)

    def _chunk(self, records: list[Record]) -> Chunk:
        # A few records of either arm are required: some of the first data set's go along, and are left out again.
        start = self.tape.table
        along = [start.record(place) for place in range(min(12, start.n))]
        table = table_of([*records, *along], self.bounds)
        x = table.x if self.bounds.p else None
        held = ArrayRecords.of(
            labelled(table.y, self.bounds), table.t, x, bounds=self.bounds, propensity=self.propensity
        )
        chunks = list(held._chunks())
        parts = [np.concatenate([getattr(c, name) for c in chunks])[: len(records)] for name in ("y", "t", "x")]
        e = None if chunks[0].e is None else np.concatenate([c.e for c in chunks if c.e is not None])[: len(records)]
        return self.as_asked(Chunk(parts[0], parts[1], parts[2], e))


def _contributions(each: Round, chunk: Chunk, count: int) -> list[Float]:
    """What each record adds, in grid steps; entries off the diagonal of a matrix count twice."""
    values = np.asarray(each.query.map(chunk))
    columns = each.query.geometry.columns
    values = values.reshape(count, -1) if columns is not None else values
    found = []
    for row in range(count):
        steps = each.grid.add(values[row : row + 1]).astype(np.float64)
        if not each.pure:
            steps[each.grid.full :] *= np.sqrt(2.0)
        found.append(steps)
    return found
