"""How much privacy may be spent, and on what: frozen numbers with names, never positions."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real

from discreet.exceptions import InvalidBudget

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
