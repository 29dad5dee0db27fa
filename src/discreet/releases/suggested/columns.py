"""What a suggestion says of one column: a range, or the levels that are frequent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, ClassVar

from discreet.data._arrays import Float
from discreet.data.bounds import Level, Levels, Range, Spec
from discreet.exceptions import InvalidInput
from discreet.postprocessing.ranges.stages import FoundRange

# The level that collects what is not frequent enough for one of its own.
OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedRange:
    """A column of numbers.

    Parameters
    ----------
    name
        The column.
    low, high
        Its range; None where noise hides where its values are.
    centre
        The middle of its values.
    missing, zeros, ones
        Shares of the records, by noisy counts; 0 where noise hides them.
    """

    kind: ClassVar[str] = "range"
    name: str
    low: float | None
    high: float | None
    centre: float | None
    missing: float
    zeros: float
    ones: float

    def __post_init__(self) -> None:
        ends = (self.low, self.high, self.centre)
        if (None in ends and ends != (None, None, None)) or not all(end is None or isfinite(end) for end in ends):
            raise InvalidInput("a suggested range needs low, high and centre, or none of them: check the file.")

    @classmethod
    def of(cls, name: str, found: FoundRange) -> SuggestedRange:
        """From what released counts say."""
        atoms = dict(found.atoms)
        return cls(
            name=name,
            low=found.low,
            high=found.high,
            centre=found.centre,
            missing=found.missing,
            zeros=atoms.get(0.0, 0.0),
            ones=atoms.get(1.0, 0.0),
        )

    @property
    def found(self) -> bool:
        """Whether there is a suggestion at all."""
        return self.low is not None

    @property
    def two_values(self) -> bool:
        """Whether nothing but zeros and ones was seen."""
        return (self.low, self.high) == (0.0, 1.0) and self.zeros > 0.0 and self.ones > 0.0

    @property
    def spec(self) -> Spec:
        """As a declaration; missing values count as the middle where there are any to be seen."""
        assert self.low is not None
        assert self.high is not None
        assert self.centre is not None
        fill = float(f"{min(max(self.centre, self.low), self.high):.3g}") if self.missing else None
        return Range(self.low, self.high, fill=None if fill is None else min(max(fill, self.low), self.high))

    @property
    def words(self) -> str:
        """In words, for a table."""
        return f"{self.low:g} to {self.high:g}" if self.found else "hidden by noise"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else was seen, a sentence each."""
        found = []
        if not self.found:
            found.append("Noise hides where its values are: declare its range from what is known, or spend more.")
        if self.two_values:
            found.append("By noisy counts it holds nothing but 0 and 1.")
        elif self.zeros:
            found.append(f"About {self.zeros:.0%} are exactly 0.")
        if self.missing:
            found.append(f"About {self.missing:.1%} are missing.")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"kind": self.kind} | asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestedLevels:
    """A column of categories.

    Parameters
    ----------
    name
        The column.
    levels
        Levels that stand out of the noise, most frequent first.
    shares
        Of the records, by noisy counts.
    other
        The declared level that collects all others, if there is one.
    rest, missing
        Shares of other values, and of missing ones; 0 where noise hides them.
    """

    kind: ClassVar[str] = "levels"
    name: str
    levels: tuple[Level, ...]
    shares: tuple[float, ...]
    other: Level | None
    rest: float
    missing: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        object.__setattr__(self, "shares", tuple(float(share) for share in self.shares))
        if len(self.levels) != len(self.shares):
            raise InvalidInput("suggested levels need a share each: check the file.")

    @classmethod
    def of(cls, name: str, candidates: Levels, found: Float, clear: float) -> SuggestedLevels:
        """From noisy shares of the candidates, of all other values and of missing ones; ``clear`` ones stand out."""
        shares = found[: len(candidates.levels)]
        # Numbers have no level that could stand for others: all candidates stay.
        kept = [place for place in (-shares).argsort() if shares[place] > clear or not candidates.is_text]
        rest, missing = (float(share) if share > clear else 0.0 for share in found[-2:])
        return cls(
            name=name,
            levels=tuple(candidates.levels[place] for place in kept if candidates.levels[place] != OTHER),
            shares=tuple(float(shares[place]) for place in kept if candidates.levels[place] != OTHER),
            other=OTHER if candidates.is_text else None,
            rest=rest,
            missing=missing,
        )

    @property
    def found(self) -> bool:
        """Whether there is a suggestion at all."""
        return len(self.levels) + (self.other is not None) > 1

    @property
    def spec(self) -> Spec:
        """As a declaration."""
        levels = (*self.levels, *(() if self.other is None else (self.other,)))
        return Levels(levels, other=self.other, fill=self.other if self.missing else None)

    @property
    def words(self) -> str:
        """In words, for a table."""
        listed = ", ".join(f"{level} ({share:.0%})" for level, share in zip(self.levels, self.shares, strict=True))
        if not self.found:
            return "hidden by noise"
        return listed if self.other is None else f"{listed}, and {self.other}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What else was seen, a sentence each."""
        found = []
        if not self.found:
            found.append("No candidate stands out of the noise: declare its levels, or spend more.")
        if self.rest:
            found.append(f"About {self.rest:.1%} have a level that is none of the candidates.")
        if self.missing:
            found.append(f"About {self.missing:.1%} are missing.")
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"kind": self.kind} | asdict(self) | {"levels": list(self.levels), "shares": list(self.shares)}


_KINDS: dict[str, type[SuggestedRange] | type[SuggestedLevels]] = {
    kind.kind: kind for kind in (SuggestedRange, SuggestedLevels)
}


def column_from_dict(plain: Mapping[str, Any]) -> SuggestedRange | SuggestedLevels:
    """Read a column back."""
    rest = dict(plain)
    return _KINDS[rest.pop("kind")](**rest)
