"""Replays: the same fit on a neighbour, noise and released values frozen, and how far the exact sums move.

Rounds are adaptive, so two honest fits would ask different questions. A replay answers every question of the second fit
with what the first one released; whatever still differs came from the records, not through the gate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from discreet.audit._neighbours import Table, labelled
from discreet.data._arrays import Float, IntArray
from discreet.data.in_memory import ArrayRecords
from discreet.data.records import Chunk
from discreet.data.views.viewed import ViewedRecords
from discreet.exceptions import DiscreetError, InvalidInput
from discreet.papers.common.arrays import Part, gather
from discreet.privacy.gate import Gate
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.query import Released, Round
from discreet.testing import frozen_noise, seeded_noise, watched

Fit = Callable[[Any], Any]


class Unlike(Exception):
    """A second fit asked or published something that the answers do not explain. What it says holds no values."""


@dataclass(eq=False)
class Tape:
    """What a first fit asked and got, and the exact sums of its rounds.

    Parameters
    ----------
    fit
        From a data set to a fitted estimator, which has ``release_`` and ``guarantee_``.
    table
        The first data set: a `Table`, or whatever ``fit`` takes.
    seed
        Of the noise of the first fit.
    """

    fit: Fit
    table: Any
    seed: int = 5
    rounds: list[Round] = field(default_factory=list)
    # One entry for each round: the number of its gate.
    gates: list[int] = field(default_factory=list)
    sources: list[Any] = field(default_factory=list)
    published: Any = None
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        opened: list[Gate] = []

        def keep(gate: Gate, rounds: tuple[Round, ...]) -> tuple[Released, ...] | None:
            if not any(known is gate for known in opened):
                opened.append(gate)
                self.sources.append(gate._records)
            number = next(place for place, known in enumerate(opened) if known is gate)
            self.rounds += rounds
            self.gates += [number] * len(rounds)
            return None

        with seeded_noise(self.seed), watched(keep):
            fitted = self.fit(self.table)
        if not (hasattr(fitted, "release_") and hasattr(fitted, "guarantee_")):
            raise InvalidInput("what is replayed must have release_ and guarantee_ when fitted: audit a black box.")
        self.published, self.guarantee = published(fitted), fitted.guarantee_

    @cached_property
    def sums_records(self) -> list[bool]:
        """Whether each round sums over records as they came, all or some."""
        plain = [_as_they_came(source, self.table) for source in self.sources]
        return [plain[number] for number in self.gates]

    @cached_property
    def names(self) -> list[str]:
        """Names of all rounds; where there are several gates, with the part of the records that each one saw."""
        several = len(set(self.gates)) > 1
        return [
            f"{each.query.name}, part {number + 1}" if several else each.query.name
            for number, each in zip(self.gates, self.rounds, strict=True)
        ]

    def seen(self, place: int, chunk: Chunk) -> Chunk:
        """Records as a round sees them: through the views that its gate has on them."""
        source, views = self.sources[self.gates[place]], []
        while isinstance(source, ViewedRecords):
            views.append(source.view)
            source = source.source
        for view in reversed(views):
            chunk = view(chunk)
        return chunk

    @property
    def pure(self) -> bool:
        """Whether the noise is Laplace noise."""
        return any(each.pure for each in self.rounds)

    def replay(self, table: Any) -> list[IntArray] | None:
        """Exact sums of all rounds on other records, with the answers of the tape; None if they are refused."""
        left, sums = list(self.rounds), []

        def answer(_: Gate, rounds: tuple[Round, ...]) -> tuple[Released, ...]:
            answers = []
            for own in rounds:
                if not left:
                    raise Unlike("a neighbour was asked more questions than the first data set.")
                taped = left.pop(0)
                if _question(own) != _question(taped):
                    raise Unlike(f"a neighbour was asked another question than {taped.query.name!r}.")
                sums.append(own.exact.copy())
                answers.append(taped.released)
            return tuple(answers)

        try:
            with frozen_noise(), watched(answer):
                fitted = self.fit(table)
        except DiscreetError:
            if sums:
                raise Unlike("a neighbour was refused after questions had been answered.") from None
            return None
        if left:
            raise Unlike("a neighbour was asked fewer questions than the first data set.")
        if published(fitted) != self.published:
            raise Unlike("with the same answers a neighbour published something else: a number left without noise.")
        return sums

    def moves(self, table: Any) -> list[float]:
        """How far each round moved on other records, as a share of its diameter."""
        sums = self.replay(table)
        if sums is None:
            raise Unlike("the neighbour is refused as input.")
        return [ratio(each, each.exact, own) for each, own in zip(self.rounds, sums, strict=True)]


def _as_they_came(source: Any, table: Table) -> bool:
    """Whether a source holds records, all or some, encoded by their bounds and seen through views, if at all."""
    if isinstance(source, ViewedRecords):
        return _as_they_came(source.source, table)
    if isinstance(source, ArrayRecords):
        # Candidates have no further columns.
        return not source.held.more
    if not isinstance(source, Part):
        return False
    x = table.x if table.x.shape[1] else None
    whole = gather(ArrayRecords.of(labelled(table.y, source.bounds), table.t, x, bounds=source.bounds))
    if source.rows.x.shape[1] != whole.x.shape[1]:
        return False
    known = {(y, t, *row) for y, t, row in zip(whole.y, whole.t, whole.x.tolist(), strict=True)}
    return all((y, t, *row) in known for y, t, row in zip(*source.rows[:2], source.rows.x.tolist(), strict=True))


def published(fitted: Any) -> Any:
    """All that a fitted estimator publishes, as text, apart from its guarantee's word for seeded noise."""
    release = fitted.release_
    plain = release.to_dict() if hasattr(release, "to_dict") else release
    return json.dumps(plain, sort_keys=True, default=repr)


def _question(each: Round) -> tuple[Any, ...]:
    # The diameter and the noise follow from public numbers: neighbours must have the same.
    return each.query.name, each.query.share, each.query.geometry, each.diameter, each.scale, np.size(each.released.sd)


def ratio(each: Round, first: IntArray, second: IntArray) -> float:
    """How far integer sums moved, over the stated diameter; above 1 by exact arithmetic, or not at all."""
    steps = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
    if each.pure:
        moved, allowed = Fraction(sum(map(abs, steps))), Fraction(each.diameter)
        return _above_one(float(moved / allowed), moved > allowed)
    full = each.grid.full
    square = Fraction(sum(step**2 for step in steps[:full]) + 2 * sum(step**2 for step in steps[full:]))
    allowed = Fraction(each.diameter) ** 2
    return _above_one(math.sqrt(square / allowed), square > allowed)


def _above_one(value: float, above: bool) -> float:
    return max(value, math.nextafter(1.0, 2.0)) if above else min(value, 1.0)


def standardised_noise(each: Round) -> Float:
    """The noise of a round in units of its stated scale, all numbers alike."""
    noise = (each.noisy - each.exact).astype(np.float64) / each.scale
    if not each.pure:
        # A symmetric matrix has less noise off its diagonal, because each number stands there twice.
        noise[each.grid.full :] *= math.sqrt(2.0)
    return noise


def too_quiet(rounds: list[Round], chance: float = 1e-4) -> list[str]:
    """Names of rounds whose noise is smaller than stated: noise so small would be drawn with at most this chance."""
    from scipy.special import gammainc

    found: list[str] = []
    noises: dict[str, list[tuple[Float, bool]]] = {}
    for each in rounds:
        noises.setdefault(each.query.name, []).append((standardised_noise(each), each.pure))
    for name, parts in noises.items():
        noise, pure = np.concatenate([part for part, _ in parts]), parts[0][1]
        # Sums of |Laplace| and of Gaussian squares have Gamma laws.
        tail = gammainc(len(noise), np.abs(noise).sum()) if pure else gammainc(len(noise) / 2, (noise**2).sum() / 2)
        if tail < chance:
            found.append(name)
    return found


def repeated(rounds: list[Round]) -> list[tuple[str, str]]:
    """Pairs of rounds of one fit that drew the same noise."""
    noises = [(each.query.name, standardised_noise(each)) for each in rounds]
    pairs = []
    for second, (name, noise) in enumerate(noises):
        for other, earlier in noises[:second]:
            size = min(len(noise), len(earlier))
            if np.any(noise[:size]) and np.allclose(noise[:size], earlier[:size], rtol=1e-6, atol=1e-9):
                pairs.append((other, name))
    return pairs
