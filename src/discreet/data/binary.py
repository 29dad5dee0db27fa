"""Declared labels: of binary outcomes, the event second, and of arms, the control first."""

from __future__ import annotations

from discreet.data._arrays import Level
from discreet.data.columns import Levels, is_data
from discreet.exceptions import InvalidInput

# Unit: arms that a pass over records can mark as seen, a bit each in one integer.
MOST_ARMS = 32


class BinaryRange(tuple[float, float]):
    """The range (0, 1) of a binary outcome, which knows the two labels at its ends.

    To whoever computes it is that range, and equal to it; bounds that are made from it are of the same binary outcome.
    """

    levels: tuple[Level, ...]

    def __new__(cls, levels: tuple[Level, ...]) -> BinaryRange:
        made = super().__new__(cls, (0.0, 1.0))
        made.levels = levels
        return made

    def __getnewargs__(self) -> tuple[tuple[Level, ...]]:
        return (self.levels,)

    def __repr__(self) -> str:
        return repr(list(self.levels))


def binary_levels(declared: object, fill: Level | None) -> Levels | None:
    """The two levels of a binary outcome, if a list (or such bounds' own outcome) declares one; None for a range."""
    if isinstance(declared, BinaryRange):
        declared = list(declared.levels)
    if not isinstance(declared, list):
        return None
    if len(declared) != 2:
        raise InvalidInput(
            "A list declares a binary outcome, [no event, event]: list two labels, or write a range as a tuple "
            "(low, high)."
        )
    return Levels(tuple(declared), fill=fill)


def unlabelled(name: str) -> str:
    """The refusal of an outcome that is none of the two labels."""
    return (
        f"{name} must hold one of the two labels in Bounds(outcome=[no event, event]) in every record: recode it, "
        "declare outcome_fill= for missing ones, or declare a range (low, high)."
    )


def arm_labels(declared: object) -> tuple[Level, ...] | None:
    """The labels of the arms, if any are declared: two, or more where there are several arms."""
    if declared is None:
        return None
    if is_data(declared) or not isinstance(declared, tuple | list) or not 2 <= len(declared) <= MOST_ARMS:
        raise InvalidInput(
            f"treatment=(control, treated) takes two labels, or a list of up to {MOST_ARMS} for several arms: name the "
            "control label first."
        )
    return Levels(tuple(declared)).levels
