"""What has been spent: one frozen event per noisy release, apart from the accounting that adds them up."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from discreet.exceptions import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianEvent:
    """Sums that were published with Gaussian noise.

    Parameters
    ----------
    name
        What was released, for people.
    diameter
        Largest L2 distance between the sums of two neighbouring data sets.
    sigma
        Scale of the noise, in the same unit; in grid steps when ``lattice`` is true.
    dimension
        How many numbers were released.
    lattice
        Whether the noise was discrete, on the integers.
    """

    kind: ClassVar[str] = "gaussian"
    name: str
    diameter: float
    sigma: float
    dimension: int
    lattice: bool = True

    def __post_init__(self) -> None:
        _check_noise(self.name, self.dimension, diameter=self.diameter, sigma=self.sigma)

    @property
    def mu(self) -> float:
        """The event is mu-GDP, up to the lattice's slack."""
        return self.diameter / self.sigma

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return _plain(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaplaceEvent:
    """Sums that were published with Laplace noise.

    Parameters
    ----------
    name
        What was released, for people.
    diameter
        Largest L1 distance between the sums of two neighbouring data sets.
    scale
        Scale of the noise, in the same unit; in grid steps when ``lattice`` is true.
    dimension
        How many numbers were released.
    lattice
        Whether the noise was discrete, on the integers.
    """

    kind: ClassVar[str] = "laplace"
    name: str
    diameter: float
    scale: float
    dimension: int
    lattice: bool = True

    def __post_init__(self) -> None:
        _check_noise(self.name, self.dimension, diameter=self.diameter, scale=self.scale)

    @property
    def epsilon(self) -> float:
        """The event is epsilon-DP."""
        return self.diameter / self.scale

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return _plain(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedEvent:
    """A mechanism of which only its claim of (epsilon, delta) is known."""

    kind: ClassVar[str] = "claimed"
    name: str
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_number(self.name, "epsilon", self.epsilon)
        if not 0 <= self.delta < 1:
            raise InvalidInput(f"event {self.name!r}: delta must lie in [0, 1); state what the mechanism claims.")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        return _plain(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelEvent:
    """Events on disjoint parts of the records, one tuple of events a part.

    Which part a record belongs to must depend neither on its content nor on other records: neighbouring data sets then
    differ in one part only. (Under add-remove its position depends on the others.)
    """

    kind: ClassVar[str] = "parallel"
    name: str
    parts: "tuple[tuple[Event, ...], ...]"

    def __post_init__(self) -> None:
        _check_name(self.name)
        object.__setattr__(self, "parts", tuple(tuple(part) for part in self.parts))
        if not self.parts or not all(self.parts):
            raise InvalidInput(f"event {self.name!r}: parts must hold at least one event each; leave empty parts out.")

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        parts = [[event.to_dict() for event in part] for part in self.parts]
        return {"kind": self.kind, "name": self.name, "parts": parts}


Event = GaussianEvent | LaplaceEvent | ClaimedEvent | ParallelEvent

_KINDS: dict[str, type[GaussianEvent] | type[LaplaceEvent] | type[ClaimedEvent]] = {
    cls.kind: cls for cls in (GaussianEvent, LaplaceEvent, ClaimedEvent)
}


def event_from_dict(plain: Mapping[str, Any]) -> Event:
    """Read an event back; a kind or field that this version does not know is refused."""
    rest = dict(plain)
    kind = rest.pop("kind", None)
    known = {"name", "parts"} if kind == ParallelEvent.kind else set()
    if kind in _KINDS:
        known = {field.name for field in fields(_KINDS[kind])}
    if not known:
        raise InvalidInput(f"event kind {kind!r} is not known to this version of discreet; read it with a newer one.")
    if rest.keys() - known or known - rest.keys() - {"lattice"}:
        raise InvalidInput(f"a {kind} event must have exactly the fields {sorted(known)}; check the file's version.")
    if kind == ParallelEvent.kind:
        parts = tuple(tuple(event_from_dict(event) for event in part) for part in rest["parts"])
        return ParallelEvent(name=rest["name"], parts=parts)
    return _KINDS[kind](**rest)


def _plain(event: GaussianEvent | LaplaceEvent | ClaimedEvent) -> dict[str, Any]:
    return {"kind": event.kind} | {field.name: getattr(event, field.name) for field in fields(event)}


def _check_noise(name: str, dimension: int, **positive: float) -> None:
    _check_name(name)
    for argument, value in positive.items():
        _check_number(name, argument, value)
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < 1:
        raise InvalidInput(f"event {name!r}: dimension must be a positive integer; count the released numbers.")


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name:
        raise InvalidInput("an event needs a name; say what was released.")


def _check_number(name: str, argument: str, value: float) -> None:
    # Written so that NaN is refused too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not (value > 0 and math.isfinite(value)):
        raise InvalidInput(f"event {name!r}: {argument} must be a positive finite number; an event states a real cost.")
