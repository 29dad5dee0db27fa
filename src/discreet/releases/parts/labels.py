"""Treatment, outcome and covariates in the words that bounds declare for them, and in plain ones where they do not."""

from __future__ import annotations

from discreet.data.bounds import Bounds


def titled(bounds: Bounds, plain: str, pattern: str) -> str:
    """A title: the pattern with "effect of ... on ..." in it where labels are declared, else the plain one."""
    if not any(bounds.label(name, "") for name in ("treatment", "outcome")):
        return plain
    return pattern.format(effect=f"effect of {treatment(bounds)} on {with_unit(bounds, 'outcome', 'the outcome')}")


def treatment(bounds: Bounds) -> str:
    """The treatment, inside a sentence."""
    return bounds.label("treatment", "treatment")


def outcome(bounds: Bounds) -> str:
    """What an effect raises or lowers, inside a sentence."""
    label = bounds.label("outcome", "")
    return (f"the probability of {label}" if bounds.binary else label) if label else "the outcome"


def amount(bounds: Bounds, number: str) -> str:
    """A size of an effect with the outcome's unit behind it."""
    unit = bounds.unit("outcome")
    return f"{number} {unit}" if unit else number


def with_unit(bounds: Bounds, name: str, default: str | None = None) -> str:
    """A column's label with its unit in brackets."""
    unit = bounds.unit(name)
    return bounds.label(name, default) + (f" ({unit})" if unit else "")


def effect_axis(bounds: Bounds, average: bool = False) -> str:
    """What an axis of effects shows."""
    words = "average effect" if average else "effect"
    on = f" on {bounds.label('outcome')}" if bounds.label("outcome", "") else ""
    unit = bounds.unit("outcome") or ("the unit of the outcome" if average and not on else "")
    return f"{words} of {treatment(bounds)}{on}" + (f", in {unit}" if unit else "")


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]
