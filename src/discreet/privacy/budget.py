"""How much privacy may be spent, and what has been: budgets, and one frozen event for each noisy release.

Accounting, which adds events up, is apart from both: see `discreet.privacy.accountant`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, ClassVar

from discreet.exceptions import InvalidBudget, InvalidInput

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """An epsilon and a delta.

    Parameters
    ----------
    epsilon
        Positive and finite; smaller is more private.
    delta
        Between 0 and 1, usually far below one over the number of records. None (or 0) means pure epsilon.

    Examples
    --------
    >>> import discreet as dc
    >>> print(dc.Budget(epsilon=1, delta=1e-6))
    epsilon = 1, delta = 1e-06
    >>> dc.Budget(epsilon=1, delta=1e-6).covers(dc.Budget(epsilon=0.5))
    True
    """

    epsilon: float
    delta: float | None = None

    def __post_init__(self) -> None:
        epsilon = _number("epsilon", self.epsilon)
        if epsilon <= 0:
            raise InvalidBudget("epsilon must be positive; typical values lie between 0.1 and 10.")
        delta = None if self.delta is None else _number("delta", self.delta)
        if delta is not None and not 0 <= delta < 1:
            raise InvalidBudget(
                "delta must lie between 0 and 1; typical values lie below 1/n, None asks for pure epsilon."
            )
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta or None)

    @property
    def pure(self) -> bool:
        """Whether no delta is allowed at all."""
        return self.delta is None

    def covers(self, other: "Budget") -> bool:
        """Whether ``other`` asks for no more than this budget, in epsilon and in delta."""
        return other.epsilon <= self.epsilon and (other.delta or 0.0) <= (self.delta or 0.0)

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:.6g}" + ("" if self.delta is None else f", delta = {self.delta:.3g}")


class Shares:
    """Named shares of a budget that add up to at most one.

    Examples
    --------
    >>> Shares(location=0.1, moments=0.5, score=0.4).moments
    0.5
    """

    __slots__ = ("_parts",)

    _parts: dict[str, float]

    def __init__(self, **parts: float) -> None:
        if not parts:
            raise InvalidBudget("Shares needs at least one named part, for example Shares(score=1.0).")
        numbers = {name: _number(f"share {name!r}", value) for name, value in parts.items()}
        for name, value in numbers.items():
            if value <= 0:
                raise InvalidBudget(f"share {name!r} must be positive; leave out what is not needed.")
        total = math.fsum(numbers.values())
        if total > 1 + _ROUNDING:
            raise InvalidBudget(f"the shares add up to {total:.6g}, which is more than the whole budget; lower one.")
        # A sum such as 0.1 + 0.2 + 0.7 may exceed one by a rounding error: take it away, so that no budget can.
        scale = max(total, 1.0)
        object.__setattr__(self, "_parts", {name: value / scale for name, value in numbers.items()})

    def __getitem__(self, name: str) -> float:
        try:
            return self._parts[name]
        except KeyError:
            raise InvalidBudget(f"there is no share {name!r}; the shares are {', '.join(self._parts)}.") from None

    def __getattr__(self, name: str) -> float:
        # Copying and pickling look for dunders before there are any parts.
        if name.startswith("_") or name not in self._parts:
            raise AttributeError(f"there is no share {name!r}")
        return self._parts[name]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Shares are frozen; make new ones")

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shares) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(frozenset(self._parts.items()))

    def __reduce__(self) -> tuple[object, ...]:
        return _shares, (self.to_dict(),)

    def __repr__(self) -> str:
        return f"Shares({', '.join(f'{name}={value:.6g}' for name, value in self._parts.items())})"

    def to_dict(self) -> dict[str, float]:
        """As plain JSON."""
        return dict(self._parts)


def _shares(parts: dict[str, float]) -> Shares:
    return Shares(**parts)


def _number(argument: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise InvalidBudget(f"{argument} must be a finite number; give it as a plain float.")
    return float(value)


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
