"""How names and caps are checked before they are written down."""

from typing import Any

from discreet.exceptions import InvalidInput
from discreet.privacy.budget import Budget

_LONGEST = 200


def name(value: object, argument: str) -> str:
    """A short printable text."""
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST or not value.isprintable():
        raise InvalidInput(f"{argument} must be a printable text of 1 to {_LONGEST} characters: choose a short name.")
    return value


def optional(value: str | None, argument: str) -> str | None:
    """A name, or none."""
    return None if value is None else name(value, argument)


def cap(analyst: str | None, epsilon: float, delta: float | None) -> dict[str, Any]:
    """A cap as it is written to the log."""
    budget = Budget(epsilon=epsilon, delta=delta)
    return {"analyst": optional(analyst, "analyst"), "epsilon": budget.epsilon, "delta": budget.delta}
